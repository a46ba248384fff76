//! Where the program runs: in your cluster, or for a moment in one of its own.

use kubewright::prelude::*;

use crate::controller;

#[cfg(feature = "demo")]
use crate::demo::show as run_alone;
#[cfg(not(feature = "demo"))]
use operate as run_alone;

/// Runs where `KUBECONFIG` or the service account of a pod says. Without either it starts a cluster in this process,
/// makes a Foo in it, scales it, and shows what became of it; built without `demo` it says that there is no cluster.
///
/// # Errors
/// When there is no cluster after all, or the manager fails.
pub async fn run() -> Result {
    let is_set = |name| std::env::var_os(name).is_some();
    if is_set("KUBECONFIG") || is_set("KUBERNETES_SERVICE_HOST") {
        operate().await
    } else {
        run_alone().await
    }
}

async fn operate() -> Result {
    let manager = Manager::from_env().await?.name("sample-controller");
    Ok(manager.controller(controller()).run().await?)
}
