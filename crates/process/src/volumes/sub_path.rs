//! Parts of volumes (`subPath`): looked up and made without leaving the volume, whatever links somebody has put there.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path};

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, mkdirat};

/// Makes a part of a volume as a directory if it is not there. A link in it that leads out of the volume is followed within.
///
/// # Errors
/// When the path is not one of a part, or something in it cannot be made.
pub(crate) fn make(volume: &Path, part: &str) -> io::Result<()> {
    let mut directory: OwnedFd = File::open(volume)?.into();
    let root = File::open(volume)?;
    let mut so_far = std::path::PathBuf::new();
    for component in Path::new(part).components() {
        let Component::Normal(name) = component else {
            return Err(io::Error::other(format!(
                "{part:?} is not a path within a volume"
            )));
        };
        so_far.push(name);
        directory = match open(&root, &so_far) {
            Ok(found) => found,
            Err(nix::errno::Errno::ENOENT) => {
                mkdirat(&directory, name, Mode::from_bits_truncate(0o750))?;
                open(&root, &so_far)?
            }
            Err(error) => return Err(error.into()),
        };
    }
    Ok(())
}

fn open(root: &File, path: &Path) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(root.as_fd(), path, how)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_made_within_their_volume() {
        let directory = tempfile::tempdir().expect("a directory");
        let volume = directory.path().join("volume");
        std::fs::create_dir(&volume).expect("made");
        make(&volume, "a/b").expect("made");
        assert!(volume.join("a/b").is_dir());
        assert!(make(&volume, "../out").is_err());
        // A link to the outside leads to a place within.
        std::os::unix::fs::symlink(directory.path(), volume.join("out")).expect("linked");
        let _ = make(&volume, "out/x");
        assert!(!directory.path().join("x").exists());
    }
}
