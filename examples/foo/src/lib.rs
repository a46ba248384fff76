//! The sample controller: for each `Foo` a Deployment of that name and size, and in the status how many of it are there.

#![allow(clippy::disallowed_names, reason = "a Foo is called foo")]

#[cfg(feature = "demo")]
mod demo;
mod program;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Container;
use kube::{CustomResource, ResourceExt};
use kubewright::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use program::run;

/// FooSpec defines the desired state of Foo.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "samplecontroller.k8s.io",
    version = "v1alpha1",
    kind = "Foo",
    doc = "Foo is a Deployment that is kept at its size.",
    namespaced,
    status = "FooStatus",
    annotation("api-approved.kubernetes.io", "unapproved, experimental-only")
)]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// The name of the Deployment.
    pub deployment_name: String,
    /// How many Pods it has. If it is not set, the Deployment begins with one and can be scaled by hand.
    #[schemars(range(min = 1, max = 10))]
    pub replicas: Option<i32>,
}

/// FooStatus defines the observed state of Foo.
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
        let name = &foo.spec.deployment_name;
        if name.is_empty() {
            // Another run cannot fix it; a change of the Foo can.
            return Err(Error::terminal("deployment name must be specified"));
        }
        let key = cx.key().sibling(name);
        let applied = cx.client().apply_owned(&foo, &key, |it| fill(it, &foo));
        let deployment = match applied.await {
            Err(error) if error.is_not_owned() => {
                let message = format!("Resource {name:?} already exists and is not managed by Foo");
                cx.event(&foo, EventKind::Warning, "ErrResourceExists", &message);
                return Err(Error::msg(message));
            }
            applied => applied?,
        };
        delete_renamed(&foo, cx).await?;
        let available = deployment
            .status
            .as_ref()
            .and_then(|it| it.available_replicas);
        let status = FooStatus {
            available_replicas: available.unwrap_or_default(),
        };
        let set_status = |foo: &mut Foo| foo.status = Some(status);
        let reported = cx.client().modify_status(&foo, set_status).await?;
        if deployment.is_changed() || reported.is_changed() {
            let message = "Foo synced successfully";
            cx.event(&foo, EventKind::Normal, "Synced", message);
        }
        Ok(Outcome::done())
    }
}

/// Fills in what a Foo asks of its Deployment, and nothing else: other fields are the server's, or somebody else's.
fn fill(deployment: &mut Deployment, foo: &Foo) {
    let labels = [("app", "nginx"), ("controller", &*foo.name_any())];
    let labels = BTreeMap::from(labels.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let spec = &mut deployment.spec;
    spec.replicas = foo.spec.replicas;
    spec.selector.match_labels = Some(labels.clone());
    spec.template.metadata.get_or_insert_default().labels = Some(labels);
    let container = Container {
        name: "nginx".to_owned(),
        image: Some("nginx:latest".to_owned()),
        ..Container::default()
    };
    spec.template.spec.get_or_insert_default().containers = vec![container];
}

/// Deletes the Deployments of a Foo under names that it had before: nobody else would.
async fn delete_renamed(foo: &Foo, cx: &Context) -> Result<()> {
    let here = Query::all().namespace(cx.key().namespace().unwrap_or_default());
    for old in cx.client().list::<Deployment>(here).await? {
        if is_controlled_by(foo, &old) && old.name_any() != foo.spec.deployment_name {
            // The cache may be behind, and this the name that the Foo has now.
            cx.client().live().ensure_current(foo).await?;
            let deleted = cx.client().delete(&old, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
    }
    Ok(())
}

/// The controller: runs when a Foo or its Deployment changes, and looks at each Foo every half a minute.
#[kubewright::controller]
pub fn controller() -> Controller {
    Controller::of::<Foo>("foo")
        .owns::<Deployment>()
        .resync(Duration::from_secs(30))
        .workers(2)
        .reconciler(FooReconciler)
}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
