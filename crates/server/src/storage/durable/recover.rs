//! Reads what is on disk: the newest image, then the log after it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use super::directory::{Directory, failed};
use super::entry::Entry;
use super::frame::{FrameError, Frames};
use super::segment::FIRST_RECORD;
use super::{Fsync, OpenError, OpenOptions, Recovery, image};
use crate::storage::record::Record;
use crate::storage::state::Root;

/// Objects by collection.
pub(super) type Tables = BTreeMap<Arc<str>, Root>;

/// A store as it was found on disk.
#[derive(Debug)]
pub(in crate::storage) struct Recovered {
    pub(super) directory: Directory,
    pub(in crate::storage) tables: Tables,
    pub(in crate::storage) recovery: Recovery,
    /// Number of the segment to begin.
    pub(super) next_segment: u64,
    /// Bytes of log that were read, and of the image before them.
    pub(super) log_bytes: u64,
    pub(super) image_bytes: u64,
}

/// What the log says, as far as it has been read.
#[derive(Debug, Default)]
struct Replay {
    tables: Tables,
    /// What the image contains; the log may repeat the last of it.
    image_revision: u64,
    /// The last change in the log.
    revision: u64,
    /// Revisions up to here may have been handed out.
    reserved: u64,
    /// The revision of a log that was closed and not continued.
    closed: Option<u64>,
    records: u64,
}

/// Locks the directory and reads it. `first` is the revision of a store that is new.
pub(in crate::storage) fn recover(
    path: &Path,
    options: &OpenOptions,
    first: u64,
) -> Result<Recovered, OpenError> {
    let directory = Directory::lock(path, options.fsync != Fsync::Never)?;
    let listing = directory.list()?;
    let image = match listing.images.last() {
        Some(revision) => image::read(&directory.image(*revision))?,
        None => image::Image {
            first_segment: 1,
            ..image::Image::default()
        },
    };
    let (first_segment, image_revision) = (image.first_segment, image.revision);
    let segments = needed(
        &directory,
        &listing.segments,
        first_segment,
        image.bytes > 0,
    )?;
    let mut replay = Replay {
        tables: image.tables,
        image_revision,
        revision: image_revision,
        reserved: image_revision,
        ..Replay::default()
    };
    let (mut log_bytes, mut truncated_bytes) = (0, 0);
    for sequence in &segments {
        let last = Some(sequence) == segments.last();
        let (whole, torn) = read_segment(&directory, *sequence, last, &mut replay)?;
        log_bytes += whole;
        truncated_bytes += torn;
    }
    image::remove_older(&directory, image_revision, first_segment)
        .map_err(failed("cleaning", path))?;
    let fresh = segments.is_empty();
    let next_segment = match segments.last() {
        None => first_segment,
        // One that was cut off entirely is begun again, so that the sequence has no gap.
        Some(last) if !directory.segment(*last).exists() => *last,
        Some(last) => last + 1,
    };
    Ok(Recovered {
        directory,
        recovery: Recovery {
            revision: if fresh { first } else { replay.next_base() },
            objects: replay.tables.values().map(Root::len).sum(),
            records: replay.records,
            segments: segments.len(),
            closed: fresh || replay.closed.is_some(),
            truncated_bytes,
        },
        tables: replay.tables,
        next_segment,
        log_bytes,
        image_bytes: image.bytes,
    })
}

/// The segments from the first that counts to the last, without a gap.
fn needed(
    directory: &Directory,
    found: &[u64],
    first: u64,
    has_image: bool,
) -> Result<Vec<u64>, OpenError> {
    let segments: Vec<u64> = found.iter().copied().filter(|s| *s >= first).collect();
    // An image is written after the segment that follows it was begun.
    let least = if has_image { 1 } else { 0 };
    let expected = first..first + segments.len().max(least) as u64;
    for (i, sequence) in expected.enumerate() {
        if segments.get(i) != Some(&sequence) {
            let path = directory.segment(sequence);
            return Err(OpenError::Missing { path });
        }
    }
    Ok(segments)
}

/// Reads one segment; returns its good bytes and those that were cut off.
fn read_segment(
    directory: &Directory,
    sequence: u64,
    last: bool,
    replay: &mut Replay,
) -> Result<(u64, u64), OpenError> {
    let path = directory.segment(sequence);
    let file = File::open(&path).map_err(failed("opening", &path))?;
    let length = file.metadata().map_err(failed("reading", &path))?.len();
    let mut frames = Frames::new(BufReader::new(file), length);
    loop {
        let offset = frames.offset();
        let damaged = |reason| OpenError::Damaged {
            path: path.clone(),
            offset,
            reason,
        };
        match frames.read() {
            Ok(None) if offset > 0 => return Ok((length, 0)),
            Ok(Some(payload)) => Entry::decode(payload)
                .and_then(|entry| replay.apply(entry, offset, sequence))
                .map_err(damaged)?,
            Err(FrameError::Io(source)) => return Err(failed("reading", &path)(source)),
            Ok(None) | Err(FrameError::Damaged(_)) if last && is_torn(offset, length) => {
                let torn = frames.remaining();
                cut(directory, &path, offset).map_err(failed("cutting", &path))?;
                return Ok((offset, torn));
            }
            Ok(None) => return Err(damaged("the segment is empty")),
            Err(FrameError::Damaged(reason)) => return Err(damaged(reason)),
        }
    }
}

/// Whether a crash can have left the last segment so. Its first record was on disk before the second was written, so a
/// bad first record with something behind it is not a torn one.
fn is_torn(offset: u64, length: u64) -> bool {
    offset > 0 || length <= FIRST_RECORD
}

/// Cuts a segment's end off for good. One without a beginning is nothing.
fn cut(directory: &Directory, path: &Path, offset: u64) -> std::io::Result<()> {
    if offset == 0 {
        fs::remove_file(path)?;
        return directory.sync_names();
    }
    let file = File::options().write(true).open(path)?;
    file.set_len(offset)?;
    directory.sync_file(&file)
}

impl Replay {
    fn apply(&mut self, entry: Entry<'_>, offset: u64, file: u64) -> Result<(), &'static str> {
        let begins = matches!(entry, Entry::Segment { sequence, .. } if sequence == file);
        if begins != (offset == 0) {
            return Err("the record does not belong here");
        }
        self.closed = None;
        match entry {
            Entry::Segment { reserved, .. } => self.reserved = self.reserved.max(reserved),
            Entry::Reserve { up_to } => self.reserved = self.reserved.max(up_to),
            Entry::Close { revision } => self.closed = Some(revision),
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
            Entry::Image { .. } | Entry::End { .. } => {
                return Err("the record does not belong here");
            }
        }
        Ok(())
    }

    /// Whether a change is news. The log may repeat what the image has.
    fn advance(&mut self, revision: u64) -> Result<bool, &'static str> {
        if revision <= self.image_revision {
            return Ok(false);
        }
        if revision <= self.revision {
            return Err("revisions go back");
        }
        self.revision = revision;
        self.records += 1;
        Ok(true)
    }

    /// Where to continue: after a close just there, else above everything that may have been handed out.
    fn next_base(&self) -> u64 {
        let after_crash = self.reserved.max(self.revision) + 1;
        self.closed.unwrap_or(after_crash)
    }
}

/// Puts a record into its collection.
pub(super) fn insert(tables: &mut Tables, collection: &str, record: Record) {
    if !tables.contains_key(collection) {
        tables.insert(collection.into(), Root::new());
    }
    if let Some(root) = tables.get_mut(collection) {
        root.insert(record.key.clone(), Arc::new(record));
    }
}
