//! The console of a cluster that runs in this process: its page, terminals over the network, snapshots and their forks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use anyhow::Context as _;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kubewright_cluster::{Cluster, Snapshot};
use kubewright_console::{Console, Fork, Running, SnapshotError, Snapshots};
use kubewright_server::Endpoint;
use parking_lot::Mutex;

/// Starts the page for a cluster of this process. If it cannot be shown, the cluster runs all the same.
pub(crate) async fn beside(page: Console) -> Option<Running> {
    match page.listen(([127, 0, 0, 1], 0).into()).await {
        Ok(running) => Some(running),
        Err(error) => {
            eprintln!(
                "The console could not be started: {:#}",
                anyhow::Error::from(error)
            );
            None
        }
    }
}

/// The page of a cluster that listens: terminals go over its endpoint, because a connection must become a WebSocket.
pub(crate) async fn of(cluster: &Cluster, endpoint: &Endpoint) -> Console {
    let page = Console::new(cluster.client()).cluster(endpoint.url());
    match over_network(endpoint).await {
        Ok(client) => page.terminals(client),
        Err(error) => {
            tracing::warn!("terminals of the console cannot be opened: {error:#}");
            page
        }
    }
}

async fn over_network(endpoint: &Endpoint) -> anyhow::Result<kube::Client> {
    let kubeconfig = Kubeconfig::from_yaml(endpoint.kubeconfig().as_str())
        .context("the kubeconfig of the endpoint cannot be read")?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let config = config.context("the kubeconfig of the endpoint cannot be used")?;
    kube::Client::try_from(config).context("a client cannot be made")
}

/// Stops a cluster with its console and its endpoint. Requests under way are answered.
pub(crate) async fn stop(console: Option<Running>, cluster: Arc<Cluster>, endpoint: Endpoint) {
    if let Some(console) = console {
        console.stop().await;
    }
    // Nobody else has it for longer than a snapshot takes; it stops with its last owner.
    if let Some(cluster) = Arc::into_inner(cluster) {
        cluster.stop().await;
    }
    endpoint.close().await;
}

/// Snapshots of a cluster, and the clusters that were started from them. They end with this.
pub(crate) struct Forks {
    cluster: Weak<Cluster>,
    /// Where kubeconfigs of forks are written.
    folder: PathBuf,
    kept: Arc<Mutex<BTreeMap<String, Kept>>>,
}

struct Kept {
    snapshot: Snapshot,
    /// A copy without controllers, to compare with.
    _still: Cluster,
    fork: Option<Forked>,
}

struct Forked {
    _console: Running,
    _endpoint: Endpoint,
    _cluster: Cluster,
}

impl Forks {
    /// Snapshots of a cluster whose kubeconfig is written to a file; those of forks are written beside it.
    pub(crate) fn of(cluster: &Arc<Cluster>, kubeconfig: &Path) -> Self {
        let folder = kubeconfig.parent().unwrap_or(Path::new("."));
        Self {
            cluster: Arc::downgrade(cluster),
            folder: folder.to_owned(),
            kept: Arc::default(),
        }
    }
}

impl Snapshots for Forks {
    fn take(&self, name: String) -> BoxFuture<'static, Result<kube::Client, SnapshotError>> {
        let (cluster, kept) = (self.cluster.upgrade(), self.kept.clone());
        async move {
            let stopped = || SnapshotError::new(&name, "the cluster has stopped");
            let snapshot = cluster.ok_or_else(stopped)?.snapshot().await;
            let still = snapshot.clone().controllers([]).cluster().await;
            let still = still.map_err(|error| SnapshotError::new(&name, error))?;
            let client = still.client();
            let taken = Kept {
                snapshot,
                _still: still,
                fork: None,
            };
            kept.lock().insert(name, taken);
            Ok(client)
        }
        .boxed()
    }

    fn fork(&self, name: String) -> BoxFuture<'static, Result<Fork, SnapshotError>> {
        let file = self.folder.join(format!("{name}.kubeconfig"));
        let kept = self.kept.clone();
        async move {
            let snapshot = kept.lock().get(&name).map(|kept| kept.snapshot.clone());
            let unknown = || SnapshotError::new(&name, "there is no such snapshot");
            let started = start(&snapshot.ok_or_else(unknown)?, &name, &file).await;
            let (forked, link) =
                started.map_err(|error| SnapshotError::new(&name, format!("{error:#}")))?;
            if let Some(kept) = kept.lock().get_mut(&name) {
                kept.fork = Some(forked);
            }
            Ok(Fork {
                link,
                kubeconfig: file.display().to_string(),
            })
        }
        .boxed()
    }
}

/// Starts a cluster from a snapshot, with an endpoint and a console of its own.
async fn start(snapshot: &Snapshot, name: &str, file: &Path) -> anyhow::Result<(Forked, String)> {
    let cluster = snapshot.cluster().await?;
    let endpoint = cluster.listen(([127, 0, 0, 1], 0).into()).await?;
    endpoint
        .write_kubeconfig(file)
        .with_context(|| format!("{} cannot be written", file.display()))?;
    let title = format!("{} (fork {name})", endpoint.url());
    let page = of(&cluster, &endpoint).await.cluster(title);
    let console = page.listen(([127, 0, 0, 1], 0).into()).await?;
    let link = console.link().to_owned();
    let forked = Forked {
        _console: console,
        _endpoint: endpoint,
        _cluster: cluster,
    };
    Ok((forked, link))
}
