//! Hides what a Secret holds until somebody asks for it. Pure.

use serde_json::{Value, json};

use crate::kinds::Kind;

/// The annotation in which kubectl keeps the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Stands for a value that is not shown. It cannot be base64, so nobody takes it for one.
pub(crate) const MASK: &str = "•••";

/// Replaces the values of a Secret, wherever the object carries them.
pub(crate) fn secret(kind: &Kind, object: &mut Value) {
    if !kind.is("", "Secret") {
        return;
    }
    for field in ["data", "stringData"] {
        let map = object.get_mut(field).and_then(Value::as_object_mut);
        for value in map.into_iter().flat_map(|map| map.values_mut()) {
            *value = json!(MASK);
        }
    }
    if let Some(annotation) = object.pointer_mut("/metadata/annotations")
        && let Some(applied) = annotation.get_mut(LAST_APPLIED)
    {
        *applied = json!(MASK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_in_data_and_in_what_was_last_applied() {
        let kind = Kind {
            id: "v1/secrets".to_owned(),
            group: String::new(),
            version: "v1".to_owned(),
            plural: "secrets".to_owned(),
            kind: "Secret".to_owned(),
            namespaced: true,
            short_names: Vec::new(),
            verbs: Vec::new(),
            subresources: Vec::new(),
        };
        let mut object = json!({"metadata": {"annotations": {LAST_APPLIED: "hunter2", "a": "b"}},
            "data": {"password": "aHVudGVyMg=="}, "stringData": {"x": "hunter2"}});
        secret(&kind, &mut object);
        let text = object.to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("aHVudGVyMg"),
            "{text}"
        );
        assert_eq!(object["metadata"]["annotations"]["a"], "b");
    }
}
