//! The state of a project's sources: when each was last written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where sources are.
const PLACES: [&str; 5] = ["src", "build.rs", "Cargo.toml", "Cargo.lock", ".cargo"];
/// Deeper than sources of people.
const MAX_DEPTH: usize = 16;
/// More than a project has.
const MAX_FILES: usize = 20_000;

/// When each source was last written, and how long it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sources(BTreeMap<PathBuf, (Option<SystemTime>, u64)>);

impl Sources {
    pub(super) fn look(root: &Path) -> Self {
        let mut sources = Self::default();
        for place in PLACES {
            sources.add(root, Path::new(place), MAX_DEPTH);
        }
        sources
    }

    fn add(&mut self, root: &Path, path: &Path, depth: usize) {
        let full = root.join(path);
        // What cannot be read is not there.
        let Ok(metadata) = fs::symlink_metadata(&full) else {
            return;
        };
        if metadata.is_file() && self.0.len() < MAX_FILES {
            let state = (metadata.modified().ok(), metadata.len());
            self.0.insert(path.to_path_buf(), state);
        }
        if metadata.is_dir() && depth > 0 {
            let entries = fs::read_dir(&full).into_iter().flatten().flatten();
            for entry in entries {
                self.add(root, &path.join(entry.file_name()), depth - 1);
            }
        }
    }

    /// A file that is not as it was.
    pub(super) fn first_difference(&self, before: &Self) -> String {
        let changed = self
            .0
            .iter()
            .find(|(path, state)| before.0.get(*path) != Some(*state));
        let gone = || {
            before
                .0
                .iter()
                .find(|(path, _)| !self.0.contains_key(*path))
        };
        let found = changed.or_else(gone);
        found.map_or_else(String::new, |(path, _)| path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_sources_are_seen_and_others_are_not() {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
            fs::write(path, text).expect("it can be written");
        };
        write("src/main.rs", "1");
        let first = Sources::look(folder.path());
        write("target/debug/x", "1");
        assert_eq!(Sources::look(folder.path()), first);
        write("src/api/v1.rs", "22");
        let second = Sources::look(folder.path());
        assert_eq!(second.first_difference(&first), "src/api/v1.rs");
        fs::remove_file(folder.path().join("src/main.rs")).expect("it is there");
        let third = Sources::look(folder.path());
        assert_eq!(third.first_difference(&second), "src/main.rs");
    }
}
