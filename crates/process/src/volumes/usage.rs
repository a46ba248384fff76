//! How much is in a directory.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The size of a block in the metadata of a file.
const BLOCK: u64 = 512;

/// Whether the files below a directory take more than so many bytes of the disk. Files with several names count once, as in `du`;
/// what cannot be read does not count.
pub(crate) fn exceeds(directory: &Path, limit: u64) -> bool {
    let mut used = 0;
    let mut linked = HashSet::new();
    let mut waiting: Vec<PathBuf> = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_dir() {
                waiting.push(entry.path());
            } else if metadata.nlink() > 1 && !linked.insert((metadata.dev(), metadata.ino())) {
                continue;
            }
            used += metadata.blocks() * BLOCK;
            if used > limit {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_directories_count_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let deep = directory.path().join("a/b");
        fs::create_dir_all(&deep).expect("made");
        fs::write(deep.join("file"), vec![1; 64 << 10]).expect("written");
        fs::hard_link(deep.join("file"), deep.join("again")).expect("linked");
        std::os::unix::fs::symlink("/usr", deep.join("elsewhere")).expect("linked");
        assert!(exceeds(directory.path(), 60 << 10));
        assert!(!exceeds(directory.path(), 100 << 10));
        assert!(!exceeds(&directory.path().join("missing"), 0));
    }
}
