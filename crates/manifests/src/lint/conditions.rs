//! The conditions in a status: a list by type, of the fields that tools read.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use crate::fields::{items, preserves_unknown, property};
use crate::finding::Report;

const PLACE: &str = ".status.conditions";
const FIELDS: [&str; 5] = ["type", "status", "reason", "message", "lastTransitionTime"];

pub(super) fn check(status: &JSONSchemaProps, report: &mut Report) {
    let Some(conditions) = property(status, "conditions") else {
        if !preserves_unknown(status) {
            let advice = "add conditions, a list of metav1.Condition; `kubectl wait` and other tools read them";
            report.hint(".status", "the status has no conditions", advice);
        }
        return;
    };
    let keys = conditions
        .x_kubernetes_list_map_keys
        .as_deref()
        .unwrap_or_default();
    if conditions.x_kubernetes_list_type.as_deref() != Some("map") || keys != ["type"] {
        report.warning(
            PLACE,
            "conditions are not a list map by type: two writers overwrite each other's",
            "set x-kubernetes-list-type to map, and x-kubernetes-list-map-keys to [type]",
        );
    }
    let Some(condition) = items(conditions).filter(|condition| !preserves_unknown(condition))
    else {
        return;
    };
    let missing: Vec<&str> = FIELDS
        .into_iter()
        .filter(|name| property(condition, name).is_none())
        .collect();
    if !missing.is_empty() {
        let message = format!("conditions have no {}", missing.join(", "));
        report.warning(PLACE, message, "use the Condition of the API machinery");
    }
}
