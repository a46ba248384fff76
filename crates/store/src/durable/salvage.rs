//! Reads all records of a file that can be read, whatever lies between them.

use std::fs;
use std::path::Path;

use super::OpenError;
use super::directory::failed;
use super::entry::{Entry, next_whole};
use super::frame::{self, HEAD};
use super::replay::{Tables, insert};
use super::rescue::Damage;
use crate::record::Record;

/// Everything that could be read so far.
#[derive(Debug, Default)]
pub(super) struct Salvage {
    /// The newest image without damage.
    pub(super) sound: Option<SoundImage>,
    /// Changes in the log, and objects of images that are not sound.
    pub(super) changes: Vec<Change>,
    pub(super) damage: Vec<Damage>,
    /// The highest revision that is known to have been handed out or reserved.
    pub(super) revision: u64,
    /// The highest first segment that an image names.
    pub(super) first_segment: u64,
}

/// An image without damage.
#[derive(Debug)]
pub(super) struct SoundImage {
    pub(super) revision: u64,
    pub(super) tables: Tables,
}

/// What one record did.
#[derive(Debug)]
pub(super) enum Change {
    Put {
        collection: Box<str>,
        record: Record,
    },
    Delete {
        collection: Box<str>,
        key: Box<str>,
        revision: u64,
    },
}

impl Change {
    pub(super) fn revision(&self) -> u64 {
        match self {
            Self::Put { record, .. } => record.revision,
            Self::Delete { revision, .. } => *revision,
        }
    }
}

impl Salvage {
    pub(super) fn segment(&mut self, path: &Path, sequence: u64) -> Result<(), OpenError> {
        let belongs = |entry: &Entry<'_>| match entry {
            Entry::Segment { sequence: own, .. } => *own == sequence,
            _ => false,
        };
        let changes = self.file(path, belongs)?.changes;
        self.changes.extend(changes);
        Ok(())
    }

    pub(super) fn image(&mut self, path: &Path, revision: u64) -> Result<(), OpenError> {
        let belongs = |entry: &Entry<'_>| match entry {
            Entry::Image { revision: own, .. } => *own == revision,
            _ => false,
        };
        let before = self.damage.len();
        let content = self.file(path, belongs)?;
        if content.objects != Some(content.changes.len() as u64) {
            let end = content.length;
            self.found(Damage::at(path.into(), end, "the image is not complete"));
        }
        if self.damage.len() > before {
            self.changes.extend(content.changes);
            return Ok(());
        }
        let mut tables = Tables::new();
        for change in content.changes {
            if let Change::Put { collection, record } = change {
                insert(&mut tables, &collection, record);
            }
        }
        self.sound = Some(SoundImage { revision, tables });
        Ok(())
    }

    /// Reads a file that should not hold objects, or not all of them: an image that was not finished, or one with
    /// another file's content. What else is in it is not damage.
    pub(super) fn other(&mut self, path: &Path) -> Result<(), OpenError> {
        let before = self.damage.len();
        if path.exists() {
            let changes = self.file(path, |_| true)?.changes;
            self.changes.extend(changes);
        }
        self.damage.truncate(before);
        Ok(())
    }

    /// Reads a file. `belongs` says whether its first record is the one that should be there.
    fn file(
        &mut self,
        path: &Path,
        belongs: impl Fn(&Entry<'_>) -> bool,
    ) -> Result<Content, OpenError> {
        let bytes = fs::read(path).map_err(failed("reading", path))?;
        let mut content = Content {
            length: bytes.len() as u64,
            ..Content::default()
        };
        let mut at = 0;
        if bytes.is_empty() {
            self.found(Damage::at(path.into(), 0, "the file is empty"));
        }
        while at < bytes.len() {
            let payload = frame::whole(&bytes[at..]);
            let entry = payload.and_then(|payload| Some((payload, Entry::decode(payload).ok()?)));
            if let Some((payload, entry)) = entry {
                if at == 0 && !belongs(&entry) {
                    let reason = "the file's content belongs to another file";
                    self.found(Damage::at(path.into(), 0, reason));
                }
                self.take(entry, &mut content);
                at += HEAD + payload.len();
                continue;
            }
            let next = next_whole(&bytes, at + 1).unwrap_or(bytes.len());
            self.found(Damage {
                bytes: (next - at) as u64,
                after: content.changes.last().map(Change::revision),
                ..Damage::at(path.into(), at as u64, "the bytes are not a whole record")
            });
            content.gap = Some(self.damage.len() - 1);
            at = next;
        }
        Ok(content)
    }

    fn found(&mut self, damage: Damage) {
        self.damage.push(damage);
    }

    fn take(&mut self, entry: Entry<'_>, content: &mut Content) {
        let change = match entry {
            Entry::Put { collection, record } => Change::Put {
                collection: collection.into(),
                record,
            },
            Entry::Delete {
                collection,
                key,
                revision,
            } => Change::Delete {
                collection: collection.into(),
                key: key.into(),
                revision,
            },
            Entry::Segment { reserved, .. } => return self.reached(reserved),
            Entry::Reserve { up_to } => return self.reached(up_to),
            Entry::Image {
                revision,
                first_segment,
            } => {
                self.first_segment = self.first_segment.max(first_segment);
                return self.reached(revision);
            }
            Entry::End { objects } => {
                content.objects = Some(objects);
                return;
            }
            Entry::Close { .. } | Entry::Previous { .. } | Entry::Watermark(_) => return,
        };
        let revision = change.revision();
        self.reached(revision);
        if let Some(gap) = content.gap.take() {
            self.damage[gap].before = Some(revision);
        }
        content.changes.push(change);
    }

    fn reached(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
    }
}

/// What was read of one file.
#[derive(Debug, Default)]
struct Content {
    changes: Vec<Change>,
    /// What an image says at its end.
    objects: Option<u64>,
    length: u64,
    /// The damage after which no change has been read yet.
    gap: Option<usize>,
}
