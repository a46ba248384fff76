//! What is refused, and what is not.

use kube::Api;
use kube::api::{Patch, PatchParams};
use kubewright::prelude::*;
use kubewright::testing::World;
use kubewright_example_etcd::EtcdCluster;
use kubewright_example_etcd::api::{EtcdClusterStatus, MemberState, Role, Tls};
use serde_json::json;

fn sample(size: i32) -> EtcdCluster {
    let spec = json!({"size": size, "version": "3.4.23"});
    let mut cluster = EtcdCluster::new("e", serde_json::from_value(spec).expect("a spec"));
    cluster.metadata.namespace = Some("default".to_owned());
    cluster
}

#[tokio::test]
async fn changes_that_cost_a_cluster_are_refused() {
    let world = World::builder()
        .manager(kubewright_example_etcd::setup)
        .start()
        .await;
    let even = world.client.create(&sample(4)).await;
    let even = Error::from(even.expect_err("four is even")).report();
    assert!(
        even.contains("spec.size") && even.contains("must be an odd number"),
        "{even}"
    );
    let cluster = world.client.create(&sample(5)).await.expect("five is odd");
    assert_eq!(cluster.spec.tls, Tls::Enabled, "by default");
    assert_eq!(cluster.spec.image, "quay.io/coreos/etcd", "by default");

    let changed = world
        .client
        .modify(&cluster, |it| it.spec.tls = Tls::Disabled)
        .await;
    let changed = Error::from(changed.expect_err("it is for ever")).report();
    assert!(changed.contains("spec.tls"), "{changed}");

    // The API server asks no webhook of the kind about its scale.
    let clusters: Api<EtcdCluster> = Api::namespaced(world.cluster.client(), "default");
    let even = Patch::Merge(json!({"spec": {"replicas": 4}}));
    let params = PatchParams::default();
    let scaled = clusters.patch_scale("e", &params, &even).await;
    let scaled = scaled.expect_err("four is even").to_string();
    assert!(scaled.contains("must be an odd number"), "{scaled}");
}

#[test]
fn changes_are_refused_when_they_are_unsafe_for_the_cluster_as_it_is() {
    let member = |n: usize, healthy: bool| MemberState {
        id: format!("{n}"),
        name: format!("e-{n}"),
        role: if n == 0 { Role::Leader } else { Role::Follower },
        healthy,
        version: Some("3.4.23".to_owned()),
        unhealthy_since: None,
    };
    let mut old = sample(5);
    let status = |away: usize| EtcdClusterStatus {
        version: Some("3.4.23".to_owned()),
        members: (0..5).map(|n| member(n, n + away < 5)).collect(),
        ..EtcdClusterStatus::default()
    };
    let check = |old: &EtcdCluster, change: &dyn Fn(&mut EtcdCluster)| {
        let mut new = old.clone();
        change(&mut new);
        kubewright_example_etcd::webhook::validate(&new, Some(old)).is_ok()
    };
    old.status = Some(status(0));
    assert!(check(&old, &|it| it.spec.size = 1), "all are healthy");
    assert!(check(&old, &|it| it.spec.version = "3.5.1".to_owned()));
    assert!(
        !check(&old, &|it| it.spec.version = "3.6.0".to_owned()),
        "skips 3.5"
    );
    assert!(
        !check(&old, &|it| it.spec.version = "3.3.0".to_owned()),
        "goes back"
    );
    old.status = Some(status(1));
    assert!(!check(&old, &|it| it.spec.size = 1), "one is away");
    assert!(
        check(&old, &|it| it.spec.size = 3),
        "three were a quorum of five"
    );
    assert!(check(&old, &|it| it.spec.size = 7), "more is never less");
}
