//! DELETE of one object and of a collection: grace, finalizers, propagation.

mod options;

use std::sync::Arc;

use http::StatusCode;
use jiff::SignedDuration;
use serde_json::{Value, json};

use options::DeleteOptions;

use super::call::Call;
use super::list::{self, Selection};
use super::options::ListOptions;
use super::write::{Written, encode_at};
use crate::admission::{self, Asked, Operation};
use crate::core::Core;
use crate::derived::CommitFailure;
use crate::environment::rfc3339;
use crate::http::query::Persist;
use crate::http::respond::{self, Answer};
use crate::kinds::Deletion;
use crate::object;
use crate::resource::Served;
use crate::status::{self, ApiError};
use crate::storage::{CommitError, Record, Write};

/// How often a delete without preconditions is tried again when others are faster.
const ATTEMPTS: usize = 64;

/// What a delete did.
enum Deleted {
    /// The object is gone; this was its last state, at the deletion's revision.
    Gone(Value, u64),
    /// The object stays for now, marked as going.
    Going(Written),
}

/// Deletes one object.
pub(crate) async fn delete(call: &mut Call, body: &[u8]) -> Result<Answer, ApiError> {
    let options = DeleteOptions::read(call, body)?;
    delete_with(call, options).await
}

/// Deletes one object as the options say that another request carries, which was admitted as something else.
pub(crate) async fn delete_by(call: &mut Call, options: &Value) -> Result<Answer, ApiError> {
    let options = DeleteOptions::of(options, call.query.all("dryRun"))?;
    delete_with(call, options).await
}

async fn delete_with(call: &mut Call, options: DeleteOptions) -> Result<Answer, ApiError> {
    if options.propagation.is_none() {
        call.warnings
            .extend(call.served.strategy().orphaning_warning.map(str::to_owned));
    }
    let (core, served, key) = (call.core.clone(), call.served.clone(), call.key());
    let deleted = core
        .delete(&served, &key, &options, &mut call.warnings)
        .await?;
    match deleted {
        Deleted::Gone(last, _) if !served.strategy().returns_deleted_object => {
            let status = status::success(served.about(), &call.name, object::uid(&last));
            Ok(respond::typed(
                StatusCode::OK,
                call.accept.format,
                respond::STATUS,
                &status,
            ))
        }
        Deleted::Gone(last, revision) => call.answer_object(
            StatusCode::OK,
            encode_at(&served, last, Some(revision)).into(),
        ),
        Deleted::Going(written) => {
            let code = match options.orphan_dependents {
                Some(false) => StatusCode::ACCEPTED,
                _ => StatusCode::OK,
            };
            call.answer_written(code, &written).await
        }
    }
}

/// Deletes every object that the selectors match; answers with the list of what was there.
pub(crate) async fn delete_collection(call: &mut Call, body: &[u8]) -> Result<Answer, ApiError> {
    let options = DeleteOptions::read(call, body)?;
    let list_options = ListOptions::read(&call.query)?;
    let page = list::select(call, &list_options).await?;
    let (core, served) = (call.core.clone(), call.served.clone());
    for record in &page.records {
        let deleted = core.delete(&served, record.key(), &options, &mut call.warnings);
        match deleted.await {
            Ok(_) => {}
            // Somebody else deleted it first, which is what was asked for.
            Err(error) if error.code() == StatusCode::NOT_FOUND => {}
            Err(error) => return Err(error),
        }
    }
    let page = Selection {
        from: None,
        remaining: None,
        ..page
    };
    list::answer(call, page).await
}

impl Core {
    async fn delete(
        &self,
        served: &Arc<Served>,
        key: &str,
        options: &DeleteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Deleted, ApiError> {
        let name = key.rsplit('/').next().unwrap_or(key);
        admission::before_delete(served, name)?;
        for _ in 0..ATTEMPTS {
            let Some(record) = served.collection.get(key) else {
                return Err(ApiError::not_found(served.about(), name));
            };
            let old = self.revive(served, &record).await?;
            options.check_preconditions(served, name, &record)?;
            let plan = self.plan(served, &old, options);
            if !matches!(plan, Plan::Nothing) {
                self.admit_delete(served, &record, &old, options, warnings)
                    .await?;
            }
            let write = match &plan {
                Plan::Nothing => return Ok(Deleted::Going(Written::Stored(record))),
                _ if options.persist == Persist::DryRun => return Ok(dry_run(plan, &record)),
                Plan::Remove(_) => Write::Delete {
                    key: key.to_owned(),
                    expected_revision: record.revision(),
                },
                Plan::Mark(marked) => Write::Update {
                    key: key.to_owned(),
                    expected_revision: record.revision(),
                    draft: self.draft(served, marked.clone()).await?,
                },
            };
            match self.commit(served, write, None).await {
                Ok(committed) => {
                    if let Plan::Remove(last) = plan {
                        return Ok(Deleted::Gone(last, committed.record.revision()));
                    }
                    return Ok(Deleted::Going(Written::Stored(committed.record)));
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

    /// Lets a delete be looked at. Those who may change objects are asked too, though there is nothing to change.
    async fn admit_delete(
        &self,
        served: &Arc<Served>,
        record: &Record,
        old: &Value,
        options: &DeleteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let Some(requester) = &options.requester else {
            return Ok(());
        };
        let asked = Asked {
            served,
            operation: Operation::Delete,
            subresource: "",
            namespace: record.namespace(),
            name: record.name(),
            requester,
            persist: options.persist,
        };
        Box::pin(self.mutate(&asked, &mut Value::Null, old, warnings)).await?;
        Box::pin(self.inspect(&asked, &Value::Null, old, warnings)).await?;
        Ok(())
    }

    /// Decides what a delete does to an object as it stands.
    fn plan(&self, served: &Served, old: &Value, options: &DeleteOptions) -> Plan {
        let strategy = served.strategy();
        let mut new = old.clone();
        let finalizers = options.finalizers(strategy.default_propagation, old);
        object::set_finalizers(&mut new, finalizers);
        if !object::is_deleting(old) {
            admission::mark_deleted(served, &mut new, &self.environment.now_rfc3339());
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
