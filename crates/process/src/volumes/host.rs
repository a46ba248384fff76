//! Paths of the machine that pods name: what has to be there, and what is made.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Checks that a path is of the kind that a pod says, and makes it where the kind allows that.
///
/// Mirrors `pkg/volume/hostpath: checkType` with its texts; a path of no kind is made by a container runtime.
///
/// # Errors
/// That it is something else, or nothing; the text is the kubelet's.
pub(super) fn check(path: &Path, kind: &str) -> Result<(), String> {
    let shown = path.display();
    let failed = |what: &str| Err(format!("hostPath type check failed: {shown} is not {what}"));
    let found = fs::metadata(path).map(|found| found.file_type());
    let missing = found
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let made = match kind {
        "" | "DirectoryOrCreate" if missing => directory(path),
        "FileOrCreate" if missing => file(path),
        _ => Ok(()),
    };
    made.map_err(|error| format!("{shown} cannot be made: {error}"))?;
    let found = fs::metadata(path).map(|found| found.file_type());
    let is = |wanted: fn(&FileType) -> bool| found.as_ref().is_ok_and(wanted);
    match kind {
        "" if found.is_ok() => Ok(()),
        "" => Err(format!("{shown} cannot be used")),
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
        other => Err(format!("{other} is an invalid volume type")),
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
        assert!(wrong.starts_with("hostPath type check failed"), "{wrong}");
        assert!(check(&path("f"), "Socket").is_err());
        assert!(check(Path::new("/dev/null"), "CharDevice").is_ok());
        assert!(check(&path("any"), "").is_ok() && path("any").is_dir());
    }
}
