//! The kind Frigate: its spec and its status. Comments of types and fields are what `kubectl explain` prints.

use kubewright::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// FrigateSpec defines the desired state of Frigate.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "ship.testproject.org",
    version = "v1beta1",
    kind = "Frigate",
    namespaced,
    doc = "Frigate is the schema of the Frigate API.",
    status = "FrigateStatus",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct FrigateSpec {
    /// size is an example field of Frigate: replace it with what your users ask for.
    #[schemars(range(min = 1, max = 10))]
    pub size: Option<i32>,
}

/// FrigateStatus defines the observed state of Frigate.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FrigateStatus {
    /// observedGeneration is the generation that the controller observed last.
    pub observed_generation: Option<i64>,
    /// conditions represent the current state of Frigate. Each has a type of its own, such as Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
