//! S19 line by line, on simulated nodes, in virtual time, with the operator's own role.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kubewright::prelude::*;
use kubewright::testing::World;
use kubewright_example_podtato_head::{Part, PodtatoHeadApp, name};

const SAMPLE: &str = include_str!("../config/samples/podtato_v1alpha1_podtatoheadapp.yaml");

async fn start() -> World {
    let world = World::builder()
        .role(include_str!("../rbac.yaml"))
        .without_webhooks()
        .time_limit(Duration::from_secs(1000))
        .nodes(2)
        .seed(1)
        .start()
        .await;
    // Three is a version that nobody ever built.
    world.cluster.nodes().miss_image("podtato-head:3");
    let sample: PodtatoHeadApp = serde_saphyr::from_str(SAMPLE).expect("a sample");
    world.client.create(&sample).await.expect("it is created");
    world
}

fn key() -> Key {
    Key::new("default", "podtato-head")
}

async fn app(world: &World) -> PodtatoHeadApp {
    let app = world.client.live().get(&key()).await;
    app.expect("the server answers").expect("it is there")
}

async fn change(world: &World, change: impl FnOnce(&mut PodtatoHeadApp)) {
    let app = app(world).await;
    let changed = world.client.modify(&app, change).await;
    changed.expect("it is changed");
}

async fn get<K: kubewright::runtime::client::TypedObject>(world: &World, part: Part) -> Option<K> {
    let key = Key::new("default", &name("podtato-head", part));
    let found = world.client.live().get(&key).await;
    found.expect("the server answers")
}

fn reason(app: &PodtatoHeadApp, kind: &str) -> String {
    let status = app.status.clone().unwrap_or_default();
    let condition = conditions::find(&status.conditions, kind).cloned();
    condition.map_or(String::new(), |condition| condition.reason)
}

/// Waits until the present generation has come to this reason.
async fn until(world: &World, wanted: &str) -> PodtatoHeadApp {
    let is_there = |app: Option<&PodtatoHeadApp>| {
        app.is_some_and(|app| {
            let observed = app.status.as_ref().and_then(|it| it.observed_generation);
            observed == app.metadata.generation && reason(app, "Progressing") == wanted
        })
    };
    let app = world.until(&key(), is_there).await;
    app.expect("it is there")
}

fn is_ready(deployment: Option<&Deployment>) -> bool {
    let status = deployment.and_then(|it| it.status.as_ref());
    status.and_then(|status| status.ready_replicas) == Some(1)
}

async fn images(world: &World) -> BTreeSet<String> {
    let mut images = BTreeSet::new();
    for part in Part::ALL {
        let deployment: Option<Deployment> = get(world, part).await;
        let pod = deployment.and_then(|it| it.spec.template.spec);
        images.extend(pod.and_then(|pod| pod.containers[0].image.clone()));
    }
    images
}

#[tokio::test(start_paused = true)]
async fn entry_is_exposed_when_all_parts_are_ready() {
    let world = start().await;
    world
        .until_some("the entry is exposed", async || {
            let service: Option<Service> = get(&world, Part::Entry).await;
            let entry: Option<Deployment> = get(&world, Part::Entry).await;
            let mut others_are_ready = true;
            for part in Part::ALL.into_iter().filter(|part| *part != Part::Entry) {
                others_are_ready &= is_ready(get(&world, part).await.as_ref());
            }
            assert!(entry.is_none() || others_are_ready, "the entry is early");
            assert!(
                service.is_none() || is_ready(entry.as_ref()),
                "it is exposed early"
            );
            service
        })
        .await;
    let app = until(&world, "Complete").await;
    assert_eq!(reason(&app, "Ready"), "AllPartsReady");
    let status = app.status.expect("a status");
    assert_eq!(status.parts.len(), 6);
    assert!(
        status
            .parts
            .iter()
            .all(|part| part.ready && part.version == "1")
    );
    world.settled().await;
    world.assert_no_writes(Duration::from_secs(3600)).await;
}

#[tokio::test(start_paused = true)]
async fn upgrade_waits_for_each_part_and_a_failed_one_is_rolled_back() {
    let world = start().await;
    until(&world, "Complete").await;
    change(&world, |app| app.spec.version = "2".to_owned()).await;
    // Looked at all the time: a part has the new version only when all before it are ready with it.
    world
        .until_some("all parts have the new version", async || {
            let mut before_is_ready = true;
            let mut all = true;
            for part in Part::ALL {
                let deployment: Option<Deployment> = get(&world, part).await;
                let deployment = deployment.expect("it is there");
                let pod = deployment.spec.template.spec.clone().expect("a pod");
                let is_new = pod.containers[0].image.as_deref() == Some("podtato-head:2");
                assert!(!is_new || before_is_ready, "{part} is early");
                let status = deployment.status.clone().unwrap_or_default();
                let settled = status.observed_generation == deployment.metadata.generation;
                before_is_ready = is_new && settled && status.updated_replicas == Some(1);
                all &= is_new;
            }
            all.then_some(())
        })
        .await;
    until(&world, "Complete").await;

    change(&world, |app| app.spec.version = "3".to_owned()).await;
    let app = until(&world, "RolledBack").await;
    assert_eq!(reason(&app, "Ready"), "AllPartsReady");
    let rollback = app.status.and_then(|status| status.rollback);
    let rollback = rollback.expect("it is on record");
    assert_eq!(rollback.part, Part::Hat);
    assert!(rollback.message.contains("timed out"), "{rollback:?}");
    assert_eq!(
        images(&world).await,
        BTreeSet::from(["podtato-head:2".to_owned()])
    );
    world.until_event("RollingBack").await;
    // It is not tried again, whatever else changes.
    change(&world, |app| app.spec.replicas = Some(2)).await;
    until(&world, "RolledBack").await;
    world.settled().await;
    world.assert_no_writes(Duration::from_secs(3600)).await;

    change(&world, |app| app.spec.version = "4".to_owned()).await;
    let app = until(&world, "Complete").await;
    assert_eq!(app.status.and_then(|status| status.rollback), None);
    assert_eq!(
        images(&world).await,
        BTreeSet::from(["podtato-head:4".to_owned()])
    );

    let app = self::app(&world).await;
    let deleted = world.client.delete(&app, Delete::background()).await;
    deleted.expect("it is deleted");
    let gone = |pods: &[Pod]| pods.is_empty();
    world
        .until_all(Query::all().namespace("default"), gone)
        .await;
    world.assert_exact_role();
}

#[tokio::test(start_paused = true)]
async fn first_version_that_fails_is_reported_and_nothing_is_exposed() {
    let world = World::builder()
        .role(include_str!("../rbac.yaml"))
        .without_webhooks()
        .time_limit(Duration::from_secs(1000))
        .nodes(2)
        .start()
        .await;
    world.cluster.nodes().miss_image("podtato-head:1");
    let sample: PodtatoHeadApp = serde_saphyr::from_str(SAMPLE).expect("a sample");
    world.client.create(&sample).await.expect("it is created");
    let app = until(&world, "Stalled").await;
    assert_eq!(reason(&app, "Ready"), "PartsNotReady");
    assert!(get::<Service>(&world, Part::Entry).await.is_none());
    assert!(get::<Deployment>(&world, Part::Entry).await.is_none());
    // A version that works gets it going: nothing has to be deleted by hand.
    change(&world, |app| app.spec.version = "2".to_owned()).await;
    until(&world, "Complete").await;
}

#[tokio::test(start_paused = true)]
async fn rollback_that_was_decided_survives_a_crash_of_the_operator() {
    let world = start().await;
    until(&world, "Complete").await;
    change(&world, |app| app.spec.version = "3".to_owned()).await;
    let decided = |app: Option<&PodtatoHeadApp>| {
        let status = app.and_then(|app| app.status.as_ref());
        status.is_some_and(|status| status.rollback.is_some())
    };
    world.until(&key(), decided).await;
    world.kill_operator().await;
    world.start_operator().await.expect("it starts");
    until(&world, "RolledBack").await;
    assert_eq!(
        images(&world).await,
        BTreeSet::from(["podtato-head:1".to_owned()])
    );
}
