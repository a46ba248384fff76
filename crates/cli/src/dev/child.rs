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

/// What the program logs unless it is told otherwise: also why each reconcile ran, and what it wrote.
const DEV_LOG_LEVEL: &str = "info,kubewright::reconcile=debug";

/// A program that runs. It ends with this value.
pub(super) struct Running(Child);

impl Running {
    pub(super) fn start(
        program: &Path,
        root: &Path,
        kubeconfig: &Path,
        arguments: &[String],
    ) -> anyhow::Result<Self> {
        let child = Command::new(program)
            .current_dir(root)
            .env("KUBECONFIG", kubeconfig)
            .env("KUBEWRIGHT_LOG_LEVEL", DEV_LOG_LEVEL)
            // Two of them may run on one machine.
            .arg("--health-probe-bind-address=0")
            .args(arguments)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be run", program.display()))?;
        Ok(Self(child))
    }

    /// Waits for the end of the program; for ever if there is none.
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
    match status.success() {
        true => "without an error".to_owned(),
        false => status.to_string(),
    }
}
