//! What all runs of a campaign begin with: a cluster that is up, with the kinds and objects of the campaign.

use std::time::Duration;

use kube::api::PostParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kubewright_cluster::Builder;
use serde_json::Value;

use crate::run::Base;
use crate::user::dynamic;

/// The seed of the cluster that runs start from.
pub(crate) const SEED: u64 = 0xba5e;

/// Starts a cluster, creates the objects, and keeps it as a snapshot. The runtime's clock has to be paused.
///
/// # Panics
/// When the cluster does not start or an object is refused: no run could begin.
pub(crate) async fn prepare(builder: Builder, objects: &[Value]) -> Base {
    let cluster = builder.start().await;
    let cluster = cluster.unwrap_or_else(|error| panic!("the cluster does not start: {error}"));
    for object in objects {
        create(&cluster.client(), object).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let base = Base {
        snapshot: cluster.snapshot().await,
        now: cluster.clock().now(),
    };
    cluster.stop().await;
    base
}

async fn create(client: &kube::Client, object: &Value) {
    let described = || format!("{} {}", object["kind"], object["metadata"]["name"]);
    let object: DynamicObject = serde_json::from_value(object.clone())
        .unwrap_or_else(|error| panic!("{} cannot be installed: {error}", described()));
    let kind = object.types.as_ref().map(GroupVersionKind::try_from);
    let kind = kind.and_then(Result::ok);
    let kind = kind.unwrap_or_else(|| panic!("{} does not say its kind", described()));
    let namespace = object.metadata.namespace.as_deref();
    let api = dynamic(client, &ApiResource::from_gvk(&kind), namespace);
    let created = api.create(&PostParams::default(), &object).await;
    created.unwrap_or_else(|error| panic!("{} cannot be installed: {error}", described()));
}
