//! Where backups are: generations of base backups, each with the log from its first one on.
//!
//! `N/base/TIME` is a base backup that was finished at that time, in microseconds of Unix time, and `N/wal` the log. A log with a gap
//! begins another generation, which begins with a base backup.

use std::fs;
use std::path::{Path, PathBuf};

/// A directory with backups.
#[derive(Debug, Clone)]
pub(super) struct Store(pub(super) PathBuf);

/// A base backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) generation: u64,
    /// When it was finished.
    pub(super) time: i64,
    pub(super) path: PathBuf,
}

impl Store {
    /// The generation that is being written.
    pub(super) fn generation(&self) -> u64 {
        numbers(&self.0).into_iter().max().unwrap_or(1)
    }

    /// The log of a generation.
    pub(super) fn log(&self, generation: u64) -> PathBuf {
        self.0.join(generation.to_string()).join("wal")
    }

    /// Where the base backups of a generation are.
    pub(super) fn bases_of(&self, generation: u64) -> PathBuf {
        self.0.join(generation.to_string()).join("base")
    }

    /// All base backups that are whole, the oldest one first.
    pub(super) fn bases(&self) -> Vec<Base> {
        let mut bases: Vec<Base> = Vec::new();
        for generation in numbers(&self.0) {
            let directory = self.bases_of(generation);
            let times = numbers(&directory).into_iter();
            bases.extend(times.filter_map(|time| {
                Some(Base {
                    generation,
                    time: i64::try_from(time).ok()?,
                    path: directory.join(time.to_string()),
                })
            }));
        }
        bases.sort_by_key(|base| base.time);
        bases
    }

    /// The base backup to begin with: the last one that was finished before this time.
    pub(super) fn before(&self, time: Option<i64>) -> Option<Base> {
        let mut bases = self.bases().into_iter();
        bases.rfind(|base| time.is_none_or(|time| base.time <= time))
    }

    /// The base backups that are too many, of which all but this many are.
    pub(super) fn superfluous(&self, keep: usize) -> Vec<Base> {
        let mut bases = self.bases();
        let kept = bases.len().saturating_sub(keep.max(1));
        bases.truncate(kept);
        bases
    }

    /// Generations before the present one that have no base backup any more.
    pub(super) fn empty(&self) -> Vec<PathBuf> {
        let (present, bases) = (self.generation(), self.bases());
        let has_base = |generation: u64| bases.iter().any(|it| it.generation == generation);
        let old = numbers(&self.0).into_iter();
        old.filter(|it| *it < present && !has_base(*it))
            .map(|it| self.0.join(it.to_string()))
            .collect()
    }
}

/// The first file of the log that a base backup needs.
pub(super) fn first_log(base: &Path) -> Option<String> {
    let label = fs::read_to_string(base.join("backup_label")).ok()?;
    // As in `START WAL LOCATION: 0/2000028 (file 000000010000000000000002)`.
    let (_, rest) = label.lines().next()?.split_once("(file ")?;
    Some(rest.trim_end_matches(')').to_owned())
}

/// The directories whose names are numbers.
fn numbers(directory: &Path) -> Vec<u64> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_base_before_a_time_is_where_a_restore_begins() {
        let folder = tempfile::tempdir().expect("a directory");
        let store = Store(folder.path().to_owned());
        assert_eq!((store.generation(), store.before(None)), (1, None));
        for base in [
            "1/base/100",
            "1/base/200",
            "2/base/300",
            "2/base/unfinished",
        ] {
            fs::create_dir_all(folder.path().join(base)).expect("a directory is made");
        }
        let before = |time| store.before(time).map(|base| (base.generation, base.time));
        assert_eq!(before(None), Some((2, 300)));
        assert_eq!(before(Some(299)), Some((1, 200)));
        assert_eq!(before(Some(200)), Some((1, 200)));
        assert_eq!(before(Some(99)), None);
        assert_eq!(store.generation(), 2);

        let superfluous = store.superfluous(2);
        assert_eq!(
            superfluous.iter().map(|it| it.time).collect::<Vec<_>>(),
            [100]
        );
        assert!(store.empty().is_empty());
        fs::remove_dir_all(folder.path().join("1/base")).expect("it is removed");
        assert_eq!(store.empty(), [folder.path().join("1")]);
    }

    #[test]
    fn label_of_a_base_names_the_first_file_of_the_log() {
        let folder = tempfile::tempdir().expect("a directory");
        assert_eq!(first_log(folder.path()), None);
        let label = "START WAL LOCATION: 0/2000028 (file 000000010000000000000002)\nCHECKPOINT";
        fs::write(folder.path().join("backup_label"), label).expect("it is written");
        let first = first_log(folder.path());
        assert_eq!(first.as_deref(), Some("000000010000000000000002"));
    }
}
