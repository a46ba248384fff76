//! Which cluster a command is about, and a client for it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Which cluster is meant.
#[derive(Debug, Args, Clone, Default)]
pub(crate) struct Connection {
    /// The kubeconfig; without it $KUBECONFIG, ~/.kube/config or the service account
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig; without it the current one
    #[arg(long)]
    pub(crate) context: Option<String>,
}

impl Connection {
    /// A client of the cluster, which has answered.
    ///
    /// # Errors
    /// When there is no cluster, or it does not answer.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        let advice = "Is there a cluster? Start one with: kubewright up, and add --kubeconfig .kubewright/kubeconfig";
        let config = self.config().await.context(advice)?;
        let url = config.cluster_url.to_string();
        let client = Client::try_from(config).context("the kubeconfig cannot be used")?;
        let version = tokio::time::timeout(Duration::from_secs(20), client.apiserver_version());
        let answered = version.await.context("it does not answer")?;
        answered.with_context(|| format!("the cluster at {url} cannot be reached. {advice}"))?;
        Ok(client)
    }

    async fn config(&self) -> anyhow::Result<Config> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        if self.kubeconfig.is_none() && self.context.is_none() {
            return Config::infer().await.context("no kubeconfig can be used");
        }
        Ok(Config::from_custom_kubeconfig(self.kubeconfig()?, &options).await?)
    }

    /// The kubeconfig itself.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn kubeconfig(&self) -> anyhow::Result<Kubeconfig> {
        match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path)
                .with_context(|| format!("{} cannot be used", path.display())),
            None => Kubeconfig::read().context("no kubeconfig can be used"),
        }
    }
}
