//! Where the program runs: in your cluster, or for a moment in one of its own.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_server::Server;

use crate::{Foo, controller};

/// Runs where `KUBECONFIG` or the service account of a pod says. Without either it starts an API server in this process,
/// makes a Foo in it, scales it, and shows what the controller did.
///
/// # Errors
/// When there is no cluster after all, or the manager fails.
pub async fn run() -> Result {
    let is_set = |name| std::env::var_os(name).is_some();
    if is_set("KUBECONFIG") || is_set("KUBERNETES_SERVICE_HOST") {
        let manager = Manager::from_env().await?.name("sample-controller");
        return Ok(manager.controller(controller()).run().await?);
    }
    let server = Server::builder().start().await?;
    let kube = kube::Client::new(server.service(), "default");
    let manager = Manager::new(kube).name("sample-controller");
    let client = manager.client();
    client.create(&Foo::crd()).await?;
    tokio::select! { biased; // A manager that fails is worth knowing of.
        ended = manager.controller(controller()).run() => Ok(ended?),
        played = play(&client) => played,
    }
}

async fn play(client: &Client) -> Result {
    let foo: Foo = serde_saphyr::from_str(include_str!("../sample.yaml"))?;
    let foo = client.create(&foo).await?;
    show(client, 1).await?;
    client
        .modify(&foo, |foo| foo.spec.replicas = Some(3))
        .await?;
    show(client, 2).await
}

/// What is there once the controller has told of so many syncs.
async fn show(client: &Client, syncs: i32) -> Result {
    let all = || Query::all().namespace("default");
    let synced = loop {
        let events = client.live().list::<Event>(all()).await?;
        match events.into_iter().find(|event| event.count >= Some(syncs)) {
            Some(event) => break event,
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    for deployment in client.live().list::<Deployment>(all()).await? {
        let name = deployment.metadata.name.unwrap_or_default();
        let replicas = deployment.spec.replicas.unwrap_or(1);
        println!("deployment {name}: {replicas} replicas");
    }
    let reason = synced.reason.unwrap_or_default();
    let message = synced.message.unwrap_or_default();
    println!("event {reason}: {message} (x{syncs})");
    Ok(())
}
