//! Paths of the machine that pods name: what has to be there, and what is made.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Why a path of the machine cannot be used; the texts are the kubelet's where it has one.
#[derive(Debug, thiserror::Error)]
pub(super) enum HostPathError {
    #[error("hostPath type check failed: {} is not {wanted}", path.display())]
    WrongType { path: PathBuf, wanted: &'static str },
    #[error("{} cannot be made: {why}", path.display())]
    Make { path: PathBuf, why: io::Error },
    #[error("{} cannot be used", .0.display())]
    Unusable(PathBuf),
    #[error("{0} is an invalid volume type")]
    UnknownType(String),
}

/// Checks that a path is of the kind that a pod says, and makes it where the kind allows that.
///
/// Mirrors `pkg/volume/hostpath: checkType` with its texts; a path of no kind is made by a container runtime.
///
/// # Errors
/// When it is something else, or missing.
pub(super) fn check(path: &Path, kind: &str) -> Result<(), HostPathError> {
    let own = || path.to_owned();
    let failed = |wanted| {
        Err(HostPathError::WrongType {
            path: own(),
            wanted,
        })
    };
    let found = fs::metadata(path).map(|found| found.file_type());
    let missing = found
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let made = match kind {
        "" | "DirectoryOrCreate" if missing => directory(path),
        "FileOrCreate" if missing => file(path),
        _ => Ok(()),
    };
    made.map_err(|why| HostPathError::Make { path: own(), why })?;
    let found = fs::metadata(path).map(|found| found.file_type());
    let is = |wanted: fn(&FileType) -> bool| found.as_ref().is_ok_and(wanted);
    match kind {
        "" if found.is_ok() => Ok(()),
        "" => Err(HostPathError::Unusable(own())),
        "Directory" | "DirectoryOrCreate" if is(FileType::is_dir) => Ok(()),
        "Directory" | "DirectoryOrCreate" => failed("a directory"),
        "File" | "FileOrCreate" if is(FileType::is_file) => Ok(()),
        "File" | "FileOrCreate" => failed("a file"),
        "Socket" if is(FileType::is_socket) => Ok(()),
        "Socket" => failed("a socket file"),
        "CharDevice" if is(FileType::is_char_device) => Ok(()),
        "CharDevice" => failed("a character device"),
        "BlockDevice" if is(FileType::is_block_device) => Ok(()),
        "BlockDevice" => failed("a block device"),
        other => Err(HostPathError::UnknownType(other.to_owned())),
    }
}

fn directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)
}

fn file(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true).mode(0o644);
    options.open(path).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_checked_and_made_as_their_kind_says() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        assert!(check(&path("d"), "Directory").is_err());
        assert!(check(&path("d"), "DirectoryOrCreate").is_ok());
        assert!(check(&path("d"), "Directory").is_ok());
        assert!(check(&path("f"), "File").is_err());
        assert!(check(&path("f"), "FileOrCreate").is_ok());
        let wrong = check(&path("f"), "Directory").expect_err("it is a file");
        let wrong = wrong.to_string();
        assert!(wrong.starts_with("hostPath type check failed"), "{wrong}");
        assert!(check(&path("f"), "Socket").is_err());
        assert!(check(Path::new("/dev/null"), "CharDevice").is_ok());
        assert!(check(&path("any"), "").is_ok() && path("any").is_dir());
    }
}
