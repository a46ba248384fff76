//! Where every change of an object passes: create, update, and the rules that hold for all kinds.

mod create;

use std::sync::Arc;

use kubewright_schema::FieldError;
use kubewright_schema::apply::keep_times;
use serde_json::{Value, json};

use super::subresource::scale;
use crate::admission::{self, Asked, Operation, QuotaCheck};
use crate::core::Core;
use crate::derived::CommitFailure;
use crate::derived::addresses::Reservation;
use crate::fields::{FieldManagement, Writer};
use crate::http::query::Persist;
use crate::object;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::{CommitError, Record, Write};

/// How often an update without a version is tried again when others are faster.
const UPDATE_ATTEMPTS: usize = 64;

/// Which part of an object an update may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status.
    Whole,
    /// The status.
    Status,
    /// Whatever the subresource's own code changed; it has restored the rest.
    Own,
}

impl Part {
    /// The name of the subresource; empty for the object itself and for what has a name of its own.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Part::Status => "status",
            Part::Whole | Part::Own => "",
        }
    }
}

/// The outcome of a write.
pub(crate) enum Written {
    /// Stored, or found unchanged.
    Stored(Arc<Record>),
    /// Not stored (a dry run), or removed with this write: the object as it would be or was last.
    Value {
        value: Value,
        /// Resource version to show; none for an object that was never stored.
        version: Option<u64>,
    },
}

/// An object with a given resource version, or without one.
pub(crate) fn encode_at(served: &Served, mut value: Value, version: Option<u64>) -> Vec<u8> {
    object::set_meta(&mut value, "resourceVersion", "");
    let (mut bytes, at) = served.encode(&value);
    match version {
        Some(version) => drop(bytes.splice(at..at, version.to_string().bytes())),
        None => {
            // Cut the whole member out, with the comma on whichever side it has one.
            let mut start = at - r#""resourceVersion":""#.len();
            let mut end = at + 1;
            if bytes.get(end) == Some(&b',') {
                end += 1;
            } else if bytes.get(start - 1) == Some(&b',') {
                start -= 1;
            }
            bytes.drain(start..end);
        }
    }
    bytes
}

impl Core {
    /// Changes an object: reads it, lets `change` make the new one, checks, stores, and does it all again when
    /// somebody else was faster.
    pub(crate) async fn update(
        &self,
        served: &Arc<Served>,
        key: &str,
        part: Part,
        writer: &Writer,
        warnings: &mut Vec<String>,
        mut change: impl FnMut(&Value) -> Result<Value, ApiError> + Send,
    ) -> Result<Written, ApiError> {
        let name = key.rsplit('/').next().unwrap_or(key);
        for _ in 0..UPDATE_ATTEMPTS {
            let Some(record) = served.collection.get(key) else {
                return Err(ApiError::not_found(served.about(), name));
            };
            let old = self.revive(served, &record).await?;
            let mut new = change(&old)?;
            check_preconditions(served, &new, &old, &record)?;
            // An update without a version is one of the newest.
            object::set_meta(&mut new, "resourceVersion", record.revision().to_string());
            served.default(&mut new);
            self.manage(served, Some(&old), &mut new, part, writer);
            let requester = writer.requester();
            let asked = requester.as_deref().map(|requester| Asked {
                served,
                operation: Operation::Update,
                subresource: writer.subresource(),
                namespace: record.namespace(),
                name,
                requester,
                persist: writer.persist,
            });
            if let Some(asked) = &asked {
                Box::pin(self.admit_update(asked, &mut new, &old, writer, warnings)).await?;
            }
            let _reservation = self.prepare(served, &mut new, &old, part)?;
            let mut quota = None;
            if let Some(asked) = &asked {
                let review = self.review_update(asked, &new, &old, writer, warnings);
                quota = Box::pin(review).await?;
            }
            let gone = object::is_deleting(&old) && may_go(&new);
            if writer.persist == Persist::DryRun {
                warnings.extend(served.strategy().update_warnings(&new, &old));
                return Ok(Written::Value {
                    value: new,
                    version: Some(record.revision()),
                });
            }
            let expected = record.revision();
            let said = served.strategy().update_warnings(&new, &old);
            let (write, last) = if gone {
                let write = Write::Delete {
                    key: key.to_owned(),
                    expected_revision: expected,
                };
                (write, Some(new))
            } else {
                let write = Write::Update {
                    key: key.to_owned(),
                    expected_revision: expected,
                    draft: self.draft(served, new).await?,
                };
                (write, None)
            };
            match self.commit(served, write, quota).await {
                Ok(committed) => {
                    warnings.extend(said);
                    // The answer to the write that lets an object go shows its last stored version.
                    return Ok(match last {
                        Some(value) => Written::Value {
                            value,
                            version: Some(expected),
                        },
                        None => Written::Stored(committed.record),
                    });
                }
                // Somebody was faster: look again. A client that insists on a version is refused then.
                Err(CommitFailure::Store(CommitError::Conflict { .. } | CommitError::NotFound)) => {
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        Err(ApiError::modified(served.about(), name))
    }

    /// Lets an update be changed, as the object or as its scale, whichever was sent.
    async fn admit_update(
        &self,
        asked: &Asked<'_>,
        new: &mut Value,
        old: &Value,
        writer: &Writer,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        if !writer.is_scaling() {
            return self.mutate(asked, new, old, warnings).await;
        }
        let (mut scale, before) = (scale::of(asked.served, new), scale::of(asked.served, old));
        self.mutate(asked, &mut scale, &before, warnings).await?;
        scale::put(asked.served, new, &scale);
        Ok(())
    }

    /// Lets an update be looked at, as the object or as its scale.
    async fn review_update(
        &self,
        asked: &Asked<'_>,
        new: &Value,
        old: &Value,
        writer: &Writer,
        warnings: &mut Vec<String>,
    ) -> Result<Option<QuotaCheck>, ApiError> {
        if !writer.is_scaling() {
            return self.inspect(asked, new, old, warnings).await;
        }
        let (scale, before) = (scale::of(asked.served, new), scale::of(asked.served, old));
        self.inspect(asked, &scale, &before, warnings).await
    }

    /// Restores what an update may not change, and validates the rest.
    fn prepare(
        &self,
        served: &Arc<Served>,
        new: &mut Value,
        old: &Value,
        part: Part,
    ) -> Result<Reservation, ApiError> {
        keep_metadata(new, old);
        let strategy = served.strategy();
        match part {
            Part::Whole => strategy.prepare_for_update(new, old),
            Part::Status => {
                strategy.prepare_for_status_update(new, old);
                keep_metadata(new, old);
            }
            Part::Own => {}
        }
        let reservation = admission::before_update(self, served, new, old, part)?;
        if self.field_management == FieldManagement::Tracked {
            keep_times(new, old);
        }
        let mut errors = match part {
            Part::Status => served.validate_status_update(new, old),
            Part::Own => served.validate_own_update(new, old),
            Part::Whole => served.validate_update(new, old),
        };
        admission::validate_update(served, new, old, part, &mut errors);
        if errors.is_empty() {
            Ok(reservation)
        } else {
            Err(ApiError::invalid(
                served.about_kind(),
                object::name(old),
                &errors,
            ))
        }
    }
}

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
fn keep_metadata(new: &mut Value, old: &Value) {
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
fn check_preconditions(
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
fn may_go(new: &Value) -> bool {
    let grace = object::metadata(new)
        .and_then(|m| m.get("deletionGracePeriodSeconds"))
        .and_then(Value::as_i64);
    let held = new.get("kind").is_some_and(|k| k == "Namespace")
        && new["spec"]["finalizers"]
            .as_array()
            .is_some_and(|f| !f.is_empty());
    object::finalizers(new).is_empty() && grace.unwrap_or(0) == 0 && !held
}
