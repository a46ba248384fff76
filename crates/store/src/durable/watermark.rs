//! How much of the log was forced to the disk, in a file beside it.
//!
//! A log alone cannot say where it ended: one that lost its last record looks like one that never had it. The
//! watermark is written after each force, so it never claims more than the disk has; it is not forced itself, so it
//! costs one small write. The end of the process leaves it exact. A power cut may leave an older one, which claims
//! less and is still true.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::Path;

use super::OpenError;
use super::directory::{Directory, create_new, failed};
use super::entry::{self, Entry};
use super::frame::{self, HEAD};

/// What was forced to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// The segment that was written last.
    pub(super) sequence: u64,
    /// Its length.
    pub(super) length: u64,
    /// Revisions up to this one may have been handed out.
    pub(super) reserved: u64,
}

/// The file, while the log is written.
#[derive(Debug)]
pub(super) struct Watermark {
    file: File,
    buffer: Vec<u8>,
}

impl Watermark {
    /// Replaces the file atomically. Where nothing is synced to disk, no file is written: an older one stays, and stays
    /// true.
    pub(super) fn create(directory: &Directory, mark: Mark) -> io::Result<Option<Self>> {
        if !directory.forces() {
            return Ok(None);
        }
        let unfinished = directory.unfinished_watermark();
        directory.remove_if_there(&unfinished)?;
        let mut watermark = Self {
            file: create_new(&unfinished)?,
            buffer: Vec::new(),
        };
        watermark.set(mark)?;
        directory.sync_file(&watermark.file)?;
        fs::rename(&unfinished, directory.watermark())?;
        directory.sync_names()?;
        Ok(Some(watermark))
    }

    /// Overwrites the mark in place. It lies within one sector, so it is the old one or the new one.
    pub(super) fn set(&mut self, mark: Mark) -> io::Result<()> {
        self.buffer.clear();
        entry::append_watermark(&mut self.buffer, &mark);
        self.file.rewind()?;
        self.file.write_all(&self.buffer)
    }
}

/// Reads a watermark; none if the file is not there. It was complete before it got its name, so anything else that
/// is wrong with it is damage.
pub(super) fn read(path: &Path) -> Result<Option<Mark>, OpenError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("reading", path)(error)),
    };
    let damaged = |reason| OpenError::Damaged {
        path: path.to_owned(),
        offset: 0,
        reason,
    };
    let payload = frame::whole(&bytes).ok_or_else(|| damaged("the record is not whole"))?;
    match Entry::decode(payload).map_err(damaged)? {
        Entry::Watermark(mark) if HEAD + payload.len() == bytes.len() => Ok(Some(mark)),
        _ => Err(damaged("the record does not belong here")),
    }
}
