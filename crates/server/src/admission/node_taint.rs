//! `TaintNodesByCondition`: no pod goes to a new node before a controller has seen that it is ready.

use serde_json::{Value, json};

use super::attributes::{AdmissionRequest, Operation};
use crate::kinds::value::{ensure, items, map};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const EFFECT: &str = "NoSchedule";

/// Whether it is about a new node.
pub(super) fn concerns(request: &AdmissionRequest<'_>) -> bool {
    request.operation == Operation::Create && request.is_whole("", "Node")
}

/// Taints a node as not ready.
pub(super) fn taint(node: &mut Value) {
    let spec = ensure(node, "spec");
    let taints = items(&spec["taints"]);
    if taints
        .iter()
        .any(|t| t["key"] == NOT_READY && t["effect"] == EFFECT)
    {
        return;
    }
    let list = map(spec).entry("taints").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(json!({ "key": NOT_READY, "effect": EFFECT }));
    }
}
