//! Files that hold secrets: keys and kubeconfigs.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rand::TryRngCore;
use rand::rngs::OsRng;

/// How many names are tried for the file that is written first.
const ATTEMPTS: usize = 16;

/// Writes a file that only its owner can read; an older file of that name is replaced as a whole. Directories that are
/// missing are made for the owner alone.
///
/// The directory may be one that others can write to, such as `/tmp`. So the text goes into a file that did not exist
/// before, under a name that nobody can guess: a file or link that somebody has put there is never opened.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let (temporary, file) = create_unguessable(directory, path)?;
    let written = fill(file, text).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one that matters.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn fill(mut file: File, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Creates a file beside `path` that did not exist. `create_new` is `O_CREAT | O_EXCL`, which does not follow links.
fn create_unguessable(directory: &Path, path: &Path) -> io::Result<(PathBuf, File)> {
    for _ in 0..ATTEMPTS {
        let random = OsRng.try_next_u64().map_err(io::Error::other)?;
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{random:016x}"));
        let temporary = directory.join(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        match options.open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use tempfile::TempDir;

    use super::*;

    fn mode(path: &Path) -> u32 {
        let metadata = fs::symlink_metadata(path).expect("it exists");
        metadata.permissions().mode() & 0o7777
    }

    #[test]
    fn a_file_that_others_have_planted_never_holds_a_secret() {
        let dir = TempDir::new().unwrap();
        let stranger = dir.path().join("stranger");
        fs::write(&stranger, "").unwrap();
        for planted in [format!(".config.{}", std::process::id()), "config".into()] {
            let planted = dir.path().join(planted);
            symlink(&stranger, &planted).unwrap();
        }
        let path = dir.path().join("config");
        write_private(&path, "secret").unwrap();
        assert_eq!(fs::read_to_string(&stranger).unwrap(), "");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(fs::read_to_string(&path).unwrap(), "secret");
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn a_planted_file_with_the_name_of_the_process_is_not_used() {
        let dir = TempDir::new().unwrap();
        let planted = dir.path().join(format!(".config.{}", std::process::id()));
        fs::write(&planted, "planted").unwrap();
        fs::set_permissions(&planted, fs::Permissions::from_mode(0o666)).unwrap();
        let path = dir.path().join("config");
        write_private(&path, "secret").unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_to_string(&planted).unwrap(), "planted");
    }

    #[test]
    fn directories_are_made_for_their_owner_alone() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("data/pki/authority.key");
        write_private(&path, "first").unwrap();
        write_private(&path, "second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(mode(&dir.path().join("data")), 0o700);
        assert_eq!(mode(&dir.path().join("data/pki")), 0o700);
        let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(names, 1, "nothing is left over");
    }
}
