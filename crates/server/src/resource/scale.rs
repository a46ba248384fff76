//! The scale of an object: its number of replicas, the same for every kind that has one.

use kubewright_schema::crd::Scale as ScalePaths;
use kubewright_schema::selector::LabelSelector;
use serde_json::{Value, json};

use super::{Nature, Served};
use crate::object;

/// The name of the subresource.
pub(crate) const NAME: &str = "scale";

/// The scale of an object.
pub(crate) fn of(served: &Served, value: &Value) -> Value {
    let mut metadata = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(found) = object::metadata(value).and_then(|m| m.get(field)) {
            metadata[field] = found.clone();
        }
    }
    let (spec, status, selector) = match paths(served) {
        Some(paths) => custom_parts(value, paths),
        None => builtin_parts(value),
    };
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": { "replicas": spec }, "status": { "replicas": status },
    });
    if let Some(selector) = selector {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}

fn builtin_parts(value: &Value) -> (i64, i64, Option<String>) {
    let selector = &value["spec"]["selector"];
    // A ReplicationController's selector is a plain map.
    let selector = match selector
        .get("matchLabels")
        .or(selector.get("matchExpressions"))
    {
        Some(_) => LabelSelector::from_object(selector).ok(),
        None if selector.is_object() => {
            LabelSelector::from_object(&json!({ "matchLabels": selector })).ok()
        }
        None => None,
    };
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    (
        number("/spec/replicas"),
        number("/status/replicas"),
        selector.map(|s| s.to_string()),
    )
}

fn custom_parts(value: &Value, paths: &ScalePaths) -> (i64, i64, Option<String>) {
    let number = |path: &str| {
        value
            .pointer(&pointer(path))
            .and_then(Value::as_i64)
            .unwrap_or(0)
    };
    let text = |path: &String| {
        value
            .pointer(&pointer(path))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let selector = paths.label_selector_path.as_ref().and_then(text);
    (
        number(&paths.spec_replicas_path),
        number(&paths.status_replicas_path),
        selector,
    )
}

/// Gives an object the number of replicas that a scale says.
pub(crate) fn put(served: &Served, value: &mut Value, scale: &Value) {
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    set_replicas(served, value, replicas);
}

pub(crate) fn set_replicas(served: &Served, value: &mut Value, replicas: i64) {
    let mut place = value;
    for step in replicas_pointer(served).trim_start_matches('/').split('/') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[step];
    }
    *place = json!(replicas);
}

/// Where an object says how many replicas there are to be.
pub(crate) fn replicas_pointer(served: &Served) -> String {
    paths(served).map_or("/spec/replicas".to_owned(), |p| {
        pointer(&p.spec_replicas_path)
    })
}

fn paths(served: &Served) -> Option<&ScalePaths> {
    match &served.nature {
        Nature::Custom(custom) => custom.scale.as_ref(),
        Nature::Builtin(_) => None,
    }
}

/// `.spec.replicas` as a JSON pointer: scale paths are plain field names.
fn pointer(path: &str) -> String {
    path.replace('.', "/")
}
