//! The kind `EtcdCluster`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cluster of etcd members. `size` is what people change; the operator knows what that means for etcd.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[kube(
    group = "etcd.kubewright.dev",
    version = "v1alpha1",
    kind = "EtcdCluster",
    doc = "EtcdCluster is a cluster of etcd members.",
    namespaced,
    status = "EtcdClusterStatus",
    shortname = "etcd",
    derive = "PartialEq",
    scale = r#"{"specReplicasPath":".spec.size","statusReplicasPath":".status.readyMembers"}"#,
    printcolumn = r#"{"name":"Size","type":"integer","jsonPath":".spec.size"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.readyMembers"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.version"}"#,
    printcolumn = r#"{"name":"Leader","type":"string","jsonPath":".status.leader"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[k8s(rule(
    "has(self.restore) == has(oldSelf.restore)",
    message = "restore cannot be set or removed later"
))]
pub struct EtcdClusterSpec {
    /// How many members the cluster has: an odd number, because an even one tolerates no more failures than one less.
    // A rule of the schema and not of the webhook, which does not see what `kubectl scale` asks for.
    #[k8s(
        min = 1,
        max = 9,
        default = 3,
        rule("self % 2 == 1", message = "must be an odd number")
    )]
    #[serde(default = "default_size")]
    pub size: i32,
    /// The version of etcd. It goes up one minor version at a time.
    #[k8s(pattern = r"^3\.[0-9]{1,3}\.[0-9]{1,3}$", default = "3.5.21")]
    #[serde(default = "default_version")]
    pub version: String,
    /// Where the image is; its tag is the version with a `v` before it.
    #[k8s(min_length = 1, default = "quay.io/coreos/etcd")]
    #[serde(default = "default_image")]
    pub image: String,
    /// The volume of each member. It cannot be changed later.
    #[k8s(immutable)]
    #[serde(default)]
    pub storage: Storage,
    /// Whether members and clients talk TLS, with certificates that the operator makes and renews. It cannot be changed later.
    #[k8s(default = "Enabled", immutable)]
    #[serde(default)]
    pub tls: Tls,
    /// How long a member may be unreachable before it is replaced by a new one.
    #[k8s(min = 1, default = 300)]
    #[serde(default = "default_timeout")]
    pub member_timeout_seconds: i64,
    /// Snapshots on a schedule. Without it none are taken.
    pub backup: Option<Backup>,
    /// How often members are defragmented, one after the other. Without it they are not.
    #[k8s(min = 60)]
    pub defragment_interval_seconds: Option<i64>,
    /// The snapshot that the cluster starts from. It cannot be changed later.
    #[k8s(immutable)]
    pub restore: Option<Restore>,
}

/// The volume of a member.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// How large it is.
    #[k8s(
        pattern = r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$",
        default = "1Gi"
    )]
    #[serde(default = "default_storage")]
    pub size: String,
    /// The storage class; the cluster's default without it.
    pub class_name: Option<String>,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            size: default_storage(),
            class_name: None,
        }
    }
}

/// Whether connections are encrypted and both ends authenticated.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tls {
    /// Members and clients have certificates.
    #[default]
    Enabled,
    /// Everything is plain HTTP.
    Disabled,
}

/// Snapshots on a schedule, into a claim that outlives the cluster.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[k8s(rule(
    "has(self.storage) == has(oldSelf.storage)",
    message = "storage cannot be set or removed later"
))]
pub struct Backup {
    /// How often a snapshot is taken.
    #[k8s(min = 10, default = 3600)]
    #[serde(default = "default_interval")]
    pub interval_seconds: i64,
    /// How many snapshots are kept; the oldest one is overwritten.
    #[k8s(min = 1, max = 100, default = 7)]
    #[serde(default = "default_keep")]
    pub keep: i32,
    /// The volume for them, as that of a member by default. It cannot be changed once it is there.
    #[k8s(immutable)]
    pub storage: Option<Storage>,
}

/// The snapshot that a cluster starts from.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Restore {
    /// The claim with the snapshots of another cluster: `NAME-backup`.
    #[k8s(min_length = 1)]
    pub claim_name: String,
    /// The file in it, as the other cluster's status names it.
    #[k8s(pattern = r"^[a-z0-9][a-z0-9.-]*$")]
    pub snapshot: String,
}

/// How the cluster is.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct EtcdClusterStatus {
    /// The generation of the spec that this is about.
    pub observed_generation: Option<i64>,
    /// The id of the cluster in hexadecimal. Once it is here the cluster is never bootstrapped again.
    pub cluster_id: Option<String>,
    /// How many voting members are healthy.
    pub ready_members: Option<i32>,
    /// The oldest version that a member runs.
    pub version: Option<String>,
    /// The name of the leader.
    pub leader: Option<String>,
    /// The revision of the data.
    pub revision: Option<i64>,
    /// Where clients find the cluster.
    pub endpoint: Option<String>,
    /// The members that etcd knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[k8s(list = map(id))]
    pub members: Vec<MemberState>,
    /// What became of the last snapshots.
    pub backup: Option<BackupStatus>,
    /// When the members were defragmented last.
    pub last_defragmentation: Option<Time>,
    /// `Available`, `Progressing` and `Degraded`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One member, as etcd knows it.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MemberState {
    /// Its id in hexadecimal.
    pub id: String,
    /// Its name, which is that of its pod.
    pub name: String,
    /// What it does in the cluster.
    pub role: Role,
    /// Whether it answers and follows the leader.
    pub healthy: bool,
    /// The version that it runs.
    pub version: Option<String>,
    /// Since when it is not healthy.
    pub unhealthy_since: Option<Time>,
}

/// What a member does in a cluster.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It orders all writes.
    Leader,
    /// It votes.
    Follower,
    /// It gets the data and does not vote yet.
    Learner,
}

/// What became of the last snapshots.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// How many snapshots were begun; the next one has this number.
    #[serde(default)]
    pub count: i64,
    /// When the last one was begun.
    pub last_start: Option<Time>,
    /// The snapshots that can be restored, the newest one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<Snapshot>,
    /// How many failed since the last one that succeeded.
    #[serde(default)]
    pub failures: i32,
}

/// A snapshot that can be restored.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// The file in the claim.
    pub name: String,
    /// When it was begun.
    pub time: Option<Time>,
    /// The revision of the data at that moment; the snapshot has at least this one.
    pub revision: i64,
}

fn default_size() -> i32 {
    3
}

fn default_version() -> String {
    "3.5.21".to_owned()
}

fn default_image() -> String {
    "quay.io/coreos/etcd".to_owned()
}

fn default_storage() -> String {
    "1Gi".to_owned()
}

fn default_timeout() -> i64 {
    300
}

fn default_interval() -> i64 {
    3600
}

fn default_keep() -> i32 {
    7
}
