//! Public type names that several crates of the SDK define: a reader of an example cannot see which one is meant.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::tree::TextFile;

/// The crates that operators are written with.
pub const SDK: [&str; 7] = [
    "workqueue",
    "cache",
    "webhook",
    "runtime",
    "testing",
    "kubewright",
    "derive",
];

/// Names that several crates define today. The list may only become shorter: a name that is not in it is a finding, and so
/// is one that is in it and exists only once.
pub const KNOWN: [&str; 13] = [
    "Builder",
    "Clock",
    "Closed",
    "Handler",
    "Histogram",
    "Object",
    "Options",
    "Request",
    "Sender",
    "Source",
    "Stats",
    "Subject",
    "Watch",
];

/// A name of a public type that more than one crate of the SDK defines.
#[derive(Debug, PartialEq, Eq)]
pub struct RepeatedType {
    /// The name, without parameters.
    pub name: String,
    /// Where it is defined: files from the root of the repository, with lines counted from one.
    pub places: Vec<(PathBuf, usize)>,
}

impl RepeatedType {
    /// Returns whether the name is in the list of [`KNOWN`] ones.
    pub fn is_known(&self) -> bool {
        KNOWN.contains(&self.name.as_str())
    }
}

impl std::fmt::Display for RepeatedType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let places = self.places.iter();
        let places: Vec<String> = places
            .map(|(path, line)| format!("{}:{line}", path.display()))
            .collect();
        write!(f, "{} is defined in {}", self.name, places.join(" and "))
    }
}

/// Names of public types at the top of modules that stand in more than one crate of the SDK, sorted.
pub fn repeated_types(files: &[TextFile]) -> Vec<RepeatedType> {
    let mut names: BTreeMap<&str, Vec<(&str, PathBuf, usize)>> = BTreeMap::new();
    for file in files {
        let Some(krate) = sdk_crate(&file.path) else {
            continue;
        };
        for (at, line) in file.text.lines().enumerate() {
            if let Some(name) = public_type(line) {
                let places = names.entry(name).or_default();
                places.push((krate, file.path.clone(), at + 1));
            }
        }
    }
    names.retain(|_, places| {
        let crates: BTreeSet<&str> = places.iter().map(|(krate, ..)| *krate).collect();
        crates.len() > 1
    });
    let repeated = names.into_iter().map(|(name, places)| RepeatedType {
        name: name.to_owned(),
        places: places
            .into_iter()
            .map(|(_, path, line)| (path, line))
            .collect(),
    });
    repeated.collect()
}

/// Names in the list of [`KNOWN`] ones that no longer exist twice, and have to leave it.
pub fn no_longer_repeated(repeated: &[RepeatedType]) -> Vec<&'static str> {
    let exists = |name: &&str| repeated.iter().any(|it| it.name == **name);
    KNOWN.into_iter().filter(|name| !exists(name)).collect()
}

/// The crate of the SDK that a source file belongs to.
fn sdk_crate(path: &Path) -> Option<&'static str> {
    SDK.into_iter()
        .find(|name| path.starts_with(Path::new("crates").join(name).join("src")))
}

/// The name of the public type that a line begins to define.
fn public_type(line: &str) -> Option<&str> {
    let mut words = line.strip_prefix("pub ")?.split_whitespace();
    if !matches!(words.next(), Some("struct" | "enum" | "trait")) {
        return None;
    }
    words.next()?.split(|c: char| !c.is_alphanumeric()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile {
            path: path.into(),
            text: text.to_owned(),
        }
    }

    fn check(files: &[TextFile], expected: &[&str]) {
        let found: Vec<String> = repeated_types(files)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn name_in_two_crates_is_found_with_both_places() {
        let files = [
            file(
                "crates/cache/src/a.rs",
                "//! A.\n\npub struct Reader<K> {\n",
            ),
            file("crates/webhook/src/b.rs", "pub enum Reader {\n"),
        ];
        let expected = "Reader is defined in crates/cache/src/a.rs:3 and crates/webhook/src/b.rs:1";
        check(&files, &[expected]);
        assert!(!repeated_types(&files)[0].is_known());
    }

    #[test]
    fn names_of_one_crate_private_ones_and_those_outside_of_the_sdk_pass() {
        let files = [
            file(
                "crates/cache/src/a.rs",
                "pub struct Reader;\nstruct Hidden;\n",
            ),
            file("crates/cache/src/b.rs", "pub struct Reader;\n"),
            file(
                "crates/webhook/src/b.rs",
                "pub(crate) struct Hidden;\n    pub struct Reader;\n",
            ),
            file("crates/server/src/b.rs", "pub struct Reader;\n"),
            file("crates/runtime/tests/b.rs", "pub struct Reader;\n"),
        ];
        check(&files, &[]);
        assert_eq!(no_longer_repeated(&[]), KNOWN);
    }
}
