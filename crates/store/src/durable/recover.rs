//! Reads what is on disk: the newest image, then the log after it. Tells a torn end from damage.
//!
//! A torn end is what a write leaves that was cut short. It lies behind everything that is known to have been complete
//! (the watermark says so, and so does whatever could only be written later), it is no longer than one batch, and no
//! whole record follows it. Everything else that cannot be read is damage, and damage is not touched here.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::directory::{Directory, create_new, failed};
use super::entry::{Entry, next_whole};
use super::frame::{FrameError, Frames};
use super::image::{self, Image};
use super::journal::MAX_BATCH;
use super::replay::{Replay, Tables};
use super::segment::{CLOSE_RECORD, FIRST_RECORD};
use super::watermark::{self, Mark};
use super::{OpenError, OpenOptions, Recovery};
use crate::root::Root;

/// A store as it was found on disk.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(super) directory: Directory,
    pub(crate) tables: Tables,
    pub(crate) recovery: Recovery,
    /// Number of the segment to begin.
    pub(super) next_segment: u64,
    /// Length of the segment before it, if there is one.
    pub(super) last_length: Option<u64>,
    /// Bytes of log that were read, and of the image before them.
    pub(super) log_bytes: u64,
    pub(super) image_bytes: u64,
}

/// What a directory holds, read without changing anything.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) tables: Tables,
    pub(super) recovery: Recovery,
    next_segment: u64,
    last_length: Option<u64>,
    log_bytes: u64,
    image_bytes: u64,
    /// The image, and the first segment after it.
    image_revision: u64,
    first_segment: u64,
    torn: Option<Torn>,
}

/// The torn end of the last segment.
#[derive(Debug, Clone, Copy)]
struct Torn {
    sequence: u64,
    offset: u64,
}

/// A segment, and how much of it must be there.
#[derive(Debug, Clone, Copy)]
struct Part {
    sequence: u64,
    /// Bytes that were on disk before something else was written.
    known: u64,
    /// Whether others follow, so that it was complete once.
    complete: bool,
}

/// Locks the directory, reads it, cuts off a torn end and removes what is superfluous. `first` is the revision of a
/// store that is new.
pub(crate) fn recover(
    path: &Path,
    options: &OpenOptions,
    first: u64,
) -> Result<Recovered, OpenError> {
    let directory = Directory::lock(path, options.fsync)?;
    let reading = read(&directory, first)?;
    if let Some(torn) = reading.torn {
        torn.cut(&directory)
            .map_err(failed("cutting", &directory.segment(torn.sequence)))?;
    }
    image::remove_older(&directory, reading.image_revision, reading.first_segment)
        .map_err(failed("cleaning", path))?;
    Ok(Recovered {
        directory,
        tables: reading.tables,
        recovery: reading.recovery,
        next_segment: reading.next_segment,
        last_length: reading.last_length,
        log_bytes: reading.log_bytes,
        image_bytes: reading.image_bytes,
    })
}

/// Reads a directory.
pub(super) fn read(directory: &Directory, first: u64) -> Result<Reading, OpenError> {
    let listing = directory.list()?;
    let mark = watermark::read(&directory.watermark())?;
    let image = match listing.images.last() {
        Some(revision) => image::read(directory, *revision)?,
        None => Image::none(),
    };
    let (first_segment, image_revision, image_bytes) =
        (image.first_segment, image.revision, image.bytes);
    let segments = needed(directory, &listing.segments, &image, mark)?;
    let mut replay = Replay::after(image);
    let (mut log_bytes, mut torn_bytes, mut torn) = (0, 0, None);
    for part in &segments {
        let length = read_segment(directory, *part, &mut replay)?;
        replay.end_segment(length.good);
        log_bytes += length.good;
        torn_bytes += length.torn;
        torn = (length.good < FIRST_RECORD || length.torn > 0).then_some(Torn {
            sequence: part.sequence,
            offset: length.good,
        });
    }
    let next_segment = match (segments.last(), torn) {
        (None, _) => first_segment,
        // One that is cut off entirely is begun again, so that the sequence has no gap.
        (Some(last), Some(Torn { offset: 0, .. })) => last.sequence,
        (Some(last), _) => last.sequence + 1,
    };
    let fresh = segments.is_empty();
    Ok(Reading {
        recovery: Recovery {
            revision: if fresh { first } else { replay.next_base() },
            objects: replay.tables.values().map(Root::len).sum(),
            records: replay.records,
            segments: segments.len(),
            closed: fresh || replay.closed.is_some(),
            truncated_bytes: torn_bytes,
        },
        last_length: replay.previous,
        tables: replay.tables,
        next_segment,
        log_bytes,
        image_bytes,
        image_revision,
        first_segment,
        torn,
    })
}

/// The segments from the first that counts to the last, without a gap, and as far as the watermark says.
fn needed(
    directory: &Directory,
    found: &[u64],
    image: &Image,
    mark: Option<Mark>,
) -> Result<Vec<Part>, OpenError> {
    let first = image.first_segment;
    let found: Vec<u64> = found.iter().copied().filter(|s| *s >= first).collect();
    // An image is written after the segment that follows it was begun.
    let begun = (image.bytes > 0).then_some(first);
    let last = [found.last().copied(), begun, mark.map(|m| m.sequence)];
    let Some(last) = last.into_iter().flatten().max() else {
        return Ok(Vec::new());
    };
    let mut parts = Vec::new();
    for sequence in first..=last {
        if found.get(parts.len()) != Some(&sequence) {
            let path = directory.segment(sequence);
            return Err(OpenError::Missing { path });
        }
        let marked = mark.filter(|m| m.sequence == sequence);
        let begun = begun.filter(|begun| *begun == sequence);
        parts.push(Part {
            sequence,
            known: marked
                .map_or(0, |m| m.length)
                .max(begun.map_or(0, |_| FIRST_RECORD)),
            complete: sequence < last,
        });
    }
    Ok(parts)
}

/// How much of a segment is good, and how much at its end is torn.
#[derive(Debug)]
struct Length {
    good: u64,
    torn: u64,
}

fn read_segment(
    directory: &Directory,
    part: Part,
    replay: &mut Replay,
) -> Result<Length, OpenError> {
    let path = directory.segment(part.sequence);
    let reading = |source| failed("reading", &path)(source);
    let mut file = File::open(&path).map_err(failed("opening", &path))?;
    let length = file.metadata().map_err(reading)?.len();
    let known = part.known_of(&mut file, length).map_err(reading)?;
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
                replay
                    .apply(entry, offset, part.sequence)
                    .map_err(damaged)?;
                continue;
            }
            Ok(None) if offset < known => "records are missing from the end",
            Ok(None) => {
                return Ok(Length {
                    good: length,
                    torn: 0,
                });
            }
            Err(FrameError::Damaged(reason)) => reason,
            Err(FrameError::Io(source)) => return Err(reading(source)),
        };
        if offset < known || !is_torn(&path, offset).map_err(reading)? {
            return Err(damaged(reason));
        }
        return Ok(Length {
            good: offset,
            torn: frames.remaining(),
        });
    }
}

impl Part {
    /// Bytes of the segment that were once complete: what follows could only be written after them.
    fn known_of(&self, file: &mut File, length: u64) -> io::Result<u64> {
        if self.complete {
            return Ok(length.max(FIRST_RECORD));
        }
        if ends_with_close(file, length)? {
            return Ok(self.known.max(length));
        }
        let second = length > FIRST_RECORD;
        Ok(self.known.max(if second { FIRST_RECORD } else { 0 }))
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

/// Whether what begins at an offset and cannot be read can be a write that was cut short: it is not longer than a
/// batch, and there is no whole record in it.
fn is_torn(path: &Path, offset: u64) -> io::Result<bool> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut rest = Vec::new();
    file.take(MAX_BATCH + 1).read_to_end(&mut rest)?;
    Ok(rest.len() as u64 <= MAX_BATCH && next_whole(&rest, 0).is_none())
}

impl Torn {
    /// Cuts a segment's end off for good and keeps it aside. A segment without a beginning is nothing.
    fn cut(self, directory: &Directory) -> io::Result<()> {
        let path = directory.segment(self.sequence);
        self.keep(directory)?;
        if self.offset == 0 {
            fs::remove_file(&path)?;
            return directory.sync_names();
        }
        let file = File::options().write(true).open(&path)?;
        file.set_len(self.offset)?;
        directory.sync_file(&file)
    }

    /// The bytes stay until an image replaces the segment.
    fn keep(self, directory: &Directory) -> io::Result<()> {
        let mut file = File::open(directory.segment(self.sequence))?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut rest = Vec::new();
        file.read_to_end(&mut rest)?;
        if rest.is_empty() {
            return Ok(());
        }
        let aside = directory.torn(self.sequence);
        directory.remove_if_there(&aside)?;
        let mut aside = create_new(&aside)?;
        aside.write_all(&rest)?;
        directory.sync_file(&aside)
    }
}
