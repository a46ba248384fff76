//! Puts the records of an image and of the log after it together again.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::entry::Entry;
use super::image::Image;
use super::journal::BLOCK;
use crate::record::Record;
use crate::root::Root;

/// Objects by collection.
pub(super) type Tables = BTreeMap<Arc<str>, Root>;

/// What the log says, as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) tables: Tables,
    /// What the image contains; the log may repeat the last of it.
    image_revision: u64,
    /// The last change in the log, or the revision that a life of the store began with.
    revision: u64,
    /// Revisions up to here may have been handed out.
    reserved: u64,
    /// The revision of a log that was closed and not continued.
    pub(super) closed: Option<u64>,
    /// Changes that were read, beyond the image.
    pub(super) records: u64,
    /// Segments that have been begun.
    segments: u64,
    /// Length of the last segment that was read to its end.
    pub(super) previous: Option<u64>,
}

impl Replay {
    pub(super) fn after(image: Image) -> Self {
        Self {
            tables: image.tables,
            image_revision: image.revision,
            revision: image.revision,
            reserved: image.revision,
            ..Self::default()
        }
    }

    /// Takes the record at an offset of a segment, or says why it cannot be there.
    pub(super) fn apply(
        &mut self,
        entry: Entry<'_>,
        offset: u64,
        file: u64,
    ) -> Result<(), &'static str> {
        let begins = matches!(entry, Entry::Segment { sequence, .. } if sequence == file);
        if begins != (offset == 0) {
            return Err("the record does not belong here");
        }
        match entry {
            Entry::Segment { reserved, .. } => self.begin(reserved)?,
            Entry::Previous { length } => {
                if self.previous.is_some_and(|previous| previous != length) {
                    return Err("the segment before this one has lost its end");
                }
            }
            Entry::Reserve { up_to } => self.reserved = self.reserved.max(up_to),
            Entry::Close { revision } => {
                self.closed = Some(revision);
                return Ok(());
            }
            Entry::Put { collection, record } => {
                if self.advance(record.revision)? {
                    insert(&mut self.tables, collection, record);
                }
            }
            Entry::Delete {
                collection,
                key,
                revision,
            } => {
                if self.advance(revision)? {
                    let root = self.tables.get_mut(collection);
                    root.and_then(|root| root.remove(key))
                        .ok_or("an object is deleted that does not exist")?;
                }
            }
            Entry::Image { .. } | Entry::End { .. } | Entry::Watermark(_) => {
                return Err("the record does not belong here");
            }
        }
        self.closed = None;
        Ok(())
    }

    /// A segment has been read to its end. One that has no beginning is nothing.
    pub(super) fn end_segment(&mut self, length: u64) {
        if length > 0 {
            self.previous = Some(length);
        }
    }

    /// A segment continues the life of the store that wrote the last one, with the same reservation, or begins the next
    /// life, with a reservation that follows from what was on disk then. Anything else means that the end of the last
    /// segment is not what it was. What came before the first segment is not known.
    fn begin(&mut self, reserved: u64) -> Result<(), &'static str> {
        let base = self.next_base();
        self.segments += 1;
        if self.segments == 1 {
            self.reserved = self.reserved.max(reserved);
        } else if reserved == base + BLOCK {
            (self.revision, self.reserved) = (base, reserved);
        } else if reserved != self.reserved || self.closed.is_some() {
            return Err("records are missing between this segment and the one before it");
        }
        if self.image_revision == 0 && self.segments == 1 {
            self.revision = base;
        }
        Ok(())
    }

    /// Whether a change is news. The log may repeat what the image has. Every revision of a life is in its log.
    fn advance(&mut self, revision: u64) -> Result<bool, &'static str> {
        if revision <= self.image_revision {
            return Ok(false);
        }
        if revision <= self.revision {
            return Err("revisions go back");
        }
        if revision > self.revision + 1 {
            return Err("records are missing before this one");
        }
        self.revision = revision;
        self.records += 1;
        Ok(true)
    }

    /// Where to continue: after a close just there, else above everything that may have been handed out.
    pub(super) fn next_base(&self) -> u64 {
        let after_crash = self.reserved.max(self.revision) + 1;
        self.closed.unwrap_or(after_crash)
    }
}

/// Puts a record into its collection.
pub(super) fn insert(tables: &mut Tables, collection: &str, record: Record) {
    if !tables.contains_key(collection) {
        tables.insert(collection.into(), Root::default());
    }
    if let Some(root) = tables.get_mut(collection) {
        root.insert(Arc::new(record));
    }
}
