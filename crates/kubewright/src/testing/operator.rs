//! The operator while it runs: its manager, joined, so that its end is noticed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kubewright_runtime::controller::{History, Reconciled};
use kubewright_runtime::manager::ManagerError;
use kubewright_runtime::{CancellationToken, Manager};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinError, JoinHandle};

use crate::Error;

/// A manager that runs. It ends with this value.
#[derive(Debug)]
pub(super) struct Running {
    histories: Vec<(String, History)>,
    stop: CancellationToken,
    abort: AbortHandle,
    ended: watch::Receiver<Option<Ended>>,
    /// The test itself had it end.
    dismissed: AtomicBool,
}

/// How a manager ended.
pub(super) type Ended = std::result::Result<(), EndError>;

/// Why a manager ended before it was asked to, or not in order.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum EndError {
    #[error("{}", .0.report())]
    Failed(Arc<Error>),
    #[error("it panicked: {0}")]
    Panicked(String),
    #[error("it was aborted")]
    Aborted,
    #[error("the manager was dropped")]
    Dropped,
}

impl Running {
    /// Runs a manager. Signals are the test program's, not one world's of many.
    pub(super) fn start(manager: Manager) -> Self {
        let histories = manager.histories();
        let stop = CancellationToken::new();
        let task = tokio::spawn(manager.run_until(stop.clone()));
        let abort = task.abort_handle();
        let (sender, ended) = watch::channel(None);
        // Ends with the manager.
        tokio::spawn(async move { sender.send_replace(Some(verdict(task).await)) });
        Self {
            histories,
            stop,
            abort,
            ended,
            dismissed: AtomicBool::new(false),
        }
    }

    /// Completes when it has ended although nobody wanted it to, with the reason.
    pub(super) async fn failed(&self) -> String {
        let ended = self.end().await;
        if self.dismissed.load(Ordering::Acquire) {
            return std::future::pending().await;
        }
        match ended {
            Ok(()) => "it ended by itself".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    async fn end(&self) -> Ended {
        let mut ended = self.ended.clone();
        let ended = ended.wait_for(Option::is_some).await;
        let ended = ended.ok().and_then(|ended| ended.clone());
        ended.unwrap_or(Err(EndError::Dropped))
    }

    /// Lets what runs finish, and gives how it ended.
    pub(super) async fn stop(&self) -> Ended {
        self.dismissed.store(true, Ordering::Release);
        self.stop.cancel();
        self.end().await
    }

    /// Drops everything that runs.
    pub(super) async fn kill(&self) {
        self.dismissed.store(true, Ordering::Release);
        self.abort.abort();
        drop(self.end().await);
    }

    /// The last reconciles of all controllers, in the order in which they began.
    pub(super) fn reconciles(&self) -> Vec<Reconciled> {
        let each = self
            .histories
            .iter()
            .flat_map(|(_, history)| history.list());
        let mut all: Vec<Reconciled> = each.collect();
        all.sort_by_key(|run| run.started);
        all
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        self.abort.abort();
    }
}

async fn verdict(task: JoinHandle<std::result::Result<(), ManagerError>>) -> Ended {
    match task.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(EndError::Failed(Arc::new(error.into()))),
        Err(error) => Err(unjoined(error)),
    }
}

fn unjoined(error: JoinError) -> EndError {
    let Ok(panic) = error.try_into_panic() else {
        return EndError::Aborted;
    };
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    EndError::Panicked(text.unwrap_or("without a text").to_owned())
}
