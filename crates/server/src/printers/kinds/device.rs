//! Dynamic resource allocation: devices, claims and slices.

use serde_json::Value;

use super::{Entry, entry, name_and_age};
use crate::printers::column::{AGE, Column, NAME, text as column};
use crate::printers::view::View;

const GROUP: &str = "resource.k8s.io";

const NAME_AND_AGE: &[Column] = &[NAME, AGE];
const CLAIM: &[Column] = &[NAME, column("State"), AGE];
const SLICE: &[Column] = &[NAME, column("Node"), column("Driver"), column("Pool"), AGE];
const TAINT_RULE: &[Column] = &[
    NAME,
    column("Key"),
    column("Value"),
    column("Effect"),
    column("TimeAdded"),
    AGE,
];

pub(super) const KINDS: &[Entry] = &[
    entry(GROUP, "DeviceClass", NAME_AND_AGE, name_and_age),
    entry(GROUP, "ResourceClaimTemplate", NAME_AND_AGE, name_and_age),
    entry(GROUP, "ResourceClaim", CLAIM, claim),
    entry(GROUP, "ResourceSlice", SLICE, slice),
    entry(GROUP, "DeviceTaintRule", TAINT_RULE, taint_rule),
];

fn claim(view: &View<'_>) -> Vec<Value> {
    cells![view.name(), claim_states(view).join(","), view.age()]
}

fn claim_states(view: &View<'_>) -> Vec<&'static str> {
    let mut states = Vec::new();
    let deleted = view.is_being_deleted();
    if deleted {
        states.push("deleted");
    }
    if view.at("status.allocation").is_some() {
        states.push("allocated");
        if !view.list("status.reservedFor").is_empty() {
            states.push("reserved");
        }
    } else if !deleted {
        states.push("pending");
    }
    states
}

fn slice(view: &View<'_>) -> Vec<Value> {
    cells![
        view.name(),
        view.text("spec.nodeName"),
        view.text("spec.driver"),
        view.text("spec.pool.name"),
        view.age(),
    ]
}

fn taint_rule(view: &View<'_>) -> Vec<Value> {
    let added = match view.at("spec.taint.timeAdded") {
        Some(_) => view.since("spec.taint.timeAdded"),
        None => String::new(),
    };
    cells![
        view.name(),
        view.text("spec.taint.key"),
        view.text("spec.taint.value"),
        view.text("spec.taint.effect"),
        added,
        view.age(),
    ]
}
