//! What becomes of copies, sentence by sentence.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Event, Namespace, Secret};
use kube::ResourceExt;
use kubewright::prelude::*;
use kubewright::runtime::cause::Trigger;
use kubewright::testing::{Clock, World};
use kubewright_example_secsynch::{COPIED_BY, FINALIZER, SecSynch, SecSynchSpec};
use serde_json::json;

/// A server with namespaces `a`, `b` and `c` and a Secret `default/token`, and the operator with its role.
async fn world() -> World {
    let mut builder = World::builder();
    for name in ["a", "b", "c"] {
        builder = builder.object(&json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        }));
    }
    builder
        .object(&secret("default", "one"))
        .role(include_str!("../rbac.yaml"))
        .clock(Clock::starting_at(jiff::Timestamp::UNIX_EPOCH))
        .time_limit(Duration::from_secs(600))
        .without_controllers()
        .start()
        .await
}

/// Lets everything that is under way come to rest.
async fn settle(world: &World) {
    world.settled_for(Duration::from_secs(5)).await;
}

fn synch_key() -> Key {
    Key::new("default", "sync")
}

async fn create_namespace(user: &Client, name: &str) {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    user.create(&namespace).await.expect("it is created");
}

fn secret(namespace: &str, value: &str) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some("token".to_owned());
    secret.metadata.namespace = Some(namespace.to_owned());
    secret.data = data(value);
    secret
}

fn data(value: &str) -> Option<BTreeMap<String, ByteString>> {
    let bytes = ByteString(value.as_bytes().to_vec());
    Some(BTreeMap::from([("token".to_owned(), bytes)]))
}

fn synch(destinations: &[&str]) -> SecSynch {
    let spec = SecSynchSpec {
        secret_name: "token".to_owned(),
        source_namespace: "default".to_owned(),
        destination_namespaces: destinations.iter().map(|name| (*name).to_owned()).collect(),
    };
    let mut synch = SecSynch::new("sync", spec);
    synch.metadata.namespace = Some("default".to_owned());
    synch
}

async fn read_secret(user: &Client, namespace: &str) -> Option<Secret> {
    let key = Key::new(namespace, "token");
    user.live().get(&key).await.expect("the server answers")
}

async fn read_synch(user: &Client) -> Option<SecSynch> {
    let key = Key::new("default", "sync");
    user.live().get(&key).await.expect("the server answers")
}

async fn change(user: &Client, namespace: &str, value: &str) {
    let present = read_secret(user, namespace).await.expect("it is there");
    let changed = user.modify(&present, |secret| secret.data = data(value));
    changed.await.expect("it is changed");
}

/// Where there are Secrets of that name, except the source, and what is in them.
async fn copies(user: &Client) -> BTreeMap<String, String> {
    let all = user
        .live()
        .list::<Secret>(Query::all())
        .await
        .expect("the server answers");
    let named = all
        .iter()
        .filter(|s| s.name_any() == "token" && s.namespace().as_deref() != Some("default"));
    let value = |secret: &Secret| {
        let value = secret.data.as_ref().and_then(|data| data.get("token"));
        String::from_utf8_lossy(&value.expect("it has data").0).into_owned()
    };
    named
        .map(|secret| (secret.namespace().unwrap_or_default(), value(secret)))
        .collect()
}

/// Waits until copies are exactly there, as `namespace=value`, and stay so.
async fn until_copies(world: &World, wanted: &[&str]) {
    let user = &world.client;
    let pairs = wanted.iter().filter_map(|pair| pair.split_once('='));
    let wanted: BTreeMap<String, String> = pairs.map(|(n, v)| (n.into(), v.into())).collect();
    let are_there = async || (copies(user).await == wanted).then_some(());
    world.until_some("the copies are there", are_there).await;
    // An operator that has nothing to do for them does not touch them.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(copies(user).await, wanted, "and stay");
}

async fn events(user: &Client, reason: &str) -> Vec<Event> {
    let query = Query::all().namespace("default");
    let all = user.live().list::<Event>(query).await;
    let mut all = all.expect("the server answers");
    all.retain(|event| event.reason.as_deref() == Some(reason));
    all
}

#[tokio::test(start_paused = true)]
async fn secret_is_copied_and_the_time_is_written() {
    let world = world().await;
    let user = &world.client;
    let mut source = read_secret(user, "default").await.expect("it is there");
    user.delete(&source, Delete::background())
        .await
        .expect("it is deleted");
    source = secret("default", "one");
    source.type_ = Some("example.com/token".to_owned());
    user.create(&source).await.expect("it is created");
    user.create(&synch(&["a", "b", "default"]))
        .await
        .expect("it is created");
    until_copies(&world, &["a=one", "b=one"]).await;
    let copy = read_secret(user, "a").await.expect("it is there");
    assert_eq!(copy.type_.as_deref(), Some("example.com/token"));
    assert_eq!(
        copy.annotations().get(COPIED_BY).map(String::as_str),
        Some("default/sync")
    );
    let synch = read_synch(user).await.expect("it is there");
    let time = synch
        .status
        .and_then(|status| status.last_sync_time)
        .expect("a time");
    assert!(
        time.0.as_second() < 60,
        "by the manager's clock: {:?}",
        time.0
    );
    let source = read_secret(user, "default").await.expect("it is there");
    assert!(
        source.annotations().is_empty(),
        "a source is no copy of itself"
    );
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn change_of_the_source_changes_the_copies() {
    let world = world().await;
    let user = &world.client;
    user.create(&synch(&["a", "b"]))
        .await
        .expect("it is created");
    until_copies(&world, &["a=one", "b=one"]).await;
    let last_sync = async || read_synch(user).await?.status?.last_sync_time;
    let before = last_sync().await;
    change(user, "default", "two").await;
    until_copies(&world, &["a=two", "b=two"]).await;
    assert!(last_sync().await > before);
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn source_of_another_type_makes_other_copies() {
    let world = world().await;
    let user = &world.client;
    user.create(&synch(&["a"])).await.expect("it is created");
    until_copies(&world, &["a=one"]).await;
    let source = read_secret(user, "default").await.expect("it is there");
    user.delete(&source, Delete::background())
        .await
        .expect("it is deleted");
    let mut other = secret("default", "two");
    other.type_ = Some("example.com/token".to_owned());
    user.create(&other).await.expect("it is created");
    until_copies(&world, &["a=two"]).await;
    let copy = read_secret(user, "a").await.expect("it is there");
    assert_eq!(copy.type_.as_deref(), Some("example.com/token"));
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn deleting_the_source_deletes_the_copies_until_it_is_back() {
    let world = world().await;
    let user = &world.client;
    user.create(&synch(&["a", "b"]))
        .await
        .expect("it is created");
    until_copies(&world, &["a=one", "b=one"]).await;
    let source = read_secret(user, "default").await.expect("it is there");
    user.delete(&source, Delete::background())
        .await
        .expect("it is deleted");
    until_copies(&world, &[]).await;
    assert_eq!(events(user, "SourceMissing").await.len(), 1);
    user.create(&secret("default", "two"))
        .await
        .expect("it is created");
    until_copies(&world, &["a=two", "b=two"]).await;
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn changed_list_adds_and_removes() {
    let world = world().await;
    let user = &world.client;
    let made = user
        .create(&synch(&["a", "b"]))
        .await
        .expect("it is created");
    until_copies(&world, &["a=one", "b=one"]).await;
    let other = synch(&["b", "c"]).spec;
    user.modify(&made, |synch| synch.spec = other)
        .await
        .expect("it is changed");
    until_copies(&world, &["b=one", "c=one"]).await;
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn missing_namespace_is_tried_again_and_served_as_soon_as_it_appears() {
    let world = world().await;
    let user = &world.client;
    user.create(&synch(&["a", "late"]))
        .await
        .expect("it is created");
    until_copies(&world, &["a=one"]).await;
    // Long enough for the next try to be minutes away.
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    let history = world.reconciles();
    let tries = history.iter().filter(|run| run.ended == "requeue").count();
    assert!(tries >= 10, "it is tried again: {tries}");
    let warnings = events(user, "NamespaceMissing").await;
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}")
    };
    assert_eq!(warning.message.as_deref(), Some("no such namespace: late"));

    let before = tokio::time::Instant::now();
    create_namespace(user, "late").await;
    let is_there = |copy: Option<&Secret>| copy.is_some();
    world.until(&Key::new("late", "token"), is_there).await;
    assert!(
        before.elapsed() < std::time::Duration::from_secs(1),
        "{:?}",
        before.elapsed()
    );
    until_copies(&world, &["a=one", "late=one"]).await;
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn deleting_the_secsynch_deletes_its_copies_and_nothing_else() {
    let world = world().await;
    let user = &world.client;
    user.create(&secret("c", "mine"))
        .await
        .expect("it is created");
    user.create(&synch(&["a", "b", "c"]))
        .await
        .expect("it is created");
    until_copies(&world, &["a=one", "b=one", "c=mine"]).await;
    let present = read_synch(user).await.expect("it is there");
    assert_eq!(present.finalizers(), [FINALIZER]);
    user.delete(&present, Delete::background())
        .await
        .expect("it is deleted");
    let is_gone = |synch: Option<&SecSynch>| synch.is_none();
    world.until(&synch_key(), is_gone).await;
    assert_eq!(
        copies(user).await,
        BTreeMap::from([("c".to_owned(), "mine".to_owned())])
    );
    assert!(
        read_secret(user, "default").await.is_some(),
        "the source stays"
    );
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn copy_of_a_secsynch_that_is_gone_is_deleted() {
    let world = world().await;
    let user = &world.client;
    let mut orphan = secret("a", "one");
    let maker = synch_key().to_string();
    orphan.annotations_mut().insert(COPIED_BY.to_owned(), maker);
    user.create(&orphan).await.expect("it is created");
    let other = secret("b", "other");
    user.create(&other).await.expect("it is created");
    settle(&world).await;
    assert_eq!(read_secret(user, "a").await, None);
    assert!(read_secret(user, "b").await.is_some(), "not a copy");
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn secsynch_deleted_while_nobody_runs_is_held_until_its_copies_are_gone() {
    let world = world().await;
    let user = &world.client;
    user.create(&synch(&["a"])).await.expect("it is created");
    until_copies(&world, &["a=one"]).await;
    world.stop_operator().await.expect("it ends well");
    let present = read_synch(user).await.expect("it is there");
    user.delete(&present, Delete::background())
        .await
        .expect("it is deleted");
    settle(&world).await;
    assert!(read_synch(user).await.is_some(), "the finalizer holds it");
    world.start_operator().await.expect("it starts");
    let is_gone = |synch: Option<&SecSynch>| synch.is_none();
    world.until(&synch_key(), is_gone).await;
    assert_eq!(copies(user).await, BTreeMap::new());
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn its_own_writes_of_the_secsynch_do_not_trigger_it() {
    let world = world().await;
    let user = &world.client;
    user.create(&synch(&["a"])).await.expect("it is created");
    until_copies(&world, &["a=one"]).await;
    for value in ["two", "three"] {
        change(user, "default", value).await;
        until_copies(&world, &[&format!("a={value}")]).await;
    }
    let history = world.reconciles();
    let wrote = |resource: &str| {
        let writes = history.iter().flat_map(|run| &run.writes);
        writes.filter(|write| &*write.resource == resource).count()
    };
    // The finalizer, and the status three times.
    assert_eq!(wrote("secsynches.tutorial.study.dev"), 4);
    let causes: Vec<_> = history.iter().flat_map(|run| &run.causes).collect();
    let by_itself = causes.iter().filter(|cause| &*cause.kind == "SecSynch");
    let triggers: Vec<_> = by_itself.map(|cause| &cause.trigger).collect();
    assert_eq!(
        triggers,
        [&Trigger::Added],
        "only its creation: {causes:#?}"
    );
    let runs = history.len();
    world.assert_no_writes(Duration::from_secs(600)).await;
    assert_eq!(world.reconciles().len(), runs, "it rests");
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn copy_that_is_edited_or_deleted_by_hand_is_put_back() {
    let world = world().await;
    let user = &world.client;
    user.create(&synch(&["a", "b"]))
        .await
        .expect("it is created");
    until_copies(&world, &["a=one", "b=one"]).await;
    change(user, "a", "edited").await;
    until_copies(&world, &["a=one", "b=one"]).await;
    let present = read_secret(user, "b").await.expect("it is there");
    let frozen = user.modify(&present, |secret| {
        secret.data = data("edited");
        secret.immutable = Some(true);
    });
    frozen.await.expect("it is changed");
    until_copies(&world, &["a=one", "b=one"]).await;
    let present = read_secret(user, "b").await.expect("it is there");
    user.delete(&present, Delete::background())
        .await
        .expect("it is deleted");
    until_copies(&world, &["a=one", "b=one"]).await;
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn secret_of_somebody_else_is_not_overwritten_until_it_is_gone() {
    let world = world().await;
    let user = &world.client;
    let mine = user
        .create(&secret("b", "mine"))
        .await
        .expect("it is created");
    user.create(&synch(&["a", "b"]))
        .await
        .expect("it is created");
    until_copies(&world, &["a=one", "b=mine"]).await;
    change(user, "default", "two").await;
    until_copies(&world, &["a=two", "b=mine"]).await;
    let now = read_secret(user, "b").await.expect("it is there");
    assert_eq!(
        now.resource_version(),
        mine.resource_version(),
        "it is not touched"
    );
    let warnings = events(user, "ErrResourceExists").await;
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}")
    };
    assert_eq!(warning.type_.as_deref(), Some("Warning"));
    let message = r#"Secret "b/token" already exists and is not managed by SecSynch"#;
    assert_eq!(warning.message.as_deref(), Some(message));

    user.delete(&now, Delete::background())
        .await
        .expect("it is deleted");
    until_copies(&world, &["a=two", "b=two"]).await;
    world.stop_operator().await.expect("it ends well");
}
