//! The objects of a PostgresCluster under sampled faults. There are no pods here: who is primary is tested in `terms`.

use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_example_postgres::{PostgresCluster, controller};
use kubewright_sim::Campaign;

const SAMPLE: &str = include_str!("../config/samples/postgres_v1alpha1_postgrescluster.yaml");

fn campaign() -> Campaign {
    Campaign::new("postgres", |process| {
        process.manager().name("postgres").controller(controller())
    })
    .cluster(|cluster| cluster.without_controllers())
    .install(&PostgresCluster::crd())
    // Random: another one in each run.
    .mask("data.password")
    .step("create", async |user| {
        let sample: PostgresCluster = serde_saphyr::from_str(SAMPLE)?;
        user.create(&sample).await?;
        Ok(())
    })
    .step("one member more", async |user| {
        let change = |cluster: &mut PostgresCluster| cluster.spec.members = 4;
        user.modify(&Key::new("default", "ledger"), change).await?;
        Ok(())
    })
    .invariant("a term never goes back", |state| {
        let clusters = state.list::<PostgresCluster>();
        clusters.iter().all(|cluster| {
            let status = cluster.status.as_ref();
            status.is_none_or(|status| status.term == 1 && !status.initialized)
        })
    })
}

#[test]
fn postgres_survives_every_sampled_fault() {
    campaign().sample(8).check();
}

#[test]
fn postgres_survives_several_faults_at_once() {
    campaign().check_seeds(2);
}
