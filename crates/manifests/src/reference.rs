//! Writes the API reference of definitions as Markdown: kinds by group and version, and a table of fields for each
//! type in them, linked to each other.

mod cell;
mod section;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion as Version,
};

/// Ends every write to a `String` below.
const INFALLIBLE: &str = "writing to a String does not fail";

/// The reference of some definitions. The same definitions give the same text, in whatever order they come.
pub fn markdown(definitions: &[CustomResourceDefinition]) -> String {
    let groups = by_version(definitions);
    let mut out = String::from("# API reference\n");
    for (api_version, kinds) in &groups {
        write!(out, "\n- `{api_version}`\n").expect(INFALLIBLE);
        for (kind, (_, version)) in kinds {
            let anchor = anchor(kind, &version.name, "");
            writeln!(out, "  - [{kind}](#{anchor})").expect(INFALLIBLE);
        }
    }
    for (api_version, kinds) in &groups {
        write!(out, "\n## {api_version}\n").expect(INFALLIBLE);
        for (definition, version) in kinds.values() {
            section::write(&mut out, definition, version);
        }
    }
    out
}

type Kinds<'a> = BTreeMap<&'a str, (&'a CustomResourceDefinition, &'a Version)>;

fn by_version(definitions: &[CustomResourceDefinition]) -> BTreeMap<String, Kinds<'_>> {
    let mut groups: BTreeMap<String, Kinds<'_>> = BTreeMap::new();
    for definition in definitions {
        for version in &definition.spec.versions {
            let api_version = format!("{}/{}", definition.spec.group, version.name);
            let kinds = groups.entry(api_version).or_default();
            kinds.insert(&definition.spec.names.kind, (definition, version));
        }
    }
    groups
}

/// The name of a place in the text: `foo-v1-spec-ports` for the items of `.spec.ports[]` of a `Foo`.
fn anchor(kind: &str, version: &str, path: &str) -> String {
    let name = format!("{kind}-{version}-{path}");
    let mut anchor = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            // Fields that differ in case only must not share a place.
            anchor.push(if path.is_empty() {
                c.to_ascii_lowercase()
            } else {
                c
            });
        } else if !anchor.ends_with('-') {
            anchor.push('-');
        }
    }
    anchor.trim_end_matches('-').to_owned()
}
