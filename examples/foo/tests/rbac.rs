//! The role in `rbac.yaml` is enough, and none of it is too much.

#![allow(clippy::disallowed_names, reason = "a Foo is called foo")]

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use kubewright::prelude::*;
use kubewright::testing::World;
use kubewright_example_foo::Foo;

/// A Foo gets its Deployment, gives it another name, is scaled, its status counts the Pods, and an event counts it all.
#[tokio::test(start_paused = true)]
async fn operator_needs_exactly_its_role() {
    let world = World::builder()
        .role(include_str!("../rbac.yaml"))
        .time_limit(Duration::from_secs(600))
        .start()
        .await;
    let foo: Foo = serde_saphyr::from_str(include_str!("../sample.yaml")).expect("a Foo");
    let key = Key::new("default", "example-foo");
    let foo = world.client.create(&foo).await.expect("it is created");
    let is_there = |found: Option<&Deployment>| found.is_some();
    world.until(&key, is_there).await;
    let renamed = |foo: &mut Foo| foo.spec.deployment_name = "renamed".to_owned();
    let foo = world.client.modify(&foo, renamed).await;
    let foo = foo.expect("it is renamed");
    world.until(&Key::new("default", "renamed"), is_there).await;
    let is_gone = |found: Option<&Deployment>| found.is_none();
    world.until(&key, is_gone).await;
    let scaled = world.client.modify(&foo, |foo| foo.spec.replicas = Some(3));
    scaled.await.expect("it is scaled");
    let is_done = |foo: Option<&Foo>| {
        let status = foo.and_then(|foo| foo.status.as_ref());
        status.is_some_and(|status| status.available_replicas == 3)
    };
    world.until(&key, is_done).await;
    let is_counted = |events: &[Event]| events.iter().any(|event| event.count >= Some(2));
    world.until_all(Query::all(), is_counted).await;
    world.assert_exact_role();
    world.settled().await;
    world.assert_no_writes(Duration::from_secs(600)).await;
}
