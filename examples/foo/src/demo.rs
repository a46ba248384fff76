//! The program without a cluster of yours: it brings one along, with nodes on which Pods come up.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_cluster::Cluster;

use crate::{Foo, controller};

/// Makes a Foo in a cluster of its own, scales it, and shows what became of it.
pub(crate) async fn show() -> Result {
    let cluster = Cluster::builder().nodes(2).start().await?;
    let manager = Manager::new(cluster.client()).name("sample-controller");
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
    show_available(client, 1).await?;
    client
        .modify(&foo, |foo| foo.spec.replicas = Some(3))
        .await?;
    show_available(client, 3).await
}

/// What is there once the Foo's status says that so many Pods are available.
async fn show_available(client: &Client, replicas: i32) -> Result {
    let all = || Query::all().namespace("default");
    let foo = loop {
        let foos = client.live().list::<Foo>(all()).await?;
        let is_available = |foo: &Foo| {
            let status = foo.status.as_ref();
            status.is_some_and(|status| status.available_replicas == replicas)
        };
        match foos.into_iter().find(is_available) {
            Some(foo) => break foo.metadata.name.unwrap_or_default(),
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    for deployment in client.live().list::<Deployment>(all()).await? {
        let name = deployment.metadata.name.unwrap_or_default();
        let wanted = deployment.spec.replicas.unwrap_or(1);
        println!("deployment {name}: {wanted} replicas");
    }
    println!("foo {foo}: {replicas} available");
    let is_synced = |event: &Event| event.reason.as_deref() == Some("Synced");
    let mut events = client.live().list::<Event>(all()).await?;
    events.retain(is_synced);
    for event in events {
        let message = event.message.unwrap_or_default();
        println!("event Synced: {message} (x{})", event.count.unwrap_or(1));
    }
    Ok(())
}
