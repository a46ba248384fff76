//! What the controller does, sentence by sentence.

#![allow(clippy::disallowed_names, reason = "a Foo is called foo")]

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kubewright::prelude::*;
use kubewright::runtime::cause::Trigger;
use kubewright::testing::World;
use kubewright_example_foo::{Foo, FooSpec, FooStatus};
use serde_json::json;

/// A server that knows Foos, and the operator with its role. Nobody makes Pods: tests say themselves what is available.
async fn world() -> World {
    World::builder()
        .role(include_str!("../rbac.yaml"))
        .manager(|manager| manager.name("sample-controller"))
        .time_limit(Duration::from_secs(600))
        .without_controllers()
        .start()
        .await
}

/// Lets everything that is under way come to rest.
async fn settle(world: &World) {
    world.settled_for(Duration::from_secs(5)).await;
}

fn foo(name: &str, replicas: Option<i32>) -> Foo {
    let deployment_name = format!("{name}-deployment");
    let mut foo = Foo::new(
        name,
        FooSpec {
            deployment_name,
            replicas,
        },
    );
    foo.metadata.namespace = Some("default".to_owned());
    foo
}

async fn read_foo(world: &World, name: &str) -> Foo {
    let read = world
        .client
        .live()
        .get::<Foo>(&Key::new("default", name))
        .await;
    read.expect("the server answers").expect("it is there")
}

fn deployment_key(name: &str) -> Key {
    Key::new("default", &format!("{name}-deployment"))
}

async fn deployment(world: &World, name: &str) -> Option<Deployment> {
    let read = world.client.live().get(&deployment_key(name)).await;
    read.expect("the server answers")
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.replicas
}

async fn until_replicas(world: &World, name: &str, wanted: i32) -> Deployment {
    let has = |found: Option<&Deployment>| found.and_then(replicas) == Some(wanted);
    let found = world.until(&deployment_key(name), has).await;
    found.expect("it is there")
}

async fn scale(world: &World, name: &str, replicas: i32) {
    let present = read_foo(world, name).await;
    let scaled = world
        .client
        .modify(&present, |foo| foo.spec.replicas = Some(replicas));
    scaled.await.expect("it is scaled");
}

/// The events of this reason about a Foo.
async fn events(world: &World, foo: &str, reason: &str) -> Vec<Event> {
    let query = Query::all().namespace("default");
    let all = world.client.live().list::<Event>(query).await;
    let mut all = all.expect("the server answers");
    all.retain(|event| {
        event.involved_object.name.as_deref() == Some(foo)
            && event.reason.as_deref() == Some(reason)
    });
    all
}

#[tokio::test(start_paused = true)]
async fn foo_gets_a_deployment_that_it_owns() {
    let world = world().await;
    let user = &world.client;
    let made = user
        .create(&foo("a", Some(2)))
        .await
        .expect("it is created");
    let deployment = until_replicas(&world, "a", 2).await;
    let value = serde_json::to_value(&deployment).expect("it is JSON");
    assert_eq!(
        value["metadata"]["ownerReferences"],
        json!([{
            "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "name": "a",
            "uid": made.uid(), "controller": true, "blockOwnerDeletion": true,
        }])
    );
    let labels = json!({"app": "nginx", "controller": "a"});
    assert_eq!(value["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(value["spec"]["template"]["metadata"]["labels"], labels);
    let container = &value["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        (&container["name"], &container["image"]),
        (&json!("nginx"), &json!("nginx:latest"))
    );

    settle(&world).await;
    assert_eq!(
        read_foo(&world, "a").await.status,
        Some(FooStatus {
            available_replicas: 0
        })
    );
    let events = events(&world, "a", "Synced").await;
    let [event] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(event.type_.as_deref(), Some("Normal"));
    assert_eq!(event.message.as_deref(), Some("Foo synced successfully"));
    let source = event
        .source
        .as_ref()
        .and_then(|source| source.component.as_deref());
    assert_eq!(source, Some("sample-controller"));
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn deployment_is_scaled_with_the_foo_and_put_back_when_scaled_by_hand() {
    let world = world().await;
    let user = &world.client;
    user.create(&foo("a", Some(1)))
        .await
        .expect("it is created");
    until_replicas(&world, "a", 1).await;
    scale(&world, "a", 3).await;
    let present = until_replicas(&world, "a", 3).await;
    let by_hand = user.modify(&present, |d| d.spec.replicas = Some(7));
    by_hand.await.expect("it is scaled");
    until_replicas(&world, "a", 3).await;
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn foo_without_replicas_leaves_the_size_to_others() {
    let world = world().await;
    let user = &world.client;
    user.create(&foo("a", None)).await.expect("it is created");
    let present = until_replicas(&world, "a", 1).await;
    let by_hand = user.modify(&present, |d| d.spec.replicas = Some(7));
    by_hand.await.expect("it is scaled");
    settle(&world).await;
    assert_eq!(
        deployment(&world, "a").await.as_ref().and_then(replicas),
        Some(7)
    );
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn status_tells_how_many_are_available() {
    let world = world().await;
    let user = &world.client;
    user.create(&foo("a", Some(2)))
        .await
        .expect("it is created");
    let mut present = until_replicas(&world, "a", 2).await;
    for available in [1, 2, 0] {
        let updated = user.modify_status(&present, |deployment| {
            let status = deployment.status.get_or_insert_default();
            status.replicas = Some(2);
            status.ready_replicas = Some(2);
            status.available_replicas = Some(available);
        });
        present = updated.await.expect("the status is written").into_object();
        let says_so = |foo: Option<&Foo>| {
            let status = foo.and_then(|foo| foo.status.as_ref());
            status.is_some_and(|status| status.available_replicas == available)
        };
        world.until(&Key::new("default", "a"), says_so).await;
    }
    world.stop_operator().await.expect("it ends well");
}

/// A Deployment of the name that the Foo wants, with these owners.
fn foreign(owners: serde_json::Value) -> Deployment {
    let labels = json!({"app": "other"});
    let deployment = json!({
        "metadata": {"name": "a-deployment", "namespace": "default", "ownerReferences": owners},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "other", "image": "other"}]},
            },
        },
    });
    serde_json::from_value(deployment).expect("it is a Deployment")
}

async fn foreign_deployment_is_left_alone(owners: serde_json::Value) {
    let world = world().await;
    let user = &world.client;
    let other = user.create(&foreign(owners)).await.expect("it is created");
    user.create(&foo("a", Some(3)))
        .await
        .expect("it is created");
    let message = r#"Resource "a-deployment" already exists and is not managed by Foo"#;
    let event = world
        .until_some("it is counted", async || {
            let mut events = events(&world, "a", "ErrResourceExists").await;
            assert!(events.len() <= 1, "it is one event: {events:?}");
            events.pop().filter(|event| event.count >= Some(3))
        })
        .await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.message.as_deref(), Some(message));
    let history = world.reconciles();
    assert_eq!(history.last().map(|run| &*run.ended), Some(message));
    assert!(history.iter().all(|run| run.writes.is_empty()));
    let now = deployment(&world, "a").await.expect("it is still there");
    assert_eq!(
        now.resource_version(),
        other.resource_version(),
        "it is not touched"
    );

    user.delete(&other, Delete::background())
        .await
        .expect("it is deleted");
    until_replicas(&world, "a", 3).await;
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn deployment_of_nobody_is_left_alone_and_a_warning_says_so() {
    foreign_deployment_is_left_alone(json!([])).await;
}

#[tokio::test(start_paused = true)]
async fn deployment_of_another_kind_is_left_alone_and_a_warning_says_so() {
    let owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "another", "controller": true,
    });
    foreign_deployment_is_left_alone(json!([owner])).await;
}

#[tokio::test(start_paused = true)]
async fn deployment_of_an_earlier_foo_of_that_name_is_left_alone() {
    let owner = json!({
        "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "name": "a",
        "uid": "of-another-time", "controller": true,
    });
    foreign_deployment_is_left_alone(json!([owner])).await;
}

#[tokio::test(start_paused = true)]
async fn deleted_deployment_comes_back() {
    let world = world().await;
    let user = &world.client;
    user.create(&foo("a", Some(2)))
        .await
        .expect("it is created");
    let first = until_replicas(&world, "a", 2).await;
    user.delete(&first, Delete::background())
        .await
        .expect("it is deleted");
    let is_back = |found: Option<&Deployment>| found.is_some_and(|it| it.uid() != first.uid());
    let second = world.until(&deployment_key("a"), is_back).await;
    let second = second.expect("it is there");
    assert_eq!(replicas(&second), Some(2));
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn resync_without_a_change_does_nothing() {
    let world = world().await;
    let user = &world.client;
    for name in ["a", "b"] {
        user.create(&foo(name, Some(2)))
            .await
            .expect("it is created");
        until_replicas(&world, name, 2).await;
    }
    settle(&world).await;
    let (writes, runs) = (world.writes().len(), world.reconciles().len());
    tokio::time::sleep(Duration::from_secs(600)).await;
    let history = world.reconciles();
    let later = &history[runs..];
    assert!(
        later.len() >= 2 * 19,
        "each Foo is looked at every half a minute: {}",
        later.len()
    );
    for run in later {
        assert!(
            run.causes
                .iter()
                .all(|cause| cause.trigger == Trigger::Resync),
            "{run:?}"
        );
        assert_eq!((&*run.ended, run.writes.len()), ("done", 0));
    }
    assert_eq!(world.writes().len(), writes, "events included");
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn events_are_counted_into_one() {
    let world = world().await;
    let user = &world.client;
    user.create(&foo("a", Some(1)))
        .await
        .expect("it is created");
    for replicas in 1..=7 {
        if replicas > 1 {
            scale(&world, "a", replicas).await;
        }
        until_replicas(&world, "a", replicas).await;
        tokio::time::sleep(Duration::from_secs(160)).await;
    }
    let events = events(&world, "a", "Synced").await;
    let [event] = &events[..] else {
        panic!("{events:?}")
    };
    // What `kubectl describe` shows as `x7 over 16m`.
    assert_eq!(event.count, Some(7));
    let first = event.first_timestamp.as_ref().expect("a first time").0;
    let last = event.last_timestamp.as_ref().expect("a last time").0;
    assert_eq!(last.duration_since(first).as_mins(), 16);
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn foo_without_a_name_for_its_deployment_is_not_tried_again() {
    let world = world().await;
    let user = &world.client;
    let mut nameless = foo("a", Some(1));
    nameless.spec.deployment_name = String::new();
    user.create(&nameless).await.expect("it is created");
    settle(&world).await;
    let history = world.reconciles();
    let ended: Vec<&str> = history.iter().map(|run| &*run.ended).collect();
    assert_eq!(ended, ["deployment name must be specified"]);
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test]
async fn replicas_are_from_one_to_ten() {
    let world = world().await;
    let user = &world.client;
    for (replicas, taken) in [(0, false), (1, true), (10, true), (11, false)] {
        let made = user
            .create(&foo(&format!("r{replicas}"), Some(replicas)))
            .await;
        assert_eq!(made.is_ok(), taken, "{replicas}");
        assert!(made.is_ok() || made.is_err_and(|error| error.is_invalid()));
    }
}
