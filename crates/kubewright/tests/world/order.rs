//! An operator that makes things in the wrong order, which only nodes that look for Secrets can tell.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret, Service};
use kubewright::prelude::*;
use kubewright::testing::World;
use serde_json::json;

use crate::operator::{assert_has, key, panic_of};

/// What is made first.
#[derive(Debug, Clone, Copy, PartialEq)]
enum First {
    Secret,
    Deployment,
}

/// Runs a database behind each Service: a Deployment, and the Secret that its pods read their password from.
struct Databases(First);

impl Reconciler<Service> for Databases {
    async fn reconcile(&self, service: Arc<Service>, cx: &Context) -> Result<Outcome> {
        if service.metadata.name.as_deref() != Some("db") {
            return Ok(Outcome::done());
        }
        let client = cx.client();
        if self.0 == First::Secret {
            client.apply(&secret()).await?;
        }
        client.apply(&deployment()).await?;
        let deployment = client.get::<Deployment>(cx.key()).await?;
        if is_available(deployment.as_deref()) {
            // Too late for whoever waits for it to become available.
            client.apply(&secret()).await?;
            return Ok(Outcome::done());
        }
        Ok(Outcome::requeue_after(Duration::from_secs(1)))
    }
}

fn is_available(deployment: Option<&Deployment>) -> bool {
    let status = deployment.and_then(|deployment| deployment.status.as_ref());
    status.is_some_and(|status| status.available_replicas == Some(1))
}

fn secret() -> Secret {
    let secret = json!({"metadata": {"name": "db", "namespace": "default"}, "stringData": {"password": "hunter2"}});
    serde_json::from_value(secret).expect("a Secret")
}

fn deployment() -> Deployment {
    let password = json!({"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}});
    let deployment = json!({"metadata": {"name": "db", "namespace": "default"}, "spec": {
        "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "db", "image": "postgres:16", "env": [password]}]}}}});
    serde_json::from_value(deployment).expect("a Deployment")
}

async fn world(first: First) -> World {
    let databases = move |manager: Manager| {
        let controller = Controller::of::<Service>("databases");
        manager.controller(controller.reconciler(Databases(first)))
    };
    let world = World::builder()
        .nodes(1)
        .manager(databases)
        .as_admin()
        .start()
        .await;
    let service = json!({"metadata": {"name": "db", "namespace": "default"}, "spec": {"ports": [{"port": 5432}]}});
    let service: Service = serde_json::from_value(service).expect("a Service");
    let made = world.client.create(&service).await;
    made.expect("the Service is created");
    world
}

async fn only_pod(world: &World) -> Key {
    let pods = world
        .until_all::<Pod>(Query::all(), |pods| pods.len() == 1)
        .await;
    key(pods[0].metadata.name.as_deref().expect("a name"))
}

fn is_ready(pod: Option<&Pod>) -> bool {
    let status = pod.and_then(|pod| pod.status.as_ref());
    let mut conditions = status
        .into_iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[tokio::test(start_paused = true)]
async fn deployment_that_comes_before_its_secret_is_caught_with_the_reason() {
    let world = world(First::Deployment).await;
    let pod = only_pod(&world).await;
    let text = panic_of(world.until(&pod, is_ready)).await;
    assert_has(
        &text,
        &[
            "timed out after 30s waiting for Pod default/db-",
            "reason: CreateContainerConfigError",
            "message: secret \"db\" not found",
            "Warning Failed: Error: secret \"db\" not found",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn deployment_that_comes_after_its_secret_is_available() {
    let world = world(First::Secret).await;
    let pod = only_pod(&world).await;
    world.until(&pod, is_ready).await;
    world.until(&key("db"), is_available).await;
}
