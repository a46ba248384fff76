//! The sample controller: for each `Foo` a Deployment of that name and size, and in the status how many of it are there.

#![allow(clippy::disallowed_names, reason = "a Foo is called foo")]

#[cfg(feature = "demo")]
mod demo;
mod program;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{CustomResource, ResourceExt};
use kubewright::prelude::*;
use kubewright::runtime::owners::is_controlled_by;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use program::run;

/// What a user asks for.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "samplecontroller.k8s.io",
    version = "v1alpha1",
    kind = "Foo",
    namespaced,
    status = "FooStatus",
    annotation("api-approved.kubernetes.io", "unapproved, experimental-only")
)]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// The name of the Deployment.
    pub deployment_name: String,
    /// How many Pods it has. Without it nobody says: the Deployment begins with one, and can be scaled by hand.
    #[schemars(range(min = 1, max = 10))]
    pub replicas: Option<i32>,
}

/// What became of it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// How many Pods are available.
    pub available_replicas: i32,
}

/// Keeps a Deployment for each Foo.
#[derive(Debug)]
pub struct FooReconciler;

impl Reconciler<Foo> for FooReconciler {
    async fn reconcile(&self, foo: Arc<Foo>, cx: &Context) -> Result<Outcome> {
        if foo.spec.deployment_name.is_empty() {
            // Another run cannot mend it; a change of the Foo can.
            return Err(Error::terminal("deployment name must be specified"));
        }
        let (deployment, change) = keep_deployment(&foo, cx).await?;
        let status = deployment.status.unwrap_or_default();
        let status = FooStatus {
            available_replicas: status.available_replicas.unwrap_or_default(),
        };
        if change == Change::Unchanged && foo.status.as_ref() == Some(&status) {
            return Ok(Outcome::done());
        }
        let told = cx
            .client()
            .modify_status(&*foo, |foo| foo.status = Some(status));
        told.await?;
        let message = "Foo synced successfully";
        cx.event(&*foo, EventKind::Normal, "Synced", message);
        Ok(Outcome::done())
    }
}

/// Creates the Deployment or scales it. One that is not ours is left alone.
async fn keep_deployment(foo: &Foo, cx: &Context) -> Result<(Deployment, Change)> {
    let name = &foo.spec.deployment_name;
    let key = Key::new(cx.key().namespace().unwrap_or_default(), name);
    let Some(present) = cx.client().get::<Deployment>(&key).await? else {
        let created = cx.client().create(&deployment(foo)?).await?;
        return Ok((created, Change::Created));
    };
    if !is_controlled_by(foo, &*present) {
        let message = format!("Resource {name:?} already exists and is not managed by Foo");
        cx.event(foo, EventKind::Warning, "ErrResourceExists", &message);
        return Err(Error::msg(message));
    }
    let scaled = cx.client().modify(&*present, |deployment| {
        let replicas = &mut deployment.spec.replicas;
        *replicas = foo.spec.replicas.or(*replicas);
    });
    let scaled = scaled.await?;
    match scaled.resource_version() == present.resource_version() {
        true => Ok((scaled, Change::Unchanged)),
        false => Ok((scaled, Change::Updated)),
    }
}

/// The Deployment that a Foo asks for, and owns: it goes when the Foo goes.
fn deployment(foo: &Foo) -> Result<Deployment> {
    let labels = json!({"app": "nginx", "controller": foo.name_any()});
    let mut deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": foo.spec.deployment_name, "namespace": foo.namespace()},
        "spec": {
            "replicas": foo.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "nginx", "image": "nginx:latest"}]},
            },
        },
    }))?;
    set_controller_reference(foo, &mut deployment)?;
    Ok(deployment)
}

/// The controller: runs when a Foo or its Deployment changes, and looks at each Foo every half a minute.
pub fn controller() -> Controller {
    Controller::of::<Foo>("foo")
        .owns::<Deployment>()
        .resync(Duration::from_secs(30))
        .workers(2)
        .reconciler(FooReconciler)
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/first-operator.md")]
struct FirstOperator;
