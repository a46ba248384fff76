//! What a manager can run besides controllers, and the signals that end it.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use kubewright_cache::source::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::part::OnEnd;
use crate::Error;
use crate::controller::Leadership;

/// Something that runs as long as the manager does. See [`Task`] for a function with a name.
pub trait Runnable: Send + 'static {
    /// Runs until it is asked to stop. Failing stops the manager; so does ending earlier, unless
    /// [`on_end`](Runnable::on_end) says that this is fine.
    fn run(self: Box<Self>, stop: CancellationToken) -> BoxFuture<'static, Result<(), Error>>;

    /// Whether only a leader runs it.
    fn leadership(&self) -> Leadership {
        Leadership::Required
    }

    /// What it means that it ends by itself.
    fn on_end(&self) -> OnEnd {
        OnEnd::Fail
    }

    /// How long it may take to end once it is asked to. After that it is dropped, and the manager ends with its name. None where only
    /// [`shutdown_timeout`](super::Manager::shutdown_timeout) counts, which holds in any case.
    fn stop_within(&self) -> Option<Duration> {
        None
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

/// A function that a manager runs, with a name for logs and errors.
///
/// ```no_run
/// use kubewright_runtime::controller::Leadership;
/// use kubewright_runtime::manager::{Manager, Task};
///
/// # fn example(manager: Manager) -> Manager {
/// let migrate = Task::new("migration", |_stop| async { Ok(()) }).once().leadership(Leadership::NotNeeded);
/// manager.runnable(migrate)
/// # }
/// ```
#[must_use = "a task does nothing until a manager runs it"]
pub struct Task<F> {
    name: String,
    run: F,
    leadership: Leadership,
    on_end: OnEnd,
    stop_within: Option<Duration>,
}

impl<F, R> Task<F>
where
    F: FnOnce(CancellationToken) -> R + Send + 'static,
    R: Future<Output = Result<(), Error>> + Send + 'static,
{
    /// A task that only a leader runs, and that runs until it is asked to stop.
    pub fn new(name: &str, run: F) -> Self {
        Self {
            name: name.to_owned(),
            run,
            leadership: Leadership::Required,
            on_end: OnEnd::Fail,
            stop_within: None,
        }
    }

    /// Lets the task end by itself: it has one thing to do.
    pub fn once(mut self) -> Self {
        self.on_end = OnEnd::Fine;
        self
    }

    /// Sets how long the task may take to end once it is asked to. After that it is dropped, the parts that work with it go on with
    /// their own end, and the manager's error names the task. Without it only
    /// [`shutdown_timeout`](super::Manager::shutdown_timeout) counts, which holds in any case.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use kubewright_runtime::CancellationToken;
    /// use kubewright_runtime::manager::Task;
    ///
    /// let poll = |stop: CancellationToken| async move {
    ///     stop.cancelled().await;
    ///     Ok(())
    /// };
    /// let poller = Task::new("poller", poll).stop_within(Duration::from_secs(2));
    /// # drop(poller);
    /// ```
    pub fn stop_within(mut self, time: Duration) -> Self {
        self.stop_within = Some(time);
        self
    }

    /// Sets whether only a leader runs it.
    pub fn leadership(mut self, leadership: Leadership) -> Self {
        self.leadership = leadership;
        self
    }
}

impl<F, R> Runnable for Task<F>
where
    F: FnOnce(CancellationToken) -> R + Send + 'static,
    R: Future<Output = Result<(), Error>> + Send + 'static,
{
    fn run(self: Box<Self>, stop: CancellationToken) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin((self.run)(stop))
    }

    fn leadership(&self) -> Leadership {
        self.leadership
    }

    fn on_end(&self) -> OnEnd {
        self.on_end
    }

    fn stop_within(&self) -> Option<Duration> {
        self.stop_within
    }

    fn describe(&self) -> String {
        self.name.clone()
    }
}

impl<F> fmt::Debug for Task<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Task({})", self.name)
    }
}

/// Cancels `stop` at the first signal and `abort` at the second.
pub(super) async fn signals(stop: CancellationToken, abort: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    // Made once: a signal that comes between two of them would be lost.
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        // Without handlers the signals end the process, which is what they are for.
        return;
    };
    for token in [stop, abort] {
        tokio::select! { biased; // They mean the same.
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("a signal to stop came; the next one stops at once");
        token.cancel();
    }
}
