//! What a manager can run besides controllers, and the signals that end it.

use std::future::Future;

use kubewright_cache::source::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::controller::Leadership;

/// Something that runs as long as the manager does.
pub trait Runnable: Send + 'static {
    /// Runs until it is told to stop. Ending earlier is fine; failing stops the manager.
    fn run(self: Box<Self>, stop: CancellationToken) -> BoxFuture<'static, Result<(), Error>>;

    /// Whether only a leader runs it.
    fn leadership(&self) -> Leadership {
        Leadership::Required
    }

    /// What it is called in logs and errors.
    fn describe(&self) -> String {
        "a runnable".to_owned()
    }
}

impl<F, R> Runnable for F
where
    F: FnOnce(CancellationToken) -> R + Send + 'static,
    R: Future<Output = Result<(), Error>> + Send + 'static,
{
    fn run(self: Box<Self>, stop: CancellationToken) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(self(stop))
    }
}

/// Cancels `stop` at the first signal and `abort` at the second.
pub(super) async fn signals(stop: CancellationToken, abort: CancellationToken) {
    signal().await;
    tracing::info!("stopping; once more to stop at once");
    stop.cancel();
    signal().await;
    abort.cancel();
}

/// Completes at SIGINT or SIGTERM.
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    // Without handlers the signals end the process, which is what they are for.
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! { biased; // They mean the same.
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
