//! Changes of stored objects: update, patch, apply, and what subresources change.

use kubewright_schema::apply::keep_times;
use serde_json::Value;

use super::commit::CommitFailure;
use super::effects;
use super::metadata::{check_preconditions, keep_metadata, may_go};
use super::{WriteRequest, Written};
use crate::admission::Operation;
use crate::core::{Core, FieldManagement};
use crate::derived::Reservation;
use crate::http::query::Persist;
use crate::object;
use crate::request::Part;
use crate::status::ApiError;
use crate::storage::{CommitError, Record, Write};

/// How often an update without a version is tried again when others are faster.
const UPDATE_ATTEMPTS: usize = 64;

/// What one attempt at an update came to.
enum Attempt {
    Written(Written),
    /// Somebody else changed the object meanwhile.
    Outrun,
}

impl Core {
    /// Changes an object: reads it, lets `change` make the new one, checks, stores, and does it all again when
    /// somebody else was faster.
    pub(crate) async fn update(
        &self,
        request: &WriteRequest,
        mut change: impl FnMut(&Value) -> Result<Value, ApiError> + Send,
    ) -> Result<Written, ApiError> {
        let served = &request.served;
        for _ in 0..UPDATE_ATTEMPTS {
            let Some(record) = served.collection.get(&request.key()) else {
                return Err(ApiError::not_found(served.about(), &request.name));
            };
            let old = self.converter.revive(served, &record).await?;
            let new = change(&old)?;
            let attempt = Box::pin(self.update_once(request, &record, &old, new));
            if let Attempt::Written(written) = attempt.await? {
                return Ok(written);
            }
        }
        Err(ApiError::modified(served.about(), &request.name))
    }

    /// All steps from a changed object to the store.
    async fn update_once(
        &self,
        request: &WriteRequest,
        record: &Record,
        old: &Value,
        mut new: Value,
    ) -> Result<Attempt, ApiError> {
        let served = &request.served;
        check_preconditions(served, &new, old, record)?;
        // An update without a version is one of the newest.
        object::set_meta(&mut new, "resourceVersion", record.revision().to_string());
        served.default(&mut new);
        self.manage(request, Some(old), &mut new);
        let admission = request.admission(Operation::Update, &request.name);
        self.mutate(admission.as_ref(), &mut new, old).await?;
        self.check_escalation(request, Some(old), &new)?;
        let _reservation = self.prepare_update(request, &mut new, old)?;
        let quota = self.inspect(admission.as_ref(), &new, old).await?;
        let warnings = served.strategy().update_warnings(&new, old);
        let expected = record.revision();
        if request.persist == Persist::DryRun {
            request.warnings.extend(warnings);
            return Ok(Attempt::Written(Written::Value {
                value: self.converter.as_if_stored(served, new).await?,
                version: Some(expected),
            }));
        }
        let (write, last) = self.write_of(request, record, old, new).await?;
        match self.commit(served, write, quota).await {
            Ok(committed) => {
                request.warnings.extend(warnings);
                // The answer to the write that lets an object go shows its last stored version.
                Ok(Attempt::Written(match last {
                    Some(value) => Written::Value {
                        value,
                        version: Some(expected),
                    },
                    None => Written::Stored(committed.record),
                }))
            }
            // Somebody was faster: look again. A client that insists on a version is refused then.
            Err(CommitFailure::Store(CommitError::Conflict { .. } | CommitError::NotFound)) => {
                Ok(Attempt::Outrun)
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// What the store is to do. The update that takes the last finalizer away from a deleted object removes it; what it
    /// was last comes along then.
    async fn write_of(
        &self,
        request: &WriteRequest,
        record: &Record,
        old: &Value,
        new: Value,
    ) -> Result<(Write, Option<Value>), ApiError> {
        let (key, expected_revision) = (record.key().to_owned(), record.revision());
        if object::is_deleting(old) && may_go(&new) {
            let write = Write::Delete {
                key,
                expected_revision,
            };
            return Ok((write, Some(new)));
        }
        let write = Write::Update {
            key,
            expected_revision,
            draft: self.converter.draft(&request.served, new).await?,
        };
        Ok((write, None))
    }

    /// Restores what an update may not change, gives the object what the server alone can give, and validates it.
    fn prepare_update(
        &self,
        request: &WriteRequest,
        new: &mut Value,
        old: &Value,
    ) -> Result<Reservation, ApiError> {
        let (served, part) = (&request.served, request.part);
        keep_metadata(new, old);
        match part {
            Part::Whole | Part::Scale => served.strategy().prepare_for_update(new, old),
            Part::Status => {
                served.strategy().prepare_for_status_update(new, old);
                keep_metadata(new, old);
            }
            Part::Own(_) => {}
        }
        let reservation = effects::before_update(self, request, new, old)?;
        if self.field_management == FieldManagement::Tracked {
            keep_times(new, old);
        }
        let mut errors = match part {
            Part::Status => served.validate_status_update(new, old),
            Part::Own(_) => served.validate_own_update(new, old),
            Part::Whole | Part::Scale => served.validate_update(new, old),
        };
        effects::validate_update(self, request, new, old, &mut errors);
        if errors.is_empty() {
            return Ok(reservation);
        }
        let (about, name) = (served.about_kind(), object::name(old));
        Err(ApiError::invalid(about, name, &errors))
    }
}
