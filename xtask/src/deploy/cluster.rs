//! The cluster that the operator is deployed to, and requests to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::project::Project;
use super::roles::Grant;
use super::{MANAGER, NAME, NAMESPACE, PATIENCE};
use crate::lanes::Missing;
use crate::process::Running;
use crate::processes::tree::{self, Process};

/// Paths of what a deployment has outside of its namespace.
const SHARED: [&str; 5] = [
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
];

/// A cluster whose pods are processes, and a client of its administrator.
pub(super) struct Cluster<'a> {
    pub(super) project: &'a Project,
    running: Option<Running>,
    pub(super) client: kube::Client,
    /// Every process that was seen to be a manager.
    managers: BTreeSet<Process>,
    /// What the manager was allowed to do, as long as it was deployed.
    pub(super) grants: Vec<Grant>,
}

impl<'a> Cluster<'a> {
    /// Starts a cluster, which writes an audit log.
    pub(super) async fn start(project: &'a Project) -> Result<Self> {
        let mut command = project.command();
        command
            .args(["up", "--runtime=process", "--no-console", "--kubeconfig"])
            .arg(project.kubeconfig())
            .arg("--audit-log")
            .arg(project.around.join("audit"));
        let mut running = Running::start(&mut command, "")?;
        if !running.read_until(PATIENCE, |output| output.shows("Ctrl-C stops it")) {
            let output = running.into_output();
            bail!("the cluster did not start: {}", output.stderr);
        }
        let kubeconfig = Kubeconfig::read_from(project.kubeconfig())?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        Ok(Self {
            project,
            running: Some(running),
            client: kube::Client::try_from(config)?,
            managers: BTreeSet::new(),
            grants: Vec::new(),
        })
    }

    /// Deploys an image with two replicas, and waits until both are available.
    pub(super) async fn deploy(&mut self, image: &str) -> Result<String> {
        let began = Instant::now();
        let image = self.project.by_digest(image)?;
        let line = format!("deploy --image {image} --replicas 2");
        self.blocking(move |project| project.call(&line)).await?;
        self.rolled_out().await?;
        self.managers.extend(self.processes()?);
        Ok(format!("{:.1} s", began.elapsed().as_secs_f64()))
    }

    /// Calls the command without blocking the tasks beside it.
    pub(super) async fn blocking<T: Send>(
        &self,
        call: impl FnOnce(&Project) -> Result<T> + Send,
    ) -> Result<T> {
        tokio::task::block_in_place(|| call(self.project))
    }

    /// Waits until the Deployment is what its spec says, with both replicas available and no other.
    pub(super) async fn rolled_out(&self) -> Result<()> {
        self.until("the rollout is complete", async || {
            let found = self.get(&self.deployment()).await?;
            let (spec, status) = (&found["spec"], &found["status"]);
            let all = ["replicas", "updatedReplicas", "availableReplicas"];
            let is_new = status["observedGeneration"] == found["metadata"]["generation"];
            let is_whole = all.iter().all(|field| status[*field] == spec["replicas"]);
            let gone = self.pods().await?.len() == 2;
            ensure!(is_new && is_whole && gone, "{status}");
            Ok(())
        })
        .await
    }

    pub(super) fn deployment(&self) -> String {
        format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{MANAGER}")
    }

    /// The manager's pods.
    pub(super) async fn pods(&self) -> Result<Vec<Value>> {
        let path = format!(
            "/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=control-plane=controller-manager"
        );
        let list = self.get(&path).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// The processes that are managers, whichever pod they are in.
    pub(super) fn processes(&self) -> Result<BTreeSet<Process>> {
        let running = self.running.as_ref().context("the cluster does not run")?;
        Ok(tree::below(running.id().cast_signed(), |name| {
            name == "manager"
        }))
    }

    /// Removes everything that was deployed, and the books with it.
    pub(super) async fn undeploy(&mut self) -> Result<String> {
        self.managers.extend(self.processes()?);
        self.grants = Grant::all(self).await?;
        let output = self.blocking(|project| project.call("undeploy")).await?;
        ensure!(output.shows("Nothing of it is left"), "{}", output.stdout);
        Ok("Nothing of it is left.".to_owned())
    }

    /// Checks that neither objects nor processes are left.
    pub(super) async fn nothing_is_left(&self) -> Result<String> {
        let gone = self.get(&format!("/api/v1/namespaces/{NAMESPACE}")).await;
        ensure!(gone.is_err(), "the namespace is still there");
        for path in SHARED {
            let selector = format!("{path}?labelSelector=app.kubernetes.io/name={NAME}");
            let list = self.get(&selector).await?;
            let left = list["items"].as_array().map_or(0, Vec::len);
            ensure!(left == 0, "{left} objects are left in {path}");
        }
        ensure!(self.processes()?.is_empty(), "managers still run");
        tree::until_gone(&self.managers).await
    }

    /// Ends the cluster, and with it whatever it started.
    pub(super) async fn end(&mut self) -> Result<String> {
        let running = self.running.take().context("the cluster does not run")?;
        let below = tree::below(running.id().cast_signed(), |_| true);
        tokio::task::block_in_place(|| running.end(PATIENCE))?;
        tree::until_gone(&below).await
    }

    /// The events of the audit log so far.
    pub(super) fn audit(&self) -> Result<Vec<Value>> {
        let text = fs::read_to_string(self.project.around.join("audit"))?;
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Ok(lines.collect())
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value> {
        self.send(Method::GET, path, "application/json", &Value::Null)
            .await
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<Value> {
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let request = Request::builder().method(method).uri(path);
        let request = request.header("Content-Type", content_type).body(body)?;
        self.client
            .request(request)
            .await
            .with_context(|| path.to_owned())
    }

    /// Waits until nothing fails. The error has the last failure.
    pub(super) async fn until<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        let late = Instant::now() + PATIENCE;
        loop {
            let error = match look().await {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            if Instant::now() > late {
                bail!("{what}: timed out after {PATIENCE:?}; last seen: {error:#}");
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// kubectl on the path.
    pub(super) fn kubectl(&self) -> Result<PathBuf, Missing> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).map(|place| place.join("kubectl"));
        let found = places.find(|place| place.is_file());
        found.ok_or_else(|| Missing("kubectl is not on the path".to_owned()))
    }
}
