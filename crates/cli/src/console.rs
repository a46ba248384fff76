//! `kubewright console`: a live page for any cluster, in the foreground, until Ctrl-C.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kubewright_console::{Console as Page, Mode};

use crate::up::wait_for_signal;

/// Show a cluster as a live page: every kind, owners, events, why operators reconcile, and the past
///
/// The page is served by this process at a loopback address; open the printed link in a browser. Every request to the
/// cluster is made with the credentials of the kubeconfig, so the page shows what this user may see. Nothing is
/// downloaded from anywhere.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright console\n  \
    kubewright console --kubeconfig .kubewright/kubeconfig\n  \
    kubewright console --context staging --read-only\n  \
    kubewright console --operator 127.0.0.1:8080      shows why that operator reconciles")]
pub(crate) struct Console {
    /// The kubeconfig; otherwise $KUBECONFIG, ~/.kube/config, or the service account of a pod
    #[arg(long)]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig; otherwise its current one
    #[arg(long)]
    context: Option<String>,

    /// Namespace to show where this user may not see all of them
    #[arg(long, short)]
    namespace: Option<String>,

    /// Address to listen at; anything but loopback lets other machines in
    #[arg(long, default_value = "127.0.0.1:0")]
    address: SocketAddr,

    /// Offer no changes
    #[arg(long)]
    read_only: bool,

    /// Metrics address of an operator that is built with Kubewright; may be repeated
    #[arg(long, value_name = "HOST:PORT")]
    operator: Vec<String>,
}

impl Console {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the async runtime could not be started")?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let config = config(self.kubeconfig.as_deref(), self.context.clone()).await?;
        let cluster = self
            .context
            .clone()
            .unwrap_or_else(|| config.cluster_url.to_string());
        let namespace = self
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        let client = kube::Client::try_from(config).context("the kubeconfig cannot be used")?;
        let mode = if self.read_only {
            Mode::ReadOnly
        } else {
            Mode::ReadWrite
        };
        let mut page = Page::new(client)
            .cluster(cluster)
            .namespace(namespace)
            .mode(mode);
        for operator in self.operator {
            page = page.operator_at(operator);
        }
        let running = page.listen(self.address).await?;
        println!("Open {}", running.link());
        println!("Whoever has the link can do what you may do. Ctrl-C stops it.");
        wait_for_signal().await?;
        running.stop().await;
        Ok(())
    }
}

/// The configuration that a kubeconfig and a context name, or the usual one.
pub(crate) async fn config(file: Option<&Path>, context: Option<String>) -> anyhow::Result<Config> {
    let usual = file.is_none() && context.is_none();
    if usual {
        return Config::infer()
            .await
            .context("no kubeconfig was found; give one with --kubeconfig");
    }
    let options = KubeConfigOptions {
        context,
        ..KubeConfigOptions::default()
    };
    let Some(path) = file else {
        return Config::from_kubeconfig(&options)
            .await
            .context("the kubeconfig cannot be used");
    };
    let kubeconfig = Kubeconfig::read_from(path)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.with_context(|| format!("{} cannot be used", path.display()))
}
