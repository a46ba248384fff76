//! What a cluster of five members lives through besides kills: a certificate that is renewed, and a volume that is lost.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret};
use kube::ResourceExt;
use kubewright::prelude::{Delete, Key};
use tokio::time::Instant;

use crate::{Lane, PATIENCE};

/// When a certificate is to be renewed, on its Secret.
const RENEW: &str = "etcd.kubewright.dev/renew-after";

impl Lane {
    /// Has the certificate of a member be due, and waits until the operator has replaced it.
    pub(crate) async fn renew(&self) -> Result<()> {
        let began = Instant::now();
        let member = self.some_member().await?;
        let key = Key::new("default", &format!("{member}-tls"));
        let client = &self.deployed.client;
        let before: Option<Secret> = client.live().get(&key).await?;
        let before = before.context("the member has a certificate")?;
        let due = |secret: &mut Secret| {
            let annotations = secret.annotations_mut();
            annotations.insert(RENEW.to_owned(), "2020-01-01T00:00:00Z".to_owned());
        };
        client.modify(&before, due).await?;
        let is_another = |secret: &Secret| {
            let certificate = |it: &Secret| it.data.as_ref()?.get("tls.crt").cloned();
            certificate(secret) != certificate(&before)
        };
        let renewed = self.deployed.until(&key, PATIENCE, is_another).await?;
        let later = renewed.annotations().get(RENEW);
        ensure!(later.is_some(), "nobody knows when it is renewed next");
        println!(
            "certificate of {member} renewed after {:.1?}",
            began.elapsed()
        );
        Ok(())
    }

    /// Deletes the volume of a member with its pod, and waits until another member is in its place.
    pub(crate) async fn lose(&self) -> Result<()> {
        let began = Instant::now();
        let member = self.some_member().await?;
        let (client, live) = (&self.deployed.client, self.deployed.client.live());
        let claim = Key::new("default", &format!("data-{member}"));
        let claim: Option<PersistentVolumeClaim> = live.get(&claim).await?;
        let pod: Option<Pod> = live.get(&Key::new("default", &member)).await?;
        let (claim, pod) = claim.zip(pod).context("the member has a volume")?;
        client.delete(&claim, Delete::background()).await?;
        client.delete(&pod, Delete::background()).await?;
        let is_replaced = |cluster: &kubewright_example_etcd::EtcdCluster| {
            let mut members = cluster.status.iter().flat_map(|it| &it.members);
            members.all(|it| it.name != member)
        };
        let key = Key::new("default", "e");
        self.deployed.until(&key, PATIENCE, is_replaced).await?;
        self.ready("e", 5).await?;
        let took = began.elapsed();
        println!("volume of {member} lost, another member in its place after {took:.1?}");
        Ok(())
    }

    /// The name of a member that is not the leader.
    pub(crate) async fn some_member(&self) -> Result<String> {
        let status = self.cluster("e").await?.status.unwrap_or_default();
        let mut members = status.members.iter();
        let found = members.find(|it| Some(&it.name) != status.leader.as_ref());
        Ok(found.context("there is a follower")?.name.clone())
    }
}
