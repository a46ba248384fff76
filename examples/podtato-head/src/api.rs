//! The kind `PodtatoHeadApp`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::part::Part;

/// The images of all parts: what is rolled out, and what is rolled back to.
pub type Release = BTreeMap<Part, String>;

/// A podtato head: six parts that are upgraded one by one.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[kube(
    group = "podtato.kubewright.dev",
    version = "v1alpha1",
    kind = "PodtatoHeadApp",
    doc = "PodtatoHeadApp is a podtato head: six parts that are upgraded one by one.",
    namespaced,
    shortname = "pha",
    status = "PodtatoHeadAppStatus",
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".spec.version"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Progressing\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PodtatoHeadAppSpec {
    /// The image of all parts, without a tag. The version of a part is its tag.
    #[k8s(min_length = 1, max_length = 200)]
    #[k8s(rule(
        "!self.matches('.*[@:][^/]*$')",
        message = "must not have a tag or a digest"
    ))]
    pub image: String,
    /// The version of all parts that have none of their own.
    #[k8s(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length = 63)]
    pub version: String,
    /// How many pods each part has that does not say so itself; one by default.
    #[k8s(min = 1, max = 20)]
    pub replicas: Option<i32>,
    /// How long a part may take to become ready at a new version before the upgrade is rolled back; 60 by default.
    #[k8s(min = 2, max = 3600)]
    pub progress_deadline_seconds: Option<i32>,
    /// What differs for single parts.
    #[k8s(list = map(name), max_items = 6)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartSpec>,
    /// How the entry is exposed; inside of the cluster by default.
    pub service_type: Option<ServiceType>,
}

/// What differs for one part.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PartSpec {
    /// The part that this is about.
    pub name: Part,
    /// Its version, if it is another one.
    #[k8s(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length = 63)]
    pub version: Option<String>,
    /// How many pods it has.
    #[k8s(min = 1, max = 20)]
    pub replicas: Option<i32>,
}

/// The type of the Service of the entry.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceType {
    /// Reachable inside of the cluster.
    ClusterIP,
    /// Reachable at a port of every node.
    NodePort,
    /// Reachable from outside by a load balancer.
    LoadBalancer,
}

impl ServiceType {
    /// The type as a Service has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClusterIP => "ClusterIP",
            Self::NodePort => "NodePort",
            Self::LoadBalancer => "LoadBalancer",
        }
    }
}

impl PodtatoHeadAppSpec {
    /// The images that the spec asks for.
    pub fn release(&self) -> Release {
        let image = |part| format!("{}:{}", self.image, self.version_of(part));
        Part::ALL
            .into_iter()
            .map(|part| (part, image(part)))
            .collect()
    }

    /// How many pods a part has.
    pub fn replicas_of(&self, part: Part) -> i32 {
        let own = self.part(part).and_then(|part| part.replicas);
        own.or(self.replicas).unwrap_or(1)
    }

    /// How long a part may take to become ready, in seconds.
    pub fn deadline(&self) -> i32 {
        self.progress_deadline_seconds.unwrap_or(60)
    }

    fn version_of(&self, part: Part) -> &str {
        let own = self.part(part).and_then(|part| part.version.as_ref());
        own.unwrap_or(&self.version)
    }

    fn part(&self, part: Part) -> Option<&PartSpec> {
        self.parts.iter().find(|it| it.name == part)
    }
}

/// What is there, and how far a rollout is.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PodtatoHeadAppStatus {
    /// The generation that this status is about.
    pub observed_generation: Option<i64>,
    /// The parts as they are.
    #[k8s(list = map(name))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartStatus>,
    /// The last images with which all parts were ready: what a failed upgrade goes back to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub stable: Release,
    /// The upgrade that failed, until the spec asks for another one.
    pub rollback: Option<Rollback>,
    /// Whether it is ready, and whether a rollout is going on.
    #[k8s(list = map("type"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A part as it is.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
pub struct PartStatus {
    /// The part that this is about.
    pub name: Part,
    /// The version that it runs, or is becoming.
    pub version: String,
    /// Whether all of its pods are ready at that version.
    pub ready: bool,
}

/// An upgrade that failed.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
pub struct Rollback {
    /// The part that did not become ready in time.
    pub part: Part,
    /// Why it did not, as its Deployment says.
    pub message: String,
    /// What was rolled out. It is not tried again until the spec asks for something else.
    #[schemars(with = "BTreeMap<String, String>")]
    pub release: Release,
}

/// The version in an image's name.
pub(crate) fn version_of(image: &str) -> &str {
    image.rsplit_once(':').map_or("", |(_, tag)| tag)
}
