//! The kind `PostgresCluster`.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Record;

/// A replicated PostgreSQL: one primary, and replicas that stream from it.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[kube(
    group = "postgres.kubewright.dev",
    version = "v1alpha1",
    kind = "PostgresCluster",
    doc = "PostgresCluster is a replicated PostgreSQL: one primary, and replicas that stream from it.",
    namespaced,
    shortname = "pgc",
    status = "PostgresClusterStatus",
    printcolumn = r#"{"name":"Members","type":"integer","jsonPath":".spec.members"}"#,
    printcolumn = r#"{"name":"Primary","type":"string","jsonPath":".status.primary"}"#,
    printcolumn = r#"{"name":"Term","type":"integer","jsonPath":".status.term"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[k8s(rule(
    "!has(self.synchronousReplicas) || self.synchronousReplicas < self.members",
    message = "synchronousReplicas must be less than members"
))]
#[k8s(rule(
    "has(self.restore) == has(oldSelf.restore)",
    message = "restore cannot be set or removed later"
))]
pub struct PostgresClusterSpec {
    /// The image of the agent, with PostgreSQL in it.
    #[k8s(min_length = 1, max_length = 200)]
    pub image: String,
    /// How many databases there are, the primary among them.
    #[k8s(min = 1, max = 7)]
    pub members: i32,
    /// How many replicas a commit waits for; none by default, which can lose the last commits in a fail-over.
    #[k8s(min = 0, max = 6)]
    pub synchronous_replicas: Option<i32>,
    /// The member that should be primary. Changing it is a switch-over.
    pub primary: Option<String>,
    /// How long a primary goes on without the operator; 10 by default.
    #[k8s(min = 2, max = 300)]
    pub lease_seconds: Option<i32>,
    /// How long a primary may be out of order before another one takes over; 5 by default.
    #[k8s(min = 1, max = 3600)]
    pub failover_seconds: Option<i32>,
    /// The volumes of the members. They cannot be changed later.
    #[k8s(immutable)]
    pub storage: Storage,
    /// Settings of PostgreSQL. Members are reloaded or restarted for them, replicas first, as each setting needs.
    #[k8s(max_properties = 100)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Base backups and the log, in a claim that outlives the cluster: any moment since the oldest one can be restored. Without
    /// it there are none.
    pub backup: Option<Backup>,
    /// The backup that the cluster starts with. It cannot be changed later.
    #[k8s(immutable)]
    pub restore: Option<Restore>,
}

/// Base backups and the log.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[k8s(rule(
    "has(self.storage) == has(oldSelf.storage)",
    message = "storage cannot be set or removed later"
))]
pub struct Backup {
    /// How often a base backup is taken; a day by default.
    #[k8s(min = 10)]
    pub interval_seconds: Option<i32>,
    /// How many base backups are kept, with the log from the oldest one on; 3 by default.
    #[k8s(min = 1, max = 100)]
    pub keep: Option<i32>,
    /// The volume for them, as that of a member by default. It cannot be changed later.
    #[k8s(immutable)]
    pub storage: Option<Storage>,
}

/// The backup that a cluster starts with.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Restore {
    /// The claim with the backups of another cluster: `NAME-backup`.
    #[k8s(min_length = 1)]
    pub claim_name: String,
    /// The moment to restore; the latest one without it.
    pub time: Option<MicroTime>,
}

impl Backup {
    /// How often a base backup is taken, in seconds.
    pub fn interval(&self) -> u64 {
        seconds(self.interval_seconds.unwrap_or(86_400)).as_secs()
    }

    /// How many base backups are kept.
    pub fn kept(&self) -> usize {
        usize::try_from(self.keep.unwrap_or(3)).unwrap_or(1)
    }
}

/// A volume.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// How large it is, as `1Gi`.
    #[k8s(
        pattern = r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$",
        max_length = 20
    )]
    pub size: String,
    /// The storage class, if not the default one.
    pub class: Option<String>,
}

impl PostgresClusterSpec {
    /// How long a lease lasts.
    pub fn lease(&self) -> Duration {
        seconds(self.lease_seconds.unwrap_or(10))
    }

    /// How long a primary may be out of order.
    pub fn patience(&self) -> Duration {
        seconds(self.failover_seconds.unwrap_or(5))
    }
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// Who is primary, and what is known of the members.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PostgresClusterStatus {
    /// The generation that this status is about.
    pub observed_generation: Option<i64>,
    /// The term. There is one primary to a term.
    #[serde(default)]
    pub term: i64,
    /// The primary of the term.
    pub primary: Option<String>,
    /// The term ends: its primary is being fenced.
    #[serde(default)]
    pub fencing: bool,
    /// There was a database. A new one is never made any more.
    #[serde(default)]
    pub initialized: bool,
    /// Members that a commit waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// Grows whenever the members change that a commit waits for.
    #[serde(default)]
    pub revision: i64,
    /// Members that have every acknowledged commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub synchronous: Vec<String>,
    /// The members as they were seen last.
    #[k8s(list = map(name))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberStatus>,
    /// What can be restored.
    pub backup: Option<BackupStatus>,
    /// Whether there is a primary, and whether all members are there.
    #[k8s(list = map("type"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What can be restored.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// When each base backup was finished, the oldest one first. Every moment from the first one on can be restored, but for
    /// those in which a new primary could not give the log that follows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<MicroTime>,
    /// Whether the log of the primary is being received.
    #[serde(default)]
    pub receives: bool,
    /// What went wrong last.
    pub problem: Option<String>,
}

/// A member as it was seen last.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    /// The name of its pod.
    pub name: String,
    /// What it does: `Primary`, `Replica`, `Busy`, `Stopped` or `Unreachable`.
    pub role: String,
    /// Settings that wait for a restart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending_restart: Vec<String>,
}

impl PostgresClusterStatus {
    /// What the plan has on record.
    pub fn record(&self) -> Record {
        Record {
            term: u64::try_from(self.term).unwrap_or_default(),
            primary: self.primary.clone(),
            fencing: self.fencing,
            initialized: self.initialized,
            waits: self.waits_for.clone(),
            revision: u64::try_from(self.revision).unwrap_or_default(),
            synchronous: self.synchronous.clone(),
        }
    }

    /// Puts the plan on record.
    pub fn set_record(&mut self, record: Record) {
        self.term = i64::try_from(record.term).unwrap_or(i64::MAX);
        self.primary = record.primary;
        self.fencing = record.fencing;
        self.initialized = record.initialized;
        self.waits_for = record.waits;
        self.revision = i64::try_from(record.revision).unwrap_or(i64::MAX);
        self.synchronous = record.synchronous;
    }
}
