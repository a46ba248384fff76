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

/// The functions of a file, each with its text: from its name to the end of its body.
fn bodies(text: &str) -> Vec<(&str, &str)> {
    let starts = text.match_indices("fn ").map(|(at, _)| at + 3);
    let body = |at: usize| {
        let rest = &text[at..];
        let name = rest.split(|c: char| !is_word(c)).next().unwrap_or_default();
        let open = rest.find('{')?;
        let mut depth = 0_usize;
        let close = rest[open..].char_indices().find(|(_, c)| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        Some((name, &rest[..open + close?.0 + 1]))
    };
    starts.filter_map(body).collect()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn words(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !is_word(c));
    words.filter(|word| !word.is_empty()).collect()
}

/// All words of a test and of the functions of its file that it calls, and those that they call.
fn called(test: &str, files: &[String]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for text in files {
        let bodies = bodies(text);
        let mut todo = vec![test];
        let mut done = BTreeSet::new();
        while let Some(name) = todo.pop() {
            if !done.insert(name) {
                continue;
            }
            for (_, body) in bodies.iter().filter(|(other, _)| *other == name) {
                let words = words(body);
                let known = bodies.iter().map(|(other, _)| *other);
                todo.extend(known.filter(|other| words.contains(other)));
                all.extend(words.into_iter().map(str::to_owned));
            }
        }
    }
    all
}

fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(fs::read_to_string(&path).expect("it is text"));
        }
    }
}

/// The last name of each path in backticks: `serve_metrics_on` of `Manager::serve_metrics_on(..)`.
fn apis(cell: &str) -> Vec<&str> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted
        .filter_map(|path| {
            let path = path.split(['(', '<', '{']).next()?;
            path.split(|c: char| !is_word(c))
                .rfind(|name| !name.is_empty())
        })
        .collect()
}

/// A row shows something only if its tests call what it is about.
#[test]
fn every_test_that_the_runtimes_table_names_calls_the_api_of_its_row() {
    let page = root().join("docs/parity-runtime.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let mut files = Vec::new();
    for folder in ["crates/runtime", "crates/webhook/src"] {
        sources(&root().join(folder), &mut files);
    }
    let mut missing = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [_, here, tests] = cells.as_slice() else {
            panic!("three columns: {row}");
        };
        let tests = named(tests);
        let words: BTreeSet<String> = tests.iter().flat_map(|test| called(test, &files)).collect();
        let apis = apis(here).into_iter().filter(|_| !tests.is_empty());
        let uncalled: Vec<&str> = apis.filter(|api| !words.contains(*api)).collect();
        if !uncalled.is_empty() {
            missing.push(format!("{uncalled:?} in {row}"));
        }
    }
    assert!(missing.is_empty(), "not called:\n{}", missing.join("\n"));
}
