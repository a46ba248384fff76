//! The informer proper: applies deltas to the store and tells what changed. The only writer of the store.

use std::sync::Arc;

use crate::batch::Prepared;
use crate::event::Change;
use crate::object::{Object, unchanged};
use crate::store::{Replaced, Stale, Writer};

/// Applies deltas. Whoever holds it sees store and changes in step.
#[derive(Debug)]
pub(crate) struct Hub {
    writer: Writer,
    synced: bool,
}

impl Hub {
    pub(crate) fn new(writer: Writer) -> Self {
        Self {
            writer,
            synced: false,
        }
    }

    /// Whether a first whole state has been applied.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced
    }

    /// Applies one delta and gives each change that it makes, after it is in the store.
    ///
    /// # Errors
    /// The delta itself, when an index has come since it was prepared. Nothing has changed then.
    pub(crate) fn apply(
        &mut self,
        prepared: Prepared,
        mut tell: impl FnMut(Change),
    ) -> Result<(), Prepared> {
        match prepared {
            Prepared::Apply(object, entries) => match self.writer.try_put(&object, &entries) {
                Err(Stale) => return Err(Prepared::Apply(object, entries)),
                // A watch that is opened again may repeat what is known.
                Ok(Some(old)) if unchanged(&old, &object) => {}
                Ok(old) => updated(old, object, false, &mut tell),
            },
            Prepared::Delete(last) => self.delete(last, &mut tell),
            Prepared::Bookmark(version) => self.writer.bookmark(&version),
            Prepared::Replace {
                plan,
                resource_version,
            } => match self.writer.try_replace(plan, &resource_version) {
                Ok(replaced) => {
                    let initial = !std::mem::replace(&mut self.synced, true);
                    replace(replaced, initial, &mut tell);
                }
                Err(plan) => {
                    return Err(Prepared::Replace {
                        plan,
                        resource_version,
                    });
                }
            },
        }
        Ok(())
    }

    fn delete(&mut self, last: Arc<Object>, tell: &mut impl FnMut(Change)) {
        let removed = self.writer.remove(last.key());
        let version = last.resource_version();
        if !version.is_empty() {
            self.writer.bookmark(&version);
        }
        // An object that no handler knows is not reported as deleted.
        let Some(known) = removed else {
            return;
        };
        // Where the last state could not be read, the one before it is the last that is known.
        let observed = !last.is_identity();
        let last = if observed { last } else { known };
        tell(Change::Deleted { last, observed });
    }
}

/// Deletions first, so that whoever counts never counts too many.
fn replace(replaced: Replaced, initial: bool, tell: &mut impl FnMut(Change)) {
    for last in replaced.removed {
        let observed = false;
        tell(Change::Deleted { last, observed });
    }
    for (old, new) in replaced.put {
        updated(old, new, initial, tell);
    }
}

/// Another object of the same name is a deletion that nobody saw, and an addition.
fn updated(
    old: Option<Arc<Object>>,
    new: Arc<Object>,
    initial: bool,
    tell: &mut impl FnMut(Change),
) {
    match old {
        Some(old) if old.is_same_object(&new) => tell(Change::Updated { old, new }),
        other => {
            if let Some(last) = other {
                let observed = false;
                tell(Change::Deleted { last, observed });
            }
            tell(Change::Added {
                object: new,
                initial,
            });
        }
    }
}

#[cfg(test)]
mod tests;
