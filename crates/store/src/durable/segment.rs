//! One file of the log, while it is written.

use std::fs::File;
use std::io::{self, Write};

use super::directory::{Directory, create_new};
use super::entry;
use super::frame::HEAD;

/// Length of a segment's first record. It is on disk before a second one is written.
pub(super) const FIRST_RECORD: u64 = HEAD as u64 + 1 + 4 + 8 + 8;
/// Length of the record that ends a log which was closed.
pub(super) const CLOSE_RECORD: u64 = HEAD as u64 + 1 + 8;

/// The end of the log.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) sequence: u64,
    pub(super) file: File,
    /// Bytes that were written.
    pub(super) length: u64,
}

impl Segment {
    /// Begins a segment, after one of that length. When this returns, it is on disk together with its reservation.
    pub(super) fn create(
        directory: &Directory,
        sequence: u64,
        reserved: u64,
        previous: Option<u64>,
    ) -> io::Result<Self> {
        let file = create_new(&directory.segment(sequence))?;
        let mut segment = Self {
            sequence,
            file,
            length: 0,
        };
        let mut first = Vec::new();
        entry::append_segment(&mut first, sequence, reserved);
        if let Some(length) = previous {
            entry::append_previous(&mut first, length);
        }
        segment.write(&first)?;
        directory.sync_file(&segment.file)?;
        directory.sync_names()?;
        Ok(segment)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}
