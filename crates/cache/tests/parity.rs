//! The tables in `docs/` that map tests of others to ours name tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The pages, and where the tests that they name may be. That of the command line is read by a test of its own.
const PAGES: [(&str, &[&str]); 4] = [
    ("parity-cache.md", &["crates/cache"]),
    ("parity-kube-runtime.md", &["crates/cache/tests"]),
    (
        "parity-runtime.md",
        &["crates/runtime", "crates/webhook/src"],
    ),
    ("parity-workqueue.md", &["crates/workqueue/src"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of all functions below a folder.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = fs::read_to_string(&path).expect("it is text");
            let named = text
                .lines()
                .filter_map(|line| line.trim().split_once("fn "));
            let name = |(_, rest): (&str, &str)| rest.split('(').next().map(str::to_owned);
            found.extend(named.filter_map(name));
        }
    }
}

/// What a page calls a test: words in backticks with two underscores or more, all in small letters.
fn named(page: &str) -> BTreeSet<String> {
    let quoted = page.split('`').skip(1).step_by(2);
    let is_test = |name: &&str| {
        let small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        name.matches('_').count() >= 2 && name.chars().all(small)
    };
    quoted.filter(is_test).map(str::to_owned).collect()
}

#[test]
fn every_test_that_the_tables_name_exists() {
    for (page, folders) in PAGES {
        let text = fs::read_to_string(root().join("docs").join(page)).expect("the page is there");
        let rows: String = text.lines().filter(|line| line.starts_with('|')).collect();
        let mut known = BTreeSet::new();
        for folder in folders {
            functions(&root().join(folder), &mut known);
        }
        let names = named(&rows);
        let missing: Vec<_> = names.difference(&known).collect();
        assert!(missing.is_empty(), "{page} names {missing:?}");
        assert!(names.len() > 12, "{page} has its names: {names:?}");
    }
}
