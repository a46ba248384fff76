//! Whose turn it is, and what a migration reports. Pure.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::storagemigration::v1::StorageVersionMigration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::GroupResource;
use kubewright_runtime::conditions::{self, Condition, ConditionExt, Status, is_true};

use super::Ending;

const RUNNING: &str = "Running";
const SUCCEEDED: &str = "Succeeded";
const FAILED: &str = "Failed";

/// What is to be done for a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: it has ended, or another one of its resource runs or is older.
    Rest,
    /// Report that it has begun.
    Begin,
    /// Write the next objects unchanged.
    Go,
    /// Report its end, at the definition of its resource as well.
    Close(Ending),
}

/// The resource of a migration; validation asks for one.
pub(super) fn resource(migration: &StorageVersionMigration) -> Option<&GroupResource> {
    migration.spec.as_ref().map(|spec| &spec.resource)
}

/// What is to be done for one of all migrations (`migrationrunner.go: getSVMsForResource`).
pub(super) fn step(
    migration: &StorageVersionMigration,
    all: &[Arc<StorageVersionMigration>],
) -> Step {
    match (ending(migration), has(migration, RUNNING)) {
        (Some(ending), true) => return Step::Close(ending),
        (Some(_), false) => return Step::Rest,
        (None, true) => return Step::Go,
        (None, false) => {}
    }
    let mut rivals = all.iter().filter(|other| {
        resource(other) == resource(migration) && other.metadata.name != migration.metadata.name
    });
    let goes_first = |other: &Arc<StorageVersionMigration>| {
        let waits = !has(other, RUNNING) && ending(other).is_none();
        has(other, RUNNING) || (waits && age(other) < age(migration))
    };
    if rivals.any(goes_first) {
        Step::Rest
    } else {
        Step::Begin
    }
}

fn age(migration: &StorageVersionMigration) -> (Option<Timestamp>, Option<&str>) {
    let created = migration.metadata.creation_timestamp.as_ref();
    (
        created.map(|created| created.0),
        migration.metadata.name.as_deref(),
    )
}

fn has(migration: &StorageVersionMigration, kind: &str) -> bool {
    let status = migration.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    is_true(conditions.unwrap_or_default(), kind)
}

fn ending(migration: &StorageVersionMigration) -> Option<Ending> {
    if has(migration, SUCCEEDED) {
        return Some(Ending::Succeeded);
    }
    has(migration, FAILED).then_some(Ending::Failed)
}

/// The version at which a migration began: objects with a later one have been written since.
pub(super) fn began_at(migration: &StorageVersionMigration) -> Option<u64> {
    let version = migration.status.as_ref()?.resource_version.as_deref()?;
    version.parse().ok()
}

/// Notes that a migration runs, and the version at which it begins.
pub(super) fn begin(migration: &mut StorageVersionMigration, version: String, now: Timestamp) {
    let running = Condition::new(RUNNING, Status::True, "MigrationRunning");
    set(migration, running.message("The migration is running"), now);
    let status = migration.status.get_or_insert_default();
    // A migration goes on from where it began.
    status.resource_version.get_or_insert(version);
}

/// Notes that all objects have been written.
pub(super) fn succeed(migration: &mut StorageVersionMigration, now: Timestamp) {
    let reason = "StorageVersionMigrationSucceeded";
    set(
        migration,
        Condition::new(SUCCEEDED, Status::True, reason),
        now,
    );
}

/// Notes why not all objects could be written.
pub(super) fn fail(migration: &mut StorageVersionMigration, why: &str, now: Timestamp) {
    let failed = Condition::new(FAILED, Status::True, "StorageVersionMigrationFailed");
    let message = format!("migration encountered unhandled error: {why}");
    set(migration, failed.message(message), now);
}

/// Notes that a migration which has ended does not run any more.
pub(super) fn close(migration: &mut StorageVersionMigration, now: Timestamp) {
    let closed = Condition::new(RUNNING, Status::False, "MigrationCompleted");
    set(migration, closed.message("Migration completed"), now);
}

fn set(migration: &mut StorageVersionMigration, condition: Condition, now: Timestamp) {
    let status = migration.status.get_or_insert_default();
    let list = status.conditions.get_or_insert_default();
    conditions::set(list, now, condition);
}
