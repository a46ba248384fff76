//! PostgresCluster: one primary and replicas that stream from it, with fail-over that fences the old primary first.
//!
//! `plan` decides who is primary and is pure, as is `agent::lease`, which says whether a member may take writes; the tests run both
//! against everything that can go wrong. `reconcile` is the operator around the plan, `agent` the program in the pods around
//! PostgreSQL.

pub mod agent;
mod api;
mod backup;
mod desired;
mod members;
pub mod plan;
pub mod protocol;
mod reconcile;
mod report;
mod restore;
mod webhook;

pub use api::{
    Backup, BackupStatus, MemberStatus, PostgresCluster, PostgresClusterSpec,
    PostgresClusterStatus, Restore, Storage,
};
pub use desired::{CLUSTER, ROLE, secret_name};
pub use reconcile::{PostgresClusters, controller};
pub use webhook::validate;
