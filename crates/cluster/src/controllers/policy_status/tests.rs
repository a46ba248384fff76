//! Expressions and the kinds that they fit.

use kubewright_schema::cel::Declaration;
use serde_json::{Value, json};

use super::*;

fn document() -> Value {
    let component = |name: &str| json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}], "default": {}});
    json!({"components": {"schemas": {
        "Meta": {"type": "object", "properties": {"name": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "creationTimestamp": {"$ref": "#/components/schemas/Time"}}},
        "Time": {"type": "string", "format": "date-time"},
        "Amount": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        "Tree": {"type": "object", "properties": {"size": {"type": "integer"},
            "children": {"type": "array", "items": component("Tree")}}},
        "Widget": {"type": "object",
            "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}],
            "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": component("Meta"),
                "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}, "image": {"type": "string"},
                    "port": {"format": "int-or-string"}, "amount": component("Amount"), "tree": component("Tree"),
                    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}},
    }}})
}

fn widget() -> Arc<Declaration> {
    let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
    schemas::declare(&document(), &kind).expect("it is described")
}

fn spec(spec: Value) -> ValidatingAdmissionPolicySpec {
    serde_json::from_value(spec).expect("it is a spec")
}

/// The warnings of one expression, without where it is.
fn warn(expression: &str) -> Option<String> {
    let spec = spec(json!({"validations": [{"expression": expression}]}));
    let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let matched = [Matched {
        kind,
        object: widget(),
    }];
    let found = warnings(&spec, &matched, &Params::None).pop();
    found.map(|warning| warning.warning)
}

#[test]
fn expressions_that_fit_have_no_warnings() {
    for expression in [
        "object.spec.replicas < 5 && oldObject == null",
        "has(object.metadata.labels) && object.metadata.labels['app'] == object.spec.image",
        "object.metadata.creationTimestamp > timestamp('2030-01-01T00:00:00Z')",
        "object.spec.port == 80 || object.spec.port == 'http'",
        "object.spec.amount == '1Gi' && object.spec.open.anything.at.all == 1",
        "object.spec.tree.children.all(c, c.size > 1 && c.children.all(d, d.whatever))",
        "request.userInfo.groups.exists(g, g == 'admins') && request.options.x == 1",
        "namespaceObject.metadata.labels['team'] == 'a' && namespaceObject.status.phase == 'Active'",
        "authorizer.group('').resource('pods').check('get').allowed()",
    ] {
        assert_eq!(warn(expression), None, "{expression}");
    }
}

#[test]
fn expressions_that_do_not_fit_are_shown_with_the_kind_and_the_place() {
    let text = "example.com/v1, Kind=Widget: ERROR: <input>:1:12: undefined field 'replicass'\n \
                | object.spec.replicass > 1\n | ...........^\n";
    assert_eq!(warn("object.spec.replicass > 1").as_deref(), Some(text));
    for (expression, message) in [
        (
            "object.spec.image > 1",
            "found no matching overload for '_>_' applied to '(string, int)'",
        ),
        ("request.user == 'a'", "undefined field 'user'"),
        ("params.x == 1", "undeclared reference to 'params'"),
        ("object.spec.tree.leaves == 1", "undefined field 'leaves'"),
    ] {
        let warning = warn(expression).unwrap_or_default();
        assert!(warning.contains(message), "{expression}: {warning}");
    }
}

#[test]
fn variables_have_the_types_of_their_expressions() {
    let variables = json!([
        {"name": "replicas", "expression": "object.spec.replicas"},
        {"name": "double", "expression": "variables.replicas * 2"},
        {"name": "broken", "expression": "object.nothing"},
    ]);
    let validations = json!([
        {"expression": "variables.double < 9 && variables.broken.x == 1"},
        {"expression": "variables.double == 'nine'", "messageExpression": "'too many: ' + variables.replicas"},
        {"expression": "variables.other == 1"},
    ]);
    let spec = spec(json!({"variables": variables, "validations": validations}));
    let matched = ["v1", "v2"].map(|version| Matched {
        kind: GroupVersionKind::gvk("example.com", version, "Widget"),
        object: widget(),
    });
    let found = warnings(&spec, &matched, &Params::Unknown);
    let places: Vec<&str> = found.iter().map(|it| &*it.field_ref).collect();
    let expected = [
        "spec.validations[1].expression",
        "spec.validations[1].messageExpression",
        "spec.validations[2].expression",
    ];
    assert_eq!(places, expected);
    // One text for all kinds, with an empty line between them.
    assert_eq!(found[0].warning.matches(", Kind=Widget: ERROR").count(), 2);
    assert!(
        found[0].warning.contains("^\n\nexample.com/v2"),
        "{}",
        found[0].warning
    );
}

#[test]
fn wildcards_and_subresources_name_no_kind() {
    let rule = |groups: Value, versions: Value, resources: Value| json!({"apiGroups": groups, "apiVersions": versions, "resources": resources, "operations": ["*"]});
    let named = |rules: Value| {
        let spec = spec(json!({"matchConstraints": {"resourceRules": rules}}));
        let all = matched::resources(&spec).into_iter().flatten();
        let shown = all.map(|r| format!("{}/{}/{}", r.group, r.version, r.resource));
        shown.collect::<Vec<_>>()
    };
    let both = rule(
        json!(["apps", ""]),
        json!(["v1"]),
        json!(["pods", "pods/status", "*/scale", "deployments"]),
    );
    let expected = [
        "/v1/deployments",
        "/v1/pods",
        "apps/v1/deployments",
        "apps/v1/pods",
    ];
    assert_eq!(named(json!([both])), expected);
    for wild in [
        rule(json!(["*"]), json!(["v1"]), json!(["pods"])),
        rule(json!([""]), json!(["*"]), json!(["pods"])),
        rule(json!([""]), json!(["v1"]), json!(["*"])),
    ] {
        assert_eq!(named(json!([wild])), [""; 0]);
    }
}
