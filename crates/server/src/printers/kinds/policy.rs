//! Disruption budgets, priorities, runtimes and scheduling groups.

use serde_json::Value;

use super::{Entry, entry, name_and_age};
use crate::printers::column::{AGE, Column, NAME, boolean, integer, text as column};
use crate::printers::view::{View, flag, scalar};

const BUDGET: &[Column] = &[
    NAME,
    column("Min Available"),
    column("Max Unavailable"),
    integer("Allowed Disruptions"),
    AGE,
];

const PRIORITY_CLASS: &[Column] = &[
    NAME,
    integer("Value"),
    boolean("Global-Default"),
    AGE,
    column("PreemptionPolicy"),
];

const RUNTIME_CLASS: &[Column] = &[NAME, column("Handler"), AGE];
const WORKLOAD: &[Column] = &[NAME, AGE];

pub(super) const KINDS: &[Entry] = &[
    entry("policy", "PodDisruptionBudget", BUDGET, budget),
    entry(
        "scheduling.k8s.io",
        "PriorityClass",
        PRIORITY_CLASS,
        priority_class,
    ),
    entry("scheduling.k8s.io", "Workload", WORKLOAD, name_and_age),
    entry("node.k8s.io", "RuntimeClass", RUNTIME_CLASS, runtime_class),
];

fn budget(view: &View<'_>) -> Vec<Value> {
    let bound = |path| scalar(view.object, path).unwrap_or_else(|| "N/A".to_owned());
    cells![
        view.name(),
        bound("spec.minAvailable"),
        bound("spec.maxUnavailable"),
        view.int("status.disruptionsAllowed"),
        view.age(),
    ]
}

fn priority_class(view: &View<'_>) -> Vec<Value> {
    cells![
        view.name(),
        view.int("value"),
        flag(view.object, "globalDefault"),
        view.age(),
        view.text("preemptionPolicy"),
    ]
}

fn runtime_class(view: &View<'_>) -> Vec<Value> {
    cells![view.name(), view.text("handler"), view.age()]
}
