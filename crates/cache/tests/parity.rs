//! The tables in `docs/` that map tests of others to ours name tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The pages, and where the tests that they name may be. That of the command line is read by a test of its own.
const PAGES: [(&str, &[&str]); 4] = [
    ("parity-cache.md", &["crates/cache"]),
    ("parity-kube-runtime.md", &["crates/cache/tests"]),
    ("parity-runtime.md", &RUNTIME),
    ("parity-workqueue.md", &["crates/workqueue/src"]),
];

/// Where the tests of the runtime's table may be.
const RUNTIME: [&str; 4] = [
    "crates/runtime",
    "crates/webhook/src",
    "crates/cache",
    "crates/workqueue/src",
];

/// How the second column begins where there is nothing to call.
const NOTHING: [&str; 3] = ["none", "not offered", "left out"];

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
            let name = |(_, rest): (&str, &str)| first_word(rest).to_owned();
            found.extend(named.map(name));
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

/// The functions of a file and the implementations for its types, each by name and with its text.
fn bodies(text: &str) -> Vec<(&str, &str)> {
    let lines = text.match_indices('\n').map(|(at, _)| at + 1);
    let body = |at: usize| {
        let line = text[at..].lines().next()?;
        let code = line.trim_start();
        let name = match code.strip_prefix("impl") {
            Some(rest) => first_word(rest.rsplit_once(" for ").map_or(rest, |(_, of)| of)),
            None => first_word(line.split_once("fn ")?.1),
        };
        // As rustfmt leaves it, the end is where the line of its beginning is indented to.
        let indent = &line[..line.len() - code.len()];
        let end = text[at..].find(&format!("\n{indent}}}"))?;
        Some((name, &text[at..at + end]))
    };
    lines.filter_map(body).collect()
}

fn first_word(text: &str) -> &str {
    let mut words = text.split(|c: char| !is_word(c));
    words.find(|word| !word.is_empty()).unwrap_or_default()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn words(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !is_word(c));
    words.filter(|word| !word.is_empty()).collect()
}

/// The functions that a text calls: words before a parenthesis, or before the types that they are called with.
fn calls(text: &str) -> BTreeSet<String> {
    let opens = ["(", "::<"].map(|open| text.match_indices(open));
    let before = |(at, _): (usize, &str)| {
        let start = text[..at].rfind(|c: char| !is_word(c));
        let name = &text[start.map_or(0, |start| start + 1)..at];
        (!name.is_empty()).then(|| format!("{name}("))
    };
    opens.into_iter().flatten().filter_map(before).collect()
}

/// The functions and implementations of one file.
type Bodies<'a> = Vec<(&'a str, &'a str)>;

/// All words and calls of a test and of what it names in its file, and of what that names.
fn called(test: &str, files: &[Bodies<'_>]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for bodies in files {
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
                all.extend(calls(body));
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

/// What is wrong with a row of the runtime's table: nothing shows it, it names nothing to call, its tests do not call that, or nothing
/// is offered without a reason.
fn problem(row: &str, files: &[Bodies<'_>]) -> Option<String> {
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
    let [_, here, tests] = cells.as_slice() else {
        return Some("not three columns".to_owned());
    };
    let (apis, tests) = (apis(here), named(tests));
    if NOTHING.iter().any(|word| here.starts_with(word)) {
        let has_reason = here.split_once(": ").is_some();
        return (!has_reason).then(|| "neither a test nor a reason".to_owned());
    }
    if tests.is_empty() || apis.is_empty() {
        return Some(format!("called: {apis:?}, tests: {tests:?}"));
    }
    let words: BTreeSet<String> = tests.iter().flat_map(|test| called(test, files)).collect();
    // Types are named where they are used, and functions are called.
    let is_used = |api: &str| {
        let name = if api.starts_with(char::is_lowercase) {
            format!("{api}(")
        } else {
            api.to_owned()
        };
        words.contains(&name)
    };
    let uncalled: Vec<&str> = apis.into_iter().filter(|api| !is_used(api)).collect();
    (!uncalled.is_empty()).then(|| format!("not called: {uncalled:?}"))
}

/// A row shows something only if its tests call what it is about.
#[test]
fn every_test_that_the_runtimes_table_names_calls_the_api_of_its_row() {
    let page = root().join("docs/parity-runtime.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let mut files = Vec::new();
    for folder in RUNTIME {
        sources(&root().join(folder), &mut files);
    }
    let files: Vec<Bodies<'_>> = files.iter().map(|text| bodies(text)).collect();
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let rows = rows.filter(|row| !row.starts_with("| controller-runtime"));
    let problem = |row: &str| Some(format!("{} in {row}", problem(row, &files)?));
    let problems: Vec<String> = rows.filter_map(problem).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
