//! Says what of a damaged store can be read, and makes a sound store of it.
//!
//! Whatever cannot be read is skipped and reported; the records behind it count. The objects are what all readable
//! changes together make, in the order of their revisions. So a lost record costs one change of one object: an older
//! version of it may come back, or one that had been deleted.
//!
//! Nothing is destroyed. Before anything is changed, every file gets a second name in a folder of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::directory::{Directory, create_private, failed};
use super::image::{self, Frozen};
use super::recover;
use super::replay::{Tables, insert};
use super::salvage::{Change, Salvage};
use super::segment::Segment;
use super::watermark::{self, Mark, Watermark};
use super::{Fsync, OpenError};
use crate::root::Root;

/// How far a repaired store's revision is above everything that could be read. What was lost may have handed out more
/// revisions than are known; no log between two images holds so many.
const JUMP: u64 = 1 << 32;

/// What is in a data directory, damaged or not. Holds the directory's lock.
#[derive(Debug)]
pub struct Examination {
    directory: Directory,
    tables: Tables,
    next_revision: u64,
    next_segment: u64,
    damage: Vec<Damage>,
    torn_bytes: u64,
}

/// A place that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The file that is damaged.
    pub path: PathBuf,
    /// Where in the file the damage begins.
    pub offset: u64,
    /// How many bytes cannot be used; zero where it is not known.
    pub bytes: u64,
    /// What is wrong there.
    pub reason: &'static str,
    /// The last revision that could be read before it in this file.
    pub after: Option<u64>,
    /// The first revision that could be read behind it in this file.
    pub before: Option<u64>,
}

/// What a repair has done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// The folder with the files as they were.
    pub kept: PathBuf,
    /// Objects that were rescued.
    pub objects: usize,
    /// The revision that the store continues from.
    pub revision: u64,
}

/// Reads a data directory and changes nothing in it.
///
/// # Errors
/// When there is no such directory, it is in use, or it cannot be read at all. Damage is not an error here.
pub fn examine(path: &Path) -> Result<Examination, OpenError> {
    if !path.is_dir() {
        return Err(OpenError::Missing { path: path.into() });
    }
    let directory = Directory::lock(path, Fsync::Always)?;
    let error = match recover::read(&directory, 1) {
        Ok(reading) => {
            return Ok(Examination {
                torn_bytes: reading.recovery.truncated_bytes,
                next_revision: reading.recovery.revision,
                tables: reading.tables,
                directory,
                next_segment: 0,
                damage: Vec::new(),
            });
        }
        Err(error) => error,
    };
    let first = match error {
        OpenError::Damaged {
            path,
            offset,
            reason,
        } => Damage::at(path, offset, reason),
        OpenError::Missing { path } => Damage::at(path, 0, "the file is missing"),
        other => return Err(other),
    };
    rescue(directory, first)
}

fn rescue(directory: Directory, first: Damage) -> Result<Examination, OpenError> {
    let listing = directory.list()?;
    let mut salvage = Salvage::default();
    for revision in &listing.images {
        salvage.image(&directory.image(*revision), *revision)?;
    }
    for sequence in &listing.segments {
        salvage.segment(&directory.segment(*sequence), *sequence)?;
    }
    salvage.other(&directory.unfinished_image())?;
    salvage.other(&directory.watermark())?;
    // One that cannot be read is the first damage that was found.
    let mark = watermark::read(&directory.watermark()).ok().flatten();
    let known = mark.map(|m| (m.sequence, m.reserved));
    let (sequence, reserved) = known.unwrap_or_default();
    let last = listing.segments.last().copied().unwrap_or_default();
    let last = last.max(sequence).max(salvage.first_segment);
    let image = listing.images.last().copied().unwrap_or_default();
    let revision = salvage.revision.max(reserved).max(image);
    let mut damage = std::mem::take(&mut salvage.damage);
    let known = |d: &Damage| d.path == first.path && d.offset == first.offset;
    if !damage.iter().any(known) {
        damage.insert(0, first);
    }
    Ok(Examination {
        directory,
        tables: assemble(salvage),
        next_revision: revision + JUMP,
        next_segment: last + 1,
        damage,
        torn_bytes: 0,
    })
}

/// The newest image that is sound and what came after it; without one, all there is.
fn assemble(salvage: Salvage) -> Tables {
    let (mut tables, floor) = match salvage.sound {
        Some(image) => (image.tables, image.revision),
        None => (Tables::new(), 0),
    };
    let mut changes = salvage.changes;
    changes.retain(|change| change.revision() > floor);
    // Stable, and what is in a log and an image is the same in both.
    changes.sort_by_key(Change::revision);
    for change in changes {
        match change {
            Change::Put { collection, record } => insert(&mut tables, &collection, record),
            Change::Delete {
                collection, key, ..
            } => {
                let root = tables.get_mut(&*collection);
                root.and_then(|root| root.remove(&key));
            }
        }
    }
    tables
}

impl Damage {
    pub(super) fn at(path: PathBuf, offset: u64, reason: &'static str) -> Self {
        Self {
            path,
            offset,
            bytes: 0,
            reason,
            after: None,
            before: None,
        }
    }
}

impl Examination {
    /// The places that cannot be read, by file. None: the store can be opened.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Bytes of a write that was cut short at the end of the log. Opening the store cuts them off.
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    /// The number of objects that can be read.
    pub fn objects(&self) -> usize {
        self.tables.values().map(Root::len).sum()
    }

    /// Makes a sound store of what can be read. The files as they were are kept in a folder beside it. A store that is
    /// not damaged is left alone, and nothing is returned.
    ///
    /// # Errors
    /// When the disk refuses something. The store is then as damaged as before, or sound.
    pub fn repair(self) -> Result<Option<Repair>, OpenError> {
        if self.damage.is_empty() {
            return Ok(None);
        }
        let directory = &self.directory;
        let kept = keep_all(directory).map_err(failed("copying the files of", directory.path()))?;
        let repairing = |source| failed("repairing", directory.path())(source);
        let objects = self.objects();
        let segment = Segment::create(directory, self.next_segment, self.next_revision, None)
            .map_err(repairing)?;
        let frozen = Frozen {
            revision: self.next_revision,
            tables: self.tables.into_iter().collect(),
        };
        // From here on the image counts and everything older does not.
        image::write(
            directory,
            &frozen,
            self.next_segment,
            &AtomicBool::new(false),
        )
        .map_err(repairing)?;
        let mark = Mark {
            sequence: segment.sequence,
            length: segment.length,
            reserved: self.next_revision,
        };
        Watermark::create(directory, mark).map_err(repairing)?;
        Ok(Some(Repair {
            kept,
            objects,
            revision: self.next_revision,
        }))
    }
}

/// Gives every file of the store a second name in a new folder, or copies it where that cannot be done.
fn keep_all(directory: &Directory) -> io::Result<PathBuf> {
    let name = |n: &u32| directory.path().join(format!("damaged-{n}"));
    let free = (1..u32::MAX).map(|n| name(&n)).find(|path| !path.exists());
    let folder = free.ok_or(io::ErrorKind::AlreadyExists)?;
    create_private(&folder)?;
    for file in fs::read_dir(directory.path())? {
        let file = file?;
        if !file.file_type()?.is_file() || file.file_name() == "lock" {
            continue;
        }
        let kept = folder.join(file.file_name());
        fs::hard_link(file.path(), &kept).or_else(|_| fs::copy(file.path(), &kept).map(|_| ()))?;
    }
    fs::File::open(&folder)?.sync_all()?;
    directory.sync_names()?;
    Ok(folder)
}
