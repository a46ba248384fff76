//! The built-in kinds: their columns and how each cell is computed.

/// Builds a row from anything that converts to a JSON value.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$(serde_json::Value::from($cell)),*] };
}

mod admission;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod core;
mod device;
mod endpoints;
mod event;
mod flow;
mod metrics;
mod network;
mod node;
mod pod;
mod policy;
mod rbac;
mod storage;

use serde_json::Value;

use super::column::Column;
use super::table::RowCondition;
use super::view::{View, list, or};

/// Fills the cells of one row.
pub(super) type Cells = fn(&View<'_>) -> Vec<Value>;

/// How one kind is printed.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    pub(super) columns: &'static [Column],
    pub(super) cells: Cells,
    pub(super) condition: fn(&Value) -> Option<RowCondition>,
}

const ALL: &[&[Entry]] = &[
    pod::KINDS,
    core::KINDS,
    node::KINDS,
    event::KINDS,
    endpoints::KINDS,
    apps::KINDS,
    batch::KINDS,
    autoscaling::KINDS,
    network::KINDS,
    storage::KINDS,
    rbac::KINDS,
    policy::KINDS,
    admission::KINDS,
    certificates::KINDS,
    device::KINDS,
    flow::KINDS,
];

/// The printer of a kind, if it has one of its own.
pub(super) fn find(group: &str, kind: &str) -> Option<&'static Entry> {
    ALL.iter()
        .copied()
        .flatten()
        .find(|entry| entry.kind == kind && entry.group == group)
}

/// Every kind with a printer of its own.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = &'static Entry> {
    ALL.iter().copied().flatten()
}

/// Name and time of creation, for kinds without a printer.
pub(super) fn default_cells(view: &View<'_>) -> Vec<Value> {
    let created = or(
        view.text("metadata.creationTimestamp"),
        "0001-01-01T00:00:00Z",
    );
    cells![view.name(), created]
}

const fn entry(
    group: &'static str,
    kind: &'static str,
    columns: &'static [Column],
    cells: Cells,
) -> Entry {
    Entry {
        group,
        kind,
        columns,
        cells,
        condition: no_condition,
    }
}

fn no_condition(_: &Value) -> Option<RowCondition> {
    None
}

/// Name and age, the whole row of many small kinds.
fn name_and_age(view: &View<'_>) -> Vec<Value> {
    cells![view.name(), view.age()]
}

/// Names and images of the containers of a pod template.
fn containers(view: &View<'_>, path: &str) -> (String, String) {
    let containers = list(view.object, path);
    (
        super::view::join(containers, Some("name"), ","),
        super::view::join(containers, Some("image"), ","),
    )
}
