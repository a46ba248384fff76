//! What the controller does, on a cluster in this process.

use kubewright::k8s_openapi::api::core::v1::Event;
use kubewright::kube::ResourceExt;
use kubewright::prelude::*;

use super::FINALIZER;
use crate::api::v1alpha1::tenant::Tenant;
use crate::tests::{World, sample_of};

fn key() -> Key {
    Key::cluster("sample")
}

fn is_ready(object: &Tenant) -> bool {
    let status = object.status.as_ref();
    status.is_some_and(|status| {
        status.observed_generation == object.metadata.generation
            && conditions::is_true(&status.conditions, "Ready")
    })
}

async fn ready(world: &World) -> Tenant {
    let sample: Tenant = sample_of("sample");
    world.client.create(&sample).await.expect("it is created");
    let object = world.until(&key(), |object| object.is_some_and(is_ready));
    object.await.expect("it is there")
}

#[tokio::test]
async fn becomes_ready_with_a_finalizer_and_an_event() {
    let world = World::start().await;
    let object = ready(&world).await;
    assert!(object.finalizers().iter().any(|name| name == FINALIZER));
    loop {
        let events = world.client.live().list::<Event>(Query::all()).await;
        let events = events.expect("the server answers");
        let told = |event: &Event| event.reason.as_deref() == Some("Reconciled");
        if events.iter().any(told) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn goes_when_it_is_deleted() {
    let world = World::start().await;
    let object = ready(&world).await;
    let deleted = world.client.delete(&object, Delete::background()).await;
    deleted.expect("it is deleted");
    let is_gone = |object: Option<&Tenant>| object.is_none();
    world.until(&key(), is_gone).await;
}
