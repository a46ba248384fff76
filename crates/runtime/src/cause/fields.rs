//! Which fields of an object changed between two states.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Fields that are named; more are left out.
const MOST: usize = 16;
/// Fields of the metadata that change with everything else and explain nothing.
const NOISE: [&str; 3] = ["resourceVersion", "managedFields", "generation"];

type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// The paths, two names deep, at which two states differ.
pub(crate) fn changed(old: &[u8], new: &[u8]) -> Vec<String> {
    let (Some(old), Some(new)) = (fields(old), fields(new)) else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    for name in names(&old, &new) {
        let (before, after) = (old.get(name), new.get(name));
        if text(before) != text(after) {
            inside(name, before, after, &mut paths);
        }
    }
    paths.truncate(MOST);
    paths
}

/// Adds the fields of a field that differ, or the field itself where it is not an object.
fn inside(name: &str, old: Option<&&RawValue>, new: Option<&&RawValue>, paths: &mut Vec<String>) {
    let (old, new) = (text(old).as_bytes(), text(new).as_bytes());
    let (Some(old), Some(new)) = (fields(old), fields(new)) else {
        paths.push(name.to_owned());
        return;
    };
    let is_noise = |field: &&str| name == "metadata" && NOISE.contains(field);
    for field in names(&old, &new).filter(|field| !is_noise(field)) {
        if text(old.get(field)) != text(new.get(field)) {
            paths.push(format!("{name}.{field}"));
        }
    }
}

fn fields(json: &[u8]) -> Option<Fields<'_>> {
    serde_json::from_slice(json).ok()
}

fn names<'a>(old: &'a Fields<'_>, new: &'a Fields<'_>) -> impl Iterator<Item = &'a str> {
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    new.keys().chain(gone).map(String::as_str)
}

fn text<'a>(value: Option<&&'a RawValue>) -> &'a str {
    value.map_or("", |value| value.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_fields_are_named_two_deep() {
        for (old, new, expected) in [
            (r#"{"a":1}"#, r#"{"a":1}"#, &[][..]),
            (r#"{"a":1}"#, r#"{"a":2}"#, &["a"]),
            (
                r#"{"spec":{"x":1,"y":[1]}}"#,
                r#"{"spec":{"x":1,"y":[2]},"status":{"z":1}}"#,
                &["spec.y", "status"],
            ),
            (
                r#"{"metadata":{"resourceVersion":"1","labels":{"a":"b"}}}"#,
                r#"{"metadata":{"resourceVersion":"2"}}"#,
                &["metadata.labels"],
            ),
            ("not json", "{}", &[]),
        ] {
            assert_eq!(
                changed(old.as_bytes(), new.as_bytes()),
                expected,
                "{old} {new}"
            );
        }
    }
}
