//! Where the runtime keeps what containers need: directories of pods, volumes, an empty place to mount on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of a runtime. One that nobody chose goes with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct State(Arc<Place>);

#[derive(Debug)]
struct Place {
    path: PathBuf,
    kept: bool,
}

impl State {
    /// A directory that stays.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        private_directory(path)?;
        // What is mounted has to have a path without links and dots.
        let path = path.canonicalize()?;
        Self::made(path, true)
    }

    /// A directory of this process, which goes with it.
    pub(crate) fn temporary() -> io::Result<Self> {
        let user = nix::unistd::geteuid();
        let base = std::env::temp_dir().join(format!("kubewright-{user}"));
        private_directory(&base)?;
        let own = format!("{}-{}", std::process::id(), next_number());
        Self::made(base.canonicalize()?.join(own), false)
    }

    fn made(path: PathBuf, kept: bool) -> io::Result<Self> {
        private_directory(&path)?;
        let state = Self(Arc::new(Place { path, kept }));
        for directory in [state.empty(), state.pods(), state.claims()] {
            private_directory(&directory)?;
        }
        Ok(state)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
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
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::debug!(%error, path = %self.path.display(), "a directory is left");
        }
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
