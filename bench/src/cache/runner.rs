//! Starts, one after the other, the processes that are measured against the source.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::outcome::{Outcome, QueueOutcome};
use crate::process::{Serving, measured};

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
        let what = format!("{peer}, {form}, {} pods", source.objects);
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
        let what = format!("client-go, {form}, {} pods", source.objects);
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
        Steps::All => (EVENTS.min(source.objects), PACED.min(source.objects)),
        Steps::Sync => (0, 0),
    };
    command.arg("--kubeconfig").arg(source.kubeconfig());
    for (name, value) in [
        ("--form", form.to_owned()),
        ("--pods", source.objects.to_string()),
        ("--events", events.to_string()),
        ("--paced", paced.to_string()),
    ] {
        command.arg(name).arg(value);
    }
}

fn queue(command: &mut Command, keys: usize) {
    command.args(["queue", "--keys", &keys.to_string(), "--rounds", "5"]);
}
