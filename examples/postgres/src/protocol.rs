//! What the operator and the agents say to each other, as JSON over HTTP.
//!
//! The pod of backups takes a [`BackupOrder`] and gives a [`BackupReport`] in the same way.
//!
//! `GET /status` gives a [`Report`] with a new nonce. `POST /order` takes an [`Order`] and gives a [`Report`]. Whoever grants a
//! lease does three things in this order: it reads a nonce, reads the PostgresCluster from the server, and only then sends the
//! order with that nonce. The lease begins when the nonce was made, so that a late order cannot prolong it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The port of the agent.
pub const AGENT_PORT: u16 = 8008;
/// The port of the database, which the agent listens at.
pub const DATABASE_PORT: u16 = 5432;

/// What an agent says of its member.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// A number that an order for the primary has to come with. Each report has another one.
    pub nonce: u64,
    /// What the member does.
    pub state: State,
    /// The term of the last order that was obeyed.
    pub term: u64,
    /// Whether it was ordered in that term not to take writes, which no order of the term takes back.
    pub fenced: bool,
    /// The revision of the list of members that its commits wait for.
    pub revision: u64,
    /// Whether there is a database on its volume.
    pub has_data: bool,
    /// How far its log goes: what it wrote, or received and flushed.
    pub position: u64,
    /// Members that stream from it and are known to have every commit that it acknowledged.
    pub synchronous: Vec<String>,
    /// The settings that need a restart before they are in force.
    pub pending_restart: Vec<String>,
    /// The number of the last restart that was ordered and done.
    pub restart: i64,
    /// What went wrong last, for people.
    pub problem: Option<String>,
}

/// What a member does.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// No database runs.
    #[default]
    Stopped,
    /// It is copying, starting or stopping.
    Busy,
    /// It takes writes while its lease lasts.
    Primary,
    /// It follows a primary.
    Replica,
}

/// What an agent is to do.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// The term. An agent obeys no order of a term that is before its last one.
    pub term: u64,
    /// The role in this term.
    pub role: Role,
    /// The settings of the database.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// Has the database restarted once when this number is new.
    #[serde(default)]
    pub restart: i64,
}

/// The role of a member in a term.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase", tag = "name")]
pub enum Role {
    /// Takes writes until the lease runs out.
    Primary {
        /// The nonce that the lease is counted from.
        nonce: u64,
        /// How long the lease lasts from the making of the nonce.
        lease_millis: u64,
        /// Members that a commit waits for.
        synchronous: Vec<String>,
        /// The revision of that list. An older one is not obeyed.
        revision: u64,
        /// Whether a database is made where one is missing. Only ever true before the cluster had one.
        bootstrap: bool,
    },
    /// Follows this host.
    Replica {
        /// The address of the primary.
        primary: String,
    },
    /// Runs no database that takes writes, and no lease of this term any more.
    Stop,
}

/// What the agent of the backups is to do.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BackupOrder {
    /// The address of the primary.
    pub primary: String,
    /// How often a base backup is taken, in seconds.
    pub interval_seconds: u64,
    /// How many base backups are kept.
    pub keep: usize,
}

/// What the agent of the backups says.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BackupReport {
    /// When each base backup was finished, in microseconds of Unix time, the oldest one first.
    pub bases: Vec<i64>,
    /// Whether the log of the primary is being received.
    pub receives: bool,
    /// What went wrong last, for people.
    pub problem: Option<String>,
}
