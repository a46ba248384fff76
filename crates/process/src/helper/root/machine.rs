//! The file system of this machine as that of a container in a user namespace.
//!
//! The kernel does not let a user namespace have the root of the machine as a layer, because other file systems are mounted
//! below it. So every directory of the root is a layer of its own.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::MsFlags;

use super::super::message::{Root, Writable};
use super::{OWN_PLACES, bind, overlay, tmpfs};

/// Makes the root of a container from the directories of the machine's; returns where it is, and its parts as the container will
/// name them.
pub(super) fn parts(root: &Root) -> io::Result<(PathBuf, Vec<PathBuf>)> {
    tmpfs(&root.place, "mode=755", MsFlags::empty())?;
    let top = root.place.join("root");
    fs::create_dir(&top)?;
    // A root has to be a mount of its own.
    bind(&top, &top, Writable::Yes)?;
    let mut parts = Vec::new();
    for entry in fs::read_dir("/")? {
        let entry = entry?;
        let (path, target) = (entry.path(), top.join(entry.file_name()));
        if OWN_PLACES.iter().any(|place| path == Path::new(place)) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(&path)?, &target)?;
        } else if kind.is_dir() {
            fs::create_dir(&target)?;
            directory(root, &path, &target)?;
            parts.push(path);
        } else if kind.is_file() {
            fs::File::create(&target)?;
            bind(&path, &target, Writable::Yes)?;
        }
    }
    Ok((top, parts))
}

/// One directory under a writable layer. One in which other file systems are mounted cannot have that, and is read-only.
fn directory(root: &Root, path: &Path, target: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default();
    let (upper, work) = (
        root.place.join("upper").join(name),
        root.place.join("work").join(name),
    );
    for made in [&upper, &work] {
        fs::create_dir_all(made)?;
    }
    match overlay(&[path.to_owned()], (&upper, &work), target, true) {
        Ok(()) => Ok(()),
        Err(_) => bind(path, target, Writable::No),
    }
}
