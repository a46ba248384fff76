//! Starts the source and, one after the other, the processes that are measured against it.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use super::outcome::{Outcome, QueueOutcome};
use crate::stopwatch::Stopwatch;

/// How long one process may take. It takes a minute, unless others take the machine.
const PATIENCE: Duration = Duration::from_secs(1_800);
/// How often it is looked at.
const INTERVAL: Duration = Duration::from_millis(20);
/// Events that are taken as fast as they come, at most.
const EVENTS: usize = 50_000;
/// Events that are timed one by one, at most.
const PACED: usize = 500;

/// Knows the programs.
pub(crate) struct Runner {
    ourselves: PathBuf,
    client_go: Option<PathBuf>,
}

/// How much of a client is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Steps {
    /// The sync, reads, events; with the peers also a relist.
    All,
    /// No events.
    Sync,
}

/// A source that is ready; it ends when this is dropped.
pub(crate) struct Serving {
    pods: usize,
    _process: Process,
    folder: TempDir,
}

/// A process that ends when this is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both are without effect when it has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Serving {
    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }
}

impl Runner {
    pub(crate) fn new(client_go: Option<PathBuf>) -> Result<Self> {
        Ok(Self {
            ourselves: std::env::current_exe().context("finding the program itself")?,
            client_go,
        })
    }

    pub(crate) fn has_client_go(&self) -> bool {
        self.client_go.is_some()
    }

    /// Starts a source with so many pods.
    pub(crate) async fn serve(&self, pods: usize) -> Result<Serving> {
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        let mut command = Command::new(&self.ourselves);
        command.args(["serve", "--pods", &pods.to_string(), "--kubeconfig"]);
        command.arg(&kubeconfig).stdin(Stdio::null());
        let process = Process(command.spawn().context("starting the source")?);
        let stopwatch = Stopwatch::start();
        while !kubeconfig.exists() {
            if stopwatch.elapsed() > PATIENCE {
                bail!("the source did not become ready");
            }
            tokio::time::sleep(INTERVAL).await;
        }
        Ok(Serving {
            pods,
            _process: process,
            folder,
        })
    }

    /// Kubewright's informer.
    pub(crate) async fn ours(&self, source: &Serving, form: &str, steps: Steps) -> Result<Outcome> {
        self.rust(source, "kubewright", form, steps).await
    }

    /// kube-rs' watcher and reflector.
    pub(crate) async fn kube_rs(&self, source: &Serving) -> Result<Outcome> {
        self.rust(source, "kube-rs", "typed", Steps::All).await
    }

    async fn rust(
        &self,
        source: &Serving,
        peer: &str,
        form: &str,
        steps: Steps,
    ) -> Result<Outcome> {
        let mut command = Command::new(&self.ourselves);
        command.args(["client", "--peer", peer]);
        informer(&mut command, source, form, steps);
        let what = format!("{peer}, {form}, {} pods", source.pods);
        measured(command, &what).await
    }

    /// client-go's informer, if it is there. It lists: its streams take longer.
    pub(crate) async fn go(
        &self,
        source: &Serving,
        form: &str,
        steps: Steps,
    ) -> Result<Option<Outcome>> {
        let Some(program) = &self.client_go else {
            return Ok(None);
        };
        let mut command = Command::new(program);
        command.arg("informer");
        command.env("KUBE_FEATURE_WatchListClient", "false");
        informer(&mut command, source, form, steps);
        let what = format!("client-go, {form}, {} pods", source.pods);
        measured(command, &what).await.map(Some)
    }

    /// Kubewright's queue.
    pub(crate) async fn our_queue(&self, keys: usize) -> Result<QueueOutcome> {
        let mut command = Command::new(&self.ourselves);
        queue(&mut command, keys);
        measured(command, &format!("kubewright, queue, {keys} keys")).await
    }

    /// client-go's queue, if it is there.
    pub(crate) async fn go_queue(&self, keys: usize) -> Result<Option<QueueOutcome>> {
        let Some(program) = &self.client_go else {
            return Ok(None);
        };
        let mut command = Command::new(program);
        queue(&mut command, keys);
        let what = format!("client-go, queue, {keys} keys");
        measured(command, &what).await.map(Some)
    }
}

fn informer(command: &mut Command, source: &Serving, form: &str, steps: Steps) {
    let (events, paced) = match steps {
        Steps::All => (EVENTS.min(source.pods), PACED.min(source.pods)),
        Steps::Sync => (0, 0),
    };
    command.arg("--kubeconfig").arg(source.kubeconfig());
    for (name, value) in [
        ("--form", form.to_owned()),
        ("--pods", source.pods.to_string()),
        ("--events", events.to_string()),
        ("--paced", paced.to_string()),
    ] {
        command.arg(name).arg(value);
    }
}

fn queue(command: &mut Command, keys: usize) {
    command.args(["queue", "--keys", &keys.to_string(), "--rounds", "5"]);
}

/// Runs a process to its end and reads its line.
async fn measured<T: DeserializeOwned>(mut command: Command, what: &str) -> Result<T> {
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
