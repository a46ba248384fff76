//! What the examples share: a cluster to talk to. With `KUBECONFIG` set it is yours; otherwise an API server is
//! started in this process, with a ConfigMap in it, and [`Session::play`] makes a little traffic.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kubewright_server::Server;
use serde_json::json;

/// A cluster for one run of an example.
pub struct Session {
    /// A client for it.
    pub client: kube::Client,
    /// The server, where we started one.
    server: Option<Server>,
}

impl Session {
    /// Connects as `KUBECONFIG` says, or starts a server.
    pub async fn start() -> Result<Self> {
        if std::env::var_os("KUBECONFIG").is_some() {
            let client = kube::Client::try_default().await?;
            return Ok(Self {
                client,
                server: None,
            });
        }
        let server = Server::builder().start().await?;
        let client = kube::Client::new(server.service(), "default");
        let session = Self {
            client,
            server: Some(server),
        };
        session.create("colours", "blue").await?;
        Ok(session)
    }

    /// Waits for Ctrl-C or, on a server of our own, makes some changes and returns.
    pub async fn play(&self) -> Result<()> {
        if self.server.is_none() {
            return tokio::signal::ctrl_c().await.context("waiting for Ctrl-C");
        }
        self.create("shapes", "red").await?;
        let red = json!({"metadata": {"labels": {"team": "red"}}});
        let patch = Patch::Merge(red);
        self.maps()
            .patch("colours", &PatchParams::default(), &patch)
            .await?;
        self.maps()
            .delete("shapes", &DeleteParams::default())
            .await?;
        // Changes are told after they are made: leave them a moment before the program ends.
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok(())
    }

    /// Makes a ConfigMap that belongs to a team, on a server of our own only: nobody else's cluster is changed.
    pub async fn create(&self, name: &str, team: &str) -> Result<()> {
        if self.server.is_none() {
            return Ok(());
        }
        let map = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"team": team}}, "data": {"made-by": "example"},
        }))?;
        self.maps().create(&PostParams::default(), &map).await?;
        Ok(())
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "default")
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}
