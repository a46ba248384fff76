//! What lanes on real processes share: a cluster whose containers are processes of this machine, and the operator under test as a
//! process of its own, under its role and with its webhooks asked.

mod audit;
mod hooks;
mod operator;
mod pods;
pub mod processes;

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams, LogParams};
use kubewright::runtime::client::TypedObject;
use kubewright::runtime::{Client, ClientError, Key};
use kubewright::testing::{Cluster, Grant, RoleUse};
use kubewright_process::{ImageTable, Processes};
use kubewright_proxy::LoopbackNetwork;
use kubewright_server::{Authorization, Endpoint};
use tokio::time::{Instant, sleep};

use operator::OperatorProcess;
pub use pods::{Pods, Running};

/// How often an object is looked at that is waited for.
const PERIOD: Duration = Duration::from_millis(20);

/// What a lane runs.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The program of the operator.
    pub operator: &'a Path,
    /// The manifest with the operator's ServiceAccount, its roles and their bindings.
    pub role: &'a str,
    /// The helper of the process runtime.
    pub helper: &'a Path,
    /// The images of the pods, and their programs.
    pub images: ImageTable,
    /// Where volumes, logs and the audit log go.
    pub folder: &'a Path,
}

/// A cluster with an operator that was deployed on it. All of it ends with this value.
#[derive(Debug)]
pub struct Deployed {
    /// Dropped first: the operator ends before its cluster.
    operator: OperatorProcess,
    /// Reads and writes as the administrator.
    pub client: Client,
    /// The cluster itself.
    pub cluster: Cluster,
    grant: Grant,
    audit_log: PathBuf,
    /// What the operator talks to.
    _endpoint: Endpoint,
}

impl Deployed {
    /// Starts a cluster of three nodes, installs the kinds, the role and the webhooks of an operator, and starts it.
    ///
    /// # Errors
    /// When a part of the cluster does not start, or the operator does not serve its webhooks.
    pub async fn start(plan: Plan<'_>) -> Result<Self> {
        let audit_log = plan.folder.join("audit.log");
        let cluster = start_cluster(&plan, &audit_log).await?;
        let grant = Grant::read(plan.role).context("the role cannot be used")?;
        grant.install(cluster.server()).await?;
        let endpoint = cluster.listen("127.0.0.1:0".parse()?).await?;
        let kubeconfig = plan.folder.join("kubeconfig");
        endpoint.write_kubeconfig(&kubeconfig)?;
        operator::identify(&cluster.client(), &grant, &kubeconfig).await?;
        let hooks = hooks::Hooks::prepare(plan.folder)?;
        let inventory = operator::inventory(plan.operator).await?;
        hooks.install(&cluster.client(), &inventory).await?;
        let log = plan.folder.join("operator.log");
        let operator = OperatorProcess::start(plan.operator, &kubeconfig, hooks, log).await?;
        Ok(Self {
            operator,
            client: Client::new(cluster.client()),
            cluster,
            grant,
            audit_log,
            _endpoint: endpoint,
        })
    }

    /// Kills the operator with SIGKILL, starts it again, and waits until its webhooks answer.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn kill_operator(&self) -> Result<()> {
        self.operator.kill_and_start().await
    }

    /// Waits until the object of this key is as it should be, and gives it.
    ///
    /// # Errors
    /// When it is not within this time, with the object as it was last seen.
    pub async fn until<K: TypedObject + Debug>(
        &self,
        key: &Key,
        limit: Duration,
        holds: impl Fn(&K) -> bool,
    ) -> Result<K> {
        let end = Instant::now() + limit;
        loop {
            let found = self.client.live().get::<K>(key).await?;
            if let Some(object) = found.as_ref().filter(|object| holds(object)) {
                return Ok(object.clone());
            }
            ensure!(
                Instant::now() < end,
                "timed out after {limit:?} waiting for {} {key}; last seen: {found:#?}",
                K::kind(&())
            );
            sleep(PERIOD).await;
        }
    }

    /// Compares the role of the operator with what the server's audit log says that it did.
    ///
    /// # Errors
    /// When the audit log cannot be read.
    pub fn role_use(&self) -> Result<RoleUse> {
        let used = audit::accesses(&self.audit_log, &self.grant.user().name)?;
        ensure!(!used.is_empty(), "the operator asked for nothing");
        Ok(RoleUse::compare(&self.grant.permissions(), &used))
    }

    /// Fails unless the operator used every permission of its role, and asked for nothing else.
    ///
    /// # Errors
    /// When the role is not exact.
    pub fn assert_exact_role(&self) -> Result<()> {
        let compared = self.role_use()?;
        ensure!(compared.is_exact(), "the role is not exact:\n{compared}");
        println!("the operator used exactly its role");
        Ok(())
    }

    /// Writes the logs of all pods into a folder, for whoever wants to know why a lane failed.
    pub async fn save_logs(&self, folder: &Path) {
        let all: Api<Pod> = Api::all(self.cluster.client());
        let Ok(pods) = all.list(&ListParams::default()).await else {
            return;
        };
        for pod in pods {
            let namespace = pod.namespace().unwrap_or_default();
            let own: Api<Pod> = Api::namespaced(self.cluster.client(), &namespace);
            let log = own.logs(&pod.name_any(), &LogParams::default()).await;
            let log = log.unwrap_or_else(|error| error.to_string());
            let path = folder.join(format!("{}.log", pod.name_any()));
            if let Err(error) = fs::write(&path, log) {
                println!("{} cannot be written: {error}", path.display());
            }
        }
    }
}

/// Fails unless a request was refused by a webhook of the operator with this text.
///
/// # Errors
/// When the request was accepted, or was refused for another reason.
pub fn assert_refused<T>(answer: Result<T, ClientError>, text: &str) -> Result<()> {
    let Err(error) = answer else {
        bail!("a request was accepted, and not refused with {text:?}");
    };
    let report = kubewright::Error::from(error).report();
    let by_webhook = report.contains("admission webhook");
    ensure!(
        by_webhook && report.contains(text),
        "refused, but not by the webhook with {text:?}: {report}"
    );
    println!("  the operator's webhook refused: {text}");
    Ok(())
}

async fn start_cluster(plan: &Plan<'_>, audit_log: &Path) -> Result<Cluster> {
    let network = LoopbackNetwork::claim()?;
    let runtime = Processes::default()
        .table(plan.images.clone())
        .helper(plan.helper)
        .data_dir(plan.folder.join("nodes"))
        .hosts(Arc::new(network.clone()))
        .build()?;
    println!("containers: {}", runtime.isolation());
    let cluster = Cluster::builder()
        .authorization(Authorization::Rbac)
        .audit_log(audit_log)
        .nodes(3)
        .runtime(runtime)
        .network(network);
    Ok(cluster.start().await?)
}
