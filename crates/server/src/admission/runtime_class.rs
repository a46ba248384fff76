//! `RuntimeClass`: a pod's runtime class exists, and what it costs and where it runs is what the class says.

use serde_json::{Value, json};

use super::PluginRefusal;
use super::attributes::{AdmissionRequest, Operation};
use super::resources::amounts;
use crate::kinds::value::{ensure, entries, is_empty, items, map, set, text};

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// Whether it is about a new pod.
pub(super) fn concerns(request: &AdmissionRequest<'_>) -> bool {
    request.operation == Operation::Create && request.is_whole("", "Pod")
}

/// The refusal of a pod whose class is not there.
pub(super) fn not_found(name: &str) -> String {
    format!("pod rejected: RuntimeClass {name:?} not found")
}

/// Gives a pod the overhead and the scheduling of its class.
pub(super) fn apply(class: &Value, pod: &mut Value) -> Result<(), PluginRefusal> {
    let spec = ensure(pod, "spec");
    let overhead = &class["overhead"]["podFixed"];
    if !class["overhead"].is_null() {
        if !is_empty(&spec["overhead"]) && amounts(&spec["overhead"]) != amounts(overhead) {
            return Err(MISMATCH.into());
        }
        set(spec, "overhead", overhead.clone());
    }
    let scheduling = &class["scheduling"];
    for (key, value) in entries(&scheduling["nodeSelector"]) {
        let own = &spec["nodeSelector"][key];
        if !own.is_null() && own != value {
            return Err(PluginRefusal(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                text(value),
                text(own)
            )));
        }
        set(ensure(spec, "nodeSelector"), key, value.clone());
    }
    for toleration in items(&scheduling["tolerations"]) {
        let list = map(spec).entry("tolerations").or_insert_with(|| json!([]));
        if let Some(list) = list
            .as_array_mut()
            .filter(|list| !list.contains(toleration))
        {
            list.push(toleration.clone());
        }
    }
    Ok(())
}

/// Refuses a pod whose overhead is not the one of its class.
pub(super) fn validate(class: Option<&Value>, pod: &Value) -> Result<(), PluginRefusal> {
    let own = &pod["spec"]["overhead"];
    match class.filter(|class| !class["overhead"].is_null()) {
        Some(class) if amounts(own) != amounts(&class["overhead"]["podFixed"]) => {
            Err(MISMATCH.into())
        }
        None if !own.is_null() => Err(
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
                .into(),
        ),
        _ => Ok(()),
    }
}
