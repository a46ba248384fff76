//! What a program needs on a cluster before its manager runs: its kinds, and its webhooks at an address of this machine.

use kubewright_manifests::webhook::{Address, configurations, service};
use kubewright_runtime::serving::{Listener, Tls};
use kubewright_runtime::webhook::Webhooks;
use kubewright_runtime::{Error, Manager};
use serde_json::{Value, json};

use super::objects::apply;
use crate::registered;

/// Installs what is registered in the cluster of a manager, which serves the webhooks at an address of this machine: for
/// clusters that run here.
///
/// # Errors
/// When no port is free, or a definition or configuration is not accepted.
pub async fn install_here(manager: Manager) -> crate::Result<Manager> {
    let client = manager.client().kube().clone();
    install_as(&client, manager, registered::webhooks()).await
}

/// Installs with another client than the manager's, which need not be allowed to, and has the manager serve these webhooks.
///
/// # Errors
/// As [`install_here`].
pub(super) async fn install_as(
    client: &kube::Client,
    mut manager: Manager,
    webhooks: Webhooks,
) -> crate::Result<Manager> {
    let inventory = registered::inventory();
    // Before the kinds: what is stored has been validated, from the first object on.
    let mut objects: Vec<Value> = Vec::new();
    if !webhooks.is_empty() {
        objects = configurations(&inventory.webhooks, &service()).to_json();
    }
    objects.extend(inventory.definitions.iter().map(|it| json!(it)));
    if !webhooks.is_empty() {
        let tls = Tls::self_signed(&["127.0.0.1"])?;
        let bound = Listener::bind("127.0.0.1:0").await?;
        let listener = bound.ok_or_else(|| Error::msg("there is no address"))?;
        let address = Address::new(listener.address()?, &tls.certificate_pem());
        objects.iter_mut().for_each(|object| address.lead(object));
        manager = manager.serve_webhooks(listener.tls(tls), webhooks);
    }
    for object in objects {
        apply(client, object).await?;
    }
    Ok(manager)
}
