//! What the controller does, on a cluster in this process, with the role that is generated for it.

use std::time::Duration;

use kubewright::kube::ResourceExt;
use kubewright::prelude::*;
use kubewright::testing::{World, sample_of};

use super::FINALIZER;
use crate::api::ship::v1::harbor::Harbor;

fn key() -> Key {
    Key::new("default", "sample")
}

/// Whether the controller has been here and is content.
fn is_ready(object: &Harbor) -> bool {
    let has_finalizer = object.finalizers().iter().any(|name| name == FINALIZER);
    let status = object.status.as_ref();
    let is_ready = status.is_some_and(|status| {
        status.observed_generation == object.metadata.generation
            && conditions::is_true(&status.conditions, "Ready")
    });
    has_finalizer && is_ready
}

async fn ready(world: &World) -> Harbor {
    let sample: Harbor = sample_of("sample");
    world.client.create(&sample).await.expect("it is created");
    let holds = |object: Option<&Harbor>| object.is_some_and(is_ready);
    let object = world.until(&key(), holds).await;
    object.expect("it is there")
}

#[tokio::test]
async fn becomes_ready_with_a_finalizer_and_an_event() {
    let world = World::start().await;
    ready(&world).await;
    world.until_event("Reconciled").await;
}

#[tokio::test]
async fn does_not_write_when_nothing_changes() {
    let world = World::start().await;
    ready(&world).await;
    world.settled().await;
    world.assert_no_writes(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn goes_when_it_is_deleted() {
    let world = World::start().await;
    let object = ready(&world).await;
    let deleted = world.client.delete(&object, Delete::background()).await;
    deleted.expect("it is deleted");
    let is_gone = |object: Option<&Harbor>| object.is_none();
    world.until(&key(), is_gone).await;
}
