//! Looks after each Deployment, a kind of Kubernetes.

use std::sync::Arc;

use kubewright::prelude::*;

use kubewright::k8s_openapi::api::apps::v1::Deployment;

/// Runs when a Deployment changes.
#[kubewright::controller]
fn deployment() -> Controller {
    Controller::of::<Deployment>("deployment").reconciler(DeploymentReconciler)
}

/// Reconciles each Deployment.
#[derive(Debug)]
struct DeploymentReconciler;

impl Reconciler<Deployment> for DeploymentReconciler {
    async fn reconcile(&self, _object: Arc<Deployment>, _cx: &Context) -> Result<Outcome> {
        // Your code. The kind is not yours: its status is its own controller's, so write what you know elsewhere.
        Ok(Outcome::done())
    }
}
