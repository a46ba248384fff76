//! What is written for a kind that has a bit of everything, and that it is Rust.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::{RustTypesError, attribute, literal, names, source, source_of};

fn definition(schema: Value) -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "metadata": {"name": "bars.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced",
            "names": {"plural": "bars", "kind": "Bar", "singular": "bar", "shortNames": ["br"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    }))
    .expect("a definition")
}

fn with_spec(spec: Value) -> CustomResourceDefinition {
    definition(json!({"type": "object", "properties": {"spec": spec}}))
}

/// The source, which is Rust.
#[track_caller]
fn rust(definition: &CustomResourceDefinition) -> String {
    let source = source(definition).expect("types");
    syn::parse_file(&source).unwrap_or_else(|error| panic!("{error} in\n{source}"));
    source
}

/// A field `f` of the spec, and what is written for it.
#[track_caller]
fn check(schema: Value, expected: &str) {
    check_named("f", schema, expected);
}

#[track_caller]
fn check_named(name: &str, schema: Value, expected: &str) {
    let source = rust(&with_spec(
        json!({"type": "object", "required": [name], "properties": {name: schema}}),
    ));
    let body = source
        .split_once("pub struct BarSpec {\n")
        .expect("the spec")
        .1;
    let body = body.split_once("}\n").expect("its end").0;
    let lines: Vec<&str> = body.lines().map(str::trim).collect();
    assert_eq!(lines.join("\n"), expected, "in\n{source}");
}

#[test]
fn whole_file_reads_well() {
    let port = json!({
        "type": "object", "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 15, "pattern": "^\\w+$"},
            "protocol": {"type": "string", "enum": ["TCP", "UDP"], "default": "UDP"},
        },
    });
    let ports = json!({
        "type": "array", "description": "Where it listens.\n\nAll of them.", "items": port,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    });
    let spec = json!({
        "type": "object", "description": "What is wanted of a bar.", "required": ["size"],
        "properties": {"ports": ports, "size": {"type": "integer", "format": "int32", "minimum": 1}},
        "x-kubernetes-validations": [{"rule": "self.size < 10", "message": "too large"}],
    });
    let status = json!({"type": "object", "properties": {"clusterIP": {"type": "string", "format": "ipv4"}}});
    let mut definition = definition(json!({
        "type": "object", "description": "A bar.", "properties": {"spec": spec, "status": status},
    }));
    definition.spec.versions[0].additional_printer_columns = serde_json::from_value(
        json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]),
    )
    .ok();
    let expected = r#"//! The kind `Bar` of `ex.io/v1`, from its definition.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is wanted of a bar.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "ex.io",
    version = "v1",
    kind = "Bar",
    shortname = "br",
    namespaced,
    doc = "A bar.",
    status = "BarStatus",
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size")
)]
#[serde(rename_all = "camelCase")]
#[k8s(rule("self.size < 10", message = "too large"))]
pub struct BarSpec {
    /// Where it listens.
    ///
    /// All of them.
    #[k8s(list = map("name"))]
    pub ports: Option<Vec<BarPort>>,
    #[k8s(min = 1)]
    pub size: i32,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BarPort {
    #[k8s(max_length = 15, pattern = r"^\w+$")]
    pub name: String,
    #[k8s(default = "UDP")]
    pub protocol: Option<BarPortProtocol>,
}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub enum BarPortProtocol {
    #[default]
    UDP,
    TCP,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BarStatus {
    #[serde(rename = "clusterIP")]
    #[k8s(format = "ipv4")]
    pub cluster_ip: Option<String>,
}
"#;
    assert_eq!(rust(&definition), expected);
}

#[test]
fn each_schema_has_its_type() {
    check(json!({"type": "string"}), "pub f: String,");
    check(json!({"type": "integer"}), "pub f: i64,");
    check(json!({"type": "integer", "format": "int32"}), "pub f: i32,");
    check(json!({"type": "number"}), "pub f: f64,");
    check(json!({"type": "boolean"}), "pub f: bool,");
    check(
        json!({"x-kubernetes-int-or-string": true}),
        "pub f: IntOrString,",
    );
    check(
        json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
        "pub f: Vec<Vec<String>>,",
    );
    check(
        json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        "pub f: BTreeMap<String, i64>,",
    );
    check(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        "#[schemars(extend(\"type\" = \"object\"))]\n#[k8s(preserve_unknown)]\npub f: serde_json::Value,",
    );
    check(
        json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        "pub f: BarF,",
    );
    check(json!({"type": "string", "enum": ["A"]}), "pub f: BarF,");
    check(
        json!({"type": "string", "nullable": true}),
        "#[k8s(nullable)]\npub f: Option<String>,",
    );
}

#[test]
fn validation_becomes_attributes() {
    check(
        json!({"type": "integer", "minimum": 0, "maximum": 4294967295_u32}),
        "#[k8s(min = 0, max = 4294967295i64)]\npub f: i64,",
    );
    check(
        json!({"type": "integer", "enum": [1, 2]}),
        "#[k8s(values(1, 2))]\npub f: i64,",
    );
    check(
        json!({"type": "number", "minimum": 0.5, "exclusiveMinimum": true}),
        "#[k8s(min = 0.5, exclusive_min)]\npub f: f64,",
    );
    check(
        json!({"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 2}, "x-kubernetes-list-type": "set"}),
        "#[k8s(min_items = 1, list = set, items(min_length = 2))]\npub f: Vec<String>,",
    );
    check(
        json!({"type": "object", "maxProperties": 3, "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"}),
        "#[k8s(max_properties = 3, map = atomic)]\npub f: BTreeMap<String, String>,",
    );
    check(
        json!({"type": "array", "items": {"type": "string"}, "default": ["a \"b\""]}),
        "#[k8s(default = serde_json::json!([r#\"a \"b\"\"#]))]\npub f: Vec<String>,",
    );
    check(
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "reason": "FieldValueForbidden"}]}),
        "#[k8s(rule(\"self == oldSelf\", reason = \"FieldValueForbidden\"))]\npub f: String,",
    );
}

#[test]
fn names_become_names_of_rust() {
    let text = || json!({"type": "string"});
    check_named("type", text(), "pub r#type: String,");
    check_named("self", text(), "pub self_: String,");
    check_named(
        "podIPs",
        text(),
        "#[serde(rename = \"podIPs\")]\npub pod_ips: String,",
    );
    check_named(
        "x-y",
        text(),
        "#[serde(rename = \"x-y\")]\npub x_y: String,",
    );
    check_named("1st", text(), "pub _1st: String,");
    for (name, snake) in [
        ("clusterIP", "cluster_ip"),
        ("HTTPServer", "http_server"),
        ("ab2Cd", "ab2_cd"),
        ("URLs", "urls"),
    ] {
        assert_eq!(names::snake(name), snake);
    }
    for (name, singular) in [
        ("Ports", "Port"),
        ("Policies", "Policy"),
        ("Addresses", "Address"),
        ("Status", "Status"),
    ] {
        assert_eq!(names::singular(name), singular);
    }
}

#[test]
fn long_lines_are_broken() {
    let name = "nameOfManyThing".repeat(4);
    let nested = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let expected = format!(
        "pub {}:\nVec<Bar{}>,",
        names::snake(&name),
        names::pascal(&name)
    );
    check_named(&name, json!({"type": "array", "items": nested}), &expected);
}

#[test]
fn names_that_clash_get_numbers() {
    let nested = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let source = rust(&with_spec(json!({
        "type": "object",
        "properties": {
            "fooBar": {"type": "string"}, "foo_bar": {"type": "string"}, "spec": nested, "status": nested,
            "mode": {"type": "string", "enum": ["a-b", "aB", "", "1h", "Self"]},
        },
    })));
    for expected in [
        "pub foo_bar: Option<String>,",
        "#[serde(rename = \"foo_bar\")]\n    pub foo_bar2: Option<String>,",
        "pub struct BarSpec2 {",
        "    #[default]\n    #[serde(rename = \"a-b\")]\n    AB,\n    #[serde(rename = \"aB\")]\n    AB2,\n",
        "    #[serde(rename = \"\")]\n    Empty,\n    #[serde(rename = \"1h\")]\n    V1h,\n",
        "    #[serde(rename = \"Self\")]\n    SelfValue,\n",
    ] {
        assert!(source.contains(expected), "{expected} in\n{source}");
    }
}

#[test]
fn conditions_and_unknown_fields_are_kept() {
    let text = || json!({"type": "string"});
    let condition = json!({
        "type": "object",
        "properties": {"type": text(), "status": text(), "reason": text(), "message": text(), "lastTransitionTime": text()},
    });
    let source = rust(&with_spec(json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"conditions": {"type": "array", "items": condition}},
    })));
    assert!(
        source.contains("use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;"),
        "{source}"
    );
    assert!(
        source.contains("pub conditions: Vec<Condition>,"),
        "{source}"
    );
    let other = "    #[serde(flatten)]\n    #[schemars(skip)]\n    pub other: BTreeMap<String, serde_json::Value>,\n";
    assert!(source.contains(other), "{source}");
}

#[test]
fn what_cannot_be_said_is_named() {
    let source = rust(&definition(json!({
        "type": "object", "x-kubernetes-validations": [{"rule": "self.metadata.name == 'a'"}],
        "properties": {"spec": {
            "type": "object", "oneOf": [{"required": ["m"]}],
            "properties": {"m": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}},
        }},
    })));
    let header = "//!\n//! The definition also has what Rust types cannot express:\n//! - what `.spec.m{}` says about values\n\
                  //! - `oneOf` of `.spec`\n//! - the rule on the whole object: `self.metadata.name == 'a'`\n";
    assert!(source.contains(header), "{source}");
}

#[test]
fn kind_without_a_spec_has_fields_of_its_own() {
    let properties = json!({"apiVersion": {"type": "string"}, "data": {"type": "string"}});
    let source = rust(&definition(
        json!({"type": "object", "properties": properties}),
    ));
    assert!(source.contains("no_spec"), "{source}");
    assert!(
        source.contains("pub struct BarFields {\n    pub data: Option<String>,\n}\n"),
        "{source}"
    );
}

#[test]
fn what_has_no_types_is_an_error() {
    let both = definition(
        json!({"type": "object", "properties": {"spec": {"type": "object"}, "data": {"type": "string"}}}),
    );
    assert!(matches!(source(&both), Err(RustTypesError::Fields { fields }) if fields == ["data"]));
    let mut plain = with_spec(json!({"type": "object"}));
    assert!(matches!(
        source_of(&plain, "v2"),
        Err(RustTypesError::Version { .. })
    ));
    plain.spec.names.kind = "String".to_owned();
    assert!(matches!(source(&plain), Err(RustTypesError::Kind { .. })));
    plain.spec.versions[0].schema = None;
    assert!(matches!(source(&plain), Err(RustTypesError::Schema { .. })));
}

#[test]
fn descriptions_are_no_examples_in_rust() {
    let source = rust(&with_spec(json!({
        "type": "object",
        "properties": {"f": {"type": "string", "description": "Like this:\r\n\n    kubectl get\n```\na\n  b\n```\nOr ``` so."}},
    })));
    let expected = "    /// Like this:\n    ///\n    /// kubectl get\n    /// ```text\n    /// a\n    ///   b\n    /// ```\n    /// Or ``` so.\n";
    assert!(source.contains(expected), "{source}");
}

#[test]
fn definitions_of_the_examples_have_types() {
    for text in [
        include_str!("../../../../examples/foo/crd.yaml"),
        include_str!("../../../../examples/fruit/crd.yaml"),
        include_str!("../../../../examples/secsynch/crd.yaml"),
    ] {
        let definition: CustomResourceDefinition =
            serde_saphyr::from_str(text).expect("a definition");
        let source = rust(&definition);
        assert!(
            source.lines().all(|line| line.trim_end() == line),
            "{source}"
        );
    }
}

#[test]
fn long_attributes_are_broken_as_rustfmt_breaks_them() {
    use attribute::Item;
    let long = "x".repeat(60);
    let rule = Item::List(
        "rule".to_owned(),
        vec![
            Item::Plain(literal::text(&long)),
            Item::pair("message", literal::text(&long)),
        ],
    );
    let text = attribute::line("k8s", std::slice::from_ref(&rule), 4);
    assert_eq!(
        text,
        format!("    #[k8s(rule(\n        \"{long}\",\n        message = \"{long}\"\n    ))]\n")
    );
    let text = attribute::line("k8s", &[Item::word("nullable"), rule], 0);
    let inner = format!("    rule(\n        \"{long}\",\n        message = \"{long}\"\n    )");
    assert_eq!(text, format!("#[k8s(\n    nullable,\n{inner}\n)]\n"));
}
