//! Keeps a Deployment for each Website.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Container;
use kube::{CustomResource, CustomResourceExt, ResourceExt};
use kubewright::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// WebsiteSpec defines the desired state of Website.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Website",
    namespaced,
    doc = "Website is a site that pods serve.",
    status = "WebsiteStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct WebsiteSpec {
    /// image is the container image of the web server.
    #[k8s(default = "nginx:latest")]
    pub image: String,
    /// replicas is the number of pods that serve the site.
    #[k8s(min = 1, max = 10, default = 1)]
    pub replicas: i32,
}

/// WebsiteStatus defines the observed state of Website.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WebsiteStatus {
    /// availableReplicas is the number of pods that are available.
    pub available_replicas: i32,
}

/// Keeps a Deployment for each Website.
#[derive(Debug)]
pub struct WebsiteReconciler;

impl Reconciler<Website> for WebsiteReconciler {
    async fn reconcile(&self, site: Arc<Website>, cx: &Context) -> Result<Outcome> {
        let client = cx.client();
        let applied = client.apply_owned(&site, cx.key(), |it| fill(it, &site));
        let deployment = match applied.await {
            Err(error) if error.is_not_owned() => {
                let message = "a Deployment of that name exists and is not of this Website";
                cx.event(&site, EventKind::Warning, "NotOwned", message);
                return Err(Error::msg(message));
            }
            applied => applied?,
        };
        let observed = deployment.status.as_ref();
        let available = observed.and_then(|it| it.available_replicas);
        let status = WebsiteStatus {
            available_replicas: available.unwrap_or_default(),
        };
        let set_status = |site: &mut Website| site.status = Some(status);
        client.modify_status(&site, set_status).await?;
        if deployment.is_changed() {
            let message = "the Deployment is as the Website says";
            cx.event(&site, EventKind::Normal, "Applied", message);
        }
        Ok(Outcome::done())
    }
}

/// Fills in what a Website asks of its Deployment, and nothing else: other fields are the server's, or somebody else's.
fn fill(deployment: &mut Deployment, site: &Website) {
    let labels = BTreeMap::from([("website".to_owned(), site.name_any())]);
    let spec = &mut deployment.spec;
    spec.replicas = Some(site.spec.replicas);
    spec.selector.match_labels = Some(labels.clone());
    spec.template.metadata.get_or_insert_default().labels = Some(labels);
    let container = Container {
        name: "server".to_owned(),
        image: Some(site.spec.image.clone()),
        ..Container::default()
    };
    spec.template.spec.get_or_insert_default().containers = vec![container];
}

/// Runs when a Website or its Deployment changes, and looks at each Website every half a minute.
#[kubewright::controller]
pub fn controller() -> Controller {
    Controller::of::<Website>("website")
        .owns::<Deployment>()
        .resync(Duration::from_secs(30))
        .workers(2)
        .reconciler(WebsiteReconciler)
}

#[tokio::main]
async fn main() -> Result {
    if std::env::args().nth(1).as_deref() == Some("crd") {
        println!("{}", serde_json::to_string_pretty(&Website::crd())?);
        return Ok(());
    }
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let manager = Manager::from_env().await?.name("first-operator");
    manager.controller(controller()).run().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubewright::testing::World;

    #[tokio::test]
    async fn deployment_that_is_deleted_comes_back() {
        let world = World::start().await;
        let spec = WebsiteSpec {
            image: "nginx:latest".to_owned(),
            replicas: 3,
        };
        let mut site = Website::new("shop", spec);
        site.metadata.namespace = Some("default".to_owned());
        world.client.create(&site).await.expect("it is created");

        let key = Key::new("default", "shop");
        let is_served = |site: Option<&Website>| {
            let status = site.and_then(|site| site.status.as_ref());
            status.is_some_and(|status| status.available_replicas == 3)
        };
        world.until(&key, is_served).await;

        let found = world.client.live().get::<Deployment>(&key).await;
        let first = found.expect("the server answers").expect("it exists");
        let deleted = world.client.delete(&first, Delete::background()).await;
        deleted.expect("it is deleted");
        let is_new = |it: Option<&Deployment>| it.is_some_and(|it| it.uid() != first.uid());
        world.until(&key, is_new).await;
    }
}
