//! The processes of a benchmark: the source, and those that are measured and print what they found out.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crate::machine;
use crate::stopwatch::Stopwatch;

/// How long one process may take. It takes a minute, unless others take the machine.
const PATIENCE: Duration = Duration::from_secs(1_800);
/// How often it is looked at.
const INTERVAL: Duration = Duration::from_millis(20);

/// A process that ends when this is dropped.
pub(crate) struct Process(Child);

impl Process {
    /// Starts it, and listens to nothing that it says.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let quiet = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = quiet
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        Ok(Self(child))
    }

    /// Its resident memory in bytes; zero when it is gone.
    pub(crate) fn memory(&self) -> u64 {
        machine::resident(self.0.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both are without effect when it has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A source that is ready; it ends when this is dropped.
pub(crate) struct Serving {
    pub(crate) objects: usize,
    _process: Process,
    folder: TempDir,
}

impl Serving {
    /// Starts a source with so many pods.
    pub(crate) async fn pods(pods: usize) -> Result<Self> {
        Self::start(&["--pods", &pods.to_string()], pods).await
    }

    /// Starts a source with so many Foos.
    pub(crate) async fn foos(foos: usize) -> Result<Self> {
        Self::start(&["--foos", &foos.to_string()], foos).await
    }

    async fn start(what: &[&str], objects: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        let ourselves = std::env::current_exe().context("finding the program itself")?;
        let mut command = Command::new(ourselves);
        command.arg("serve").args(what);
        command.arg("--kubeconfig").arg(&kubeconfig);
        command.stdin(Stdio::null());
        let process = Process(command.spawn().context("starting the source")?);
        let stopwatch = Stopwatch::start();
        while !kubeconfig.exists() {
            if stopwatch.elapsed() > PATIENCE {
                bail!("the source did not become ready");
            }
            tokio::time::sleep(INTERVAL).await;
        }
        Ok(Self {
            objects,
            _process: process,
            folder,
        })
    }

    /// How to get in.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }
}

/// Runs a process to its end and reads its line.
pub(crate) async fn measured<T: DeserializeOwned>(mut command: Command, what: &str) -> Result<T> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let stopwatch = Stopwatch::start();
    let child = command
        .spawn()
        .with_context(|| format!("starting {what}"))?;
    let mut process = Process(child);
    // One line fits into the pipe, so nobody waits for it to be read.
    let status = loop {
        if let Some(status) = process.0.try_wait()? {
            break status;
        }
        if stopwatch.elapsed() > PATIENCE {
            bail!("{what}: it took longer than {PATIENCE:?}");
        }
        tokio::time::sleep(INTERVAL).await;
    };
    let mut text = String::new();
    if let Some(mut stdout) = process.0.stdout.take() {
        stdout.read_to_string(&mut text)?;
    }
    if !status.success() {
        bail!("{what}: it ended with {status}");
    }
    eprintln!(
        "{what}: {:.1} s: {}",
        stopwatch.elapsed().as_secs_f64(),
        text.trim()
    );
    serde_json::from_str(&text).with_context(|| format!("{what}: what it printed: {text}"))
}
