//! CustomResourceDefinitions: which names they get, what their versions are compiled to, and how they go.
//!
//! What is served follows the stored definitions (`derived/definitions.rs`). The server itself writes the status that
//! accepts the names, and tears a deleted definition down (`reconcile`); both are tasks of its queue, so that they are
//! done whoever goes away meanwhile.

mod names;
mod serve;

use kubewright_schema::FieldError;
use kubewright_schema::crd;
use serde_json::Value;

use crate::object;

pub(crate) use names::{
    ConditionUpdate, is_established, names_are_accepted, next_status, set_condition,
};
pub(crate) use serve::versions;

/// Holds a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

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
    let pending = ConditionUpdate {
        kind: "Terminating",
        status: "True",
        reason: "InstanceDeletionPending",
        message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    };
    set_condition(&mut value["status"], now, &pending);
}

/// What is wrong with a definition.
pub(crate) fn validate(value: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    errors.extend(match old {
        None => crd::validate_definition(value),
        Some(old) => crd::validate_definition_update(value, old),
    });
}
