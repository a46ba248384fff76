//! A table: what is put into a good definition, and what is found.

use super::{Report, limits, program};
use crate::Inventory;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::definitions;
use crate::finding::Severity::{Error, Hint, Warning};
use crate::finding::{Finding, Severity};

/// A schema with which nothing is wrong.
fn good_schema() -> Value {
    let size = json!({"type": "integer", "format": "int32", "description": "How large."});
    let spec = json!({"type": "object", "description": "Wanted.", "properties": {"size": size}});
    let text = |what: &str| json!({"type": "string", "description": what});
    let mut time = text("Since when.");
    time["format"] = "date-time".into();
    let condition = json!({
        "type": text("What."), "status": text("Whether."), "reason": text("Why."), "message": text("More."),
        "lastTransitionTime": time,
    });
    let conditions = json!({
        "type": "array", "description": "How it is.",
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type", "status"], "properties": condition},
    });
    let generation = json!({"type": "integer", "format": "int64", "description": "Of what."});
    let status = json!({"observedGeneration": generation, "conditions": conditions});
    let status = json!({"type": "object", "description": "Seen.", "properties": status});
    json!({"type": "object", "description": "A bar.", "properties": {"spec": spec, "status": status}})
}

/// A definition with which nothing is wrong.
fn good() -> Value {
    let columns = json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "additionalPrinterColumns": columns, "schema": {"openAPIV3Schema": good_schema()},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "bars.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "bars", "singular": "bar", "kind": "Bar", "listKind": "BarList"},
        },
    })
}

fn lint(definition: Value) -> Vec<Finding> {
    let definition: CustomResourceDefinition =
        serde_json::from_value(definition).expect("a definition");
    definitions(&[definition])
}

/// Changes the good definition at a pointer, and looks for exactly one finding that was not there before.
#[track_caller]
fn check(pointer: &str, value: Value, severity: Severity, path: &str, message: &str) {
    let mut definition = good();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = definition.pointer_mut(parent).expect("a place");
    parent[name] = value;
    let found = lint(definition);
    let expected = format!("{severity}: {path}: {message}");
    let hit = found
        .iter()
        .any(|finding| finding.to_string().starts_with(&expected));
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(hit, "expected {expected}\nfound {shown:#?}");
    assert!(found.iter().all(|finding| !finding.advice.is_empty()));
}

const SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema";

/// Adds a field `f` to the spec.
#[track_caller]
fn check_field(schema: Value, severity: Severity, message: &str) {
    check(
        &format!("{SCHEMA}/properties/spec/properties/f"),
        schema,
        severity,
        "bars.ex.io v1 .spec.f",
        message,
    );
}

#[test]
fn nothing_is_found_in_a_good_definition() {
    let found: Vec<String> = lint(good()).iter().map(ToString::to_string).collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn what_servers_refuse_is_an_error() {
    check(
        "/spec/scope",
        json!("Nowhere"),
        Error,
        "bars.ex.io spec.scope",
        "Unsupported value",
    );
    check(
        "/spec/versions/0/storage",
        json!(false),
        Error,
        "bars.ex.io spec.versions",
        "Invalid value",
    );
    check(
        &format!("{SCHEMA}/type"),
        json!("string"),
        Error,
        "bars.ex.io spec.validation.openAPIV3Schema.type",
        "Invalid value",
    );
    check(
        &format!("{SCHEMA}/properties/spec/x-kubernetes-validations"),
        json!([{"rule": "self.nothing > 1"}]),
        Error,
        "bars.ex.io spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule",
        "Invalid value",
    );
}

#[test]
fn expensive_expression_is_an_error_with_advice() {
    let mut definition = good();
    let spec =
        &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"]["l"] = json!({"type": "array", "items": {"type": "string"}});
    spec["x-kubernetes-validations"] =
        json!([{"rule": "self.l.all(a, self.l.all(b, self.l.all(c, a == b)))"}]);
    let found = lint(definition);
    assert!(found[0].message.contains("cost"), "{}", found[0]);
    assert!(
        found[0].advice.starts_with("bound what the rule looks at"),
        "{}",
        found[0]
    );
}

#[test]
fn names_follow_the_conventions() {
    check(
        "/spec/names/kind",
        json!("bar"),
        Warning,
        "bars.ex.io spec.names.kind",
        "the kind \"bar\" is not CamelCase",
    );
    check(
        "/spec/names/shortNames",
        json!(["po"]),
        Warning,
        "bars.ex.io spec.names.shortNames",
        "the short name \"po\"",
    );
    check(
        "/spec/versions/0/name",
        json!("one"),
        Warning,
        "bars.ex.io spec.versions",
        "the version \"one\"",
    );
}

#[test]
fn versions_fit_together() {
    check(
        "/spec/versions/0/served",
        json!(false),
        Warning,
        "bars.ex.io spec.versions",
        "no version is served",
    );
    check(
        "/spec/versions/0/deprecated",
        json!(true),
        Hint,
        "bars.ex.io spec.versions",
        "v1 is deprecated",
    );
    let mut second = good()["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = json!({});
    let versions = json!([good()["spec"]["versions"][0], second]);
    check(
        "/spec/versions",
        versions,
        Warning,
        "bars.ex.io spec.conversion",
        "versions have different fields",
    );
}

#[test]
fn status_is_a_subresource_with_conditions() {
    let status = |rest: &str| format!("{SCHEMA}/properties/status{rest}");
    check(
        "/spec/versions/0/subresources",
        json!({}),
        Warning,
        "bars.ex.io v1 .status",
        "there is a status, but no status",
    );
    check(
        &format!("{SCHEMA}/required"),
        json!(["status"]),
        Error,
        "bars.ex.io v1 .status",
        "status is required",
    );
    check(
        &format!("{SCHEMA}/properties"),
        json!({"spec": {"type": "object"}}),
        Warning,
        "bars.ex.io v1 .status",
        "there is a status subresource, but no status",
    );
    check(
        &status("/properties"),
        json!({}),
        Hint,
        "bars.ex.io v1 .status",
        "the status has no conditions",
    );
    check(
        &status("/properties"),
        json!({}),
        Hint,
        "bars.ex.io v1 .status",
        "the status does not say which spec",
    );
    check(
        &status("/properties/conditions/x-kubernetes-list-type"),
        json!("atomic"),
        Warning,
        "bars.ex.io v1 .status.conditions",
        "conditions are not a list map by type",
    );
    check(
        &status("/properties/conditions/items/properties"),
        json!({"type": {"type": "string"}, "status": {"type": "string"}}),
        Warning,
        "bars.ex.io v1 .status.conditions",
        "conditions have no reason, message, lastTransitionTime",
    );
}

#[test]
fn columns_lead_to_fields_of_their_type() {
    let column = |ty: &str, path: &str| json!([{"name": "C", "type": ty, "jsonPath": path}]);
    let columns = "/spec/versions/0/additionalPrinterColumns";
    let place = "bars.ex.io v1 column C";
    check(
        columns,
        column("string", ".spec.none"),
        Warning,
        place,
        ".spec.none leads nowhere: there is no field \"none\"",
    );
    check(
        columns,
        column("boolean", ".spec.size"),
        Warning,
        place,
        "the column is of type boolean",
    );
    check(
        columns,
        column("integer", ".spec.size"),
        Hint,
        "bars.ex.io v1",
        "columns of one's own replace the column Age",
    );
    check(
        "/spec/versions/0/subresources",
        json!({"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}),
        Warning,
        "bars.ex.io v1 .status.size",
        "the scale subresource uses .status.size: there is no field \"size\"",
    );
}

#[test]
fn fields_follow_the_conventions() {
    check_field(json!({"type": "number"}), Warning, "it is a float");
    check_field(
        json!({"type": "integer", "format": "uint32"}),
        Warning,
        "uint32 is not a format that Kubernetes knows",
    );
    check_field(
        json!({"type": "integer"}),
        Hint,
        "it is a whole number of unknown size",
    );
    check_field(json!({"type": "boolean"}), Hint, "it is a boolean");
    check_field(json!({"type": "string"}), Hint, "it has no description");
    check_field(
        json!({"type": "string", "enum": ["one", "Two"]}),
        Hint,
        "values are not CamelCase: one",
    );
    check_field(
        json!({"type": "array", "items": {"type": "object"}}),
        Warning,
        "the list has no type: server-side apply replaces it as a whole",
    );
    check_field(
        json!({"type": "array", "items": {"type": "string"}}),
        Hint,
        "the list has no type",
    );
    check_field(
        json!({"type": "object", "properties": {"secs": {"type": "integer"}, "nanos": {"type": "integer"}}}),
        Warning,
        "it is a duration of seconds and nanoseconds",
    );
    check_field(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        Hint,
        "it accepts any field",
    );
}

#[test]
fn names_of_fields_tell_what_they_are() {
    let field = |name: &str| format!("{SCHEMA}/properties/spec/properties/{name}");
    let named = |name: &str| format!("bars.ex.io v1 .spec.{name}");
    let text = json!({"type": "string"});
    check(
        &field("snake_case"),
        text.clone(),
        Warning,
        &named("snake_case"),
        "the name \"snake_case\" is not camelCase",
    );
    check(
        &field("password"),
        text.clone(),
        Warning,
        &named("password"),
        "it looks like a secret",
    );
    check(
        &field("endTimestamp"),
        text,
        Hint,
        &named("endTimestamp"),
        "it looks like a time",
    );
    check(
        &field("replicas"),
        json!({"type": "integer", "format": "int64"}),
        Warning,
        &named("replicas"),
        "replicas are not",
    );
    let spec = json!({
        "type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "default": 1}},
    });
    check(
        &format!("{SCHEMA}/properties/spec"),
        spec,
        Warning,
        &named("a"),
        "it is required and has a default",
    );
}

#[test]
fn definition_too_large_for_an_annotation_or_for_storage_is_found() {
    let description = format!("{SCHEMA}/description");
    check(
        &description,
        json!("x".repeat(262_144)),
        Warning,
        "bars.ex.io",
        "the definition has",
    );
    check(
        &description,
        json!("x".repeat(1_572_864)),
        Error,
        "bars.ex.io",
        "the definition has",
    );
}

#[test]
fn worst_findings_come_first() {
    let mut definition = good();
    definition["spec"]["scope"] = "Nowhere".into();
    definition["spec"]["names"]["kind"] = "bar".into();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = Value::Null;
    let severities: Vec<Severity> = lint(definition)
        .iter()
        .map(|finding| finding.severity)
        .collect();
    assert!(severities.is_sorted_by(|a, b| a >= b), "{severities:?}");
    assert!(severities.contains(&Hint) && severities.contains(&Error));
}

/// What is wrong with a program of one kind that has two versions.
fn program_findings(
    webhook: serde_json::Value,
    change: impl FnOnce(&mut Inventory),
) -> Vec<String> {
    let schema = serde_json::json!({"openAPIV3Schema": {"type": "object"}});
    let definition = serde_json::json!({
        "metadata": {"name": "books.shelf.my.domain"},
        "spec": {
            "group": "shelf.my.domain", "scope": "Namespaced", "names": {"plural": "books", "kind": "Book"},
            "conversion": {"strategy": "Webhook"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": schema},
                {"name": "v2", "served": true, "storage": false, "schema": schema},
            ],
        },
    });
    let conversions =
        serde_json::json!([{"group": "shelf.my.domain", "kind": "Book", "versions": ["v1", "v2"]}]);
    let mut inventory: Inventory = serde_json::from_value(serde_json::json!({
        "format": 1, "definitions": [definition], "rules": [], "controllers": ["book"],
        "conversions": conversions, "webhooks": [webhook],
    }))
    .expect("it is an inventory");
    change(&mut inventory);
    program::check(&inventory)
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn hook(group: &str, version: &str, resource: &str) -> serde_json::Value {
    serde_json::json!({
        "kind": "validating", "name": "v.my.domain", "path": "/v", "groups": [group], "versions": [version],
        "resources": [resource], "verbs": ["create"], "admissionReviewVersions": ["v1"],
    })
}

#[test]
fn webhooks_of_kinds_that_do_not_exist_are_found() {
    let of = |group: &str, version: &str, resource: &str| {
        program_findings(hook(group, version, resource), |_| {}).join("; ")
    };
    for fine in [
        ("shelf.my.domain", "v1", "books"),
        ("", "v1", "pods"),
        ("apps", "v1", "*"),
        ("shelf.my.domain", "*", "books/status"),
    ] {
        assert_eq!(of(fine.0, fine.1, fine.2), "");
    }
    assert!(of("shelf.my.domain", "v1", "book").contains("no resource \"book\""));
    assert!(of("shelf.my.domain", "v3", "books").contains("no version \"v3\""));
    assert!(of("shelv.my.domain", "v1", "books").contains("neither a group of this program"));
}

#[test]
fn conversions_that_nobody_wrote_and_controllers_of_one_name_are_found() {
    let fine = || hook("shelf.my.domain", "v1", "books");
    let found = program_findings(fine(), |inventory| {
        inventory.conversions[0].versions.truncate(1)
    });
    assert!(found[0].contains("nothing converts v2"), "{found:?}");
    let found = program_findings(fine(), |inventory| inventory.conversions.clear());
    assert!(found[0].contains("nothing converts v1, v2"), "{found:?}");
    let old =
        |inventory: &mut Inventory| (inventory.format, inventory.conversions) = (0, Vec::new());
    assert!(program_findings(fine(), old).is_empty(), "it does not say");
    let found = program_findings(fine(), |inventory| {
        inventory.controllers.push("book".into())
    });
    assert!(
        found[0].contains("two controllers are called \"book\""),
        "{found:?}"
    );
}

#[test]
fn limits_that_no_value_keeps_to_are_found() {
    let schema: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps =
        serde_json::from_value(serde_json::json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "minimum": 5, "maximum": 3},
            "name": {"type": "string", "minLength": 2, "maxLength": 2},
            "tags": {"type": "array", "minItems": 4, "maxItems": 1, "items": {"type": "string"}},
        }}}}))
        .expect("it is a schema");
    let mut report = Report::default();
    limits::check(&schema, &mut report);
    let found: Vec<String> = report.finish().iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found
            .iter()
            .any(|it| it.contains("minimum 5 is above maximum 3")),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|it| it.contains("minItems 4 is above maxItems 1")),
        "{found:?}"
    );
}
