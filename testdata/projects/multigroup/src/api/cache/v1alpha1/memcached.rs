//! The kind Memcached: pods that run an image. Comments of types and fields are what `kubectl explain` prints.

use std::collections::BTreeMap;

use kubewright::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MemcachedSpec defines the desired state of Memcached.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "cache.testproject.org",
    version = "v1alpha1",
    kind = "Memcached",
    namespaced,
    doc = "Memcached is the schema of the Memcached API.",
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
    /// replicas is the number of pods that should run.
    #[k8s(min = 0, max = 100, default = 1)]
    pub replicas: i32,
    /// image is the container image that the pods run.
    #[k8s(min_length = 1, max_length = 1024)]
    #[k8s(default = "memcached:1.6-alpine")]
    pub image: String,
    /// containerPort is the port on which the program in the image listens, if it does.
    #[k8s(min = 1, max = 65535, default = 11211)]
    pub container_port: Option<i32>,
    /// config has environment variables of the program, by name. Pods are replaced when they change.
    #[k8s(max_properties = 100)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
}

/// MemcachedStatus defines the observed state of Memcached.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedStatus {
    /// observedGeneration is the generation that the controller observed last.
    pub observed_generation: Option<i64>,
    /// replicas is the number of pods that there are.
    #[serde(default)]
    pub replicas: i32,
    /// availableReplicas is the number of pods that are available.
    #[serde(default)]
    pub available_replicas: i32,
    /// conditions represent the current state of Memcached: Available says whether the pods are, and Degraded whether something
    /// is in their way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
