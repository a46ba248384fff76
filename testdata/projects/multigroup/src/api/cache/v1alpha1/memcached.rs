//! The kind Memcached: pods that run an image, and what became of them.

use std::collections::BTreeMap;

use kubewright::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pods that should run.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "cache.testproject.org",
    version = "v1alpha1",
    kind = "Memcached",
    namespaced,
    status = "MemcachedStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Available')].status"
    ),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.replicas"),
    printcolumn = r#"{"name":"Image","type":"string","jsonPath":".spec.image"}"#,
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedSpec {
    /// How many pods run.
    #[k8s(min = 0, max = 100, default = 1)]
    pub replicas: i32,
    /// The image that they run.
    #[k8s(min_length = 1, max_length = 1024)]
    #[k8s(default = "memcached:1.6-alpine")]
    pub image: String,
    /// The port on which the program in the image listens, if it does.
    #[k8s(min = 1, max = 65535, default = 11211)]
    pub container_port: Option<i32>,
    /// Environment variables of the program, by name. Pods are replaced when they change.
    #[k8s(max_properties = 100)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
}

/// What became of the pods.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedStatus {
    /// The generation that this is about.
    pub observed_generation: Option<i64>,
    /// How many pods there are.
    #[serde(default)]
    pub replicas: i32,
    /// How many of them are available.
    #[serde(default)]
    pub available_replicas: i32,
    /// Whether the pods are available, and whether something is in their way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
