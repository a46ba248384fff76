//! The smaller kinds of controller-gen's tests, in Rust.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cronjob::v1beta1;

#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "testdata.kubebuilder.io",
    version = "v1beta1",
    kind = "Job",
    namespaced
)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec {
    #[schemars(length(min = 5))]
    pub friendly_name: String,
    #[schemars(range(min = 0, max = 10))]
    pub count: i32,
    pub crong_job: v1beta1::CronJobSpec,
}

#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "testdata.kubebuilder.io",
    version = "v1",
    kind = "Enum",
    namespaced
)]
pub struct EnumSpec {
    pub field: Option<EnumType>,
}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub enum EnumType {
    Value1,
    Value2,
}

#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "testdata.kubebuilder.io",
    version = "v1",
    kind = "ExternalDoc",
    namespaced
)]
#[serde(rename_all = "camelCase")]
pub struct ExternalDocSpec {
    #[k8s(docs(
        url = "https://example.com/docs",
        description = "external docs description"
    ))]
    pub field_with_external_doc: Option<String>,
    #[k8s(docs(url = "https://example.com/docs"))]
    #[serde(rename = "fieldWithExternalDocURLOnly")]
    pub field_with_external_doc_url_only: Option<String>,
    pub type_with_external_doc: Option<TypeWithExternalDoc>,
}

#[kubewright::schema]
#[k8s(docs(
    url = "https://example.com/type-docs",
    description = "type-level external docs"
))]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct TypeWithExternalDoc(String);

#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "testdata.kubebuilder.io",
    version = "v1",
    kind = "ImmutableType",
    namespaced
)]
#[serde(rename_all = "camelCase")]
pub struct ImmutableSpec {
    #[k8s(immutable)]
    pub required_string: String,
    #[k8s(immutable)]
    pub optional_string: Option<String>,
    #[k8s(immutable)]
    #[serde(default)]
    pub optional_literal_string: String,
    #[k8s(immutable)]
    pub required_struct: NestedStruct,
    #[k8s(immutable)]
    pub optional_struct: Option<NestedStruct>,
    #[k8s(immutable)]
    pub optional_omit_zero_struct: Option<NestedStruct>,
    #[k8s(immutable)]
    pub required_slice: Vec<String>,
    #[k8s(immutable)]
    #[serde(default)]
    pub optional_slice: Vec<String>,
    #[k8s(immutable)]
    pub required_map: BTreeMap<String, String>,
    #[k8s(immutable)]
    #[serde(default)]
    pub optional_map: BTreeMap<String, String>,
    pub mutable_string: String,
}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct NestedStruct {
    pub key: String,
    pub value: String,
}

#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "testdata.kubebuilder.io",
    version = "v1beta1",
    kind = "Oneof",
    namespaced
)]
#[serde(rename_all = "camelCase")]
pub struct OneofSpec {
    pub first_type_with_oneof: Option<TypeWithOneofs>,
    pub second_type_with_oneof: Option<TypeWithMultipleOneofs>,
    pub first_type_with_exact_oneof: Option<TypeWithExactOneofs>,
    pub second_type_with_exact_oneof: Option<TypeWithMultipleExactOneofs>,
    pub type_with_multiple_at_least_one_of: Option<TypeWithMultipleAtLeastOneofs>,
    pub type_with_all_one_of: Option<TypeWithAllOneofs>,
    pub type_with_omit_zero: Option<TypeWithOmitZero>,
    pub type_with_omit_zero_exact: Option<TypeWithOmitZeroExact>,
    pub type_with_omit_zero_at_least_one_of: Option<TypeWithOmitZeroAtLeastOneOf>,
    pub first_custom_type_alias: Option<CustomTypeAlias>,
    pub second_custom_type_alias: Option<CustomTypeAlias>,
}

macro_rules! group {
    ($(#[$marks:meta])* $name:ident { $($field:ident),* }) => {
        #[kubewright::schema]
        $(#[$marks])*
        #[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
        pub struct $name {
            $(pub $field: Option<String>,)*
        }
    };
}

group!(
    #[k8s(
        rule(
            "!(has(self.foo) && has(self.bar))",
            message = "only one of foo|bar may be set"
        ),
        at_most_one_of(foo, bar)
    )]
    TypeWithOneofs { foo, bar }
);
group!(
    #[k8s(at_most_one_of(a, b), at_most_one_of(c, d))]
    TypeWithMultipleOneofs { a, b, c, d }
);
group!(
    #[k8s(one_of(foo, bar))]
    TypeWithExactOneofs { foo, bar }
);
group!(
    #[k8s(one_of(a, b))]
    #[k8s(one_of(c, d))]
    TypeWithMultipleExactOneofs { a, b, c, d }
);
group!(
    #[k8s(at_least_one_of(a, b), at_least_one_of(c, d))]
    TypeWithMultipleAtLeastOneofs { a, b, c, d }
);
group!(
    #[k8s(at_most_one_of(a, b), one_of(c, d), at_least_one_of(e, f))]
    TypeWithAllOneofs { a, b, c, d, e, f }
);
group!(
    #[k8s(at_most_one_of(foo, bar))]
    TypeWithOmitZero { foo, bar }
);
group!(
    #[k8s(one_of(a, b))]
    TypeWithOmitZeroExact { a, b }
);
group!(
    #[k8s(at_least_one_of(c, d))]
    TypeWithOmitZeroAtLeastOneOf { c, d }
);

#[kubewright::schema]
#[k8s(rule(
    "self >= 100 && self <= 1000",
    message = "invalid CustomTypeAlias value"
))]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct CustomTypeAlias(i32);
