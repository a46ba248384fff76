//! Where the program runs: in your cluster, or for a moment in one of its own.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{CustomResourceExt, ResourceExt};
use kubewright::prelude::*;
use kubewright_server::Server;

use crate::{COPIED_BY, SecSynch, controller};

/// Runs where `KUBECONFIG` or the service account of a pod says. Without either it starts an API server in this process,
/// has a Secret copied, and shows where the copies are.
///
/// # Errors
/// When there is no cluster after all, or the manager fails.
pub async fn run() -> Result {
    let is_set = |name| std::env::var_os(name).is_some();
    if is_set("KUBECONFIG") || is_set("KUBERNETES_SERVICE_HOST") {
        let manager = Manager::from_env().await?.name("secsynch");
        return Ok(manager.controller(controller()).run().await?);
    }
    let server = Server::builder().start().await?;
    let kube = kube::Client::new(server.service(), "default");
    let manager = Manager::new(kube).name("secsynch");
    let client = manager.client();
    client.create(&SecSynch::crd()).await?;
    tokio::select! { biased; // A manager that fails is worth knowing of.
        ended = manager.controller(controller()).run() => Ok(ended?),
        played = play(&client) => played,
    }
}

async fn play(client: &Client) -> Result {
    let mut documents = include_str!("../sample.yaml").split("---\n");
    let mut next = || documents.next().unwrap_or_default();
    let secret: Secret = serde_saphyr::from_str(next())?;
    let synch: SecSynch = serde_saphyr::from_str(next())?;
    client.create(&namespace("team-a")).await?;
    let secret = client.create(&secret).await?;
    let synch = client.create(&synch).await?;
    show(client, "copied; team-b does not exist", &["team-a"]).await?;
    client.create(&namespace("team-b")).await?;
    show(client, "team-b exists", &["team-a", "team-b"]).await?;
    client.delete(&secret, Delete::background()).await?;
    show(client, "the source is deleted", &[]).await?;
    client.delete(&synch, Delete::background()).await?;
    Ok(())
}

fn namespace(name: &str) -> Namespace {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    namespace
}

/// Waits until the copies are there, and shows them.
async fn show(client: &Client, what: &str, namespaces: &[&str]) -> Result {
    loop {
        let mut secrets = client.live().list::<Secret>(Query::all()).await?;
        secrets.retain(|secret| secret.annotations().contains_key(COPIED_BY));
        let places: Vec<String> = secrets.iter().filter_map(ResourceExt::namespace).collect();
        if places == namespaces {
            println!("{what}: copies in {places:?}");
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
