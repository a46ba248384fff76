//! The kind Guestbook: what users ask for, and what became of it.

use kubewright::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is asked for.
#[kubewright::api(conversion = "webhook")]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "webapp.my.domain",
    version = "v1",
    kind = "Guestbook",
    namespaced,
    status = "GuestbookStatus",
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
pub struct GuestbookSpec {
    /// How many there should be. An example: change it into what your users ask for.
    #[schemars(range(min = 1, max = 10))]
    pub size: Option<i32>,
}

/// What became of it.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GuestbookStatus {
    /// The generation that this is about.
    pub observed_generation: Option<i64>,
    /// What holds and what does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
