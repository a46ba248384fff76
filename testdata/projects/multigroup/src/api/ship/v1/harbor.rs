//! The kind `Harbor` of `ship.testproject.org/v1`, from its definition.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is wanted of a harbor.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "ship.testproject.org",
    version = "v1",
    kind = "Harbor",
    shortname = "hb",
    namespaced,
    doc = "A place where ships lie.",
    status = "HarborStatus",
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode")
)]
#[serde(rename_all = "camelCase")]
pub struct HarborSpec {
    /// What is noted down about it.
    pub annotations: Option<BTreeMap<String, String>>,
    /// How many cranes of each make there are.
    #[k8s(max_properties = 8)]
    pub cranes: Option<BTreeMap<String, HarborCrane>>,
    /// Settings of the customs office, which are its own.
    #[schemars(extend("type" = "object"))]
    #[k8s(preserve_unknown)]
    pub customs: Option<serde_json::Value>,
    /// How deep it is, in metres.
    #[k8s(min = 1, default = 12)]
    pub depth: Option<i32>,
    /// Whether ships go round.
    pub r#loop: Option<bool>,
    /// Who may come in.
    #[k8s(default = "Open")]
    pub mode: Option<HarborMode>,
    /// How ships are moved.
    pub r#move: Option<HarborMove>,
    /// Where ships lie.
    #[k8s(min_items = 1, list = map("name"))]
    pub piers: Vec<HarborPier>,
    #[serde(rename = "podIPs")]
    pub pod_ips: Option<Vec<String>>,
    /// What kind of harbor it is.
    pub r#type: String,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HarborCrane {
    #[k8s(min = 0)]
    pub count: Option<i32>,
}

/// Who may come in.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub enum HarborMode {
    #[default]
    Open,
    #[serde(rename = "closed-for-winter")]
    ClosedForWinter,
    #[serde(rename = "")]
    Empty,
}

/// How ships are moved.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HarborMove {
    /// What the tugs do.
    #[k8s(pattern = "^[a-z]+$")]
    pub r#fn: Option<String>,
    pub self_: Option<bool>,
    pub tugs: Option<HarborMoveTugs>,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HarborMoveTugs {
    #[k8s(list = set, items(max_length = 32))]
    pub names: Vec<String>,
    pub power: Option<f64>,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HarborPier {
    pub berths: Option<Vec<HarborPierBerth>>,
    #[k8s(min_length = 1)]
    pub name: String,
    /// By number or by name.
    pub port: Option<IntOrString>,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HarborPierBerth {
    pub kind: Option<HarborPierBerthKind>,
    pub length: Option<i64>,
}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub enum HarborPierBerthKind {
    #[default]
    Ferry,
    Tanker,
}

/// What became of it.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HarborStatus {
    /// What holds and what does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[k8s(list = map("type"))]
    pub conditions: Vec<Condition>,
    pub observed_generation: Option<i64>,
    pub ships: Option<i32>,
}
