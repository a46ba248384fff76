//! The operator as a process of its own, with the token of its service account.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use kube::config::Kubeconfig;
use kubewright::manifests::Inventory;
use kubewright::testing::Grant;
use serde_json::json;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::hooks::Hooks;

/// A program that is killed and started again. It ends with this value.
#[derive(Debug)]
pub(crate) struct OperatorProcess {
    program: PathBuf,
    kubeconfig: PathBuf,
    hooks: Hooks,
    log: PathBuf,
    child: Mutex<Child>,
}

impl OperatorProcess {
    /// Starts the operator, and waits until it serves its webhooks.
    pub(crate) async fn start(
        program: &Path,
        kubeconfig: &Path,
        hooks: Hooks,
        log: PathBuf,
    ) -> Result<Self> {
        let child = spawn(program, kubeconfig, &hooks, &log)?;
        hooks.are_served().await?;
        Ok(Self {
            program: program.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            hooks,
            log,
            child: Mutex::new(child),
        })
    }

    pub(crate) async fn kill_and_start(&self) -> Result<()> {
        let mut child = self.child.lock().await;
        ensure!(
            child.try_wait()?.is_none(),
            "the operator ended by itself; its log is {}",
            self.log.display()
        );
        child.kill().await?;
        *child = spawn(&self.program, &self.kubeconfig, &self.hooks, &self.log)?;
        self.hooks.are_served().await
    }
}

fn spawn(program: &Path, kubeconfig: &Path, hooks: &Hooks, log: &Path) -> Result<Child> {
    let mut file = fs::OpenOptions::new();
    let file = file.create(true).append(true).open(log)?;
    let child = Command::new(program)
        .args(["--metrics-bind-address=0", "--health-probe-bind-address=0"])
        .args(hooks.flags())
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .kill_on_drop(true)
        .spawn();
    child.with_context(|| format!("{} cannot be started", program.display()))
}

/// What a program says that it consists of.
pub(crate) async fn inventory(program: &Path) -> Result<Inventory> {
    let output = Command::new(program).arg("inventory").output().await?;
    ensure!(output.status.success(), "no inventory: {}", output.status);
    let inventory: Inventory = serde_json::from_slice(&output.stdout)?;
    inventory.check_format()?;
    Ok(inventory)
}

/// Replaces the user of a kubeconfig by the token of the service account of a grant.
pub(crate) async fn identify(client: &kube::Client, grant: &Grant, path: &Path) -> Result<()> {
    let user = grant.user().name;
    let mut parts = user.rsplit(':');
    let (name, namespace) = (parts.next(), parts.next());
    let (name, namespace) = name.zip(namespace).context("the name of an account")?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let request: TokenRequest = serde_json::from_value(json!({"spec": {"audiences": []}}))?;
    let params = PostParams::default();
    let made = accounts.create_token_request(name, &params, &request);
    let token = made.await?.status.map(|status| status.token);
    let token = token.context("the operator's account has no token")?;
    let read = Kubeconfig::read_from(path)?;
    let mut config = serde_json::to_value(read)?;
    config["users"][0]["user"] = json!({ "token": token });
    fs::write(path, config.to_string())?;
    Ok(())
}
