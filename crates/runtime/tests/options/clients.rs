//! What clients do, and their options: how objects are written, how they are deleted, and what a status is.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kubewright_cache::Factory;
use kubewright_runtime::{Change, Client, Delete, Key, Query, Scope};
use kubewright_testing::{Verb, Wire, limit};
use serde_json::json;

use super::{config, deployment, server};

#[limited::test]
async fn objects_are_created_read_replaced_patched_and_deleted() {
    let (server, _) = server().await;
    let wire = Wire::new(server.service());
    let client = Client::new(wire.client());
    let key = Key::new("default", "a");
    let made = limit(client.create(&config("a"))).await.expect("created");
    let mut changed = made.clone();
    changed.immutable = Some(false);
    let replaced = limit(client.update(&changed)).await.expect("replaced");
    assert_eq!(replaced.immutable, Some(false));
    let stale = limit(client.update(&changed)).await;
    assert!(stale.expect_err("it changed since").is_conflict());

    let mut newer = replaced.clone();
    newer.data = Some(BTreeMap::from([("a".to_owned(), "1".to_owned())]));
    let patched = limit(client.patch(&replaced, &newer)).await;
    assert_eq!(patched.expect("patched").change, Change::Updated);
    let read = limit(client.get::<ConfigMap>(&key)).await.expect("read");
    let read = read.expect("it is there");
    assert_eq!((read.immutable, &read.data), (Some(false), &newer.data));
    let all = Query::all().namespace("default");
    let listed = limit(client.list::<ConfigMap>(all)).await;
    assert_eq!(listed.expect("they are read").len(), 1);

    let same = |config: &mut ConfigMap| config.immutable = Some(false);
    let sent = wire.count(Verb::Update);
    let written = limit(client.create_or_update(&key, same)).await;
    assert_eq!(written.expect("nothing to do").change, Change::Unchanged);
    assert_eq!(
        wire.count(Verb::Update),
        sent,
        "nothing is sent for nothing"
    );

    let deleted = limit(client.delete(&*read, Delete::background())).await;
    deleted.expect("deleted");
    let read = limit(client.get::<ConfigMap>(&key)).await;
    assert!(read.expect("read").is_none());
}

#[limited::test]
async fn dependents_go_first_or_stay_where_that_is_asked_for() {
    let (_server, kube) = server().await;
    let client = Client::new(kube);
    for (name, delete, finalizer) in [
        ("waits", Delete::foreground(), Some("foregroundDeletion")),
        ("leaves", Delete::orphan(), Some("orphan")),
        ("goes", Delete::background(), None),
    ] {
        let made = limit(client.create(&config(name))).await.expect("created");
        limit(client.delete(&made, delete)).await.expect("deleted");
        let key = Key::new("default", name);
        let left = limit(client.live().get::<ConfigMap>(&key)).await;
        let left = left.expect("it is read").map(|config| config.metadata);
        // The server holds it until the collector of garbage has seen to its dependents, and none runs here.
        let held = left.and_then(|meta| meta.deletion_timestamp.and(meta.finalizers));
        let expected = finalizer.map(|name| vec![name.to_owned()]);
        assert_eq!(held, expected, "{name}");
    }
}

#[limited::test]
async fn deletion_takes_as_long_as_the_grace_period_says() {
    let (_server, kube) = server().await;
    let client = Client::new(kube);
    let pod = json!({
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    });
    let pod: Pod = serde_json::from_value(pod).expect("a pod");
    let made = limit(client.create(&pod)).await.expect("created");
    let slowly = Delete::background().grace(Duration::from_secs(40));
    limit(client.delete(&made, slowly)).await.expect("deleted");
    let key = Key::new("default", "p");
    let left = limit(client.live().get::<Pod>(&key)).await;
    let left = left.expect("it is read").expect("it has time to end");
    assert_eq!(left.metadata.deletion_grace_period_seconds, Some(40));
    let at_once = Delete::background().grace(Duration::ZERO);
    limit(client.delete(&left, at_once)).await.expect("deleted");
    let left = limit(client.live().get::<Pod>(&key)).await;
    assert!(left.expect("it is read").is_none());
}

/// The replicas that are wanted, those that there are, and those that are ready.
fn replicas(deployment: &Deployment) -> [Option<i32>; 3] {
    let status = deployment.status.clone().unwrap_or_default();
    let spec = deployment.spec.replicas;
    [spec, status.replicas, status.ready_replicas]
}

#[limited::test]
async fn status_is_replaced_and_patched_without_the_rest() {
    let (server, _) = server().await;
    let wire = Wire::new(server.service());
    let client = Client::new(wire.client());
    let made = limit(client.create(&deployment("d"))).await;
    let made = made.expect("created");
    let change = |deployment: &Deployment, all: i32, ready: Option<i32>| {
        let mut changed = deployment.clone();
        changed.spec.replicas = Some(9);
        let status = changed.status.get_or_insert_default();
        (status.replicas, status.ready_replicas) = (Some(all), ready);
        changed
    };
    let updated = limit(client.update_status(&change(&made, 3, None))).await;
    let updated = updated.expect("replaced");
    assert_eq!(replicas(&updated), [Some(1), Some(3), None]);
    let stale = limit(client.update_status(&change(&made, 4, None))).await;
    assert!(stale.expect_err("it changed since").is_conflict());

    let newer = change(&updated, 3, Some(2));
    let patched = limit(client.patch_status(&updated, &newer)).await;
    let patched = patched.expect("patched");
    assert_eq!(patched.change, Change::Updated);
    assert_eq!(replicas(&patched), [Some(1), Some(3), Some(2)]);
    let same = limit(client.patch_status(&patched, &*patched)).await;
    assert_eq!(same.expect("nothing to do").change, Change::Unchanged);
    assert_eq!(wire.count(Verb::Patch), 1, "nothing is sent for nothing");
}

#[limited::test]
async fn selectors_of_the_factory_hold_for_every_kind_without_a_policy() {
    let (_server, kube) = server().await;
    let user = Client::new(kube.clone());
    for (name, app) in [("a", "web"), ("b", "db"), ("c", "web")] {
        let mut config = config(name);
        config.metadata.labels = Some(BTreeMap::from([("app".to_owned(), app.to_owned())]));
        limit(user.create(&config)).await.expect("created");
    }
    let scope = Scope::all().labels("app=web").fields("metadata.name!=c");
    let factory = Factory::new(kube.clone()).scope(scope);
    let client = Client::builder(kube).factory(factory).build();
    let listed = limit(client.list::<ConfigMap>(Query::all())).await;
    let listed = listed.expect("they are read");
    let names = listed.iter().filter_map(|it| it.metadata.name.as_deref());
    assert_eq!(names.collect::<Vec<_>>(), ["a"]);
}
