//! The role in `rbac.yaml` is enough, and none of it is too much.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Event, Namespace, Secret};
use kubewright::prelude::*;
use kubewright::testing::World;
use kubewright_example_secsynch::{COPIED_BY, SecSynch};

/// Waits for a copy with this value.
async fn until_copied(world: &World, namespace: &str, value: &str) -> Secret {
    let has_value = |copy: Option<&Secret>| {
        let data = copy.and_then(|copy| copy.data.as_ref());
        data.is_some_and(|data| data.get("token").is_some_and(|it| it.0 == value.as_bytes()))
    };
    let key = Key::new(namespace, "registry");
    let copy = world.until(&key, has_value).await;
    copy.expect("it is there")
}

async fn create_namespace(world: &World, name: &str) {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    let created = world.client.create(&namespace).await;
    created.expect("it is created");
}

/// Copies come, follow their source, are put back, reach a namespace that is late, and go, also those of nobody; an event counts
/// how often it was.
#[tokio::test(start_paused = true)]
async fn operator_needs_exactly_its_role() {
    let world = World::builder()
        .role(include_str!("../rbac.yaml"))
        .time_limit(Duration::from_secs(600))
        .without_controllers()
        .start()
        .await;
    let text = include_str!("../sample.yaml");
    let (secret, synch) = text.split_once("---\n").expect("two documents");
    let secret: Secret = serde_saphyr::from_str(secret).expect("a Secret");
    let synch: SecSynch = serde_saphyr::from_str(synch).expect("a SecSynch");
    create_namespace(&world, "team-a").await;
    let secret = world.client.create(&secret).await.expect("it is created");
    let synch = world.client.create(&synch).await.expect("it is created");
    until_copied(&world, "team-a", "not-a-secret").await;
    let is_counted = |events: &[Event]| events.iter().any(|event| event.count >= Some(3));
    world.until_all(Query::all(), is_counted).await;
    create_namespace(&world, "team-b").await;
    until_copied(&world, "team-b", "not-a-secret").await;
    let other = ByteString(b"other".to_vec());
    let changed = world.client.modify(&secret, |secret| {
        secret.data = Some(BTreeMap::from([("token".to_owned(), other)]));
    });
    changed.await.expect("it is changed");
    until_copied(&world, "team-a", "other").await;
    world.settled().await;
    world.assert_no_writes(Duration::from_secs(600)).await;

    let deleted = world.client.delete(&synch, Delete::background()).await;
    deleted.expect("it is deleted");
    let key = Key::new(
        "default",
        synch.metadata.name.as_deref().unwrap_or_default(),
    );
    world
        .until(&key, |synch: Option<&SecSynch>| synch.is_none())
        .await;
    let key = Key::new("team-a", "registry");
    world
        .until(&key, |copy: Option<&Secret>| copy.is_none())
        .await;
    let mut orphan = Secret::default();
    orphan.metadata.name = Some("registry".to_owned());
    orphan.metadata.namespace = Some("team-a".to_owned());
    let maker = Key::of(&synch).to_string();
    orphan.metadata.annotations = Some(BTreeMap::from([(COPIED_BY.to_owned(), maker)]));
    let created = world.client.create(&orphan).await;
    created.expect("it is created");
    world
        .until(&key, |copy: Option<&Secret>| copy.is_none())
        .await;
    world.assert_exact_role();
}
