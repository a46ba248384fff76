//! Reads what is on disk: the newest image, then the log after it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::directory::{Directory, failed};
use super::entry::Entry;
use super::frame::{FrameError, Frames};
use super::image::{self, Image};
use super::segment::{CLOSE_RECORD, FIRST_RECORD};
use super::{OpenError, OpenOptions, Recovery};
use crate::record::Record;
use crate::state::Root;

/// Objects by collection.
pub(super) type Tables = BTreeMap<Arc<str>, Root>;

/// A store as it was found on disk.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(super) directory: Directory,
    pub(crate) tables: Tables,
    pub(crate) recovery: Recovery,
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

/// Where a segment is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Another follows, so it was complete once.
    Middle,
    /// A crash may have cut it short.
    End,
}

/// How much of the log was good, and how much was cut off.
#[derive(Debug, Default)]
struct Extent {
    good: u64,
    torn: u64,
}

/// Locks the directory and reads it. `first` is the revision of a store that is new.
pub(crate) fn recover(
    path: &Path,
    options: &OpenOptions,
    first: u64,
) -> Result<Recovered, OpenError> {
    let directory = Directory::lock(path, options.fsync)?;
    let listing = directory.list()?;
    let image = match listing.images.last() {
        Some(revision) => image::read(&directory.image(*revision))?,
        None => Image::none(),
    };
    let (first_segment, image_revision, image_bytes) =
        (image.first_segment, image.revision, image.bytes);
    let segments = needed(&directory, &listing.segments, &image)?;
    let mut replay = Replay::after(image);
    let extent = read_log(&directory, &segments, &mut replay)?;
    image::remove_older(&directory, image_revision, first_segment)
        .map_err(failed("cleaning", path))?;
    let next_segment = match segments.last() {
        None => first_segment,
        // One that was cut off entirely is begun again, so that the sequence has no gap.
        Some(last) if !directory.segment(*last).exists() => *last,
        Some(last) => last + 1,
    };
    let fresh = segments.is_empty();
    Ok(Recovered {
        directory,
        recovery: Recovery {
            revision: if fresh { first } else { replay.next_base() },
            objects: replay.tables.values().map(Root::len).sum(),
            records: replay.records,
            segments: segments.len(),
            closed: fresh || replay.closed.is_some(),
            truncated_bytes: extent.torn,
        },
        tables: replay.tables,
        next_segment,
        log_bytes: extent.good,
        image_bytes,
    })
}

/// The segments from the first that counts to the last, without a gap.
fn needed(directory: &Directory, found: &[u64], image: &Image) -> Result<Vec<u64>, OpenError> {
    let first = image.first_segment;
    let segments: Vec<u64> = found.iter().copied().filter(|s| *s >= first).collect();
    // An image is written after the segment that follows it was begun.
    let least = usize::from(image.bytes > 0);
    let expected = first..first + segments.len().max(least) as u64;
    for (i, sequence) in expected.enumerate() {
        if segments.get(i) != Some(&sequence) {
            let path = directory.segment(sequence);
            return Err(OpenError::Missing { path });
        }
    }
    Ok(segments)
}

fn read_log(
    directory: &Directory,
    segments: &[u64],
    replay: &mut Replay,
) -> Result<Extent, OpenError> {
    let mut all = Extent::default();
    for sequence in segments {
        let place = match Some(sequence) == segments.last() {
            true => Place::End,
            false => Place::Middle,
        };
        let extent = read_segment(directory, *sequence, place, replay)?;
        all.good += extent.good;
        all.torn += extent.torn;
    }
    Ok(all)
}

fn read_segment(
    directory: &Directory,
    sequence: u64,
    place: Place,
    replay: &mut Replay,
) -> Result<Extent, OpenError> {
    let path = directory.segment(sequence);
    let mut file = File::open(&path).map_err(failed("opening", &path))?;
    let length = file.metadata().map_err(failed("reading", &path))?.len();
    let closed = ends_with_close(&mut file, length).map_err(failed("reading", &path))?;
    let mut frames = Frames::new(BufReader::new(file), length);
    loop {
        let offset = frames.offset();
        let damaged = |reason| OpenError::Damaged {
            path: path.clone(),
            offset,
            reason,
        };
        let reason = match frames.read() {
            Ok(Some(payload)) => {
                let entry = Entry::decode(payload).map_err(damaged)?;
                replay.apply(entry, offset, sequence).map_err(damaged)?;
                continue;
            }
            Ok(None) if offset > 0 => {
                let (good, torn) = (length, 0);
                return Ok(Extent { good, torn });
            }
            Ok(None) => "the segment is empty",
            Err(FrameError::Damaged(reason)) => reason,
            Err(FrameError::Io(source)) => return Err(failed("reading", &path)(source)),
        };
        // The first record was on disk before the second was written, and everything before a close was, too: damage
        // there is not a torn write.
        let torn = (offset > 0 || length <= FIRST_RECORD) && !closed;
        if place == Place::Middle || !torn {
            return Err(damaged(reason));
        }
        cut(directory, &path, offset).map_err(failed("cutting", &path))?;
        let (good, torn) = (offset, frames.remaining());
        return Ok(Extent { good, torn });
    }
}

/// Whether a segment's last record says that it was closed. Leaves the file at its beginning.
fn ends_with_close(file: &mut File, length: u64) -> io::Result<bool> {
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(CLOSE_RECORD)))?;
    file.read_to_end(&mut tail)?;
    file.rewind()?;
    let mut frames = Frames::new(&tail[..], tail.len() as u64);
    let payload = frames.read().ok().flatten();
    let entry = payload.and_then(|payload| Entry::decode(payload).ok());
    Ok(matches!(entry, Some(Entry::Close { .. })))
}

/// Cuts a segment's end off for good. One without a beginning is nothing.
fn cut(directory: &Directory, path: &Path, offset: u64) -> io::Result<()> {
    if offset == 0 {
        fs::remove_file(path)?;
        return directory.sync_names();
    }
    let file = File::options().write(true).open(path)?;
    file.set_len(offset)?;
    directory.sync_file(&file)
}

impl Replay {
    fn after(image: Image) -> Self {
        Self {
            tables: image.tables,
            image_revision: image.revision,
            revision: image.revision,
            reserved: image.revision,
            ..Self::default()
        }
    }

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
