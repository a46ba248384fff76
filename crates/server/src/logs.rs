//! The seam through which the server gets the logs of containers: it has no nodes of its own to ask.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use jiff::Timestamp;

/// Gives out the logs of containers, as the agents of nodes do.
///
/// A log is read in pieces: each answer says where to go on, and how to wait for more. Who reads slowly costs nothing.
pub trait PodLogs: Send + Sync + 'static {
    /// The lines of a log from a position on; 0 is the beginning. Lines that are kept no longer are left out.
    ///
    /// # Errors
    /// When there is no such log.
    fn read(&self, of: &LogOf, from: u64) -> Result<LogPiece, NoLog>;
}

/// Whose log is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogOf {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The pod's uid: another pod of the same name has another log.
    pub uid: String,
    /// The node that the pod is on.
    pub node: String,
    /// The name of the container.
    pub container: String,
    /// Which of its runs.
    pub run: LogRun,
}

impl LogOf {
    /// The current log of a container.
    pub fn new(namespace: &str, pod: &str, container: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            uid: String::new(),
            node: String::new(),
            container: container.to_owned(),
            run: LogRun::Current,
        }
    }

    /// Of the pod with this uid.
    #[must_use]
    pub fn uid(mut self, uid: &str) -> Self {
        self.uid = uid.to_owned();
        self
    }

    /// Asks for the log of this run instead of the current one.
    #[must_use]
    pub fn run(mut self, run: LogRun) -> Self {
        self.run = run;
        self
    }
}

/// A run of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogRun {
    /// The one that runs, or ended last.
    Current,
    /// The one before that.
    Previous,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When it was written.
    pub at: Timestamp,
    /// The text without its line end.
    pub text: String,
}

/// A piece of a log.
#[derive(Debug)]
pub struct LogPiece {
    /// The lines in the order in which they were written.
    pub lines: Vec<LogLine>,
    /// Where to go on.
    pub next: u64,
    /// Whether more can come.
    pub more: MoreLog,
}

/// Whether a log goes on.
pub enum MoreLog {
    /// The run is over.
    Never,
    /// When this is done there may be more to read.
    After(Pin<Box<dyn Future<Output = ()> + Send>>),
}

impl fmt::Debug for MoreLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "Never",
            Self::After(_) => "After",
        })
    }
}

/// Why there is no log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoLog {
    /// The container has not started; this is what it waits for.
    #[error("the container is waiting to start: {0}")]
    NotStarted(String),
    /// There was no run before.
    #[error("there is no previous run")]
    NoPrevious,
    /// The node cannot be asked.
    #[error("the node cannot be asked")]
    Unreachable,
}
