//! `README.md` beside this file lists what can be wrong with the server and the tests that hold it: each of them exists.
//! The tests of the runtime include this file for a list of their own.

use std::path::Path;

/// Files and the tests that they are said to have.
fn listed(readme: &str) -> Vec<(String, String)> {
    let mut file = String::new();
    let mut found = Vec::new();
    for line in readme.lines().filter(|line| line.starts_with("| ")) {
        let tests = line.split('|').nth(2).unwrap_or_default();
        for name in tests.split('`').skip(1).step_by(2) {
            if name.ends_with(".rs") {
                name.clone_into(&mut file);
            } else {
                found.push((file.clone(), name.to_owned()));
            }
        }
    }
    found
}

#[test]
fn every_test_that_is_listed_exists() {
    let tested = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(tested.join("tests/README.md")).expect("the list");
    let listed = listed(&readme);
    assert!(listed.len() > 40, "only {} tests are listed", listed.len());
    for (file, test) in listed {
        let path = tested.join("..").join(&file);
        let source = std::fs::read_to_string(&path).unwrap_or_default();
        let is_there = source.contains(&format!("fn {test}("));
        assert!(is_there, "{file} has no test {test}");
    }
}
