//! The program while it runs.

use std::future::pending;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long it may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(10);

/// What the program logs unless it is configured otherwise: also why each reconcile ran, and what it wrote.
const DEV_LOG_LEVEL: &str = "info,kubewright::reconcile=debug";
/// Tells a program which namespaces it watches.
const WATCH_NAMESPACE: &str = "WATCH_NAMESPACE";

/// A program that runs. It ends with this value.
pub(super) struct Running(Child);

/// How a program is run.
pub(super) struct Launch<'a> {
    pub(super) program: &'a Path,
    pub(super) root: &'a Path,
    pub(super) kubeconfig: &'a Path,
    /// The namespaces that it watches, unless the user sets others.
    pub(super) watched: Option<String>,
    pub(super) arguments: Vec<String>,
}

impl Running {
    pub(super) fn start(launch: &Launch<'_>) -> anyhow::Result<Self> {
        let Launch { program, .. } = launch;
        let mut command = Command::new(program);
        if let Some(watched) = &launch.watched
            && std::env::var_os(WATCH_NAMESPACE).is_none()
        {
            command.env(WATCH_NAMESPACE, watched);
        }
        let child = command
            .current_dir(launch.root)
            .env("KUBECONFIG", launch.kubeconfig)
            .env("KUBEWRIGHT_LOG_LEVEL", DEV_LOG_LEVEL)
            .args(&launch.arguments)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be run", program.display()))?;
        Ok(Self(child))
    }

    /// Waits for the end of the program, forever if no program runs.
    pub(super) async fn ended(running: &mut Option<Self>) -> String {
        match running {
            Some(running) => running.end().await,
            None => pending().await,
        }
    }

    /// Waits for the end of the program, and says how it ended.
    pub(super) async fn end(&mut self) -> String {
        match self.0.wait().await {
            Ok(status) => shown(status),
            Err(error) => error.to_string(),
        }
    }

    /// Asks the program to end, and ends it if it does not.
    pub(super) async fn stop(mut self) {
        if let Some(id) = self.0.id() {
            let asked = Command::new("kill")
                .args(["-TERM", &id.to_string()])
                .status();
            if asked.await.is_ok_and(|status| status.success())
                && timeout(GRACE, self.0.wait()).await.is_ok()
            {
                return;
            }
        }
        // It is gone or will be: there is nothing to do about an error here.
        let _ = self.0.kill().await;
    }
}

fn shown(status: ExitStatus) -> String {
    if status.success() {
        "without an error".to_owned()
    } else {
        status.to_string()
    }
}
