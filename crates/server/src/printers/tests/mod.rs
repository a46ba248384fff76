//! What each kind looks like as a row, and what the documents look like on the wire.

mod documents;
mod extensions;
mod infrastructure;
mod pods;
mod workloads;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::kinds;
use super::*;

/// The cells of one object.
pub(super) fn cells(group: &str, kind: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    (Printer::builtin(group, kind).cells)(object, now)
}

/// The columns of a kind.
pub(super) fn columns(group: &str, kind: &str) -> Vec<Column> {
    Printer::builtin(group, kind).columns.into_owned()
}

/// The moment at which the tests look.
fn now() -> Timestamp {
    at("2026-03-01T12:00:00Z")
}

fn at(moment: &str) -> Timestamp {
    moment.parse().expect("tests write valid moments")
}

/// Checks the cells of an object that is called `x` and 90 seconds old unless it says otherwise.
#[track_caller]
fn check(group: &str, kind: &str, mut object: Value, expect: Value) {
    let defaults = json!({"name": "x", "creationTimestamp": "2026-03-01T11:58:30Z"});
    let metadata = object
        .as_object_mut()
        .expect("tests write objects")
        .entry("metadata")
        .or_insert_with(|| Value::Object(Map::new()));
    for (key, value) in defaults.as_object().into_iter().flatten() {
        if metadata.get(key).is_none() {
            metadata[key] = value.clone();
        }
    }
    assert_eq!(
        Value::from(cells(group, kind, &object, now())),
        expect,
        "{kind}"
    );
}

#[test]
fn every_kind_fills_its_columns() {
    let empty = json!({});
    for entry in kinds::all() {
        let filled = cells(entry.group, entry.kind, &empty, now()).len();
        let surplus = usize::from(entry.kind == "IPAddress");
        assert_eq!(filled, entry.columns.len() + surplus, "{}", entry.kind);
    }
}

#[test]
fn no_kind_is_listed_twice() {
    let mut seen: Vec<(&str, &str)> = kinds::all().map(|e| (e.group, e.kind)).collect();
    let all = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), all);
}

#[test]
fn objects_of_the_wrong_shape_print_as_empty() {
    let odd = json!({"metadata": [], "spec": "x", "status": {"conditions": {}, "phase": 3}});
    for entry in kinds::all() {
        let cells = cells(entry.group, entry.kind, &odd, now());
        assert!(!cells.is_empty(), "{}", entry.kind);
    }
}

#[test]
fn kind_without_printer_shows_name_and_creation() {
    check(
        "",
        "LimitRange",
        json!({}),
        json!(["x", "2026-03-01T11:58:30Z"]),
    );
    check(
        "rbac.authorization.k8s.io",
        "ClusterRole",
        json!({"metadata": {"creationTimestamp": null}}),
        json!(["x", "0001-01-01T00:00:00Z"]),
    );
    let columns = columns("apiextensions.k8s.io", "CustomResourceDefinition");
    let headings: Vec<_> = columns
        .iter()
        .map(|column| (&*column.name, &*column.type_, &*column.format))
        .collect();
    assert_eq!(
        headings,
        [("Name", "string", "name"), ("Created At", "date", "")]
    );
}

#[test]
fn ages_are_measured_from_creation() {
    for (created, expect) in [
        (json!("2026-03-01T11:59:59.5Z"), "0s"),
        (json!("2026-03-01T12:00:01Z"), "0s"),
        (json!("2026-03-01T12:00:02Z"), "<invalid>"),
        (json!("2026-02-27T11:00:00Z"), "2d1h"),
        (json!(null), "<unknown>"),
        (json!("yesterday"), "<unknown>"),
    ] {
        let object = json!({"metadata": {"name": "x", "creationTimestamp": created}});
        assert_eq!(
            cells("", "ServiceAccount", &object, now()),
            [json!("x"), json!(expect)],
            "{created}"
        );
    }
}
