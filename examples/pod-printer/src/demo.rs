//! Where the program runs: in your cluster, or for a moment in one of its own.

use k8s_openapi::api::core::v1::Pod;
use kubewright::prelude::*;
use kubewright::runtime::cause::Trigger;
use kubewright::runtime::controller::Handle;
use kubewright_server::Server;

/// Runs where `KUBECONFIG` or the service account of a pod says. Without either it starts an API server in this process,
/// makes a Pod in it and deletes it again.
///
/// # Errors
/// When there is no cluster after all, or the manager fails.
pub async fn run(known: &[Key]) -> Result {
    let controller = crate::controller(std::io::stdout(), known);
    let is_set = |name| std::env::var_os(name).is_some();
    if is_set("KUBECONFIG") || is_set("KUBERNETES_SERVICE_HOST") {
        let manager = Manager::from_env().await?.name("pod-printer");
        let manager = manager.cache(crate::cache());
        return Ok(manager.controller(controller).run().await?);
    }
    let server = Server::builder().start().await?;
    let manager =
        Manager::new(kube::Client::new(server.service(), "default")).cache(crate::cache());
    let (client, handle) = (manager.client(), controller.handle());
    tokio::select! { biased; // A manager that fails is worth knowing of.
        ended = manager.controller(controller).run() => Ok(ended?),
        played = play(&client, &handle) => played,
    }
}

async fn play(client: &Client, handle: &Handle) -> Result {
    let pod: Pod = serde_saphyr::from_str(include_str!("../sample.yaml"))?;
    let pod = client.create(&pod).await?;
    until(handle, |trigger| {
        matches!(trigger, Trigger::Initial | Trigger::Added)
    })
    .await;
    client.delete(&pod, Delete::background()).await?;
    until(handle, |trigger| *trigger == Trigger::Deleted).await;
    Ok(())
}

/// Waits until the controller has run because of this.
async fn until(handle: &Handle, is_it: impl Fn(&Trigger) -> bool) {
    loop {
        let grown = handle.history().grown();
        let runs = handle.history().list();
        let mut causes = runs.iter().flat_map(|run| &run.causes);
        if causes.any(|cause| is_it(&cause.trigger)) {
            return;
        }
        grown.await;
    }
}
