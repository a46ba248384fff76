//! What the controller does, on a cluster in this process, with the role that is generated for it.

use std::time::Duration;

use kubewright::k8s_openapi::api::apps::v1::Deployment;
use kubewright::prelude::*;
use kubewright::testing::{World, sample_of};

use crate::api::cache::v1alpha1::memcached::Memcached;

fn key() -> Key {
    Key::new("default", "sample")
}

fn has(object: Option<&Memcached>, condition: &str) -> bool {
    let status = object.and_then(|object| object.status.as_ref());
    status.is_some_and(|status| conditions::is_true(&status.conditions, condition))
}

/// Creates a sample and waits until its pods are available.
async fn available(world: &World) -> Memcached {
    let sample: Memcached = sample_of("sample");
    world.client.create(&sample).await.expect("it is created");
    let holds = |object: Option<&Memcached>| has(object, "Available");
    let object = world.until(&key(), holds).await;
    object.expect("it is there")
}

async fn deployment(world: &World) -> Deployment {
    let found = world.client.live().get::<Deployment>(&key()).await;
    found.expect("the server answers").expect("it is there")
}

#[tokio::test]
async fn runs_the_image_and_says_so_in_the_status() {
    let world = World::start().await;
    let object = available(&world).await;
    world.until_event("Available").await;
    let deployment = deployment(&world).await;
    assert!(is_controlled_by(&object, &deployment));
    let pod = deployment.spec.template.spec.expect("it has pods");
    let container = &pod.containers[0];
    assert_eq!(container.image.as_ref(), Some(&object.spec.image));
    let command: Vec<&String> = container.command.iter().flatten().collect();
    assert_eq!(command, super::COMMAND);
    let port = container.ports.iter().flatten().next();
    let port = port.map(|port| port.container_port);
    assert_eq!(port, object.spec.container_port);
    let security = container.security_context.as_ref();
    assert_eq!(security.and_then(|it| it.run_as_user), Some(super::USER));
    let status = object.status.expect("it has one");
    assert_eq!(status.available_replicas, object.spec.replicas);
}

#[tokio::test]
async fn follows_its_spec() {
    let world = World::start().await;
    let object = available(&world).await;
    let change = |object: &mut Memcached| {
        object.spec.replicas = 3;
        object.spec.config = [("LEVEL".to_owned(), "debug".to_owned())].into();
    };
    let changed = world.client.modify(&object, change).await;
    changed.expect("it is changed");
    let follows = |object: Option<&Memcached>| {
        let status = object.and_then(|object| object.status.as_ref());
        has(object, "Available") && status.is_some_and(|status| status.available_replicas == 3)
    };
    world.until(&key(), follows).await;
    let pod = deployment(&world).await.spec.template.spec;
    let pod = pod.expect("it has pods");
    let variable = &pod.containers[0].env.as_ref().expect("it has some")[0];
    assert_eq!(variable.name, "LEVEL");
    assert_eq!(variable.value.as_deref(), Some("debug"));
}

#[tokio::test]
async fn image_that_somebody_changes_is_put_back() {
    let world = World::start().await;
    let object = available(&world).await;
    let change = |deployment: &mut Deployment| {
        let pod = deployment.spec.template.spec.as_mut();
        pod.expect("it has pods").containers[0].image = Some("other:1".to_owned());
    };
    let found = deployment(&world).await;
    let changed = world.client.modify(&found, change).await;
    changed.expect("it is changed");
    let is_back = |deployment: Option<&Deployment>| {
        let pod = deployment.and_then(|it| it.spec.template.spec.as_ref());
        pod.is_some_and(|pod| pod.containers[0].image.as_ref() == Some(&object.spec.image))
    };
    world.until(&key(), is_back).await;
}

#[tokio::test]
async fn deployment_of_somebody_else_is_left_alone_and_named() {
    let world = World::start().await;
    let mut other = Deployment::default();
    super::fill(&mut other, &sample_of("sample"));
    other.metadata.name = Some("sample".to_owned());
    other.metadata.namespace = Some("default".to_owned());
    other.spec.replicas = Some(0);
    world.client.create(&other).await.expect("it is created");
    let sample: Memcached = sample_of("sample");
    world.client.create(&sample).await.expect("it is created");
    let holds = |object: Option<&Memcached>| has(object, "Degraded");
    world.until(&key(), holds).await;
    assert_eq!(deployment(&world).await.spec.replicas, Some(0));
}

#[tokio::test]
async fn does_not_write_when_nothing_changes() {
    let world = World::start().await;
    available(&world).await;
    world.settled().await;
    world.assert_no_writes(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn deployment_goes_with_its_owner() {
    let world = World::start().await;
    let object = available(&world).await;
    let deleted = world.client.delete(&object, Delete::background()).await;
    deleted.expect("it is deleted");
    let is_gone = |deployment: Option<&Deployment>| deployment.is_none();
    world.until(&key(), is_gone).await;
}
