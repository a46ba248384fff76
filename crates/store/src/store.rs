//! The shell around the state machine: the lock, the clock and the wake-ups.

use std::fmt;
use std::future::poll_fn;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use parking_lot::RwLock;

use super::collection::{Collection, CommitError};
use super::durable::{Admission, Durability, Journal, OpenError, OpenOptions, Recovery, recover};
use super::event::Event;
use super::history::HistoryLimits;
use super::state::{Applied, State, Step};
use super::wakers::{Registration, Wakers};
use crate::environment::Environment;

/// The revision of a store that nothing has been written to. Zero means "any" to clients.
const FIRST_REVISION: u64 = 1;

/// All objects of one API server. Clones are the same store.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    /// Held for microseconds: to clone a root, to read a batch, to do one write. Never across an await.
    /// Shared with the thread that writes images, which must not keep the rest alive.
    pub(super) state: Arc<RwLock<State>>,
    /// The state's revision for those who need no lock. Moves under the lock, after the state.
    revision: AtomicU64,
    /// Those who wait for a revision.
    waiting: Arc<Wakers>,
    environment: Environment,
    /// Where changes are made durable; none in memory.
    journal: Option<Journal>,
    /// Called with every change, in order.
    observer: OnceLock<Observer>,
}

/// Agrees to a change that is about to be made, or not.
pub(super) type Check<'a> = dyn FnMut(&Event) -> bool + Send + 'a;

type Observer = Box<dyn Fn(&str, &Event) + Send + Sync>;

/// A store has one observer for all its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the store has an observer already")]
pub struct Observed;

/// A write that was not done.
#[derive(Debug)]
pub(super) enum Refusal {
    /// And will not be.
    Error(CommitError),
    /// Not now; try again with the same.
    Busy(Box<Step>),
}

/// A revision has not been reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the present revision is {current}")]
pub struct FutureRevision {
    /// The present revision of the store.
    pub current: u64,
}

/// A store on disk cannot be put back to another state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("objects that are kept in a data directory cannot be restored in place")]
pub struct RestoreError;

impl Store {
    /// An empty store in memory. It never touches the disk.
    pub fn new(environment: Environment, limits: HistoryLimits) -> Self {
        Self::from_state(State::new(FIRST_REVISION, [], limits), environment, None)
    }

    /// Opens a store in a directory, which is created if need be. Reads and writes files: not for an async task.
    ///
    /// [`Store::close`] closes it, or else the end of the last store, collection, cursor or snapshot. See
    /// [`super::durable`] for what is promised. The past is not on disk: watches from before the start have to
    /// list again.
    ///
    /// # Errors
    /// When the directory is in use, cannot be read or written, or is damaged.
    pub fn open(
        path: &Path,
        options: OpenOptions,
        environment: Environment,
    ) -> Result<(Self, Recovery), OpenError> {
        let mut recovered = recover(path, &options, FIRST_REVISION)?;
        let recovery = recovered.recovery.clone();
        let tables = std::mem::take(&mut recovered.tables);
        let journal = Journal::open(recovered, &options)?;
        let state = State::new(recovery.revision, tables, options.history);
        let store = Self::from_state(state, environment, Some(journal));
        store.start_journal().map_err(|source| OpenError::Io {
            action: "starting the log of",
            path: path.to_owned(),
            source,
        })?;
        Ok((store, recovery))
    }

    pub(super) fn start_journal(&self) -> std::io::Result<()> {
        let state = self.inner.state.clone();
        let freeze = move || state.read().freeze();
        self.inner
            .journal
            .as_ref()
            .map_or(Ok(()), |j| j.start(freeze))
    }

    pub(super) fn from_state(
        state: State,
        environment: Environment,
        journal: Option<Journal>,
    ) -> Self {
        let inner = Inner {
            revision: state.revision.into(),
            state: Arc::new(RwLock::new(state)),
            waiting: Arc::default(),
            environment,
            journal,
            observer: OnceLock::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Writes what is not yet on disk and refuses writes from now on. Blocks until that is done; in memory it does
    /// nothing.
    pub fn close(&self) {
        let Some(journal) = &self.inner.journal else {
            return;
        };
        {
            // No write is between its admission and the queue while the end is announced.
            let _state = self.inner.state.write();
            journal.end();
        }
        journal.close();
    }

    /// Why the store is read-only, if the disk has failed: what a readiness check should say.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.inner.journal.as_ref()?.failure()
    }

    /// The collection of that name (`pods`, `apps/deployments`), created if need be.
    pub fn collection(&self, name: &str) -> Collection {
        let found = self.inner.state.read().find(name);
        let table = found.unwrap_or_else(|| self.inner.state.write().table(name));
        let state = self.inner.state.read();
        Collection {
            inner: self.inner.clone(),
            table,
            name: state.tables[table].name.clone(),
            wakers: state.tables[table].wakers.clone(),
        }
    }

    /// Returns the present revision of the store.
    pub fn revision(&self) -> u64 {
        self.inner.revision()
    }

    /// Waits until a revision is reached.
    ///
    /// # Errors
    /// When the time is up.
    pub async fn wait_for(&self, revision: u64, timeout: Duration) -> Result<(), FutureRevision> {
        let mut registration = Registration::new(self.inner.waiting.clone());
        let reached = poll_fn(|cx| {
            // The lock keeps writers out between looking and registering.
            let state = self.inner.state.read();
            if state.revision >= revision {
                return Poll::Ready(());
            }
            registration.register(cx.waker());
            Poll::Pending
        });
        let current = || FutureRevision {
            current: self.revision(),
        };
        tokio::time::timeout(timeout, reached)
            .await
            .map_err(|_| current())
    }

    /// Forgets what came before a revision: it can still be read and watched from, earlier ones cannot.
    ///
    /// # Errors
    /// When the revision has not been reached.
    pub fn compact(&self, revision: u64) -> Result<(), FutureRevision> {
        {
            let mut state = self.inner.state.write();
            if revision > state.revision {
                let current = state.revision;
                return Err(FutureRevision { current });
            }
            state.raise_floor(revision);
        }
        self.trim();
        Ok(())
    }

    /// Forgets what the limits no longer allow. Every write does a little of it; call it now and then so that an idle
    /// store forgets, too.
    pub fn trim(&self) {
        let now = self.inner.environment.now();
        loop {
            let gone = self.inner.state.write().trim(now);
            if gone.is_empty() {
                return;
            }
        }
    }

    /// Calls this with every change from now on, in the order of revisions and before anybody else can see it, with the
    /// name of its collection. It holds up all writers: it must be quick and must not come back to the store. What
    /// [`Store::restore`] does is not a change; a fork is not observed.
    ///
    /// # Errors
    /// When there is an observer.
    pub fn observe(
        &self,
        observer: impl Fn(&str, &Event) + Send + Sync + 'static,
    ) -> Result<(), Observed> {
        let set = self.inner.observer.set(Box::new(observer));
        set.map_err(|_| Observed)
    }

    /// An independent store in memory with the same objects at the same revision and the same past: a watch that was
    /// possible here is possible there. It costs a pointer for each event of the past, whatever the objects are.
    pub fn fork(&self, environment: Environment) -> Self {
        let state = self.inner.state.read().fork();
        Self::from_state(state, environment, None)
    }

    /// Puts the objects of another store in place of all that are here. Objects keep their versions; the revision goes
    /// on, and everything before it is forgotten, so that watchers have to list again.
    ///
    /// # Errors
    /// When this store is kept on disk: its log is of single writes.
    pub fn restore(&self, from: &Store) -> Result<(), RestoreError> {
        self.restore_with(from, || {})
    }

    /// As [`Store::restore`], and calls `swap` together with it: no write and no read comes between the two. It must be
    /// quick and must not come back to the store.
    ///
    /// # Errors
    /// As [`Store::restore`]; `swap` is not called then.
    pub fn restore_with(&self, from: &Store, swap: impl FnOnce()) -> Result<(), RestoreError> {
        if self.inner.journal.is_some() {
            return Err(RestoreError);
        }
        let frozen = from.inner.state.read().freeze();
        let (gone, wakers) = {
            let mut state = self.inner.state.write();
            let gone = state.restore(frozen);
            swap();
            self.inner.revision.store(state.revision, Ordering::Release);
            let wakers: Vec<_> = state.tables.iter().map(|t| t.wakers.clone()).collect();
            (gone, wakers)
        };
        drop(gone);
        self.inner.waiting.wake_all();
        wakers.iter().for_each(|wakers| wakers.wake_all());
        Ok(())
    }
}

impl Inner {
    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Does one write if `check` agrees to the change that it makes, between which and the change nothing happens.
    pub(super) fn commit(
        &self,
        table: usize,
        step: Step,
        check: &mut Check<'_>,
    ) -> Result<Applied, Refusal> {
        let now = self.environment.now();
        let (applied, gone) = {
            let mut state = self.state.write();
            let step = self.admit(state.revision + 1, step)?;
            let applied = state.plan(table, step).map_err(Refusal::Error)?;
            if let Applied::Changed(event) = &applied {
                if !check(event) {
                    return Err(Refusal::Error(CommitError::Unmet));
                }
                state.push(table, event.clone(), now);
                if let Some(journal) = &self.journal {
                    // Under the lock, so that the log has the order of the revisions.
                    journal.push(state.tables[table].name.clone(), event.clone());
                }
                if let Some(observer) = self.observer.get() {
                    observer(&state.tables[table].name, event);
                }
                // Last: whoever reads this number finds the observer done.
                self.revision.store(state.revision, Ordering::Release);
            }
            (applied, state.trim(now))
        };
        drop(gone);
        if let Applied::Changed(_) = applied {
            self.waiting.wake_all();
        }
        Ok(applied)
    }

    fn admit(&self, revision: u64, step: Step) -> Result<Step, Refusal> {
        let admission = self.journal.as_ref().map(|j| j.admit(revision));
        match admission {
            None | Some(Admission::Granted) => Ok(step),
            Some(Admission::Wait) => Err(Refusal::Busy(Box::new(step))),
            Some(Admission::Refused(reason)) => {
                Err(Refusal::Error(CommitError::ReadOnly { reason }))
            }
        }
    }

    pub(super) fn durability(&self, revision: u64) -> Durability {
        let journal = self.journal.as_ref();
        journal.map_or_else(Durability::none, |j| j.durability(revision))
    }

    /// Resolves when the log has got anywhere after this call; at once in memory.
    pub(super) fn progress(&self) -> impl Future<Output = ()> + use<> {
        let progress = self.journal.as_ref().map(Journal::progress);
        async move {
            if let Some(progress) = progress {
                progress.await;
            }
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}
