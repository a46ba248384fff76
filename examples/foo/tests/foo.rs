//! What the controller does, sentence by sentence.

#![allow(clippy::disallowed_names, reason = "a Foo is called foo")]

mod world;

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use kube::{CustomResourceExt, ResourceExt};
use kubewright::prelude::*;
use kubewright::runtime::cause::Trigger;
use kubewright_example_foo::{Foo, FooSpec, FooStatus, controller};
use kubewright_server::Server;
use kubewright_testing::until;
use serde_json::json;
use world::{Operator, admin, settle};

/// A cluster that knows Foos, a user, and the operator.
async fn world() -> (Server, Client, Operator) {
    let server = Server::builder().start().await.expect("a server starts");
    let user = admin(&server);
    user.create(&Foo::crd())
        .await
        .expect("the definition is taken");
    let operator = Operator::start(server.service(), |_| controller());
    (server, user, operator)
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

async fn read_foo(user: &Client, name: &str) -> Foo {
    let read = user.live().get::<Foo>(&Key::new("default", name)).await;
    read.expect("the server answers").expect("it is there")
}

async fn deployment(user: &Client, name: &str) -> Option<Deployment> {
    let key = Key::new("default", &format!("{name}-deployment"));
    user.live().get(&key).await.expect("the server answers")
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.replicas
}

async fn until_replicas(user: &Client, name: &str, wanted: i32) -> Deployment {
    let look = async || {
        let found = deployment(user, name).await;
        found.filter(|found| replicas(found) == Some(wanted))
    };
    until("the Deployment has its replicas", look).await
}

async fn scale(user: &Client, name: &str, replicas: i32) {
    let present = read_foo(user, name).await;
    let scaled = user.modify(&present, |foo| foo.spec.replicas = Some(replicas));
    scaled.await.expect("it is scaled");
}

/// The events of this reason about a Foo.
async fn events(user: &Client, foo: &str, reason: &str) -> Vec<Event> {
    let query = Query::all().namespace("default");
    let all = user.live().list::<Event>(query).await;
    let mut all = all.expect("the server answers");
    all.retain(|event| {
        event.involved_object.name.as_deref() == Some(foo)
            && event.reason.as_deref() == Some(reason)
    });
    all
}

#[tokio::test(start_paused = true)]
async fn foo_gets_a_deployment_that_it_owns() {
    let (_server, user, operator) = world().await;
    let made = user
        .create(&foo("a", Some(2)))
        .await
        .expect("it is created");
    let deployment = until_replicas(&user, "a", 2).await;
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

    settle().await;
    assert_eq!(
        read_foo(&user, "a").await.status,
        Some(FooStatus {
            available_replicas: 0
        })
    );
    let events = events(&user, "a", "Synced").await;
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
    operator.end().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn deployment_is_scaled_with_the_foo_and_put_back_when_scaled_by_hand() {
    let (_server, user, operator) = world().await;
    user.create(&foo("a", Some(1)))
        .await
        .expect("it is created");
    until_replicas(&user, "a", 1).await;
    scale(&user, "a", 3).await;
    let present = until_replicas(&user, "a", 3).await;
    let by_hand = user.modify(&present, |d| d.spec.replicas = Some(7));
    by_hand.await.expect("it is scaled");
    until_replicas(&user, "a", 3).await;
    operator.end().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn foo_without_replicas_leaves_the_size_to_others() {
    let (_server, user, operator) = world().await;
    user.create(&foo("a", None)).await.expect("it is created");
    let present = until_replicas(&user, "a", 1).await;
    let by_hand = user.modify(&present, |d| d.spec.replicas = Some(7));
    by_hand.await.expect("it is scaled");
    settle().await;
    assert_eq!(
        deployment(&user, "a").await.as_ref().and_then(replicas),
        Some(7)
    );
    operator.end().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn status_tells_how_many_are_available() {
    let (_server, user, operator) = world().await;
    user.create(&foo("a", Some(2)))
        .await
        .expect("it is created");
    let mut present = until_replicas(&user, "a", 2).await;
    for available in [1, 2, 0] {
        let told = user.modify_status(&present, |deployment| {
            let status = deployment.status.get_or_insert_default();
            status.replicas = Some(2);
            status.ready_replicas = Some(2);
            status.available_replicas = Some(available);
        });
        present = told.await.expect("the status is written").into_object();
        until("the Foo says so", async || {
            let status = read_foo(&user, "a").await.status;
            status.filter(|status| status.available_replicas == available)
        })
        .await;
    }
    operator.end().await.expect("it ends well");
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
    let (_server, user, operator) = world().await;
    let other = user.create(&foreign(owners)).await.expect("it is created");
    user.create(&foo("a", Some(3)))
        .await
        .expect("it is created");
    let message = r#"Resource "a-deployment" already exists and is not managed by Foo"#;
    let event = until("it is counted", async || {
        let mut events = events(&user, "a", "ErrResourceExists").await;
        assert!(events.len() <= 1, "it is one event: {events:?}");
        events.pop().filter(|event| event.count >= Some(3))
    })
    .await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.message.as_deref(), Some(message));
    let history = operator.handle.history().list();
    assert_eq!(history.last().map(|run| &*run.ended), Some(message));
    assert!(history.iter().all(|run| run.writes.is_empty()));
    let now = deployment(&user, "a").await.expect("it is still there");
    assert_eq!(
        now.resource_version(),
        other.resource_version(),
        "it is not touched"
    );

    user.delete(&other, Delete::background())
        .await
        .expect("it is deleted");
    until_replicas(&user, "a", 3).await;
    operator.end().await.expect("it ends well");
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
    let (_server, user, operator) = world().await;
    user.create(&foo("a", Some(2)))
        .await
        .expect("it is created");
    let first = until_replicas(&user, "a", 2).await;
    user.delete(&first, Delete::background())
        .await
        .expect("it is deleted");
    let second = until("it is back", async || {
        let found = deployment(&user, "a").await;
        found.filter(|found| found.uid() != first.uid())
    })
    .await;
    assert_eq!(replicas(&second), Some(2));
    operator.end().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn resync_without_a_change_does_nothing() {
    let (_server, user, operator) = world().await;
    for name in ["a", "b"] {
        user.create(&foo(name, Some(2)))
            .await
            .expect("it is created");
        until_replicas(&user, name, 2).await;
    }
    settle().await;
    let (writes, runs) = (operator.writes(), operator.handle.history().list().len());
    tokio::time::sleep(Duration::from_secs(600)).await;
    let history = operator.handle.history().list();
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
    assert_eq!(operator.writes(), writes, "events included");
    operator.end().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn events_are_counted_into_one() {
    let (_server, user, operator) = world().await;
    user.create(&foo("a", Some(1)))
        .await
        .expect("it is created");
    for replicas in 1..=7 {
        if replicas > 1 {
            scale(&user, "a", replicas).await;
        }
        until_replicas(&user, "a", replicas).await;
        tokio::time::sleep(Duration::from_secs(160)).await;
    }
    let events = events(&user, "a", "Synced").await;
    let [event] = &events[..] else {
        panic!("{events:?}")
    };
    // What `kubectl describe` shows as `x7 over 16m`.
    assert_eq!(event.count, Some(7));
    let first = event.first_timestamp.as_ref().expect("a first time").0;
    let last = event.last_timestamp.as_ref().expect("a last time").0;
    assert_eq!(last.duration_since(first).as_mins(), 16);
    operator.end().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn foo_without_a_name_for_its_deployment_is_not_tried_again() {
    let (_server, user, operator) = world().await;
    let mut nameless = foo("a", Some(1));
    nameless.spec.deployment_name = String::new();
    user.create(&nameless).await.expect("it is created");
    settle().await;
    let history = operator.handle.history().list();
    let ended: Vec<&str> = history.iter().map(|run| &*run.ended).collect();
    assert_eq!(ended, ["deployment name must be specified"]);
    operator.end().await.expect("it ends well");
}

#[tokio::test]
async fn replicas_are_from_one_to_ten() {
    let (_server, user, _operator) = world().await;
    for (replicas, taken) in [(0, false), (1, true), (10, true), (11, false)] {
        let made = user
            .create(&foo(&format!("r{replicas}"), Some(replicas)))
            .await;
        assert_eq!(made.is_ok(), taken, "{replicas}");
        assert!(made.is_ok() || made.is_err_and(|error| error.is_invalid()));
    }
}
