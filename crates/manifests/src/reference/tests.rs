//! What the reference of a small kind looks like, and that its links lead somewhere.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::markdown;

fn definition(kind: &str, spec: Value) -> CustomResourceDefinition {
    let schema = json!({
        "type": "object", "description": "A <bar>.", "required": ["spec"],
        "properties": {"metadata": {"type": "object"}, "spec": spec},
    });
    serde_json::from_value(json!({
        "metadata": {"name": "bars.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": {"plural": "bars", "kind": kind, "shortNames": ["br"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    }))
    .expect("a definition")
}

fn ports() -> Value {
    json!({
        "type": "array", "description": "Where | it\nlistens.", "maxItems": 3,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object", "required": ["name"],
            "properties": {
                "name": {"type": "string", "pattern": "^(a|b)$", "minLength": 1},
                "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535, "default": 80},
            },
        },
    })
}

#[test]
fn kind_has_its_facts_and_a_table_for_each_type() {
    let rules = json!([{"rule": "self.ports.size() > 0", "message": "needs ports"}]);
    let spec = json!({
        "type": "object", "description": "Wanted.", "properties": {"ports": ports()},
        "x-kubernetes-validations": rules,
    });
    let expected = r##"# API reference

- `ex.io/v1`
  - [Bar](#bar-v1)

## ex.io/v1

<a id="bar-v1"></a>
### Bar

A &lt;bar&gt;.

- Scope: Namespaced
- Resource: `bars`
- Short names: `br`
- Subresources: `status`

| Field | Type | Description | Default | Validation |
|---|---|---|---|---|
| `spec` *required* | [object](#Bar-v1-spec) | Wanted. |  |  |

<a id="Bar-v1-spec"></a>
#### Bar.spec

Wanted.

- needs ports (`self.ports.size() > 0`)

| Field | Type | Description | Default | Validation |
|---|---|---|---|---|
| `ports` | list of [object](#Bar-v1-spec-ports) | Where \| it<br />listens. |  | at most 3 items<br />unique by `name` |

<a id="Bar-v1-spec-ports"></a>
#### Bar.spec.ports[]

| Field | Type | Description | Default | Validation |
|---|---|---|---|---|
| `name` *required* | string |  |  | at least 1 characters<br />pattern `^(a\|b)$` |
| `port` | integer |  | `80` | ≥ 1<br />≤ 65535<br />format `int32` |
"##;
    assert_eq!(markdown(&[definition("Bar", spec)]), expected);
}

#[test]
fn order_of_definitions_does_not_matter() {
    let (a, b) = (
        definition("A", json!({"type": "object"})),
        definition("B", json!({"type": "object"})),
    );
    assert_eq!(markdown(&[a.clone(), b.clone()]), markdown(&[b, a]));
}

#[test]
fn every_link_leads_to_exactly_one_place() {
    let spec = json!({
        "type": "object",
        "properties": {
            "ports": ports(), "Ports": ports(), "maps": {"type": "object", "additionalProperties": ports()},
            "any": {"x-kubernetes-preserve-unknown-fields": true}, "size": {"x-kubernetes-int-or-string": true},
        },
    });
    let text = markdown(&[definition("Bar", spec)]);
    let pieces = |start: &str, end: char| -> Vec<String> {
        let found = text.split(start).skip(1);
        found
            .map(|rest| rest.split(end).next().unwrap_or_default().to_owned())
            .collect()
    };
    let anchors = pieces("<a id=\"", '"');
    let unique: BTreeSet<&String> = anchors.iter().collect();
    assert_eq!(unique.len(), anchors.len(), "{anchors:?}");
    for link in pieces("](#", ')') {
        assert!(anchors.contains(&link), "{link} in {anchors:?}");
    }
    assert!(
        text.contains("map of list of [object](#Bar-v1-spec-maps)"),
        "{text}"
    );
}

#[test]
fn deprecated_version_says_so() {
    let mut definition = definition("Bar", json!({"type": "object"}));
    definition.spec.versions[0].deprecated = Some(true);
    definition.spec.versions[0].deprecation_warning = Some("use v2".to_owned());
    definition.spec.versions[0].served = false;
    let text = markdown(&[definition]);
    assert!(
        text.contains("- **Deprecated**: use v2\n- Not served\n"),
        "{text}"
    );
}
