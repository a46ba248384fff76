//! The kitchen sink of controller-gen's tests, in Rust.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1::JobTemplateSpec;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "testdata.kubebuilder.io",
    version = "v1",
    kind = "CronJob",
    singular = "mycronjob",
    plural = "cronjobs",
    namespaced,
    status = "CronJobStatus",
    selectable = ".spec.selectableFieldString",
    annotation(
        "api-approved.kubernetes.io",
        "https://github.com/kubernetes-sigs/controller-tools"
    ),
    annotation(
        "cert-manager.io/inject-ca-from-secret",
        "cert-manager/cert-manager-webhook-ca"
    )
)]
#[serde(rename_all = "camelCase")]
#[k8s(rule(
    "has(oldSelf.forbiddenInt) || !has(self.forbiddenInt)",
    message = "forbiddenInt is not allowed",
    field_path = ".forbiddenInt",
    reason = "FieldValueForbidden"
))]
pub struct CronJobSpec {
    pub schedule: String,
    pub starting_deadline_seconds: Option<i64>,
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    pub k8s_concurrency_policy: Option<ConcurrencyPolicy>,
    pub suspend: Option<bool>,
    #[serde(skip)]
    pub internal_data: String,
    #[schemars(with = "Option<String>")]
    pub no_really_suspend: Option<bool>,
    pub binary_name: Bytes,
    #[k8s(nullable)]
    #[schemars(required)]
    pub can_be_null: Option<String>,
    pub job_template: JobTemplateSpec,
    pub successful_jobs_history_limit: Option<i32>,
    pub failed_jobs_history_limit: Option<i32>,
    #[serde(default)]
    pub byte_slice_data: BTreeMap<String, Bytes>,
    #[serde(default)]
    pub string_slice_data: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub ptr_data: BTreeMap<String, Option<String>>,
    #[schemars(length(min = 4))]
    pub two_of_a_kind_part0: String,
    pub two_of_a_kind_part1: LongerString,
    #[k8s(
        default = "forty-two",
        example = "forty-two",
        title = "DefaultedString"
    )]
    pub defaulted_string: String,
    #[k8s(default = ["a", "b"], example = ["a", "b"], title = "DefaultedSlice")]
    pub defaulted_slice: Vec<String>,
    #[k8s(
        default = json!([{"nested": {"foo": "baz", "bar": true}}, {"nested": {"foo": "qux", "bar": false}}]),
        example = json!([{"nested": {"foo": "baz", "bar": true}}, {"nested": {"foo": "qux", "bar": false}}]),
        title = "124"
    )]
    pub defaulted_object: Vec<RootObject>,
    #[k8s(default = json!([]), title = "{}")]
    pub defaulted_empty_slice: Vec<String>,
    #[k8s(default = {})]
    pub defaulted_empty_map: BTreeMap<String, String>,
    #[k8s(default = {})]
    pub defaulted_empty_object: EmpiableObject,
    #[k8s(default = "kubebuilder-default")]
    pub double_defaulted_string: String,
    #[k8s(default = "forty-two")]
    pub kubernetes_defaulted_string: String,
    #[k8s(default = ["a", "b"])]
    pub kubernetes_defaulted_slice: Vec<String>,
    #[k8s(default = json!([{"nested": {"foo": "baz", "bar": true}}, {"nested": {"foo": "qux", "bar": false}}]))]
    pub kubernetes_defaulted_object: Vec<RootObject>,
    #[k8s(default = json!([]))]
    pub kubernetes_defaulted_empty_slice: Vec<String>,
    #[k8s(default = {})]
    pub kubernetes_defaulted_empty_map: BTreeMap<String, String>,
    #[k8s(default = {})]
    pub kubernetes_defaulted_empty_object: EmpiableObject,
    #[serde(default)]
    pub kubernetes_defaulted_ref: String,
    #[k8s(pattern = r"^$|^((https):\/\/?)[^\s()<>]+(?:\([\w\d]+\)|([^[:punct:]\s]|\/?))$")]
    pub pattern_object: String,
    #[k8s(embedded_resource)]
    pub embedded_resource: RawExtension,
    #[k8s(preserve_unknown)]
    #[serde(rename = "unprunedJSON")]
    pub unpruned_json: NestedObject,
    #[k8s(preserve_unknown, embedded_resource)]
    pub unpruned_embedded_resource: RawExtension,
    #[serde(rename = "unprunedFomType")]
    pub unpruned_from_type: Preserved,
    #[k8s(preserve_unknown)]
    #[serde(rename = "unprunedFomTypeAndField")]
    pub unpruned_from_type_and_field: Preserved,
    #[k8s(list = map(name, secondary))]
    pub associative_list: Vec<AssociativeType>,
    #[k8s(list = map(name))]
    pub k8s_associative_list: Vec<AssociativeType>,
    #[k8s(list = set)]
    #[serde(default)]
    pub k8s_set_list: Vec<String>,
    #[k8s(list = atomic)]
    #[serde(default)]
    pub k8s_atomic_list: Vec<String>,
    #[serde(rename = "nestedassociativeList")]
    pub nested_associative_list: NestedAssociativeList,
    pub k8s_nested_associative_list: NestedAssociativeList,
    #[k8s(map = granular)]
    pub map_of_info: BTreeMap<String, Bytes>,
    pub nested_map_of_info: NestedMapOfInfo,
    #[k8s(atomic)]
    pub struct_with_several_fields: NestedObject,
    pub nested_struct_with_several_fields: NestedStructWithSeveralFields,
    #[k8s(atomic)]
    pub nested_struct_with_several_fields_double_marked: NestedStructWithSeveralFields,
    pub just_nested_object: Option<JustNestedObject>,
    #[serde(default)]
    pub explicitly_optional_kubebuilder: String,
    #[serde(default)]
    pub explicitly_optional_kubernetes: String,
    #[serde(default, rename = "explicitlyOptionalK8s")]
    pub explicitly_optional_k8s: String,
    pub explicitly_required_kubebuilder: String,
    pub explicitly_required_kubernetes: String,
    #[serde(rename = "explicitlyRequiredK8s")]
    pub explicitly_required_k8s: String,
    #[serde(default)]
    pub min_max_properties: MinMaxObject,
    #[schemars(with = "Option<String>")]
    pub schemaless: Option<Vec<u8>>,
    #[k8s(
        int_or_string,
        max_length = 11,
        min_length = 2,
        pattern = "^((100|[0-9]{1,2})%|[0-9]+)$"
    )]
    pub int_or_string_with_a_pattern: Option<IntOrString>,
    #[k8s(int_or_string, values(1, 2, "foo", "bar"))]
    pub int_or_string_with_enum: Option<IntOrString>,
    #[serde(default)]
    pub nested_map: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    pub nested_nested_map: BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>,
    #[serde(default, rename = "nestedMapInStruct")]
    pub contains_nested_map_map: BTreeMap<String, ContainsNestedMap>,
    #[serde(default)]
    pub map_of_arrays_of_floats: BTreeMap<String, Vec<bool>>,
    #[serde(default)]
    pub map_of_text_marshaler_keys: BTreeMap<String, String>,
    #[k8s(min = -0.5, max = 1.5, multiple_of = 0.5)]
    pub float_with_validations: f64,
    #[k8s(min = -0.5, max = 1.5, multiple_of = 0.5)]
    pub float64_with_validations: f64,
    #[k8s(min = -2, max = 2, multiple_of = 2)]
    pub int_with_validations: isize,
    #[k8s(min = -2, max = 2, multiple_of = 2)]
    pub int32_with_validations: i32,
    #[serde(flatten)]
    pub unexported: UnexportedStruct,
    #[serde(flatten)]
    pub exported: ExportedStruct,
    #[k8s(
        rule("self.size() % 2 == 0", message = "must have even length"),
        rule("true")
    )]
    #[serde(default)]
    pub string_with_even_length: String,
    #[k8s(rule(
        "self.size() % 2 == 0",
        message_expression = "self + ' has odd length, must be even'"
    ))]
    #[serde(default)]
    pub string_with_even_length_and_message_expression: String,
    #[k8s(rule("self.startsWith('good-')", message = "must have good prefix"))]
    #[serde(default)]
    pub string_with_even_length_and_good_prefix: StringEvenType,
    #[serde(default)]
    pub forbidden_int: isize,
    pub array: Option<[isize; 3]>,
    pub array_using_composite_literal: Option<[String; 3]>,
    #[k8s(min_items = 1, list = set, items(min_length = 1, max_length = 255,
        pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"))]
    #[serde(default)]
    pub hosts: Vec<String>,
    #[k8s(items(values(0, 1, 3)))]
    #[serde(default)]
    pub enum_slice: Vec<isize>,
    pub hosts_alias: Option<Hosts>,
    #[serde(default)]
    pub alias_from_package: String,
    #[serde(default)]
    pub string_alias: String,
    pub string_alias_ptr: Option<String>,
    #[schemars(length(min = 1, max = 255))]
    #[serde(default)]
    pub string_alias_added_validation: String,
    pub string_alias_already_validated: Option<StringAliasWithValidation>,
    #[k8s(title = "title on field")]
    pub string_alias_with_added_title: Option<StringAliasWithTitle>,
    pub string_alias_with_title: Option<StringAliasWithTitle>,
    #[schemars(length(min = 2, max = 2))]
    pub string_pair: Vec<String>,
    #[schemars(length(min = 3))]
    #[serde(default)]
    pub longer_string_array: Vec<LongerString>,
    #[k8s(items(
        int_or_string,
        max_length = 10,
        min_length = 1,
        pattern = "^((100|[0-9]{1,2})%|[0-9]+)$"
    ))]
    #[serde(default)]
    pub int_or_string_array_with_a_pattern: Vec<IntOrString>,
    #[k8s(items(
        int_or_string,
        max_length = 3,
        min_length = 1,
        values(1, 2, "foo", "bar")
    ))]
    #[serde(default)]
    pub int_or_string_with_enum_slice: Vec<IntOrString>,
    #[k8s(default = "TCP")]
    pub protocol: Option<String>,
    #[serde(default)]
    pub selectable_field_string: String,
    #[serde(flatten)]
    pub inline_alias: EmbeddedStruct,
    #[serde(flatten)]
    pub inline_pointer: InlinePointerStruct,
    #[k8s(rule(
        "oldSelf.hasValue() || self == 0",
        message = "must be set to 0 on creation. can be set to any value on an update.",
        optional_old_self
    ))]
    #[serde(default)]
    pub only_allow_setting_on_update: i32,
    #[k8s(min = 1, max = 10)]
    pub locally_bounded_integer: Option<UnmarkeredInteger>,
    #[k8s(min_length = 1, max_length = 10)]
    pub locally_bounded_string: Option<UnmarkeredString>,
    #[k8s(min_length = 10, max_length = 10)]
    pub field_level_alias_override: Option<StringAliasWithValidation>,
    #[k8s(min_length = 10, max_length = 10)]
    pub field_level_local_declaration_override: Option<LongerString>,
}

/// Bytes, which are a text in base64.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct Bytes(
    #[schemars(with = "String")]
    #[k8s(format = "byte")]
    ByteString,
);

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct EmbeddedStruct {
    #[serde(default, rename = "fromEmbedded")]
    pub from_embedded: String,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct InlinePointerStruct {
    #[serde(default, rename = "fromPointer")]
    pub from_pointer: String,
}

#[kubewright::schema]
#[k8s(title = "title on type")]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct StringAliasWithTitle(String);

#[kubewright::schema]
#[k8s(min_length = 1, max_length = 255)]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct StringAliasWithValidation(String);

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct ContainsNestedMap {
    #[serde(default)]
    pub inner_map: BTreeMap<String, String>,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Preserved {
    pub concrete_field: String,
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct NestedObject {
    pub foo: String,
    pub bar: bool,
}

#[kubewright::schema]
#[k8s(atomic)]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct NestedStructWithSeveralFields(NestedObject);

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct JustNestedObject(NestedObject);

#[kubewright::schema]
#[k8s(min_properties = 1, max_properties = 2)]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
pub struct MinMaxObject {
    #[serde(default)]
    pub foo: String,
    #[serde(default)]
    pub bar: String,
    #[serde(default)]
    pub baz: String,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct EmpiableObject {
    #[k8s(default = "forty-two")]
    #[serde(default)]
    pub foo: String,
    #[serde(default)]
    pub bar: String,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct UnexportedStruct {
    pub foo: String,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct ExportedStruct {
    pub baz: String,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct RootObject {
    pub nested: NestedObject,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct AssociativeType {
    pub name: String,
    pub secondary: isize,
    pub foo: String,
}

#[kubewright::schema]
#[k8s(list = map(name, secondary))]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct NestedAssociativeList(Vec<AssociativeType>);

#[kubewright::schema]
#[k8s(map = granular)]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct NestedMapOfInfo(BTreeMap<String, Bytes>);

#[kubewright::schema]
#[k8s(min_length = 4)]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct LongerString(String);

#[kubewright::schema]
#[k8s(min_items = 1, list = set, items(min_length = 1, max_length = 255,
    pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"))]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct Hosts(Vec<String>);

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct UnmarkeredInteger(i32);

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct UnmarkeredString(String);

#[kubewright::schema]
#[k8s(rule("self.size() % 2 == 0", message = "must have even length"))]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
pub struct StringEvenType(String);

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub enum ConcurrencyPolicy {
    Allow,
    Forbid,
    Replace,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct Duration {
    pub value: i64,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct CronJobStatus {
    #[serde(default)]
    pub active: Vec<ObjectReference>,
    pub last_schedule_time: Option<Time>,
    pub last_schedule_time2: Option<i64>,
    pub last_schedule_micro_time: Option<MicroTime>,
    #[serde(rename = "lastActiveLogURL")]
    pub last_active_log_url: Option<String>,
    #[serde(rename = "lastActiveLogURL2")]
    pub last_active_log_url2: Option<String>,
    #[serde(rename = "lastActiveLogURL3")]
    pub last_active_log_url3: Option<String>,
    #[serde(rename = "lastActiveLogURL4")]
    pub last_active_log_url4: Option<String>,
    #[serde(rename = "duration")]
    pub runtime: Option<Duration>,
}

/// The version that is not served.
pub mod v1beta1 {
    use super::*;

    #[kubewright::api]
    #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
    #[kube(
        group = "testdata.kubebuilder.io",
        version = "v1beta1",
        kind = "CronJob",
        singular = "mycronjob",
        plural = "cronjobs",
        namespaced,
        served = false,
        storage = false,
        status = "Nothing"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct CronJobSpec {
        #[schemars(length(min = 4))]
        pub two_of_a_kind_part0: String,
        #[k8s(min = -2, max = 2, multiple_of = 2)]
        pub int32_with_validations: i32,
    }

    #[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
    pub struct Nothing {}
}

/// The version that is deprecated.
pub mod v1beta2 {
    use super::*;

    #[kubewright::api]
    #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
    #[kube(
        group = "testdata.kubebuilder.io",
        version = "v1beta2",
        kind = "CronJob",
        singular = "mycronjob",
        plural = "cronjobs",
        namespaced,
        no_spec,
        storage = false,
        deprecated = "use v1 instead, this version causes your data center to catch fire when used on Tuesdays",
        status = "super::v1beta1::Nothing"
    )]
    pub struct CronJobFields {}
}
