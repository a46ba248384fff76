//! Makes a store survive: an append-only log, images of everything now and then, and recovery from both.
//!
//! Promises
//! - A write whose [`Durability`] resolved survives the end of the process, however it ends. Whether it survives a
//!   power cut is what [`Fsync`] says.
//! - Revisions never go back. Writes are visible before they are durable, so a crash may lose some that were seen but
//!   not acknowledged. Their revisions are not handed out again: blocks of revisions are reserved ahead of use, and a
//!   store that was not closed continues above its reservation, with everything earlier forgotten. Whoever holds a
//!   lost revision has to list again.
//! - No torn or damaged record is ever served. A torn end of the last segment is cut off, kept aside and reported. It
//!   lies behind everything that is known to have been complete, and no whole record follows it. All other damage
//!   refuses to start and names the place; [`examine`] says what can be rescued, and does it on request.
//! - A log that has lost its end is noticed, too: a file beside it says how much of it was forced to the disk. With
//!   [`Fsync::Never`], and between two forces of [`Fsync::Interval`], there is no such thing to compare with.
//! - When the disk fails or is full, the store becomes read-only until it is opened again. What was visible stays
//!   visible; what was not durable is reported as such to its writer.
//!
//! Files (0600, in a directory of mode 0700): `lock`, `log-<sequence>`, `image-<revision>` and `watermark`. All but the
//! first consist of the same checked records (`frame`). `torn-<sequence>` is the torn end of a segment, `damaged-<n>`
//! what a repair has replaced. The history before the start is not kept.

mod directory;
mod entry;
mod frame;
mod image;
mod journal;
mod recover;
mod replay;
mod rescue;
mod salvage;
mod segment;
mod watermark;
mod writer;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use super::history::HistoryLimits;

pub(super) use image::Frozen;
pub(super) use journal::{Admission, Journal};
pub use journal::{Durability, NotDurable};
pub(super) use recover::{Recovered, recover};
pub use rescue::{Damage, Examination, Repair, examine};

/// When written records are forced to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fsync {
    /// Before a write is acknowledged. Writes that arrive together share one force.
    #[default]
    Always,
    /// At least this often. A power cut loses at most so much of the last writes; the end of the process loses none.
    Interval(Duration),
    /// When the operating system likes. A power cut may lose anything, and even take revisions back.
    Never,
}

/// How to open a store on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenOptions {
    /// When written records are forced to the disk.
    pub fsync: Fsync,
    /// How much of the past is kept in memory.
    pub history: HistoryLimits,
    /// Bytes of log after which an image is written and the log cut. An image larger than this counts instead, so
    /// that images never cost more than the log.
    pub image_after: u64,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            fsync: Fsync::default(),
            history: HistoryLimits::default(),
            image_after: 16 << 20,
        }
    }
}

impl OpenOptions {
    /// Sets when records are forced to the disk.
    #[must_use]
    pub fn fsync(mut self, fsync: Fsync) -> Self {
        self.fsync = fsync;
        self
    }

    /// Sets how much of the past is kept in memory.
    #[must_use]
    pub fn history(mut self, history: HistoryLimits) -> Self {
        self.history = history;
        self
    }

    /// Sets how many bytes of log are followed by an image.
    #[must_use]
    pub fn image_after(mut self, bytes: u64) -> Self {
        self.image_after = bytes;
        self
    }
}

/// What was found on disk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// The revision that the store continues from.
    pub revision: u64,
    /// The number of objects in the store.
    pub objects: usize,
    /// Records read from the log, beyond the image.
    pub records: u64,
    /// The number of log segments that were read.
    pub segments: usize,
    /// Whether the store was closed; if not, the revision has jumped over those that were reserved.
    pub closed: bool,
    /// Bytes cut off the end of the last segment because they were not a whole record.
    pub truncated_bytes: u64,
}

/// Why a store on disk cannot be opened. Nothing is changed by trying.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another store of this one, has it open.
    #[error("{} is in use by another process", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The operating system refused something.
    #[error("{action} {} failed", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
    /// A file is damaged where no crash can have damaged it.
    #[error("{} is damaged at byte {offset}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damaged record begins.
        offset: u64,
        /// What is wrong there.
        reason: &'static str,
    },
    /// A part of the log is gone.
    #[error("{} is missing", path.display())]
    Missing {
        /// The file that should be there.
        path: PathBuf,
    },
}

impl OpenError {
    /// Whether files are damaged or missing, so that [`examine`] can tell more.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Missing { .. })
    }
}
