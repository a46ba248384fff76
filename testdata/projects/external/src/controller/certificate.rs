//! Looks after each Certificate, a kind of somebody else.

use std::sync::Arc;

use kubewright::prelude::*;

use crate::api::v1::certificate::Certificate;

/// Runs when a Certificate changes.
#[kubewright::controller]
fn certificate() -> Controller {
    Controller::of::<Certificate>("certificate").reconciler(CertificateReconciler)
}

/// Reconciles each Certificate.
#[derive(Debug)]
struct CertificateReconciler;

impl Reconciler<Certificate> for CertificateReconciler {
    async fn reconcile(&self, _object: Arc<Certificate>, _cx: &Context) -> Result<Outcome> {
        // Your code. The kind is not yours: its status is its own controller's, so write what you know elsewhere.
        Ok(Outcome::done())
    }
}
