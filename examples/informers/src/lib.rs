//! What the examples share: a cluster to talk to, and what two of them say of deltas.
//!
//! With `KUBECONFIG` set the cluster is yours, within a cluster it is that one; otherwise an API server is started in this
//! process, with a ConfigMap in it, and [`Session::play`] makes a little traffic.

mod deltas;

use std::env::var_os;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kubewright_server::Server;
use serde_json::json;

pub use deltas::{PrintingStore, sync};

/// A cluster for one run of an example.
pub struct Session {
    /// A client for it.
    pub client: kube::Client,
    /// The server, where we started one.
    server: Option<Server>,
}

/// How long a change is left alone before the next: a handler prints what the store has when it hears of a change, and on a busy
/// machine that may be the state after the next one.
const PACE: Duration = Duration::from_millis(150);

impl Session {
    /// Connects as `KUBECONFIG` or the service account of the pod says, or starts a server.
    pub async fn start() -> Result<Self> {
        if let Some(config) = config().await? {
            return Ok(Self {
                client: kube::Client::try_from(config)?,
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
        tokio::time::sleep(PACE).await;
        let red = json!({"metadata": {"labels": {"team": "red"}}});
        let patch = Patch::Merge(red);
        self.maps()
            .patch("colours", &PatchParams::default(), &patch)
            .await?;
        tokio::time::sleep(PACE).await;
        self.maps()
            .delete("shapes", &DeleteParams::default())
            .await?;
        // Changes are reported after they are made: leave them a moment before the program ends.
        tokio::time::sleep(Duration::from_millis(500)).await;
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

/// How to reach the cluster that the environment names, if it names one.
async fn config() -> Result<Option<kube::Config>> {
    if var_os("KUBECONFIG").is_some() {
        let options = Default::default();
        let config = kube::Config::from_kubeconfig(&options).await;
        return Ok(Some(config.context("reading the kubeconfig")?));
    }
    if var_os("KUBERNETES_SERVICE_HOST").is_some() {
        let config = kube::Config::incluster_env();
        return Ok(Some(config.context("reading the service account")?));
    }
    Ok(None)
}
