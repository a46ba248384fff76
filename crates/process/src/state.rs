//! Where the runtime keeps what containers need: directories of pods, volumes, an empty place to mount on.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{Flock, FlockArg};

/// The directory of a runtime. One that nobody chose goes with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct State(Arc<Place>);

#[derive(Debug)]
struct Place {
    path: PathBuf,
    kept: bool,
    /// Tells what belongs to this runtime from what belongs to others.
    id: String,
    memory: PathBuf,
    /// Held for as long as the runtime is there: nobody else uses the directory.
    _lock: Flock<File>,
}

impl State {
    /// A directory that stays.
    ///
    /// # Errors
    /// When it cannot be used, or another runtime uses it.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        private_directory(path)?;
        // What is mounted has to have a path without links and dots.
        let path = path.canonicalize()?;
        Self::made(path, true)
    }

    /// A directory of this process, which goes with it. What others have left that were killed is removed.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn temporary() -> io::Result<Self> {
        let user = nix::unistd::geteuid();
        let base = std::env::temp_dir().join(format!("kubewright-{user}"));
        private_directory(&base)?;
        let base = base.canonicalize()?;
        // Nobody takes a directory that is being made for one that was left.
        let file = File::options()
            .create(true)
            .append(true)
            .open(base.join("lock"))?;
        let _one = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error)?;
        remove_abandoned(&base);
        let own = format!("{}-{}", std::process::id(), next_number());
        Self::made(base.join(own), false)
    }

    fn made(path: PathBuf, kept: bool) -> io::Result<Self> {
        private_directory(&path)?;
        let lock = lock(&path)?;
        let id = identity(&path)?;
        let state = Self(Arc::new(Place {
            memory: memory(&path, &id),
            path,
            kept,
            id,
            _lock: lock,
        }));
        for directory in [state.empty(), state.pods(), state.claims(), state.ledger()] {
            private_directory(&directory)?;
        }
        private_directory(&state.memory())?;
        Ok(state)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    /// Tells what belongs to this runtime from what belongs to others.
    pub(crate) fn id(&self) -> &str {
        &self.0.id
    }

    /// An empty directory that containers mount their root on, each in a namespace of its own.
    pub(crate) fn empty(&self) -> PathBuf {
        self.0.path.join("empty")
    }

    /// The directories of pods, by uid.
    pub(crate) fn pods(&self) -> PathBuf {
        self.0.path.join("pods")
    }

    /// What is in persistent volumes.
    pub(crate) fn claims(&self) -> PathBuf {
        self.0.path.join("claims")
    }

    /// The processes that were started and have not ended, a file for each.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.0.path.join("ledger")
    }

    /// Where volumes are that are in memory, by uid of the pod.
    pub(crate) fn memory(&self) -> PathBuf {
        self.0.memory.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.memory) {
            tracing::debug!(%error, path = %self.memory.display(), "a directory is left");
        }
        if !self.kept
            && let Err(error) = remove(&self.path)
        {
            tracing::debug!(%error, path = %self.path.display(), "a directory is left");
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A directory in memory, or one on the disk where there is no memory for it.
fn memory(path: &Path, id: &str) -> PathBuf {
    let user = nix::unistd::geteuid();
    let shared = Path::new("/dev/shm");
    let fits = nix::sys::statfs::statfs(shared)
        .is_ok_and(|found| found.filesystem_type() == nix::sys::statfs::TMPFS_MAGIC);
    if fits && nix::unistd::access(shared, nix::unistd::AccessFlags::W_OK).is_ok() {
        shared.join(format!("kubewright-{user}-{id}"))
    } else {
        path.join("memory")
    }
}

fn lock(path: &Path) -> io::Result<Flock<File>> {
    let file = File::options()
        .create(true)
        .append(true)
        .open(path.join("lock"))?;
    let locked = Flock::lock(file, FlockArg::LockExclusiveNonblock);
    locked.map_err(|_| {
        let text = format!("{} is used by another cluster", path.display());
        io::Error::new(io::ErrorKind::WouldBlock, text)
    })
}

/// The identity of the runtime that uses a directory, which is made once.
fn identity(path: &Path) -> io::Result<String> {
    let file = path.join("id");
    if let Ok(found) = fs::read_to_string(&file) {
        let found = found.trim();
        if !found.is_empty() && found.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Ok(found.to_owned());
        }
    }
    let fresh = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    fs::write(&file, &fresh)?;
    Ok(fresh.trim().to_owned())
}

/// Removes the directories of runtimes that were killed, with the processes that they left.
fn remove_abandoned(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        let Ok(_lock) = lock(&path) else {
            continue;
        };
        if let Ok(id) = identity(&path) {
            crate::ledger::end_all(&path.join("ledger"), &id);
            // Nothing more can be done about what cannot be removed.
            let _ = remove(&memory(&path, &id));
        }
        let _ = remove(&path);
    }
}

fn next_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A directory that nobody else looks into, or changes.
pub(crate) fn private_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o711)
        .create(path)?;
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() || found.uid() != nix::unistd::geteuid().as_raw() {
        let text = format!("{} belongs to somebody else", path.display());
        return Err(io::Error::other(text));
    }
    if found.permissions().mode() & 0o022 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o711))?;
    }
    Ok(())
}
