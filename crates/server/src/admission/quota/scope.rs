//! Which objects a quota is about.

use serde_json::Value;

use super::usage::Measure;
use crate::kinds::pod;
use crate::kinds::value::{is_empty, items, strings, text};

/// Whether a quota with scopes is about an object.
pub(super) fn matches(quota: &Value, measure: Measure<'_>, object: &Value) -> bool {
    let spec = &quota["spec"];
    let scopes =
        strings(&spec["scopes"]).all(|scope| in_scope(measure, object, scope, "Exists", &[]));
    let selectors = items(&spec["scopeSelector"]["matchExpressions"]);
    scopes
        && selectors.iter().all(|selector| {
            let values: Vec<&str> = strings(&selector["values"]).collect();
            let (scope, operator) = (text(&selector["scopeName"]), text(&selector["operator"]));
            in_scope(measure, object, scope, operator, &values)
        })
}

fn in_scope(
    measure: Measure<'_>,
    object: &Value,
    scope: &str,
    operator: &str,
    values: &[&str],
) -> bool {
    let spec = &object["spec"];
    match (measure.core(), scope) {
        (Some("pods"), "Terminating") => terminates(spec),
        (Some("pods"), "NotTerminating") => !terminates(spec),
        (Some("pods"), "BestEffort") => pod::quality_class(spec) == "BestEffort",
        (Some("pods"), "NotBestEffort") => pod::quality_class(spec) != "BestEffort",
        (Some("pods"), "PriorityClass") => {
            selects(text(&spec["priorityClassName"]), operator, values)
        }
        (Some("pods"), "CrossNamespacePodAffinity") => crosses_namespaces(spec),
        (Some("persistentvolumeclaims"), "VolumeAttributesClass") => {
            selects(text(&spec["volumeAttributesClassName"]), operator, values)
        }
        _ => false,
    }
}

fn terminates(spec: &Value) -> bool {
    spec["activeDeadlineSeconds"]
        .as_i64()
        .is_some_and(|s| s >= 0)
}

fn selects(name: &str, operator: &str, values: &[&str]) -> bool {
    match operator {
        "In" => !name.is_empty() && values.contains(&name),
        "NotIn" => name.is_empty() || !values.contains(&name),
        "DoesNotExist" => name.is_empty(),
        _ => !name.is_empty(),
    }
}

fn crosses_namespaces(spec: &Value) -> bool {
    let crosses =
        |term: &Value| !is_empty(&term["namespaces"]) || !term["namespaceSelector"].is_null();
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let affinity = &spec["affinity"][kind];
        let required = items(&affinity["requiredDuringSchedulingIgnoredDuringExecution"]);
        let preferred = items(&affinity["preferredDuringSchedulingIgnoredDuringExecution"]);
        let preferred = preferred
            .iter()
            .map(|weighted| &weighted["podAffinityTerm"]);
        required.iter().chain(preferred).any(crosses)
    })
}
