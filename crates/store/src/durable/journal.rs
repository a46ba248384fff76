//! Between those who write and the thread that makes it durable: a queue, and how far that thread has come.

use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;
use tokio::time::Instant;

use super::frame::MAX_PAYLOAD;
use super::image::Frozen;
use super::writer::Writer;
use super::{OpenError, OpenOptions, Recovered};
use crate::event::Event;

/// Revisions reserved at a time. A store that was not closed continues so far above, at most.
pub(super) const BLOCK: u64 = 10_000;
/// Bytes that may wait for the disk.
const MAX_WAITING: usize = 64 << 20;
/// Bytes of log that are written at once, at most: what waits, one more record, and what is not counted of them.
pub(super) const MAX_BATCH: u64 = 2 * (MAX_WAITING + MAX_PAYLOAD) as u64;

/// The writers' side. Dropping it writes what is waiting and closes the log.
#[derive(Debug)]
pub(crate) struct Journal {
    shared: Arc<Shared>,
    /// Until it is started.
    pub(super) writer: Mutex<Option<Writer>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    /// Something is in the queue, or the end has come.
    news: Condvar,
    progress: watch::Sender<Progress>,
}

#[derive(Debug)]
struct Queue {
    /// In order of revision: pushed under the lock of the state.
    waiting: Vec<(Arc<str>, Arc<Event>)>,
    bytes: usize,
    /// Revisions up to here may be handed out.
    reserved: u64,
    ending: bool,
}

/// How far the writing thread has come.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    /// Everything up to this revision may be acknowledged.
    durable: u64,
    /// Why nothing more will be.
    failure: Option<Arc<str>>,
}

/// Whether a write may be done now.
#[derive(Debug)]
pub(crate) enum Admission {
    /// The write may be done now.
    Granted,
    /// Not before the writing thread has caught up.
    Wait,
    /// No write is possible any more, for this reason.
    Refused(Arc<str>),
}

/// What the writing thread has to do next.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) events: Vec<(Arc<str>, Arc<Event>)>,
    pub(super) ending: bool,
}

/// Tells when a write is durable.
#[derive(Debug, Clone)]
pub struct Durability {
    /// None when nothing has to be waited for.
    pending: Option<(u64, watch::Receiver<Progress>)>,
}

/// A write is visible but not durable, and will not become so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the write could not be made durable: {reason}")]
pub struct NotDurable {
    /// What went wrong while writing to disk.
    pub reason: Arc<str>,
}

impl Durability {
    /// Of a store that promises nothing.
    pub(crate) fn none() -> Self {
        Self { pending: None }
    }

    /// Waits until the write is as durable as the store promises.
    ///
    /// # Errors
    /// When that will not happen: the disk has failed.
    pub async fn wait(self) -> Result<(), NotDurable> {
        let Some((revision, mut progress)) = self.pending else {
            return Ok(());
        };
        let done = |p: &Progress| p.durable >= revision || p.failure.is_some();
        let gone = || Arc::from("the store is gone");
        let reason = match progress.wait_for(done).await {
            Ok(reached) if reached.durable >= revision => return Ok(()),
            Ok(reached) => reached.failure.clone().unwrap_or_else(gone),
            Err(_) => gone(),
        };
        Err(NotDurable { reason })
    }
}

impl Journal {
    /// Begins a new segment of the log. Nothing is written to it before [`Journal::start`].
    pub(crate) fn open(recovered: Recovered, options: &OpenOptions) -> Result<Self, OpenError> {
        let revision = recovered.recovery.revision;
        let reserved = revision + BLOCK;
        let shared = Arc::new(Shared::new(revision, reserved));
        let writer = Writer::new(shared.clone(), recovered, options, reserved)?;
        Ok(Self {
            shared,
            writer: Mutex::new(Some(writer)),
            thread: Mutex::default(),
        })
    }

    /// Starts the writing thread, which calls `freeze` when it is time for an image.
    pub(crate) fn start(
        &self,
        freeze: impl Fn() -> Frozen + Send + 'static,
    ) -> std::io::Result<()> {
        let Some(writer) = self.writer.lock().take() else {
            return Ok(());
        };
        let thread = std::thread::Builder::new().name("storage-log".into());
        let thread = thread.spawn(move || writer.run(&freeze))?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// Whether the write of a revision may be done.
    pub(crate) fn admit(&self, revision: u64) -> Admission {
        if let Some(reason) = self.failure() {
            return Admission::Refused(reason);
        }
        let queue = self.shared.queue.lock();
        if queue.ending {
            return Admission::Refused("the store is closed".into());
        }
        if revision > queue.reserved || queue.bytes > MAX_WAITING {
            Admission::Wait
        } else {
            Admission::Granted
        }
    }

    /// Hands over a change. Call it in order of revision.
    pub(crate) fn push(&self, collection: Arc<str>, event: Arc<Event>) {
        let mut queue = self.shared.queue.lock();
        queue.bytes += event.record().body().len();
        queue.waiting.push((collection, event));
        self.shared.news.notify_one();
    }

    /// When a revision is durable.
    pub(crate) fn durability(&self, revision: u64) -> Durability {
        Durability {
            pending: Some((revision, self.shared.progress.subscribe())),
        }
    }

    /// Resolves when the writing thread has got anywhere after this call.
    pub(crate) fn progress(&self) -> impl Future<Output = ()> + use<> {
        let mut progress = self.shared.progress.subscribe();
        async move {
            // An error means that the thread is gone, which the next admission will say.
            let _ = progress.changed().await;
        }
    }

    /// Why the store is read-only, if it is.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        self.shared.progress.borrow().failure.clone()
    }

    /// Refuses writes from now on.
    pub(crate) fn end(&self) {
        self.shared.queue.lock().ending = true;
        self.shared.news.notify_one();
    }

    /// Writes what is waiting and closes the log. Blocks until that is done.
    pub(crate) fn close(&self) {
        self.end();
        // Held while waiting, so that a second call does not return before the end, either.
        let mut thread = self.thread.lock();
        let Some(thread) = thread.take() else {
            return;
        };
        if thread.join().is_err() {
            tracing::error!("the storage log's thread panicked");
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    pub(super) fn new(revision: u64, reserved: u64) -> Self {
        let progress = Progress {
            durable: revision,
            failure: None,
        };
        let queue = Queue {
            waiting: Vec::new(),
            bytes: 0,
            reserved,
            ending: false,
        };
        Self {
            queue: Mutex::new(queue),
            news: Condvar::new(),
            progress: watch::Sender::new(progress),
        }
    }

    /// Waits for something to write, for the end, or for a moment.
    pub(super) fn wait(&self, until: Option<Instant>) -> Work {
        let mut queue = self.queue.lock();
        while queue.waiting.is_empty() && !queue.ending {
            match until.map(|moment| moment.saturating_duration_since(Instant::now())) {
                None => self.news.wait(&mut queue),
                Some(rest) if rest.is_zero() => break,
                Some(rest) => {
                    self.news.wait_for(&mut queue, rest);
                }
            }
        }
        queue.bytes = 0;
        Work {
            events: std::mem::take(&mut queue.waiting),
            ending: queue.ending,
        }
    }

    pub(super) fn reserved(&self, up_to: u64) {
        self.queue.lock().reserved = up_to;
    }

    /// Everything up to a revision may be acknowledged; whoever waited for room may try again.
    pub(super) fn durable(&self, revision: u64) {
        self.progress.send_modify(|p| p.durable = revision);
    }

    /// Nothing more will become durable. What waits is dropped, and those who wait for it get the error.
    pub(super) fn fail(&self, reason: &str) {
        self.progress
            .send_modify(|p| p.failure = Some(reason.into()));
        let mut queue = self.queue.lock();
        queue.waiting.clear();
        queue.bytes = 0;
    }
}
