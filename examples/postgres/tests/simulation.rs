//! The objects of a PostgresCluster under sampled faults. There are no pods here: who is primary is tested in `terms`.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_example_postgres::{PostgresCluster, controller};
use kubewright_sim::{BuiltIn, Campaign, Walk};
use serde_json::json;

const SAMPLE: &str = include_str!("../config/samples/postgres_v1alpha1_postgrescluster.yaml");

fn operator(name: &str) -> Campaign {
    Campaign::new(name, |process| {
        process.manager().name("postgres").controller(controller())
    })
    // Nobody makes pods; what the cluster owns goes with it.
    .controllers([BuiltIn::GarbageCollector, BuiltIn::Volumes])
    // Random: another one in each run.
    .mask("data.password")
}

fn campaign() -> Campaign {
    operator("postgres")
        .install(&PostgresCluster::crd())
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
        .step("delete", async |user| {
            user.delete::<PostgresCluster>(&Key::new("default", "ledger"))
                .await
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

#[test]
fn every_property_of_a_postgres_cluster_is_changed() {
    let mut sample: PostgresCluster = serde_saphyr::from_str(SAMPLE).expect("a sample");
    // Leases are renewed five times in their time, which is no rest with short ones.
    sample.spec.lease_seconds = Some(20);
    let backup =
        json!({"intervalSeconds": 600, "keep": 2, "storage": {"size": "1Gi", "class": "standard"}});
    sample.spec.backup = serde_json::from_value(backup).ok();
    let operator = operator("postgres-walk")
        // It counts changes.
        .mask("status.revision")
        .step("make the claim of the backups", async |user| {
            let claim = json!({
                "metadata": {"name": "ledger-backup", "namespace": "default"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            });
            let claim = serde_json::from_value(claim).map_err(Error::msg)?;
            user.create::<PersistentVolumeClaim>(&claim).await?;
            Ok(())
        });
    let report = Walk::new::<PostgresCluster>(operator)
        .starting_with(&sample)
        // The webhook refuses those that are not members.
        .values("spec.primary", ["ledger-0", "ledger-1"])
        .values("spec.leaseSeconds", [30, 60])
        .sample(3)
        .check();
    assert_eq!(report.changed, report.properties, "{report}");
}
