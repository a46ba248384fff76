//! The frame: start, time, seeds, forks, going back.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, ServiceAccount};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use tokio::time::sleep;

use crate::scene::{all, create, delete, exists, here, owner, rest, start, there, until};

fn config_map(name: &str) -> serde_json::Value {
    json!({"metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn every_namespace_has_an_account_and_knows_whom_to_trust() {
    let cluster = start().await;
    create(
        &all::<Namespace>(&cluster),
        json!({"metadata": {"name": "later"}}),
    )
    .await;
    for namespace in ["default", "kube-system", "later"] {
        let accounts = there::<ServiceAccount>(&cluster, namespace);
        until("an account", || exists(&accounts, "default")).await;
        let maps = there::<ConfigMap>(&cluster, namespace);
        until("an authority", || exists(&maps, "kube-root-ca.crt")).await;
        let map = maps.get("kube-root-ca.crt").await.expect("there");
        let authority = cluster.server().certificate_authority().expect("made");
        assert_eq!(map.data.expect("data")["ca.crt"], authority);
    }
}

#[tokio::test(start_paused = true)]
async fn an_hour_passes_and_events_with_it() {
    let cluster = start().await;
    let events = here::<Event>(&cluster);
    let event = json!({
        "metadata": {"name": "e"}, "involvedObject": {"namespace": "default"},
        "lastTimestamp": "2030-01-01T00:30:00Z",
    });
    create(&events, event).await;
    sleep(Duration::from_secs(85 * 60)).await;
    assert!(exists(&events, "e").await);
    sleep(Duration::from_secs(10 * 60)).await;
    assert!(!exists(&events, "e").await);
}

/// Uids and versions of what a cluster made in its first hour, in a runtime of its own.
fn first_hour() -> Vec<[Option<String>; 4]> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let cluster = start().await;
        sleep(Duration::from_secs(3600)).await;
        let maps = kube::Api::<ConfigMap>::all(cluster.client());
        let accounts = kube::Api::<ServiceAccount>::all(cluster.client());
        let all = ListParams::default();
        let mut made = Vec::new();
        for map in maps.list(&all).await.expect("listed") {
            made.push([
                Some(map.name_any()),
                map.namespace(),
                map.uid(),
                map.resource_version(),
            ]);
        }
        for account in accounts.list(&all).await.expect("listed") {
            let name = Some(account.name_any());
            made.push([
                name,
                account.namespace(),
                account.uid(),
                account.resource_version(),
            ]);
        }
        made
    })
}

#[test]
fn one_seed_gives_one_cluster() {
    let first = first_hour();
    for _ in 0..4 {
        assert_eq!(first_hour(), first);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_lives_its_own_life() {
    let cluster = start().await;
    let maps = here::<ConfigMap>(&cluster);
    let parent = create(&maps, config_map("parent")).await;
    let child = json!({"metadata": {"name": "child", "ownerReferences": [owner(&parent)]}});
    create(&maps, child).await;
    let fork = cluster.fork().await.expect("forked");
    let theirs = here::<ConfigMap>(&fork);
    delete(&theirs, "parent", DeleteParams::background()).await;
    until("the child in the fork", async || {
        !exists(&theirs, "child").await
    })
    .await;
    rest().await;
    assert!(exists(&maps, "parent").await && exists(&maps, "child").await);
    drop(cluster);
    create(&theirs, config_map("alone")).await;
}

#[tokio::test(start_paused = true)]
async fn a_reset_cluster_is_as_it_began_and_goes_on() {
    let cluster = start().await;
    let (maps, namespaces) = (here::<ConfigMap>(&cluster), all::<Namespace>(&cluster));
    create(&maps, config_map("a")).await;
    create(&namespaces, json!({"metadata": {"name": "later"}})).await;
    cluster.reset().await.expect("in memory");
    assert!(!exists(&maps, "a").await);
    assert!(!exists(&namespaces, "later").await);
    create(&namespaces, json!({"metadata": {"name": "later"}})).await;
    cluster.ready().await.expect("controllers are back");
    assert!(exists(&there::<ServiceAccount>(&cluster, "later"), "default").await);
}

#[tokio::test(start_paused = true)]
async fn snapshot_can_be_restored_and_started_many_times() {
    let cluster = start().await;
    let maps = here::<ConfigMap>(&cluster);
    create(&maps, config_map("kept")).await;
    let snapshot = cluster.snapshot().await;
    delete(&maps, "kept", DeleteParams::default()).await;
    for _ in 0..2 {
        let other = snapshot.cluster().await.expect("started");
        assert!(exists(&here::<ConfigMap>(&other), "kept").await);
    }
    cluster.restore(&snapshot).await.expect("in memory");
    assert!(exists(&maps, "kept").await);
}

#[tokio::test(start_paused = true)]
async fn many_clusters_live_in_one_process() {
    let clusters = futures::future::join_all((0..8).map(|_| start())).await;
    for (n, cluster) in clusters.iter().enumerate() {
        create(&here::<ConfigMap>(cluster), config_map(&format!("of-{n}"))).await;
    }
    for (n, cluster) in clusters.into_iter().enumerate() {
        let maps = here::<ConfigMap>(&cluster)
            .list(&ListParams::default())
            .await;
        let names: Vec<_> = maps.expect("listed").iter().map(|m| m.name_any()).collect();
        assert_eq!(names, ["kube-root-ca.crt".to_owned(), format!("of-{n}")]);
        cluster.stop().await;
    }
}
