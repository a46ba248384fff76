//! Files that change together: a reader sees all of the old ones or all of the new ones.
//!
//! Mirrors `pkg/volume/util/atomic_writer.go`: files are in a directory with a name of its own, `..data` is a link to it, and what
//! a program opens is a link through `..data`. A change is one rename of that link.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use kubewright_cluster::node::runtime::VolumeFile;

use super::ownership::Owners;

const DATA: &str = "..data";
const NEXT_DATA: &str = "..data_tmp";

/// Puts files into the directory of a volume, in place of those that are there.
///
/// # Errors
/// When a path leads out of the volume, or something cannot be written. What was there before is still there then.
pub(super) fn write(volume: &Path, files: &[VolumeFile], owners: &Owners) -> io::Result<()> {
    for file in files {
        check(&file.path)?;
    }
    let fresh = fresh_directory(volume)?;
    let written = fill(&fresh, files, owners).and_then(|()| switch(volume, &fresh));
    match written {
        Ok(old) => {
            link(volume, files)?;
            match old.filter(|old| *old != fresh) {
                Some(old) => fs::remove_dir_all(old),
                None => Ok(()),
            }
        }
        Err(error) => {
            // What is left of it is in nobody's way.
            let _ = fs::remove_dir_all(&fresh);
            Err(error)
        }
    }
}

/// Whether a path stays in its volume, and does not look like one of ours.
fn check(path: &str) -> io::Result<()> {
    let wrong = || io::Error::other(format!("invalid path {path:?} in a volume"));
    let mut components = Path::new(path).components().peekable();
    let first = components.peek().copied();
    let plain = components.all(|component| matches!(component, Component::Normal(_)));
    match first {
        Some(Component::Normal(first)) if plain && !first.to_string_lossy().starts_with("..") => {
            Ok(())
        }
        _ => Err(wrong()),
    }
}

/// A directory in the volume with a name that none had before.
fn fresh_directory(volume: &Path) -> io::Result<PathBuf> {
    for number in 0u64.. {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanoseconds = since.unwrap_or_default().as_nanos();
        let path = volume.join(format!("..{nanoseconds}.{number}"));
        match fs::DirBuilder::new().mode(0o755).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn fill(directory: &Path, files: &[VolumeFile], owners: &Owners) -> io::Result<()> {
    for file in files {
        let path = directory.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut made = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        made.write_all(&file.content)?;
        owners.give_file(&path, file.owner)?;
        // After its owner, which takes special bits away, and whatever the mask says.
        let mode = file.mode | owners.more_mode();
        made.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    owners.give_directories(directory)
}

/// Makes a directory the current one; returns the one before.
fn switch(volume: &Path, fresh: &Path) -> io::Result<Option<PathBuf>> {
    let data = volume.join(DATA);
    let old = fs::read_link(&data).ok().map(|name| volume.join(name));
    let next = volume.join(NEXT_DATA);
    if let Err(error) = fs::remove_file(&next)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let name = fresh.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    symlink(name, &next)?;
    fs::rename(&next, &data)?;
    Ok(old)
}

/// Links what a program opens, and removes the links of what is there no longer.
fn link(volume: &Path, files: &[VolumeFile]) -> io::Result<()> {
    let firsts = files.iter().filter_map(|file| file.path.split('/').next());
    let wanted: BTreeSet<&str> = firsts.collect();
    for name in &wanted {
        let target = Path::new(DATA).join(name);
        let path = volume.join(name);
        if fs::read_link(&path).is_ok_and(|found| found == target) {
            continue;
        }
        symlink(target, path)?;
    }
    for entry in fs::read_dir(volume)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with("..") && !wanted.contains(&*name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: &str) -> VolumeFile {
        VolumeFile::new(path, content.to_owned(), 0o640)
    }

    #[test]
    fn files_are_replaced_together_and_those_before_are_gone() {
        let directory = tempfile::tempdir().expect("a directory");
        let (volume, owners) = (directory.path(), Owners::default());
        write(volume, &[file("a", "1"), file("deep/b", "1")], &owners).expect("written");
        let first = fs::read_link(volume.join(DATA)).expect("a link");
        assert_eq!(
            fs::read_to_string(volume.join("deep/b")).expect("read"),
            "1"
        );
        let mode = fs::metadata(volume.join("a"))
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o640);
        write(volume, &[file("a", "2")], &owners).expect("written");
        assert_eq!(fs::read_to_string(volume.join("a")).expect("read"), "2");
        assert!(
            !volume.join("deep").exists() && fs::symlink_metadata(volume.join("deep")).is_err()
        );
        assert!(!volume.join(first).exists());
    }

    #[test]
    fn paths_that_lead_out_of_a_volume_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        for path in ["../a", "/a", "a/../../b", "", "..data", "..hidden/a"] {
            let written = write(directory.path(), &[file(path, "x")], &Owners::default());
            assert!(written.is_err(), "{path}");
        }
        assert_eq!(fs::read_dir(directory.path()).expect("read").count(), 0);
    }
}
