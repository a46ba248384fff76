//! The kind `CloudManager`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An application of three parts.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[kube(
    group = "cloudmanagercontroller.huayun.com",
    version = "v1",
    kind = "CloudManager",
    doc = "CloudManager is an application of three parts.",
    namespaced,
    status = "CloudManagerStatus",
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct CloudManagerSpec {
    /// The part that users see.
    pub front: Component,
    /// The part that knows who users are.
    pub identity: Component,
    /// What is remembered of them.
    pub db: Database,
}

/// A part without a state.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
pub struct Component {
    /// The Deployment that runs the part.
    pub deployment: Workload,
}

/// A workload: its name, image and replicas.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
pub struct Workload {
    /// The name of the object.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The image of its container.
    pub image: String,
    /// The number of replicas; one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
}

/// The part with a state.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Database {
    /// The password of its administrator.
    pub root_pass: String,
    /// Its StatefulSet.
    #[k8s(rule(
        "self.storage == oldSelf.storage",
        message = "storage cannot be changed, as the volume claims of a StatefulSet"
    ))]
    pub stateful_set: StatefulWorkload,
}

/// What runs with a volume.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
pub struct StatefulWorkload {
    /// The name, image and replicas of the workload.
    #[serde(flatten)]
    pub workload: Workload,
    /// Where it keeps its state.
    pub storage: Storage,
}

/// The volume of a stateful part.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The storage class of the volume.
    pub class: String,
    /// Who may use it at once, as `ReadWriteOnce`.
    #[k8s(values("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"))]
    pub access_modes: String,
    /// How large it is, as `20Gi`.
    #[k8s(pattern = "^[1-9][0-9]*([KMGTPE]i?)?$")]
    pub size: String,
}

/// How far it is.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
pub struct CloudManagerStatus {
    /// The part that is waited for, or `ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
}

/// What is waited for.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The front is not ready yet.
    Front,
    /// The identities are not ready yet.
    Identity,
    /// The database is not ready yet.
    Db,
    /// Every part is ready.
    Ready,
}

impl Phase {
    /// As it stands in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Front => "front",
            Self::Identity => "identity",
            Self::Db => "db",
            Self::Ready => "ready",
        }
    }
}
