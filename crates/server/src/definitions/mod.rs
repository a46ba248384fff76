//! CustomResourceDefinitions come to life: names are accepted, versions compiled and served, and when a definition
//! goes its objects go first.
//!
//! All of it happens within the write that causes it, so a client that has the answer to its write finds the new
//! resource served. There is nothing to wait for and no controller that could lag behind.

mod names;
mod serve;

use std::sync::Arc;

use kubewright_schema::FieldError;
use kubewright_schema::crd::{self, Definition};
use serde_json::Value;

use crate::api::write::{Part, storage_error};
use crate::conversion::collection_name;
use crate::core::Core;
use crate::fields::Writer;
use crate::object;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::{At, CommitError, Write};

use names::{is_established, set_condition};
use serve::Stage;

/// Holds a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Core {
    /// Serves the definitions that are in the store, after a start.
    pub(crate) async fn load_definitions(&self) -> Result<(), ApiError> {
        let definitions = self.definitions();
        let snapshot = definitions
            .collection
            .snapshot(At::Latest)
            .map_err(ApiError::internal)?;
        let names: Vec<String> = snapshot
            .range("", None)
            .map(|r| r.key().to_owned())
            .collect();
        for name in names {
            self.settle_definition(&name).await?;
        }
        Ok(())
    }

    /// Brings what is served into line with a definition that was written or removed.
    pub(crate) async fn settle_definition(&self, name: &str) -> Result<(), ApiError> {
        let definitions = self.definitions();
        let Some((plural, group)) = name.split_once('.') else {
            return Ok(());
        };
        let Some(record) = definitions.collection.get(name) else {
            self.registry.replace_custom(group, plural, Vec::new());
            return Ok(());
        };
        let value = definitions.revive(&record)?;
        if object::is_deleting(&value) {
            return self.tear_down(&definitions, name, &value).await;
        }
        let status = self.next_status(name, &value);
        if status != value["status"] {
            let change = |old: &Value| {
                let mut new = old.clone();
                new["status"] = status.clone();
                Ok(new)
            };
            self.write_definition(&definitions, name, change).await?;
        }
        if is_established(&status) {
            self.serve(&value, record.revision(), Stage::Alive)?;
        }
        Ok(())
    }

    fn definitions(&self) -> Arc<Served> {
        self.registry
            .now()
            .builtin("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    }

    async fn write_definition(
        &self,
        definitions: &Arc<Served>,
        name: &str,
        change: impl FnMut(&Value) -> Result<Value, ApiError> + Send,
    ) -> Result<(), ApiError> {
        let mut warnings = Vec::new();
        match self
            .update_alone(
                definitions,
                name,
                Part::Own,
                &Writer::server("status"),
                &mut warnings,
                change,
            )
            .await
        {
            Ok(_) => Ok(()),
            Err(error) if error.code() == http::StatusCode::NOT_FOUND => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes the objects of a definition, and the definition once they are gone.
    async fn tear_down(
        &self,
        definitions: &Arc<Served>,
        name: &str,
        value: &Value,
    ) -> Result<(), ApiError> {
        let definition = Definition::parse(value);
        let collection = self.store.collection(&collection_name(
            &definition.group,
            &definition.names.plural,
        ));
        self.serve(value, self.store.revision(), Stage::Terminating)?;
        let now = self.environment.now_rfc3339();
        let snapshot = collection
            .snapshot(At::Latest)
            .map_err(ApiError::internal)?;
        let mut left = 0;
        for record in snapshot.range("", None) {
            let mut object: Value =
                serde_json::from_slice(record.body()).map_err(ApiError::internal)?;
            let held = !object::finalizers(&object).is_empty();
            left += usize::from(held);
            let write = if held {
                if object::is_deleting(&object) {
                    continue;
                }
                object::set_meta(&mut object, "deletionTimestamp", now.as_str());
                object::set_meta(&mut object, "deletionGracePeriodSeconds", 0);
                let generation = object::generation(&object) + 1;
                object::set_meta(&mut object, "generation", generation);
                let draft = crate::resource::custom_draft(object, record);
                Write::Update {
                    key: record.key().to_owned(),
                    expected_revision: record.revision(),
                    draft,
                }
            } else {
                Write::Delete {
                    key: record.key().to_owned(),
                    expected_revision: record.revision(),
                }
            };
            match collection.commit_durable(write).await {
                Ok(_) | Err(CommitError::NotFound) => {}
                Err(CommitError::Conflict { .. }) => left += 1,
                Err(error) => return Err(storage_error(&error)),
            }
        }
        let finished = left == 0;
        let change = |old: &Value| {
            let mut new = old.clone();
            let (status, reason, message) = if finished {
                let finalizers = object::finalizers(old)
                    .into_iter()
                    .filter(|f| *f != CLEANUP);
                let finalizers = finalizers.map(str::to_owned).collect();
                object::set_finalizers(&mut new, finalizers);
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
            set_condition(
                &mut new["status"],
                &now,
                "Terminating",
                status,
                reason,
                message,
            );
            Ok(new)
        };
        self.write_definition(definitions, name, change).await?;
        if definitions.collection.get(name).is_none() {
            self.registry
                .replace_custom(&definition.group, &definition.names.plural, Vec::new());
        }
        Ok(())
    }
}

/// Makes a new definition what it is at the start.
pub(crate) fn prepare_create(value: &mut Value) {
    crd::default_definition(value);
    crd::reset_status(value);
    object::set_meta(value, "generation", 1);
}

/// Marks a definition whose objects have to go before it does.
pub(crate) fn mark_terminating(value: &mut Value, now: &str) {
    if !object::finalizers(value).contains(&CLEANUP) {
        let finalizers = object::finalizers(value).into_iter().map(str::to_owned);
        let finalizers = finalizers.chain([CLEANUP.to_owned()]).collect();
        object::set_finalizers(value, finalizers);
    }
    let (reason, message) = (
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
    set_condition(
        &mut value["status"],
        now,
        "Terminating",
        "True",
        reason,
        message,
    );
}

/// What is wrong with a definition.
pub(crate) fn validate(value: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    errors.extend(match old {
        None => crd::validate_definition(value),
        Some(old) => crd::validate_definition_update(value, old),
    });
}
