//! One collection of objects of one resource: writes, reads and watches go through here.

use std::fmt;
use std::sync::Arc;

use super::cursor::{Cursor, Expired};
use super::durable::{Durability, NotDurable};
use super::event::{Delivery, Event};
use super::record::{Candidate, Draft, Record, Unfit, check_key};
use super::snapshot::{At, Snapshot, SnapshotError};
use super::state::{Applied, Step};
use super::store::{Inner, Refusal};
use super::wakers::Wakers;

/// A handle on one collection; clones are the same collection.
#[derive(Clone)]
pub struct Collection {
    pub(super) inner: Arc<Inner>,
    pub(super) table: usize,
    pub(super) name: Arc<str>,
    pub(super) wakers: Arc<Wakers>,
}

/// One write to one object. Keys are `namespace/name`, or `name` for cluster-scoped objects.
#[derive(Debug, Clone)]
pub enum Write {
    /// Stores an object that must not exist yet.
    Create {
        /// Its key.
        key: String,
        /// Its first version.
        draft: Draft,
    },
    /// Replaces an object. If nothing but the revision would change, nothing changes.
    Update {
        /// Its key.
        key: String,
        /// The revision that the writer has seen.
        expected_revision: u64,
        /// Its next version.
        draft: Draft,
    },
    /// Removes the object from the collection.
    Delete {
        /// Its key.
        key: String,
        /// The revision that the writer has seen.
        expected_revision: u64,
    },
}

/// A write that was done.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The object as it is now; for a deletion its last state at the deletion's revision.
    pub record: Arc<Record>,
    /// Whether there is anything to tell the watchers.
    pub effect: Effect,
    /// Tells when the write is durable.
    pub durability: Durability,
}

/// What a write did.
#[derive(Debug, Clone)]
pub enum Effect {
    /// It made a new revision.
    Changed(Arc<Event>),
    /// The object was already so: no revision, no event.
    Unchanged,
}

/// Why a write was not done, or not for good. Nothing has changed, [`CommitError::NotDurable`] excepted.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// Create: there is an object under that key.
    #[error("the object exists")]
    AlreadyExists {
        /// That object.
        current: Arc<Record>,
    },
    /// Update or delete: no object has that key.
    #[error("the object does not exist")]
    NotFound,
    /// Update or delete: the writer has not seen the present version.
    #[error("the object is at another revision than the writer has seen")]
    Conflict {
        /// The present version.
        current: Arc<Record>,
    },
    /// The draft or key cannot be stored; a mistake of the caller's.
    #[error("the write cannot be stored: {reason}")]
    Rejected {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The check that came with the write did not agree to it.
    #[error("the write's condition does not hold")]
    Unmet,
    /// The log has to catch up with the disk first. [`Collection::commit_durable`] waits for that.
    #[error("the log has fallen behind")]
    Busy,
    /// The disk has failed or the store was closed. Reads go on.
    #[error("the store is read-only: {reason}")]
    ReadOnly {
        /// What happened.
        reason: Arc<str>,
    },
    /// The write was done and has been seen, but the disk has failed: after a restart it may be gone.
    #[error(transparent)]
    NotDurable(NotDurable),
}

impl From<Unfit> for CommitError {
    fn from(Unfit(reason): Unfit) -> Self {
        Self::Rejected { reason }
    }
}

impl CommitError {
    /// Whether reading the object again and retrying can help.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// Whether the object is absent.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound)
    }

    /// Whether the object is already there.
    pub fn is_already_exists(&self) -> bool {
        matches!(self, Self::AlreadyExists { .. })
    }
}

impl Collection {
    /// The name it was opened by, such as `apps/deployments`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does one write. It is visible to everybody when this returns, and durable when its [`Durability`] says so.
    ///
    /// # Errors
    /// [`CommitError`]; nothing has changed then.
    pub fn commit(&self, write: Write) -> Result<Committed, CommitError> {
        let step = self.prepare(write)?;
        match self.inner.commit(self.table, step, &mut |_| true) {
            Ok(applied) => Ok(self.announce(applied)),
            Err(Refusal::Error(error)) => Err(error),
            Err(Refusal::Busy(_)) => Err(CommitError::Busy),
        }
    }

    /// Does one write and waits until it is as durable as the store promises. In memory that is at once.
    ///
    /// Dropping the future does not undo the write.
    ///
    /// # Errors
    /// [`CommitError`], but never [`CommitError::Busy`].
    pub async fn commit_durable(&self, write: Write) -> Result<Committed, CommitError> {
        self.commit_durable_if(write, |_| true).await
    }

    /// As [`Collection::commit_durable`], for a write that also depends on something besides its own object. `check` is
    /// called with the change that the write is about to make; no other write comes between its consent and the
    /// change. It may be called again when the log had to catch up first, and is not called when nothing would change.
    /// It holds up all writers: it must be quick and must not come back to the store.
    ///
    /// # Errors
    /// [`CommitError::Unmet`] when `check` says no, and those of [`Collection::commit_durable`].
    pub async fn commit_durable_if(
        &self,
        write: Write,
        mut check: impl FnMut(&Event) -> bool + Send,
    ) -> Result<Committed, CommitError> {
        let mut step = Box::new(self.prepare(write)?);
        let done = loop {
            let progress = self.inner.progress();
            match self.inner.commit(self.table, *step, &mut check) {
                Ok(applied) => break self.announce(applied),
                Err(Refusal::Error(error)) => return Err(error),
                Err(Refusal::Busy(same)) => step = same,
            }
            progress.await;
        };
        let durable = done.durability.clone().wait().await;
        durable.map_err(CommitError::NotDurable)?;
        Ok(done)
    }

    fn announce(&self, applied: Applied) -> Committed {
        let (record, effect) = match applied {
            Applied::Unchanged(record) => (record, Effect::Unchanged),
            Applied::Changed(event) => {
                self.wakers.wake_all();
                (event.record().clone(), Effect::Changed(event))
            }
        };
        Committed {
            durability: self.inner.durability(record.revision),
            record,
            effect,
        }
    }

    /// The present version of one object.
    pub fn get(&self, key: &str) -> Option<Arc<Record>> {
        self.inner.state.read().tables[self.table]
            .root
            .get(key)
            .cloned()
    }

    /// All objects at one revision. Costs nothing for the latest; for an older one, as much as there were changes
    /// since, once.
    ///
    /// # Errors
    /// When the revision is not known any more or not yet.
    pub fn snapshot(&self, at: At) -> Result<Snapshot, SnapshotError> {
        Snapshot::take(self, at)
    }

    /// Follows the changes after a revision, which is that of a snapshot or an event. A revision of the future is
    /// fine: the cursor is silent until it has passed.
    ///
    /// # Errors
    /// When events after that revision may have been forgotten.
    pub fn watch(&self, from_revision: u64) -> Result<Cursor, Expired> {
        Cursor::open(self.clone(), from_revision)
    }

    /// Renders what can be rendered before the lock is taken.
    fn prepare(&self, write: Write) -> Result<Step, CommitError> {
        let next = self.inner.revision() + 1;
        let (Write::Create { key, .. } | Write::Update { key, .. } | Write::Delete { key, .. }) =
            &write;
        check_key(key)?;
        Ok(match write {
            Write::Create { key, draft } => Step::Create {
                key: key.into(),
                candidate: Candidate::new(draft, Delivery::Added, next)?,
            },
            Write::Update {
                key,
                expected_revision,
                draft,
            } => Step::Update {
                key,
                expected: expected_revision,
                candidate: Candidate::new(draft, Delivery::Modified, next)?,
            },
            Write::Delete {
                key,
                expected_revision,
            } => Step::Delete {
                key,
                expected: expected_revision,
            },
        })
    }
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Collection").field(&self.name).finish()
    }
}
