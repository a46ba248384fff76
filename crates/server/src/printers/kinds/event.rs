//! Events of both API groups, which name the same fields differently.

use serde_json::Value;

use super::{Entry, entry};
use crate::printers::column::{Column, column as any, text as column, wide};
use crate::printers::view::{View, or};

const EVENT: &[Column] = &[
    column("Last Seen"),
    column("Type"),
    column("Reason"),
    column("Object"),
    wide("Subobject"),
    wide("Source"),
    column("Message"),
    wide("First Seen"),
    wide("Count"),
    any("Name", "string", "name", 1),
];

pub(super) const KINDS: &[Entry] = &[
    entry("", "Event", EVENT, |view| event(view, &CORE)),
    entry("events.k8s.io", "Event", EVENT, |view| event(view, &EVENTS)),
];

/// Where one group keeps what both have.
struct Fields {
    object: &'static str,
    message: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
    source: &'static str,
    controller: &'static str,
}

const CORE: Fields = Fields {
    object: "involvedObject",
    message: "message",
    first: "firstTimestamp",
    last: "lastTimestamp",
    count: "count",
    source: "source",
    controller: "reportingComponent",
};

const EVENTS: Fields = Fields {
    object: "regarding",
    message: "note",
    first: "deprecatedFirstTimestamp",
    last: "deprecatedLastTimestamp",
    count: "deprecatedCount",
    source: "deprecatedSource",
    controller: "reportingController",
};

fn event(view: &View<'_>, fields: &Fields) -> Vec<Value> {
    let first = if view.text(fields.first).is_empty() {
        view.since("eventTime")
    } else {
        view.since(fields.first)
    };
    let subobject = view.text(&format!("{}.fieldPath", fields.object));
    cells![
        last_seen(view, fields, &first),
        view.text("type"),
        view.text("reason"),
        target(view, fields),
        subobject,
        source(view, fields),
        view.text(fields.message).trim(),
        first,
        count(view, fields),
        view.name(),
    ]
}

fn last_seen(view: &View<'_>, fields: &Fields, first: &str) -> String {
    if view.at("series").is_some() {
        view.since("series.lastObservedTime")
    } else if view.text(fields.last).is_empty() {
        first.to_owned()
    } else {
        view.since(fields.last)
    }
}

/// An event that happened once may carry no count at all.
fn count(view: &View<'_>, fields: &Fields) -> i64 {
    match (view.at("series"), view.int(fields.count)) {
        (Some(_), _) => view.int("series.count"),
        (None, 0) => 1,
        (None, count) => count,
    }
}

/// `pod/web-0`
fn target(view: &View<'_>, fields: &Fields) -> String {
    let kind = view.text(&format!("{}.kind", fields.object)).to_lowercase();
    match view.text(&format!("{}.name", fields.object)) {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

/// `kubelet, node-1`
fn source(view: &View<'_>, fields: &Fields) -> String {
    let component = or(
        view.text(&format!("{}.component", fields.source)),
        view.text(fields.controller),
    );
    let instance = or(
        view.text(&format!("{}.host", fields.source)),
        view.text("reportingInstance"),
    );
    match instance {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}
