//! Rust types, and the schemas that come out.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, ObjectMeta, Time};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

use super::*;

/// The schema of a type without descriptions, as a field of another.
fn of_type<T: JsonSchema>() -> Value {
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Holder<T> {
        field: T,
    }
    let mut schema = schema::<Holder<T>>(&Limits::new(Some(0), Some(0)));
    schema["properties"]["field"].take()
}

#[track_caller]
fn check<T: JsonSchema>(expected: Value) {
    assert_eq!(of_type::<T>(), expected);
    assert_eq!(of_type::<Option<T>>(), expected, "optional");
}

#[test]
fn numbers_have_formats_that_the_server_knows() {
    check::<i32>(json!({"type": "integer", "format": "int32"}));
    check::<i64>(json!({"type": "integer", "format": "int64"}));
    check::<u8>(json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 255}));
    check::<u16>(json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 65535}));
    check::<u32>(
        json!({"type": "integer", "format": "int64", "minimum": 0, "maximum": 4_294_967_295_i64}),
    );
    check::<u64>(json!({"type": "integer", "format": "int64", "minimum": 0}));
    check::<usize>(json!({"type": "integer", "format": "int64", "minimum": 0}));
    check::<i8>(json!({"type": "integer", "format": "int32", "minimum": -128, "maximum": 127}));
    check::<isize>(json!({"type": "integer"}));
    check::<f64>(json!({"type": "number"}));
    check::<bool>(json!({"type": "boolean"}));
}

#[test]
fn texts_have_formats_that_the_server_knows() {
    check::<String>(json!({"type": "string"}));
    check::<std::net::Ipv4Addr>(json!({"type": "string", "format": "ipv4"}));
    check::<std::net::IpAddr>(
        json!({"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}),
    );
}

#[test]
fn collections_are_lists_sets_and_maps() {
    check::<Vec<String>>(json!({"type": "array", "items": {"type": "string"}}));
    check::<BTreeSet<String>>(
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
    );
    check::<[i32; 2]>(
        json!({"type": "array", "items": {"type": "integer", "format": "int32"}, "minItems": 2, "maxItems": 2}),
    );
    check::<BTreeMap<String, bool>>(
        json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
    );
    check::<BTreeMap<u32, bool>>(
        json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
    );
    check::<(i32, i32)>(
        json!({"type": "array", "items": {"type": "integer", "format": "int32"}, "minItems": 2, "maxItems": 2}),
    );
    check::<(i32, String)>(
        json!({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}, "minItems": 2, "maxItems": 2}),
    );
}

#[test]
fn what_can_be_anything_keeps_unknown_fields() {
    check::<Value>(json!({"x-kubernetes-preserve-unknown-fields": true}));
    check::<Vec<Value>>(
        json!({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}}),
    );
    check::<BTreeMap<String, Value>>(
        json!({"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true}}),
    );
    check::<RawExtension>(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
}

#[test]
fn types_of_kubernetes_are_as_controller_gen_writes_them() {
    check::<Time>(json!({"type": "string", "format": "date-time"}));
    check::<IntOrString>(
        json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true}),
    );
    let quantity = of_type::<Quantity>();
    assert_eq!(quantity["x-kubernetes-int-or-string"], true);
    assert!(
        quantity["pattern"]
            .as_str()
            .is_some_and(|pattern| pattern.contains("[numkMGTPE]"))
    );
    let meta = of_type::<ObjectMeta>();
    let fields: Vec<_> = meta["properties"]
        .as_object()
        .expect("fields")
        .keys()
        .collect();
    assert_eq!(
        fields,
        ["annotations", "finalizers", "labels", "name", "namespace"]
    );
    assert_eq!(
        of_type::<LabelSelector>()["x-kubernetes-map-type"],
        "atomic"
    );
}

#[test]
fn conditions_are_validated_and_merge_by_type() {
    let conditions = of_type::<Vec<Condition>>();
    assert_eq!(conditions["x-kubernetes-list-type"], "map");
    assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
    let fields = &conditions["items"]["properties"];
    assert_eq!(
        fields["status"]["enum"],
        json!(["True", "False", "Unknown"])
    );
    assert_eq!(fields["reason"]["minLength"], 1);
    assert_eq!(fields["observedGeneration"]["minimum"], 0);
}

#[test]
fn lists_in_a_pod_merge_as_in_a_pod() {
    let template = of_type::<PodTemplateSpec>();
    let pod = &template["properties"]["spec"]["properties"];
    assert_eq!(
        pod["containers"]["x-kubernetes-list-map-keys"],
        json!(["name"])
    );
    let ports = &pod["containers"]["items"]["properties"]["ports"];
    assert_eq!(
        ports["x-kubernetes-list-map-keys"],
        json!(["containerPort", "protocol"])
    );
    assert_eq!(ports["items"]["properties"]["protocol"]["default"], "TCP");
    assert_eq!(pod["nodeSelector"]["x-kubernetes-map-type"], "atomic");
}

#[test]
fn a_type_that_contains_itself_ends() {
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Tree {
        children: Vec<Tree>,
    }
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    check::<Tree>(
        json!({"type": "object", "required": ["children"], "properties": {
            "children": {"type": "array", "items": open},
        }}),
    );
}

#[test]
fn words_are_an_enum_and_keep_their_explanations() {
    /// What to do.
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    enum Policy {
        /// Lets all
        /// requests pass.
        Allow,
        /// Refuses every other request.
        Forbid,
        Other,
    }
    let schema = schema::<Policy>(&Limits::default());
    assert_eq!(schema["enum"], json!(["Other", "Allow", "Forbid"]));
    assert_eq!(
        schema["description"],
        "What to do.\n\nPossible values:\n - `Allow`: Lets all requests pass.\n - `Forbid`: Refuses every other request."
    );
}

#[test]
fn variants_with_values_become_fields_of_which_one_is_set() {
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    #[allow(dead_code)]
    enum Source {
        File { path: String },
        Url(String),
    }
    check::<Source>(json!({
        "type": "object",
        "properties": {
            "file": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            "url": {"type": "string"},
        },
        "oneOf": [{"required": ["file"]}, {"required": ["url"]}],
    }));
}

#[test]
fn a_tag_says_which_fields_belong_together() {
    #[derive(JsonSchema)]
    #[serde(tag = "type")]
    #[allow(dead_code)]
    enum Source {
        File { path: String },
        Url { url: String },
    }
    check::<Source>(json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["File", "Url"]},
            "path": {"type": "string"},
            "url": {"type": "string"},
        },
        "oneOf": [
            {"required": ["path", "type"], "properties": {"type": {"enum": ["File"]}}},
            {"required": ["type", "url"], "properties": {"type": {"enum": ["Url"]}}},
        ],
    }));
}

#[test]
fn what_is_a_number_or_a_text_says_so() {
    #[derive(JsonSchema)]
    #[serde(untagged)]
    #[allow(dead_code)]
    enum Either {
        Number(i32),
        Text(String),
    }
    check::<Either>(
        json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true}),
    );
}

#[test]
fn what_no_schema_can_say_keeps_unknown_fields() {
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    enum Mixed {
        Nothing,
        Something { value: i32 },
    }
    check::<Mixed>(json!({"x-kubernetes-preserve-unknown-fields": true}));
}

#[test]
fn the_rest_of_a_struct_is_what_is_not_known() {
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Open {
        name: String,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }
    check::<Open>(
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
        "x-kubernetes-preserve-unknown-fields": true}),
    );
}

#[test]
fn defaults_are_written_when_they_say_something() {
    #[derive(JsonSchema, Serialize, Default)]
    #[serde(default)]
    struct Defaulted {
        zero: i32,
        empty: Vec<String>,
        inner: Inner,
        #[schemars(transform = |schema: &mut schemars::Schema| { marks::Marks::on(schema).default(json!(0)); })]
        asked: i32,
        #[serde(default = "seven")]
        seven: i32,
    }
    #[derive(JsonSchema, Serialize, Default)]
    struct Inner {
        #[serde(default = "seven")]
        seven: i32,
    }
    fn seven() -> i32 {
        7
    }
    let found = of_type::<Defaulted>();
    let default = |name: &str| found["properties"][name].get("default").cloned();
    assert_eq!(default("zero"), None);
    assert_eq!(default("empty"), None);
    assert_eq!(default("inner"), None);
    assert_eq!(default("asked"), Some(json!(0)));
    assert_eq!(default("seven"), Some(json!(7)));
    assert_eq!(
        found["properties"]["inner"]["properties"]["seven"]["default"],
        7
    );
}

#[test]
fn the_narrower_limit_of_field_and_type_holds() {
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Name(#[schemars(length(min = 1, max = 255), regex(pattern = "^a"))] String);
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Holder {
        #[schemars(extend("minLength" = 10, "maxLength" = 10, "pattern" = "b$"))]
        name: Name,
    }
    let mut found = of_type::<Holder>();
    assert_eq!(
        found["properties"]["name"].take(),
        json!({"type": "string", "minLength": 10, "maxLength": 10, "pattern": "b$", "allOf": [{"pattern": "^a"}]})
    );
}

#[test]
fn list_that_another_schema_calls_a_set_stays_whole_unless_its_items_are_scalars() {
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Holder {
        #[schemars(extend("allOf" = [
            {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
        ]))]
        objects: serde_json::Value,
        #[schemars(extend("allOf" = [
            {"type": "array", "items": {"type": "string"}},
            {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
        ]))]
        texts: serde_json::Value,
    }
    let found = of_type::<Holder>();
    let list = |field: &str| found["properties"][field]["x-kubernetes-list-type"].clone();
    assert_eq!(
        (list("objects"), list("texts")),
        (json!("atomic"), json!("set"))
    );
}

#[test]
fn the_way_that_kube_marks_a_struct_is_understood() {
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Holder {
        #[schemars(extend("x-kubernetes-struct-type" = "atomic"))]
        selector: BTreeMap<String, String>,
    }
    let found = of_type::<Holder>();
    assert_eq!(
        found["properties"]["selector"]["x-kubernetes-map-type"],
        "atomic"
    );
}

/// A thing.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Thing",
    namespaced,
    shortname = "th"
)]
#[serde(rename_all = "camelCase")]
struct ThingSpec {
    /// How many.
    #[schemars(range(min = 1, max = 10))]
    size: Option<i32>,
}

#[test]
fn a_definition_is_as_controller_gen_writes_it() {
    let definition = of::<Thing>();
    assert_eq!(
        definition.spec.names.list_kind.as_deref(),
        Some("ThingList")
    );
    let schema = definition.spec.versions[0]
        .schema
        .clone()
        .and_then(|schema| schema.open_api_v3_schema);
    let schema = schema.expect("a schema");
    assert_eq!(schema.description.as_deref(), Some("A thing."));
    assert_eq!(schema.required, Some(vec!["spec".to_owned()]));
    let properties = schema.properties.expect("fields");
    assert_eq!(
        properties.keys().collect::<Vec<_>>(),
        ["apiVersion", "kind", "metadata", "spec"]
    );
    let size = properties["spec"]
        .properties
        .as_ref()
        .map(|fields| fields["size"].clone());
    let size = size.expect("a field");
    assert_eq!(
        (size.minimum, size.maximum, size.nullable),
        (Some(1.0), Some(10.0), None)
    );
    assert_eq!(size.description.as_deref(), Some("How many."));
}

#[test]
fn versions_of_a_kind_become_one_definition() {
    let version = |name: &str, storage: bool| {
        let mut definition = of::<Thing>();
        definition.spec.versions[0].name = name.to_owned();
        definition.spec.versions[0].storage = storage;
        definition
    };
    let merged = merge(vec![version("v2", true), version("v1", false)]).expect("one kind");
    let names: Vec<_> = merged[0]
        .spec
        .versions
        .iter()
        .map(|version| version.name.as_str())
        .collect();
    assert_eq!((merged.len(), names), (1, vec!["v1", "v2"]));
    let alone = merge(vec![version("v1", false)]).expect("one kind");
    assert!(alone[0].spec.versions[0].storage);

    let wrong = |definitions| merge(definitions).expect_err("an error").to_string();
    let name = "things.example.com";
    assert_eq!(
        wrong(vec![version("v1", true), version("v2", true)]),
        format!(
            "{name}: 2 versions are stored, and it must be one: write `storage = false` in `#[kube(..)]` of all but one of v1, v2"
        )
    );
    assert_eq!(
        wrong(vec![version("v1", true), version("v1", false)]),
        format!("{name}: there are two types of version v1")
    );
    let mut cluster = version("v2", false);
    cluster.spec.scope = "Cluster".into();
    assert_eq!(
        wrong(vec![version("v1", true), cluster]),
        format!("{name}: versions v1 and v2 differ in the scope, which a kind has once")
    );
    let mut hidden = version("v1", true);
    hidden.spec.versions[0].served = false;
    assert_eq!(wrong(vec![hidden]), format!("{name}: no version is served"));
}
