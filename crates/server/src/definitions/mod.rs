//! CustomResourceDefinitions: which names they get, what their versions are compiled to, and how they go.
//!
//! What is served follows the stored definitions (`derived/definitions.rs`). The server itself writes the status that
//! accepts the names, and tears a deleted definition down; both are tasks of its queue, so that they are done whoever
//! goes away meanwhile.

mod incarnation;
mod names;
mod serve;
mod teardown;

use std::sync::Arc;

use http::StatusCode;
use kubewright_schema::FieldError;
use kubewright_schema::crd;
use serde_json::Value;

use crate::api::write::Part;
use crate::core::Core;
use crate::derived::Outcome;
use crate::fields::Writer;
use crate::object;
use crate::resource::Served;
use crate::status::ApiError;

pub(crate) use incarnation::Incarnation;
use names::set_condition;
pub(crate) use names::{is_established, names_are_accepted};
pub(crate) use serve::versions;

/// Holds a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Core {
    /// Accepts the names of a definition as it is now, or continues to tear it down.
    pub(crate) async fn reconcile_definition(&self, name: &str) -> Result<Outcome, ApiError> {
        let definitions = self.definitions();
        let Some(record) = definitions.collection.get(name) else {
            return Ok(Outcome::Done);
        };
        let value = definitions.revive(&record)?;
        if object::is_deleting(&value) {
            return self.tear_down(&definitions, &value).await;
        }
        if self.next_status(name, &value) == value["status"] {
            return Ok(Outcome::Done);
        }
        // Computed from what is current at each attempt: somebody may write the definition meanwhile.
        let change = |old: &Value| {
            let mut new = old.clone();
            if !object::is_deleting(old) {
                new["status"] = self.next_status(name, old);
            }
            Ok(new)
        };
        self.write_definition(&definitions, name, change).await?;
        Ok(Outcome::Done)
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
        let writer = Writer::server("status");
        let mut warnings = Vec::new();
        let written = self
            .update(definitions, name, Part::Own, &writer, &mut warnings, change)
            .await;
        match written {
            Err(error) if error.code() != StatusCode::NOT_FOUND => Err(error),
            _ => Ok(()),
        }
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
