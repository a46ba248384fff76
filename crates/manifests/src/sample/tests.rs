//! A table of schemas: each has a sample, and the sample is valid.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubewright_schema::crd::Definition;
use serde_json::{Value, json};

use super::{Checker, SampleError, of};

fn definition(spec: Value) -> CustomResourceDefinition {
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}});
    whole(schema)
}

fn whole(schema: Value) -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "metadata": {"name": "bars.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": {"plural": "bars", "kind": "Bar"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    }))
    .expect("a definition")
}

#[track_caller]
fn sample(definition: &CustomResourceDefinition) -> Value {
    let version = definition.spec.versions[0].name.clone();
    let sample = of(definition, &version).unwrap_or_else(|error| panic!("{error}"));
    let parsed = Definition::parse(&serde_json::to_value(definition).expect("JSON"));
    let checker = Checker::new(&parsed.versions[0]).expect("compiles");
    let errors = checker.errors(&sample, None);
    assert!(errors.is_empty(), "{sample:#}\n{errors:?}");
    sample
}

#[track_caller]
fn check(spec: Value, expected: Value) {
    assert_eq!(sample(&definition(spec))["spec"], expected);
}

/// A spec with one field, which is required.
#[track_caller]
fn check_field(name: &str, schema: Value, expected: Value) {
    let spec = json!({"type": "object", "required": [name], "properties": {name: schema}});
    check(spec, json!({ name: expected }));
}

/// A spec with one field; any valid value will do.
#[track_caller]
fn check_valid(schema: Value) {
    sample(&definition(
        json!({"type": "object", "required": ["f"], "properties": {"f": schema}}),
    ));
}

#[test]
fn examples_come_before_defaults_before_enums() {
    check_field(
        "f",
        json!({"type": "string", "example": "e", "default": "d"}),
        json!("e"),
    );
    check_field(
        "f",
        json!({"type": "string", "default": "d", "enum": ["c", "d"]}),
        json!("d"),
    );
    check_field(
        "f",
        json!({"type": "string", "enum": ["c", "d"]}),
        json!("c"),
    );
}

#[test]
fn numbers_are_within_bounds() {
    let integer = |mut bounds: Value, expected: Value| {
        bounds["type"] = "integer".into();
        check_field("f", bounds, expected);
    };
    integer(json!({}), json!(1));
    integer(json!({"minimum": 5}), json!(5));
    integer(json!({"minimum": 5, "exclusiveMinimum": true}), json!(6));
    integer(json!({"maximum": 0}), json!(0));
    integer(json!({"maximum": -3, "exclusiveMaximum": true}), json!(-4));
    integer(json!({"minimum": 1, "multipleOf": 4}), json!(4));
    check_field(
        "f",
        json!({"type": "number", "minimum": 0.25, "maximum": 0.75}),
        json!(0.75),
    );
}

#[test]
fn texts_have_the_length_the_format_and_the_pattern() {
    check_field(
        "deploymentName",
        json!({"type": "string"}),
        json!("deployment-name"),
    );
    check_field("f", json!({"type": "string", "minLength": 3}), json!("fff"));
    check_field(
        "longName",
        json!({"type": "string", "maxLength": 4}),
        json!("long"),
    );
    check_field(
        "f",
        json!({"type": "string", "pattern": "^x{2}-[0-9]+$"}),
        json!("xx-1"),
    );
    check_field(
        "f",
        json!({"type": "string", "pattern": "^(red|green)$"}),
        json!("red"),
    );
    check_field(
        "f",
        json!({"type": "string", "format": "ipv4"}),
        json!("10.0.0.1"),
    );
    for format in [
        "bsonobjectid",
        "uri",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "cidr",
        "mac",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
        "isbn",
        "isbn10",
        "isbn13",
        "creditcard",
        "ssn",
        "hexcolor",
        "rgbcolor",
        "byte",
        "password",
        "date",
        "duration",
        "date-time",
        "k8s-short-name",
        "k8s-long-name",
        "unheard-of",
    ] {
        check_valid(json!({"type": "string", "format": format}));
    }
    for pattern in [
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        r"^\d{4}-\d{2}-\d{2}$",
        r"^arn:aws:iam::[0-9]{12}:role/.+$",
        r"^[A-Z_]+$",
        r"^sha256:[a-f0-9]{64}$",
        r"^\S+@\S+$",
        r"^([0-9]+h)?([0-9]+m)?([0-9]+s)?$",
        r"b$",
        r"^(a|b)+c$",
    ] {
        check_valid(json!({"type": "string", "pattern": pattern}));
    }
    check_valid(json!({"type": "string", "pattern": "^[A-Z]+$", "minLength": 20, "maxLength": 20}));
}

#[test]
fn simple_fields_of_the_spec_are_shown_and_deeper_ones_only_if_required() {
    check(
        json!({
            "type": "object",
            "properties": {
                "size": {"type": "integer"}, "paused": {"type": "boolean"},
                "template": {"type": "object", "properties": {"a": {"type": "string"}}},
                "policy": {"type": "object", "default": {"a": 1}, "properties": {"a": {"type": "integer"}}},
            },
        }),
        json!({"size": 1, "paused": false, "policy": {"a": 1}}),
    );
}

#[test]
fn lists_have_enough_items_and_no_two_are_equal() {
    check_field(
        "ports",
        json!({"type": "array", "items": {"type": "integer"}}),
        json!([1]),
    );
    check_field(
        "names",
        json!({"type": "array", "minItems": 2, "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        json!(["name", "name-2"]),
    );
    check_field(
        "ports",
        json!({
            "type": "array", "minItems": 2, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object", "required": ["name", "kind"],
                "properties": {"name": {"type": "string"}, "kind": {"type": "string", "enum": ["A", "B"]}},
            },
        }),
        json!([{"name": "name", "kind": "A"}, {"name": "name-2", "kind": "B"}]),
    );
    check_field(
        "none",
        json!({"type": "array", "maxItems": 0, "items": {"type": "string"}}),
        json!([]),
    );
}

#[test]
fn maps_and_free_objects_are_as_small_as_they_may_be() {
    check_field(
        "labels",
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({}),
    );
    check_field(
        "labels",
        json!({"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}),
        json!({"key-1": "value"}),
    );
    check_field(
        "any",
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({}),
    );
    check_field("f", json!({"x-kubernetes-int-or-string": true}), json!(1));
    check_valid(json!({
        "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
    }));
}

#[test]
fn one_branch_is_chosen() {
    check(
        json!({
            "type": "object",
            "properties": {
                "a": {"type": "object", "properties": {}}, "b": {"type": "object", "properties": {}},
            },
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        }),
        json!({"a": {}}),
    );
    check(
        json!({
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        }),
        json!({"b": "b"}),
    );
}

#[test]
fn rules_are_satisfied_by_changing_values() {
    for (properties, rule) in [
        (json!({"n": {"type": "integer"}}), "self.n > 41"),
        (
            json!({"min": {"type": "integer"}, "max": {"type": "integer"}}),
            "self.min < self.max",
        ),
        (
            json!({"mode": {"type": "string"}, "n": {"type": "integer"}}),
            "self.mode == 'auto' && self.n == 7",
        ),
        (
            json!({"a": {"type": "string"}, "b": {"type": "string"}}),
            "has(self.a) != has(self.b)",
        ),
        (
            json!({"on": {"type": "boolean"}, "why": {"type": "string"}}),
            "self.on && self.why.startsWith('because')",
        ),
        (
            json!({"l": {"type": "array", "items": {"type": "string"}}}),
            "has(self.l) && self.l.size() == 1",
        ),
        (
            json!({"t": {"type": "string"}}),
            "duration(self.t) >= duration('1m')",
        ),
    ] {
        let spec = json!({
            "type": "object", "properties": properties, "x-kubernetes-validations": [{"rule": rule}],
        });
        sample(&definition(spec));
    }
}

#[test]
fn rule_on_the_name_is_satisfied() {
    let definition = whole(json!({
        "type": "object", "properties": {"spec": {"type": "object"}},
        "x-kubernetes-validations": [{"rule": "self.metadata.name == 'cluster'"}],
    }));
    assert_eq!(sample(&definition)["metadata"]["name"], "cluster");
}

#[test]
fn rule_that_nothing_satisfies_is_named() {
    let error = of(
        &definition(json!({
            "type": "object", "properties": {"n": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.n * self.n == 1369"}],
        })),
        "v1",
    )
    .expect_err("no such number is in the rule");
    let text = error.to_string();
    assert!(
        text.contains("failed rule: self.n * self.n == 1369"),
        "{text}"
    );
}

#[test]
fn version_that_does_not_exist_is_an_error() {
    let error =
        of(&definition(json!({"type": "object"})), "v2").expect_err("the version is missing");
    assert!(matches!(error, SampleError::Version { .. }));
    assert_eq!(error.to_string(), "bars.ex.io has no version v2");
}

#[test]
fn definitions_of_the_examples_have_samples() {
    for (text, spec) in [
        (
            include_str!("../../../../examples/foo/crd.yaml"),
            json!({"deploymentName": "deployment-name", "replicas": 1}),
        ),
        (
            include_str!("../../../../examples/fruit/crd.yaml"),
            json!({"comment": "comment", "sweetness": true, "weight": 1}),
        ),
        (
            include_str!("../../../../examples/secsynch/crd.yaml"),
            json!({
                "destinationNamespaces": ["destination-namespace"], "secretName": "secret-name",
                "sourceNamespace": "source-namespace",
            }),
        ),
    ] {
        let definition: CustomResourceDefinition =
            serde_saphyr::from_str(text).expect("a definition");
        let sample = sample(&definition);
        assert_eq!(sample["spec"], spec);
        assert_eq!(sample["kind"], definition.spec.names.kind);
        assert_eq!(sample.get("status"), None);
    }
}

#[test]
fn values_of_a_field_differ_and_keep_to_its_bounds() {
    let schema = json!({"type": "integer", "minimum": 3, "maximum": 5});
    let numbers = super::values(&schema, "size");
    assert!(numbers.len() > 1, "{numbers:?}");
    let within = |number: &Value| number.as_i64().is_some_and(|it| (3..=5).contains(&it));
    assert!(numbers.iter().all(within), "{numbers:?}");
    let schema = json!({"type": "string", "enum": ["a", "b", "c", "d", "e", "f"]});
    assert_eq!(super::values(&schema, "mode").len(), 6);
}
