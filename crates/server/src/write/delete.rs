//! Deletes: grace, finalizers, propagation.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::commit::CommitFailure;
use super::{DeleteOptions, WriteRequest, Written, effects};
use crate::admission::Operation;
use crate::core::Core;
use crate::environment::rfc3339;
use crate::http::query::Persist;
use crate::kinds::Deletion;
use crate::object;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::{CommitError, Record, Write};

/// How often a delete without preconditions is tried again when others are faster.
const ATTEMPTS: usize = 64;

/// What a delete did.
pub(crate) enum Deleted {
    /// The object is gone; this was its last state, at the deletion's revision.
    Gone(Value, u64),
    /// The object stays for now, marked as going.
    Going(Written),
}

impl Core {
    /// Deletes an object, or marks it as deleted while grace or finalizers hold it.
    pub(crate) async fn delete(
        &self,
        request: &WriteRequest,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let (served, name) = (&request.served, &request.name);
        effects::before_delete(served, name)?;
        for _ in 0..ATTEMPTS {
            let Some(record) = served.collection.get(&request.key()) else {
                return Err(ApiError::not_found(served.about(), name));
            };
            let old = self.converter.revive(served, &record).await?;
            options.check_preconditions(served, name, &record)?;
            let plan = self.plan(served, &old, options);
            if matches!(plan, Plan::Nothing) {
                return Ok(Deleted::Going(Written::Stored(record)));
            }
            self.admit_delete(request, &record, &old).await?;
            if request.persist == Persist::DryRun {
                return Ok(dry_run(plan, &record));
            }
            let write = self.deletion(served, &record, &plan).await?;
            match self.commit(served, write, None).await {
                Ok(committed) => {
                    return Ok(match plan {
                        Plan::Remove(last) => Deleted::Gone(last, committed.record.revision()),
                        _ => Deleted::Going(Written::Stored(committed.record)),
                    });
                }
                Err(CommitFailure::Store(CommitError::Conflict { .. })) => {}
                Err(CommitFailure::Store(CommitError::NotFound)) => {
                    return Err(ApiError::not_found(served.about(), name));
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        Err(ApiError::modified(served.about(), name))
    }

    /// Runs admission of a delete. Those who may change objects are asked too, though there is nothing to change.
    async fn admit_delete(
        &self,
        request: &WriteRequest,
        record: &Record,
        old: &Value,
    ) -> Result<(), ApiError> {
        let admission = request.admission(Operation::Delete, record.name());
        let admission = admission.as_ref();
        self.mutate(admission, &mut Value::Null, old).await?;
        self.inspect(admission, &Value::Null, old).await?;
        Ok(())
    }

    /// What the store is to do.
    async fn deletion(
        &self,
        served: &Served,
        record: &Record,
        plan: &Plan,
    ) -> Result<Write, ApiError> {
        let (key, expected_revision) = (record.key().to_owned(), record.revision());
        Ok(match plan {
            Plan::Mark(marked) => Write::Update {
                key,
                expected_revision,
                draft: self.converter.draft(served, marked.clone()).await?,
            },
            Plan::Remove(_) | Plan::Nothing => Write::Delete {
                key,
                expected_revision,
            },
        })
    }

    /// Decides what a delete does to an object as it stands.
    fn plan(&self, served: &Served, old: &Value, options: &DeleteOptions) -> Plan {
        let strategy = served.strategy();
        let mut new = old.clone();
        let finalizers = options.finalizers(strategy.default_propagation, old);
        object::set_finalizers(&mut new, finalizers);
        if !object::is_deleting(old) {
            effects::mark_deleted(served, &mut new, &self.environment.now_rfc3339());
        }
        if strategy.deletion == Deletion::Terminating {
            return self.plan_namespace(old, new);
        }
        let grace = strategy
            .grace_period(old, options.grace_period)
            .unwrap_or(0);
        let was_going = object::is_deleting(old);
        if was_going {
            let remaining = old["metadata"]["deletionGracePeriodSeconds"]
                .as_i64()
                .unwrap_or(0);
            if grace < remaining {
                self.mark(&mut new, old, grace);
            }
        } else {
            self.mark(&mut new, old, grace);
        }
        let grace_left = new["metadata"]["deletionGracePeriodSeconds"]
            .as_i64()
            .unwrap_or(0);
        if object::finalizers(&new).is_empty() && grace_left == 0 {
            // Kinds without grace show the object as it was; pods show that it was on its way.
            return Plan::Remove(if strategy.deletion == Deletion::Graceful {
                new
            } else {
                old.clone()
            });
        }
        if new == *old {
            Plan::Nothing
        } else {
            Plan::Mark(new)
        }
    }

    fn plan_namespace(&self, old: &Value, mut new: Value) -> Plan {
        if !object::is_deleting(old) {
            object::set_meta(
                &mut new,
                "deletionTimestamp",
                self.environment.now_rfc3339(),
            );
            new["status"]["phase"] = json!("Terminating");
        }
        let held = new["spec"]["finalizers"]
            .as_array()
            .is_some_and(|f| !f.is_empty());
        match () {
            () if !held && object::finalizers(&new).is_empty() => Plan::Remove(new),
            () if new == *old => Plan::Nothing,
            () => Plan::Mark(new),
        }
    }

    fn mark(&self, new: &mut Value, old: &Value, grace: i64) {
        let when = self
            .environment
            .now()
            .saturating_add(SignedDuration::from_secs(grace));
        let when = when.unwrap_or(self.environment.now());
        object::set_meta(new, "deletionTimestamp", rfc3339(when));
        object::set_meta(new, "deletionGracePeriodSeconds", grace);
        if !object::is_deleting(old) && object::generation(old) > 0 {
            object::set_meta(new, "generation", object::generation(old) + 1);
        }
    }
}

/// What a delete does to an object.
enum Plan {
    /// Removes it; this is how it is shown last.
    Remove(Value),
    /// Marks it as going.
    Mark(Value),
    /// It is already on its way.
    Nothing,
}

fn dry_run(plan: Plan, record: &Record) -> Deleted {
    match plan {
        Plan::Remove(last) => Deleted::Gone(last, record.revision()),
        Plan::Mark(value) => Deleted::Going(Written::Value {
            value,
            version: Some(record.revision()),
        }),
        Plan::Nothing => unreachable!("a delete that does nothing is answered before"),
    }
}
