//! The directory of a store: names, permissions, the lock, and making names durable.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::{Fsync, OpenError};

/// A data directory that this process has locked. The lock ends with the value, or with the process.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Held, never read.
    _lock: File,
    fsync: Fsync,
}

/// The files of a store, in order.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) segments: Vec<u64>,
    pub(super) images: Vec<u64>,
    /// Torn ends that were cut off segments.
    pub(super) torn: Vec<u64>,
}

impl Directory {
    /// Creates it if need be and locks it. With [`Fsync::Never`] nothing is ever forced to the disk.
    pub(super) fn lock(path: &Path, fsync: Fsync) -> Result<Self, OpenError> {
        create_private(path).map_err(failed("creating", path))?;
        let lock_path = path.join("lock");
        let lock = private()
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(failed("creating", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {
                let path = path.to_owned();
                let directory = Self {
                    path,
                    _lock: lock,
                    fsync,
                };
                directory.sync_own_name()?;
                Ok(directory)
            }
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.into() }),
            Err(TryLockError::Error(source)) => Err(failed("locking", &lock_path)(source)),
        }
    }

    /// The directory itself may be new.
    fn sync_own_name(&self) -> Result<(), OpenError> {
        let parent = match self.path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        match self.fsync {
            Fsync::Never => Ok(()),
            _ => File::open(parent).and_then(|parent| parent.sync_all()),
        }
        .map_err(failed("forcing to disk", parent))
    }

    pub(super) fn segment(&self, sequence: u64) -> PathBuf {
        self.path.join(format!("log-{sequence:020}"))
    }

    pub(super) fn image(&self, revision: u64) -> PathBuf {
        self.path.join(format!("image-{revision:020}"))
    }

    /// Where the torn end of a segment is kept.
    pub(super) fn torn(&self, sequence: u64) -> PathBuf {
        self.path.join(format!("torn-{sequence:020}"))
    }

    pub(super) fn watermark(&self) -> PathBuf {
        self.path.join("watermark")
    }

    /// Where a watermark is written before it gets its name.
    pub(super) fn unfinished_watermark(&self) -> PathBuf {
        self.path.join("watermark-unfinished")
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where an image is written before it gets its name.
    pub(super) fn unfinished_image(&self) -> PathBuf {
        self.path.join("image-unfinished")
    }

    /// Segments and images by number. Other files are none of our business.
    pub(super) fn list(&self) -> Result<Listing, OpenError> {
        let failed = |source| failed("listing", &self.path)(source);
        let mut listing = Listing::default();
        for item in fs::read_dir(&self.path).map_err(failed)? {
            let name = item.map_err(failed)?.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Some(sequence) = number(name, "log-") {
                listing.segments.push(sequence);
            } else if let Some(revision) = number(name, "image-") {
                listing.images.push(revision);
            } else if let Some(sequence) = number(name, "torn-") {
                listing.torn.push(sequence);
            }
        }
        listing.segments.sort_unstable();
        listing.images.sort_unstable();
        listing.torn.sort_unstable();
        Ok(listing)
    }

    /// Whether anything is ever forced to the disk.
    pub(super) fn forces(&self) -> bool {
        self.fsync != Fsync::Never
    }

    /// Removes a file, if it is there.
    pub(super) fn remove_if_there(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// Forces a file's content to the disk, if anything is.
    pub(super) fn sync_file(&self, file: &File) -> io::Result<()> {
        match self.fsync {
            Fsync::Never => Ok(()),
            _ => file.sync_data(),
        }
    }

    /// Forces names to the disk: files that were created, renamed or removed stay so.
    pub(super) fn sync_names(&self) -> io::Result<()> {
        match self.fsync {
            Fsync::Never => Ok(()),
            _ => File::open(&self.path)?.sync_all(),
        }
    }
}

/// Attaches what was tried to the system's answer.
pub(super) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io {
        action,
        path,
        source,
    }
}

/// Creates a file that must not exist, readable by its owner alone.
pub(super) fn create_new(path: &Path) -> io::Result<File> {
    private().create_new(true).open(path)
}

/// Only what we wrote ourselves: twenty digits.
fn number(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    let ours = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
    ours.then(|| digits.parse().ok())?
}

#[cfg(unix)]
fn private() -> fs::OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

#[cfg(not(unix))]
fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true);
    options
}

#[cfg(unix)]
pub(super) fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
pub(super) fn create_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path)
}
