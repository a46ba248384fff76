//! The kind Guestbook: its spec and its status. Comments of types and fields are what `kubectl explain` prints.

use kubewright::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// GuestbookSpec defines the desired state of Guestbook.
#[kubewright::api(conversion = "webhook")]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "webapp.my.domain",
    version = "v2",
    storage = false,
    kind = "Guestbook",
    namespaced,
    doc = "Guestbook is the schema of the Guestbook API.",
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
    /// size is an example field of Guestbook: replace it with what your users ask for.
    #[schemars(range(min = 1, max = 10))]
    pub size: Option<i32>,
}

/// GuestbookStatus defines the observed state of Guestbook.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GuestbookStatus {
    /// observedGeneration is the generation that the controller observed last.
    pub observed_generation: Option<i64>,
    /// conditions represent the current state of Guestbook. Each has a type of its own, such as Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
