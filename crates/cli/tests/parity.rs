//! The table that compares the command line with others claims nothing that no test shows.

mod support;

use std::fs;
use std::path::Path;

use support::repository;

/// The names of all functions in Rust files below a folder.
fn functions(folder: &Path, found: &mut String) {
    for entry in fs::read_dir(folder).expect("it is a folder") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("it is text");
            let names = text.lines().filter_map(|line| line.split("fn ").nth(1));
            for name in names.filter_map(|rest| rest.split('(').next()) {
                found.push_str(&format!("`{name}`"));
            }
        }
    }
}

#[test]
fn every_claim_of_parity_names_a_test_that_exists() {
    let text = repository().join("docs/parity-kubebuilder.md");
    let text = fs::read_to_string(text).expect("it is there");
    let mut known = "`cargo xtask guestbook`".to_owned();
    for folder in ["crates", "testdata/projects"] {
        functions(&repository().join(folder), &mut known);
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
        assert!(!shown.is_empty(), "nothing shows {what:?}");
        for name in shown.split(", ") {
            assert!(known.contains(name), "{what:?}: no test is called {name}");
        }
    }
    assert!(claims > 40, "the table is read");
}
