//! Deployments, and waiting until they are ready.

use anyhow::{Result, bail};
use futures::TryStreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

/// Creates a Deployment.
pub(crate) async fn create(api: &Api<Deployment>, name: &str, replicas: usize) -> Result<()> {
    let deployment = json!({"metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [
            {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]}}}});
    let deployment = serde_json::from_value(deployment)?;
    api.create(&PostParams::default(), &deployment).await?;
    Ok(())
}

/// Waits until a Deployment has so many ready pods.
pub(crate) async fn until_ready(api: &Api<Deployment>, name: &str, replicas: i32) -> Result<()> {
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    let events = api.watch(&params, "0").await?;
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.try_next().await? {
        if let WatchEvent::Added(deployment) | WatchEvent::Modified(deployment) = event
            && ready(&deployment) >= replicas
        {
            return Ok(());
        }
    }
    bail!("{name} did not become ready")
}

/// How many pods of all Deployments are ready.
pub(crate) async fn all_ready(api: &Api<Deployment>) -> Result<usize> {
    let all = api.list(&ListParams::default()).await?;
    let ready: i32 = all.items.iter().map(ready).sum();
    Ok(usize::try_from(ready)?)
}

fn ready(deployment: &Deployment) -> i32 {
    let status = deployment.status.as_ref();
    status.and_then(|status| status.ready_replicas).unwrap_or(0)
}
