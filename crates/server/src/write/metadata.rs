//! Metadata: what a client may say, what the server alone sets, and what an update cannot change.

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use crate::object;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::Record;

/// Fills in the request's namespace; another one in the object is refused.
pub(crate) fn match_namespace(value: &mut Value, namespace: Option<&str>) -> Result<(), ApiError> {
    let given = object::namespace(value);
    match namespace {
        None => object::remove_meta(value, "namespace"),
        Some(namespace) if given.is_empty() => object::set_meta(value, "namespace", namespace),
        Some(namespace) if given != namespace => {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Some(_) => {}
    }
    Ok(())
}

/// Metadata that an update cannot change. What identifies the object is validated instead: silently restoring it
/// would hide a client's mistake.
pub(super) fn keep_metadata(new: &mut Value, old: &Value) {
    for field in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generateName",
    ] {
        object::copy_meta(new, old, field);
    }
    object::remove_meta(new, "selfLink");
    for field in ["uid", "name", "namespace"] {
        if object::meta_str(new, field).is_empty() {
            object::copy_meta(new, old, field);
        }
    }
}

/// Checks uid and version that the client sent.
pub(super) fn check_preconditions(
    served: &Served,
    new: &Value,
    old: &Value,
    record: &Record,
) -> Result<(), ApiError> {
    let name = object::name(old);
    let (uid, version) = (object::uid(new), object::resource_version(new));
    if !uid.is_empty() && uid != record.uid() {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            served.collection.name(),
            record.key(),
            record.uid(),
        );
        return Err(ApiError::conflict(served.about(), name, &why));
    }
    if version.is_empty() || version == "0" {
        if served.strategy().allow_unconditional_update {
            return Ok(());
        }
        let error = FieldError::invalid(
            "metadata.resourceVersion",
            &json!(0),
            "must be specified for an update",
        );
        return Err(ApiError::invalid(served.about(), name, &[error]));
    }
    match version.parse::<u64>() {
        Ok(version) if version == record.revision() => Ok(()),
        Ok(_) => Err(ApiError::modified(served.about(), name)),
        Err(_) => {
            let error = FieldError::invalid(
                "metadata.resourceVersion",
                &json!(version),
                "strconv.ParseUint: parsing: invalid syntax",
            );
            Err(ApiError::invalid(served.about(), name, &[error]))
        }
    }
}

/// Whether nothing holds a deleted object any more.
pub(super) fn may_go(new: &Value) -> bool {
    let grace = object::metadata(new)
        .and_then(|m| m.get("deletionGracePeriodSeconds"))
        .and_then(Value::as_i64);
    let held = new.get("kind").is_some_and(|k| k == "Namespace")
        && new["spec"]["finalizers"]
            .as_array()
            .is_some_and(|f| !f.is_empty());
    object::finalizers(new).is_empty() && grace.unwrap_or(0) == 0 && !held
}

/// Takes away metadata that a client cannot bring along.
pub(super) fn wipe_metadata(value: &mut Value) {
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "uid",
        "creationTimestamp",
    ] {
        object::remove_meta(value, field);
    }
}

/// Metadata that the server alone sets.
pub(super) fn begin_metadata(value: &mut Value, uid: &str, now: &str) {
    wipe_metadata(value);
    object::remove_meta(value, "generation");
    object::set_meta(value, "uid", uid);
    object::set_meta(value, "creationTimestamp", now);
}
