//! Ephemeral containers, which join a pod that runs already and never leave it.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_schema::FieldError;
use serde_json::Value;

use super::container::{Surroundings, validate_common};
use crate::kinds::checks::Errors;
use crate::kinds::path::Path;
use crate::kinds::value::{alike, is_empty, items, text};

/// Fields of other containers that ephemeral ones cannot have.
const FOREIGN: [&str; 8] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

const REFUSAL: &str = "cannot be set for an Ephemeral Container";

/// Checks `ephemeralContainers` of a pod spec.
pub(super) fn validate(
    spec: &Value,
    around: &Surroundings<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let path = path.child("ephemeralContainers");
    let others: BTreeSet<&str> = items(&spec["containers"])
        .iter()
        .chain(items(&spec["initContainers"]))
        .map(|container| text(&container["name"]))
        .collect();
    let mut seen = others.clone();
    for (i, container) in items(&spec["ephemeralContainers"]).iter().enumerate() {
        let at = path.index(i);
        validate_common(container, around, &at, errors);
        let name = text(&container["name"]);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(at.child("name"), &name.into()));
        }
        let target = text(&container["targetContainerName"]);
        if !target.is_empty() && !others.contains(target) {
            let path = at.child("targetContainerName");
            errors.push(FieldError::not_found(path, &target.into()));
        }
        for field in FOREIGN {
            if !is_empty(&container[field]) {
                errors.push(FieldError::forbidden(at.child(field), REFUSAL));
            }
        }
        let mounts = at.child("volumeMounts");
        for (j, mount) in items(&container["volumeMounts"]).iter().enumerate() {
            let at = mounts.index(j);
            for field in ["subPath", "subPathExpr"] {
                if !is_empty(&mount[field]) {
                    errors.push(FieldError::forbidden(at.child(field), REFUSAL));
                }
            }
        }
    }
}

/// Checks a write of the `ephemeralcontainers` subresource besides the pod itself: containers that exist do not change.
pub(crate) fn validate_added(new: &Value, old: &Value) -> Errors {
    let path = Path::Root("spec.ephemeralContainers");
    let now: BTreeMap<&str, &Value> = items(&new["spec"]["ephemeralContainers"])
        .iter()
        .map(|container| (text(&container["name"]), container))
        .collect();
    let mut errors = Errors::new();
    for before in items(&old["spec"]["ephemeralContainers"]) {
        let name = text(&before["name"]);
        let what = match now.get(name) {
            None => "removed",
            Some(container) if !alike(container, before) => "changed",
            Some(_) => continue,
        };
        let text = format!("existing ephemeral containers {name:?} may not be {what}\n");
        errors.push(FieldError::forbidden(path, &text));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::create;

    fn pod(ephemeral: Value) -> Value {
        json!({
            "metadata": {"name": "p", "namespace": "d"},
            "spec": {"containers": [{"name": "c", "image": "i:1"}], "ephemeralContainers": ephemeral},
        })
    }

    fn errors(ephemeral: Value) -> Vec<String> {
        let pod = create("", "Pod", pod(ephemeral));
        let mut errors = Errors::new();
        super::super::spec::validate(&pod["spec"], &Path::Root("spec"), &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ephemeral_containers_are_plain() {
        let path = "spec.ephemeralContainers[0]";
        for (container, expect) in [
            (
                json!({"name": "c", "image": "i"}),
                format!("{path}.name: Duplicate value: \"c\""),
            ),
            (
                json!({"name": "e", "image": "i", "targetContainerName": "x"}),
                format!("{path}.targetContainerName: Not found: \"x\""),
            ),
            (
                json!({"name": "e", "image": "i", "ports": [{"containerPort": 1}]}),
                format!("{path}.ports: Forbidden: cannot be set for an Ephemeral Container"),
            ),
        ] {
            assert_eq!(errors(json!([container])), [expect]);
        }
        assert_eq!(
            errors(json!([{"name": "e", "image": "i"}])),
            Vec::<String>::new()
        );
    }

    #[test]
    fn ephemeral_containers_stay() {
        let old = pod(json!([{"name": "e", "image": "i"}]));
        let more = pod(json!([{"name": "f", "image": "i"}, {"name": "e", "image": "i"}]));
        assert!(validate_added(&more, &old).is_empty());
        let gone = validate_added(&pod(json!([])), &old);
        assert_eq!(
            gone[0].message,
            "Forbidden: existing ephemeral containers \"e\" may not be removed\n"
        );
    }
}
