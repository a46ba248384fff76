//! S11 on a cluster that is alive: Deployments make Pods, Pods come up on nodes, and the Foo's status follows.

#![allow(clippy::disallowed_names, reason = "a Foo is called foo")]

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Pod};
use kubewright::prelude::*;
use kubewright::runtime::client::TypedObject;
use kubewright::testing::World;
use kubewright_example_foo::{Foo, FooSpec};

/// A cluster with two nodes and the operator.
async fn alive() -> World {
    World::builder()
        .role(include_str!("../rbac.yaml"))
        .manager(|manager| manager.name("sample-controller"))
        .time_limit(Duration::from_secs(600))
        .nodes(2)
        .seed(1)
        .start()
        .await
}

async fn all<K: TypedObject>(world: &World) -> Vec<K> {
    let here = Query::all().namespace("default");
    let listed = world.client.live().list(here).await;
    listed.expect("the server answers")
}

fn key() -> Key {
    Key::new("default", "example")
}

async fn scale(world: &World, replicas: i32) {
    let foo = world.client.live().get::<Foo>(&key()).await;
    let foo = foo.expect("the server answers").expect("it is there");
    let scaled = world
        .client
        .modify(&foo, |foo| foo.spec.replicas = Some(replicas));
    scaled.await.expect("it is scaled");
}

/// Waits until the Foo's status says so many, and looks whether it is true.
async fn available(world: &World, replicas: i32) {
    let says_so = |foo: Option<&Foo>| {
        let status = foo.and_then(|foo| foo.status.as_ref());
        status.is_some_and(|status| status.available_replicas == replicas)
    };
    world.until(&key(), says_so).await;
    let deployments = all::<Deployment>(world).await;
    let [deployment] = &deployments[..] else {
        panic!("{deployments:?}")
    };
    let status = deployment.status.clone().unwrap_or_default();
    assert_eq!(status.available_replicas, Some(replicas));
}

fn foo() -> Foo {
    let spec = FooSpec {
        deployment_name: "web".to_owned(),
        replicas: Some(2),
    };
    let mut foo = Foo::new("example", spec);
    foo.metadata.namespace = Some("default".to_owned());
    foo
}

#[tokio::test(start_paused = true)]
async fn status_follows_a_deployment_whose_pods_come_and_go() {
    let world = alive().await;
    let made = world.client.create(&foo()).await.expect("it is created");
    available(&world, 2).await;
    assert_eq!(all::<Pod>(&world).await.len(), 2);

    scale(&world, 4).await;
    available(&world, 4).await;
    scale(&world, 1).await;
    available(&world, 1).await;

    let events = all::<Event>(&world).await;
    let synced: Vec<_> = events
        .iter()
        .filter(|event| event.reason.as_deref() == Some("Synced"))
        .collect();
    let [event] = &synced[..] else {
        panic!("one event that is counted: {synced:?}")
    };
    assert!(event.count >= Some(4), "{event:?}");

    let deleted = world.client.delete(&made, Delete::background()).await;
    deleted.expect("it is deleted");
    let here = || Query::all().namespace("default");
    world.until_all::<Deployment>(here(), <[_]>::is_empty).await;
    world.until_all::<Pod>(here(), <[_]>::is_empty).await;
    world.settled().await;
    world.assert_no_writes(Duration::from_secs(600)).await;
}
