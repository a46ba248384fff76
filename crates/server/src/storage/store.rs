//! The shell around the state machine: the lock, the clock and the wake-ups.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use parking_lot::RwLock;

use super::collection::{Collection, CommitError};
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
    pub(super) state: RwLock<State>,
    /// The state's revision for those who need no lock. Moves under the lock, after the state.
    revision: AtomicU64,
    /// Those who wait for a revision.
    waiting: Arc<Wakers>,
    environment: Environment,
}

/// A revision has not been reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the present revision is {current}")]
pub struct FutureRevision {
    /// The present revision.
    pub current: u64,
}

impl Store {
    /// An empty store in memory.
    pub fn new(environment: Environment, limits: HistoryLimits) -> Self {
        Self::from_state(State::new(FIRST_REVISION, [], limits), environment)
    }

    fn from_state(state: State, environment: Environment) -> Self {
        let inner = Inner {
            revision: state.revision.into(),
            state: RwLock::new(state),
            waiting: Arc::default(),
            environment,
        };
        Self {
            inner: Arc::new(inner),
        }
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

    /// The present revision.
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

    /// An independent store in memory with the same objects at the same revision, which costs next to nothing.
    ///
    /// The history stays behind: to a client, a fork is a server that has restarted, and whoever watches from an
    /// earlier revision has to list again. Time and randomness are shared with the original.
    pub fn fork(&self) -> Self {
        let state = self.inner.state.read().fork();
        Self::from_state(state, self.inner.environment.clone())
    }
}

impl Inner {
    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    pub(super) fn commit(&self, table: usize, step: Step) -> Result<Applied, CommitError> {
        let now = self.environment.now();
        let (applied, gone) = {
            let mut state = self.state.write();
            let applied = state.apply(table, step, now)?;
            self.revision.store(state.revision, Ordering::Release);
            (applied, state.trim(now))
        };
        drop(gone);
        if let Applied::Changed(_) = applied {
            self.waiting.wake_all();
        }
        Ok(applied)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}
