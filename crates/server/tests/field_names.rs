//! Field names in the code of kinds are those of the type table.
//!
//! Objects are JSON values, so `spec["minReadySecond"]` would compile and be null. This test reads the source: each chain
//! of literal names that indexes a value is a path that some built-in type has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kubewright_schema::types::{Shape, Table, TypeId};

/// Where objects of built-in kinds are taken apart.
const DIRECTORIES: [&str; 9] = [
    "src/kinds",
    "src/printers/kinds",
    "src/admission",
    "src/api",
    "src/bootstrap",
    "src/definitions",
    "src/flow",
    "src/reconcile",
    "src/write",
];

/// Names that are not fields of a built-in type, and why.
const OTHERS: [(&str, &str); 9] = [
    ("ssh-privatekey", "a key of a Secret"),
    ("response", "of an AdmissionReview, which is not served"),
    ("patch", "of an AdmissionReview"),
    ("warnings", "of an AdmissionReview"),
    ("oldObject", "of an AdmissionReview"),
    ("fieldManager", "a parameter of requests"),
    ("usage", "of metrics.k8s.io, which is not in the table"),
    ("LoadBalancerSourceRanges", "as Kubernetes words the error"),
    (
        "{topologyKey, whenUnsatisfiable}",
        "as Kubernetes words the error",
    ),
];

/// For each field name, the types that a value of that name can have.
struct Fields(BTreeMap<String, BTreeSet<TypeId>>);

impl Fields {
    fn read(table: &Table) -> Self {
        let (mut fields, mut seen) = (BTreeMap::<String, BTreeSet<TypeId>>::new(), BTreeSet::new());
        let mut next: Vec<TypeId> = table.kinds().iter().map(|kind| kind.ty).collect();
        while let Some(ty) = next.pop() {
            if !seen.insert(ty) {
                continue;
            }
            match &table.get(ty).shape {
                Shape::Struct(s) => {
                    for field in s.fields() {
                        let types = fields.entry(field.name.to_string()).or_default();
                        types.insert(field.ty);
                        next.push(field.ty);
                    }
                }
                Shape::Map { value, .. } => next.push(*value),
                Shape::List(list) => next.push(list.item),
                Shape::Scalar(_) | Shape::Any => {}
            }
        }
        Self(fields)
    }

    /// Whether some type has a value at the end of a chain of names.
    fn has(&self, table: &Table, chain: &[String]) -> bool {
        let Some((first, rest)) = chain.split_first() else {
            return true;
        };
        let Some(types) = self.0.get(first) else {
            return false;
        };
        types.iter().any(|ty| reaches(table, *ty, rest))
    }
}

fn reaches(table: &Table, ty: TypeId, chain: &[String]) -> bool {
    let Some((first, rest)) = chain.split_first() else {
        return true;
    };
    match &table.get(ty).shape {
        Shape::Struct(s) => s
            .field(first)
            .is_some_and(|field| reaches(table, field.ty, rest)),
        // Keys of maps are the user's; lists are not indexed by names.
        Shape::Map { value, .. } => reaches(table, *value, rest),
        Shape::List(list) => reaches(table, list.item, chain),
        Shape::Any => true,
        Shape::Scalar(_) => false,
    }
}

/// The chains of names in a source text: `a["b"]["c"]` has one of two names.
fn chains(text: &str) -> Vec<Vec<String>> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find("[\"") {
        let indexes = rest[..at].ends_with(|c: char| c.is_alphanumeric() || "_)]".contains(c));
        rest = &rest[at..];
        let mut chain = Vec::new();
        while let Some(after) = rest.strip_prefix("[\"") {
            let Some(end) = after.find("\"]") else { break };
            if after[..end].contains('"') {
                break;
            }
            chain.push(after[..end].to_owned());
            rest = &after[end + 2..];
        }
        if chain.is_empty() {
            rest = &rest[2..];
        } else if indexes {
            found.push(chain);
        }
    }
    found
}

/// The names in calls of `child("...")`, which make the paths of errors.
fn children(text: &str) -> Vec<Vec<String>> {
    let names = text.split("child(\"").skip(1);
    let names = names.filter_map(|rest| rest.split_once("\")"));
    names.map(|(name, _)| path(name)).collect()
}

/// Calls that take the name of a field as their first text.
const CALLS: [&str; 9] = [
    "ensure(",
    "set(",
    "fill(",
    "copy(",
    ".get(",
    ".get_mut(",
    ".remove(",
    ".entry(",
    ".contains_key(",
];

/// The names in calls of helpers: `ensure(pod, "spec")`.
fn arguments(text: &str) -> Vec<Vec<String>> {
    let calls = CALLS.iter().flat_map(|call| {
        let begins = |at: usize| {
            call.starts_with('.')
                || !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
        };
        let places = text.match_indices(call);
        let called = places.filter(move |(at, _)| begins(*at));
        called.map(move |(at, _)| &text[at + call.len()..])
    });
    let literal = |rest: &str| {
        let (before, after) = rest.split_once('"')?;
        let own = !before.contains([')', ';', '{']);
        let name = after.split_once('"')?.0;
        (own && is_path(name)).then(|| path(name))
    };
    calls.filter_map(literal).collect()
}

/// The paths of fields that columns show: `view.int("status.readyReplicas")`.
fn column_paths(text: &str) -> Vec<Vec<String>> {
    let literals = text.split('"').skip(1).step_by(2);
    let is_group = |literal: &str| literal.ends_with(".io");
    let is_field = |it: &&str| it.contains('.') && is_path(it) && !is_group(it);
    let paths = literals.filter(is_field);
    paths.map(path).collect()
}

fn path(name: &str) -> Vec<String> {
    name.split('.').map(str::to_owned).collect()
}

fn is_path(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_alphanumeric())
    };
    text.split('.').all(is_name)
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if !path.ends_with("tests.rs") && !path.ends_with("robustness.rs") {
            found.push(path);
        }
    }
}

#[test]
fn field_names_of_kinds_are_in_the_type_table() {
    let table = Table::builtin();
    let fields = Fields::read(table);
    let (mut unknown, mut checked) = (Vec::new(), 0);
    for directory in DIRECTORIES {
        let mut files = Vec::new();
        sources(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(directory),
            &mut files,
        );
        assert!(!files.is_empty(), "{directory} has no sources");
        for path in files {
            let text = fs::read_to_string(&path).expect("a source file is text");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let mut found = chains(code);
            found.extend(children(code));
            // Requests are taken apart there, which have parameters.
            if directory != "src/api" {
                found.extend(arguments(code));
            }
            if directory.starts_with("src/printers") {
                found.extend(column_paths(code));
            }
            for chain in found {
                checked += 1;
                let known = OTHERS
                    .iter()
                    .any(|(name, _)| chain.iter().any(|n| n == name));
                if !known && !fields.has(table, &chain) {
                    unknown.push(format!("{}: {}", path.display(), chain.join(".")));
                }
            }
        }
    }
    println!("{checked} chains of names");
    assert!(checked > 500, "only {checked} chains were found");
    assert!(
        unknown.is_empty(),
        "not in the type table:\n{}",
        unknown.join("\n")
    );
}

#[test]
fn a_misspelt_field_is_found() {
    let table = Table::builtin();
    let fields = Fields::read(table);
    let found =
        chains(r#"let a = spec["minReadySecond"]; x["spec"]["template"]["spec"]["nodeName"]"#);
    let known = |found: &[Vec<String>]| -> Vec<bool> {
        found.iter().map(|chain| fields.has(table, chain)).collect()
    };
    assert_eq!(known(&found), [false, true]);
    let found = arguments(r#"ensure(&mut pod, "spce"); set(a, "spec", b); x.get("nodeNam")"#);
    assert_eq!(
        found,
        [["spce"], ["spec"], ["nodeNam"]].map(|it| path(it[0]))
    );
    assert_eq!(known(&found), [false, true, false]);
    let found = column_paths(r#"view.int("status.redyReplicas"), view.text("spec.nodeName")"#);
    assert_eq!(known(&found), [false, true]);
}
