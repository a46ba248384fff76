//! The reflector: follows one resource on the server and tells what it sees as deltas.
//!
//! Guarantees
//! - It owns the resourceVersion: a relist never goes back in time, and no change between list and watch is missed.
//! - The initial state is asked for as a stream and, where that is refused, as a list in pages.
//! - Every failure but a clean end costs a delay that grows; nothing that succeeds in between makes it short again.
//! - One object that cannot be read never stops it. It ends when it is cancelled or nobody takes its deltas.
//!
//! The rules are in `Machine`, a pure state machine; the rest does what it says.
//! Deliberately absent: resync, which asks nobody and belongs to the informer.

mod machine;
mod patience;
mod phase;
mod shell;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Shape;
use crate::backoff::Backoff;
use crate::delta::{self, Delta};
use crate::intake::Intake;
use crate::latest::Latest;
use crate::report::Reporter;
use crate::selection::Selection;
use crate::source::{Failure, Source};
use crate::stats::Counters;
use crate::store::Shared;

pub(crate) use shell::{Page, SILENCE, Status, heard, read_page};

/// How a reflector goes about it.
#[must_use]
pub struct Options {
    pub(crate) page_size: u32,
    pub(crate) shortest_watch: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) internal_errors: Duration,
    pub(crate) silence: Duration,
    pub(crate) random: Random,
    pub(crate) shape: Shape,
    pub(crate) reporter: Reporter,
}

/// A source of random numbers from 0 to 1.
pub(crate) type Random = Box<dyn FnMut() -> f64 + Send>;

impl Default for Options {
    fn default() -> Self {
        let mut random = StdRng::from_os_rng();
        Self {
            page_size: 500,
            shortest_watch: Duration::from_secs(300),
            backoff: Backoff::default(),
            internal_errors: Duration::ZERO,
            silence: SILENCE,
            random: Box::new(move || random.random::<f64>()),
            shape: Shape::default(),
            reporter: Reporter::default(),
        }
    }
}

impl Options {
    /// The number of items asked for in one page of a list.
    pub fn page_size(mut self, items: u32) -> Self {
        self.page_size = items;
        self
    }

    /// How long the server is asked to keep a watch open, at least; at most it is twice this.
    pub fn shortest_watch(mut self, duration: Duration) -> Self {
        self.shortest_watch = duration.max(Duration::from_secs(1));
        self
    }

    /// How long to wait after failures.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// How long internal errors of the server (500) in place of a watch are answered by another watch, before everything
    /// is listed again. By default that is done at once.
    ///
    /// For servers that fail now and then and whose lists are dear. The time starts again after a minute without
    /// internal errors. Unlike client-go, which asks again at once, there is a delay that grows before each.
    pub fn retry_internal_errors(mut self, duration: Duration) -> Self {
        self.internal_errors = duration;
        self
    }

    /// How long the server may say nothing while a watch is opened or a list is read. By default 30 s.
    ///
    /// After that the request counts as failed and is made again: a connection that is half open never ends by itself.
    pub fn silence(mut self, duration: Duration) -> Self {
        self.silence = duration;
        self
    }

    /// Sets the source of random numbers, from 0 to 1. With a fixed source a run can be repeated.
    pub fn with_random(mut self, random: impl FnMut() -> f64 + Send + 'static) -> Self {
        self.random = Box::new(random);
        self
    }

    /// What becomes of objects between the wire and the store.
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// Sets who receives reports of what goes wrong without stopping the reflector.
    pub fn reporter(mut self, reporter: Reporter) -> Self {
        self.reporter = reporter;
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("page_size", &self.page_size)
            .field("shortest_watch", &self.shortest_watch)
            .field("backoff", &self.backoff)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

/// Follows one resource. See the [module](self).
pub struct Reflector {
    source: Arc<dyn Source>,
    machine: machine::Machine,
    intake: Intake,
    /// Tells when other objects are to be kept than before.
    selections: Option<watch::Receiver<u64>>,
    deltas: delta::Sender,
    status: Latest<Status>,
    counters: Arc<Counters>,
    /// How long the server may say nothing while a watch is opened or a list is read.
    silence: Duration,
}

impl Reflector {
    /// A reflector from a source into a queue.
    pub fn new(source: Arc<dyn Source>, deltas: delta::Sender, options: Options) -> Self {
        let intake = Intake::new(options.shape.clone(), options.reporter.clone());
        let selections = options.shape.selection.as_ref().map(Selection::changes);
        Self {
            silence: options.silence,
            machine: machine::Machine::new(options, source.streaming_list()),
            source,
            intake,
            selections,
            deltas,
            status: Latest::default(),
            counters: Arc::default(),
        }
    }

    /// Objects that this store has already are shared with it instead of kept twice.
    pub(crate) fn knowing(mut self, store: Arc<Shared>) -> Self {
        self.intake.known = Some(store);
        self
    }

    /// Counts what it does here.
    pub(crate) fn counting(mut self, counters: Arc<Counters>) -> Self {
        self.counters = counters;
        self
    }

    /// Tells what it is doing through this channel.
    pub(crate) fn telling(mut self, status: Latest<Status>) -> Self {
        self.status = status;
        self
    }
}

impl fmt::Debug for Reflector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reflector({})", self.source.describe())
    }
}

/// Reflector, queue and a function that takes each delta, in one: until it is cancelled.
pub async fn follow(
    source: impl Source,
    options: Options,
    cancel: CancellationToken,
    mut process: impl FnMut(Delta),
) {
    let (sender, mut deltas) = delta::queue(1024);
    let reflector = Reflector::new(Arc::new(source), sender, options);
    let mut tasks = JoinSet::new();
    tasks.spawn(reflector.run(cancel));
    while let Some(delta) = deltas.pop().await {
        process(delta);
    }
}

/// Failures that say nothing new: an expired version and a broken connection are part of a long life.
fn is_ordinary(failure: &Failure) -> bool {
    use crate::source::FailureKind::{Expired, Interrupted};
    matches!(failure.kind, Expired | Interrupted)
}
