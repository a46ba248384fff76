//! Objects as people read them: without bookkeeping, and without secrets.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kubewright_manifests::yaml;
use serde_json::{Map, Value};

/// Longer texts are cut.
const MAX_LINES: usize = 120;

/// An object as YAML, without managed fields. The values of a Secret are not shown.
pub(super) fn yaml(object: &Value) -> String {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    if object["kind"] == "Secret" {
        for field in ["data", "stringData"] {
            mask(object[field].as_object_mut());
        }
        // What was applied on the client's side is repeated here.
        let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.remove(last_applied);
        }
        remove_empty(&mut object);
    }
    let text = yaml::document(&object);
    let lines: Vec<&str> = text.lines().skip(1).collect();
    let mut shown = lines[..lines.len().min(MAX_LINES)].join("\n");
    if lines.len() > MAX_LINES {
        shown.push_str(&format!("\n... {} more lines", lines.len() - MAX_LINES));
    }
    shown
}

fn mask(values: Option<&mut Map<String, Value>>) {
    for (_, value) in values.into_iter().flatten() {
        let length = value.as_str().map_or(0, str::len);
        *value = Value::String(format!("<{length} characters>"));
    }
}

/// Removes what looking at a field of an object has added to it.
fn remove_empty(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|_, value| !value.is_null());
    }
}

/// A line for each condition: `Ready=False Missing: the registry does not answer`.
pub(super) fn conditions(object: &Value) -> Vec<String> {
    let conditions = object["status"]["conditions"].as_array();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |condition: &Value| {
        let mut line = format!(
            "{}={}",
            text(&condition["type"]),
            text(&condition["status"])
        );
        let (reason, message) = (text(&condition["reason"]), text(&condition["message"]));
        for (lead, part) in [(" ", reason), (": ", message)] {
            if !part.is_empty() {
                line.push_str(lead);
                line.push_str(&part);
            }
        }
        line
    };
    conditions.into_iter().flatten().map(line).collect()
}

/// A line for an event: `2030-01-01T00:00:00Z Warning Failed: no paper (x3)`.
pub(super) fn event(event: &Event) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let time = event_time(event).map_or_else(String::new, |time| format!("{time:.0} "));
    let mut line = format!(
        "{time}{} {}: {}",
        text(&event.type_),
        text(&event.reason),
        text(&event.message)
    );
    if let Some(count) = event.count.filter(|count| *count > 1) {
        line.push_str(&format!(" (x{count})"));
    }
    line
}

/// When an event happened last.
pub(super) fn event_time(event: &Event) -> Option<Timestamp> {
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let micro = event.event_time.as_ref().map(|time| time.0);
    let made = event
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|time| time.0);
    last.or(micro).or(made)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_and_bookkeeping_is_left_out() {
        let secret = json!({
            "kind": "Secret", "metadata": {"name": "a", "managedFields": [{}]}, "data": {"token": "c2VjcmV0"},
        });
        let text = "data:\n  token: <8 characters>\nkind: Secret\nmetadata:\n  name: a";
        assert_eq!(yaml(&secret), text);
    }

    #[test]
    fn conditions_are_a_line_each() {
        let object = json!({"status": {"conditions": [
            {"type": "Ready", "status": "False", "reason": "Missing", "message": "no registry"},
            {"type": "Synced", "status": "True"},
        ]}});
        assert_eq!(
            conditions(&object),
            ["Ready=False Missing: no registry", "Synced=True"]
        );
        assert!(conditions(&json!({})).is_empty());
    }
}
