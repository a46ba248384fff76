//! How a deleted definition goes: its objects first, then itself (`crd_finalizer.go: deleteInstances`).

use std::sync::Arc;

use futures::{StreamExt, stream};
use serde_json::Value;

use crate::conversion::collection_name;
use crate::core::Core;
use crate::definitions::{CLEANUP, ConditionUpdate, set_condition};
use crate::derived::Outcome;
use crate::object;
use crate::resource::{Served, custom_draft};
use crate::status::ApiError;
use crate::storage::{At, Collection, CommitError, Record, Write};

/// How many objects are deleted before other tasks have their turn.
const TURN: usize = 1_000;
/// How many deletions wait for the disk together.
const AT_ONCE: usize = 64;

impl Core {
    /// Deletes objects of a definition, and lets the definition go once they are gone. Objects that changed meanwhile
    /// are looked at again; those that finalizers hold bring the definition back here when they go.
    pub(super) async fn tear_down(
        &self,
        definitions: &Arc<Served>,
        value: &Value,
    ) -> Result<Outcome, ApiError> {
        let spec = &value["spec"];
        let (group, plural) = (&spec["group"], &spec["names"]["plural"]);
        let name = collection_name(group.as_str().unwrap_or(""), plural.as_str().unwrap_or(""));
        let collection = self.store.collection(&name);
        let now = self.environment.now_rfc3339();
        self.delete_objects(&collection, &now).await?;
        let snapshot = collection
            .snapshot(At::Latest)
            .map_err(ApiError::internal)?;
        let finished = snapshot.is_empty();
        let held = snapshot.range("", None).all(|record| is_held(record));
        let change = |old: &Value| {
            let mut new = old.clone();
            mark_progress(&mut new, &now, finished);
            Ok(new)
        };
        self.write_definition(definitions, object::name(value), change)
            .await?;
        if finished {
            self.reconcile_api_services(group.as_str().unwrap_or(""))
                .await?;
        }
        Ok(if held { Outcome::Done } else { Outcome::Again })
    }

    async fn delete_objects(&self, collection: &Collection, now: &str) -> Result<(), ApiError> {
        let snapshot = collection
            .snapshot(At::Latest)
            .map_err(ApiError::internal)?;
        let records: Vec<Arc<Record>> = snapshot
            .range("", None)
            .filter(|record| !is_held(record))
            .take(TURN)
            .cloned()
            .collect();
        let mut deletions = stream::iter(records)
            .map(|record| delete(collection.clone(), record, now.to_owned()))
            .buffer_unordered(AT_ONCE);
        while let Some(deleted) = deletions.next().await {
            deleted?;
        }
        Ok(())
    }
}

/// Whether an object is marked as deleted and waits for its finalizers.
fn is_held(record: &Record) -> bool {
    let object: Value = serde_json::from_slice(record.body()).unwrap_or_default();
    object::is_deleting(&object) && !object::finalizers(&object).is_empty()
}

/// Deletes an object, or marks it as deleted when finalizers hold it. One that somebody else changed stays for the next
/// turn.
async fn delete(collection: Collection, record: Arc<Record>, now: String) -> Result<(), ApiError> {
    let mut object: Value = serde_json::from_slice(record.body()).map_err(ApiError::internal)?;
    let (key, expected_revision) = (record.key().to_owned(), record.revision());
    let write = if object::finalizers(&object).is_empty() {
        Write::Delete {
            key,
            expected_revision,
        }
    } else {
        object::set_meta(&mut object, "deletionTimestamp", now);
        object::set_meta(&mut object, "deletionGracePeriodSeconds", 0);
        let generation = object::generation(&object) + 1;
        object::set_meta(&mut object, "generation", generation);
        Write::Update {
            key,
            expected_revision,
            draft: custom_draft(object, &record),
        }
    };
    match collection.commit_durable(write).await {
        Ok(_) | Err(CommitError::NotFound | CommitError::Conflict { .. }) => Ok(()),
        Err(error) => Err(ApiError::internal(error)),
    }
}

/// Says in a definition's status how far its tear-down is; one that is finished may go.
fn mark_progress(definition: &mut Value, now: &str, finished: bool) {
    let (status, reason, message) = if finished {
        let finalizers = object::finalizers(definition).into_iter();
        let left = finalizers
            .filter(|f| *f != CLEANUP)
            .map(str::to_owned)
            .collect();
        object::set_finalizers(definition, left);
        (
            "False",
            "InstanceDeletionCompleted",
            "removed all instances",
        )
    } else {
        (
            "True",
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
        )
    };
    let update = ConditionUpdate {
        kind: "Terminating",
        status,
        reason,
        message,
    };
    set_condition(&mut definition["status"], now, &update);
}
