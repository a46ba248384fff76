//! The table that compares the command line with others claims nothing that no test shows.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use support::repository;

/// The names of all tests in Rust files below a folder.
fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("it is a folder") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("it is text");
            // A program with a command line of its own has its tests in functions without an attribute.
            if is_of_a_program(&path) {
                found.extend(tests_of(&text.replace("async fn", "\n#[test]\nasync fn")));
            } else {
                found.extend(tests_of(&text));
            }
        }
    }
}

/// Whether a file is a part of a program that is an operator as well as its test.
fn is_of_a_program(path: &Path) -> bool {
    let is_part = path
        .parent()
        .is_some_and(|it| it.ends_with("cli/tests/deployed"));
    let programs = ["cli/tests/deployed.rs", "kubewright/tests/operator.rs"];
    is_part || programs.iter().any(|program| path.ends_with(program))
}

/// Whether there is a lane of this name.
fn is_lane(name: &str) -> bool {
    let file = format!("{}.rs", name.replace('-', "_"));
    let mut folders = ["xtask/src", "ci/src"].iter();
    folders.any(|folder| repository().join(folder).join(&file).is_file())
}

/// The names of functions with the attribute of a test.
fn tests_of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.contains("::test]") || line.contains("::test(") {
            is_test = true;
        } else if let Some((_, rest)) = line.split_once("fn ") {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            if is_test {
                found.push(format!("`{name}`"));
            }
            is_test = false;
        }
    }
    found
}

#[test]
fn every_claim_of_parity_names_a_test_that_exists() {
    let text = repository().join("docs/parity-kubebuilder.md");
    let text = fs::read_to_string(text).expect("it is there");
    let mut known = BTreeSet::new();
    for folder in ["crates", "testdata/projects"] {
        tests(&repository().join(folder), &mut known);
    }
    let mut claims = 0;
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line
            .split(" | ")
            .map(|cell| cell.trim_matches([' ', '|']))
            .collect();
        let [what, _, _, ours, shown] = cells[..] else {
            panic!("this row has not five cells: {line}");
        };
        if !(ours.starts_with("yes") || ours.starts_with("part")) {
            continue;
        }
        claims += 1;
        let unproven = ours.contains("unproven") && ours.starts_with("yes");
        assert!(!unproven, "{what:?} is `part` if it is unproven");
        assert!(!shown.is_empty(), "nothing shows {what:?}");
        for name in shown.split(", ") {
            let lane = name.strip_prefix("`cargo xtask ");
            let lane = lane.and_then(|rest| rest.split(['`', ' ']).next());
            let exists = match lane {
                Some(lane) => is_lane(lane),
                None => known.contains(name),
            };
            assert!(exists, "{what:?}: no test is called {name}");
        }
    }
    assert!(claims > 40, "the table is read");
}
