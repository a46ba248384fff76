//! Images: all objects at one revision in one file, so that the log before it can go.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use super::OpenError;
use super::directory::{Directory, create_new, failed};
use super::entry::{self, Entry};
use super::frame::{FrameError, Frames};
use super::replay::{Tables, insert};
use crate::root::Root;

/// All objects at one revision, still in memory.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) revision: u64,
    pub(crate) tables: Vec<(std::sync::Arc<str>, Root)>,
}

/// An image that was read.
#[derive(Debug, Default)]
pub(super) struct Image {
    pub(super) revision: u64,
    pub(super) first_segment: u64,
    pub(super) tables: Tables,
    /// Size of the file.
    pub(super) bytes: u64,
}

impl Image {
    /// Before the first: nothing, and the whole log after it.
    pub(super) fn none() -> Self {
        Self {
            first_segment: 1,
            ..Self::default()
        }
    }
}

/// Writes an image, then removes the log and the images that it replaces. Returns its size, or none if it was called
/// off.
pub(super) fn write(
    directory: &Directory,
    frozen: &Frozen,
    first_segment: u64,
    call_off: &AtomicBool,
) -> io::Result<Option<u64>> {
    let unfinished = directory.unfinished_image();
    directory.remove_if_there(&unfinished)?;
    let mut file = BufWriter::with_capacity(1 << 18, create_new(&unfinished)?);
    if !write_records(&mut file, frozen, first_segment, call_off)? {
        fs::remove_file(&unfinished)?;
        return Ok(None);
    }
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    directory.sync_file(&file)?;
    let bytes = file.metadata()?.len();
    fs::rename(&unfinished, directory.image(frozen.revision))?;
    directory.sync_names()?;
    remove_older(directory, frozen.revision, first_segment)?;
    Ok(Some(bytes))
}

fn write_records(
    file: &mut impl Write,
    frozen: &Frozen,
    first_segment: u64,
    call_off: &AtomicBool,
) -> io::Result<bool> {
    let mut buffer = Vec::new();
    let mut objects = 0;
    entry::append_image(&mut buffer, frozen.revision, first_segment);
    for (collection, root) in &frozen.tables {
        for record in root.values() {
            if call_off.load(Ordering::Relaxed) {
                return Ok(false);
            }
            entry::append_put(&mut buffer, collection, record);
            objects += 1;
            file.write_all(&buffer)?;
            buffer.clear();
        }
    }
    entry::append_end(&mut buffer, objects);
    file.write_all(&buffer)?;
    Ok(true)
}

/// Removes what an image has made superfluous. Oldest first, so that a crash in between leaves no gap.
pub(super) fn remove_older(
    directory: &Directory,
    revision: u64,
    first_segment: u64,
) -> io::Result<()> {
    directory.remove_if_there(&directory.unfinished_image())?;
    let listing = directory.list().map_err(io::Error::other)?;
    for image in listing.images.into_iter().filter(|i| *i < revision) {
        directory.remove_if_there(&directory.image(image))?;
    }
    for sequence in listing.segments.into_iter().filter(|s| *s < first_segment) {
        directory.remove_if_there(&directory.segment(sequence))?;
    }
    for sequence in listing.torn.into_iter().filter(|s| *s < first_segment) {
        directory.remove_if_there(&directory.torn(sequence))?;
    }
    directory.sync_names()
}

/// Reads the image of a revision. It got its name after it was complete, so any damage is an error.
pub(super) fn read(directory: &Directory, named: u64) -> Result<Image, OpenError> {
    let path = &directory.image(named);
    let file = File::open(path).map_err(failed("opening", path))?;
    let bytes = file.metadata().map_err(failed("reading", path))?.len();
    let mut frames = Frames::new(BufReader::new(file), bytes);
    let mut image = Image::default();
    let mut objects = None;
    loop {
        let offset = frames.offset();
        let damaged = |reason| OpenError::Damaged {
            path: path.to_owned(),
            offset,
            reason,
        };
        let payload = match frames.read() {
            Ok(Some(payload)) => payload,
            Ok(None) if objects.is_some_and(|n| n == count(&image.tables)) => break,
            Ok(None) => return Err(damaged("the image is not complete")),
            Err(FrameError::Damaged(reason)) => return Err(damaged(reason)),
            Err(FrameError::Io(source)) => return Err(failed("reading", path)(source)),
        };
        match (offset, Entry::decode(payload).map_err(damaged)?) {
            (
                0,
                Entry::Image {
                    revision,
                    first_segment,
                },
            ) if revision == named => {
                (image.revision, image.first_segment) = (revision, first_segment);
            }
            (1.., Entry::Put { collection, record }) if objects.is_none() => {
                insert(&mut image.tables, collection, record);
            }
            (1.., Entry::End { objects: n }) if objects.is_none() => objects = Some(n),
            _ => return Err(damaged("the record does not belong here")),
        }
    }
    image.bytes = bytes;
    Ok(image)
}

fn count(tables: &Tables) -> u64 {
    tables.values().map(|root| root.len() as u64).sum()
}
