//! DELETE of one object and of a collection: grace, finalizers, propagation.

use std::sync::Arc;

use http::StatusCode;
use jiff::SignedDuration;
use kubewright_schema::{FieldError, Table, decode};
use serde_json::{Value, json};

use super::call::Call;
use super::list::{self, Selection};
use super::options::ListOptions;
use super::write::{Written, encode_at, storage_error};
use crate::admission;
use crate::core::Core;
use crate::environment::rfc3339;
use crate::http::body;
use crate::http::query::{Persist, Query, read_dry_run};
use crate::http::respond::{self, Answer};
use crate::kinds::{Deletion, Propagation as DefaultPropagation};
use crate::object;
use crate::resource::Served;
use crate::status::{self, About, ApiError};
use crate::storage::{CommitError, Record, Write};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// How often a delete without preconditions is tried again when others are faster.
const ATTEMPTS: usize = 64;

/// What a delete asks for.
#[derive(Debug, Clone)]
pub(crate) struct DeleteOptions {
    grace_period: Option<i64>,
    uid: Option<String>,
    version: Option<String>,
    propagation: Option<Propagation>,
    /// The old way to say it; matters for the status code alone.
    orphan_dependents: Option<bool>,
    persist: Persist,
}

/// What happens to dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Propagation {
    Orphan,
    Background,
    Foreground,
}

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
    if options.propagation.is_none() {
        call.warnings
            .extend(call.served.strategy().orphaning_warning.map(str::to_owned));
    }
    let (core, served, key) = (call.core.clone(), call.served.clone(), call.key());
    let deleted = core.delete(&served, &key, &options).await?;
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
            call.answer_written(code, &written)
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
        match core.delete(&served, record.key(), &options).await {
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
    list::answer(call, page)
}

impl Core {
    async fn delete(
        &self,
        served: &Arc<Served>,
        key: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let name = key.rsplit('/').next().unwrap_or(key);
        admission::before_delete(served, name)?;
        for _ in 0..ATTEMPTS {
            let Some(record) = served.collection.get(key) else {
                return Err(ApiError::not_found(served.about(), name));
            };
            let old = served.revive(&record)?;
            options.check_preconditions(served, name, &record)?;
            let plan = self.plan(served, &old, options);
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
                    draft: served.draft(marked.clone()),
                },
            };
            match served.collection.commit_durable(write).await {
                Ok(committed) => {
                    admission::after_write(self, served, key).await?;
                    if let Plan::Remove(last) = plan {
                        admission::after_delete(self, served, &last).await?;
                        return Ok(Deleted::Gone(last, committed.record.revision()));
                    }
                    return Ok(Deleted::Going(Written::Stored(committed.record)));
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(CommitError::NotFound) => {
                    return Err(ApiError::not_found(served.about(), name));
                }
                Err(error) => return Err(storage_error(&error)),
            }
        }
        Err(ApiError::modified(served.about(), name))
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

impl DeleteOptions {
    /// Reads the options from the body, or from the query when there is no body.
    fn read(call: &Call, body: &[u8]) -> Result<Self, ApiError> {
        let object = if body.is_empty() {
            from_query(&call.query)?
        } else {
            from_body(call, body)?
        };
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let mut errors = Vec::new();
        let orphan_dependents = object.get("orphanDependents").and_then(Value::as_bool);
        let policy = object.get("propagationPolicy").and_then(Value::as_str);
        if orphan_dependents.is_some() && policy.is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(
                "propagationPolicy",
                &json!(policy),
                why,
            ));
        }
        let propagation = match (policy, orphan_dependents) {
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some(other), _) => {
                let allowed = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(
                    "propagationPolicy",
                    &json!(other),
                    &allowed,
                ));
                None
            }
            (None, None) => None,
        };
        let in_body = object
            .get("dryRun")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let in_query = call.query.all("dryRun").filter(|_| !body.is_empty());
        let persist = read_dry_run(in_body.chain(in_query), &mut errors);
        if !errors.is_empty() {
            return Err(ApiError::invalid_options("DeleteOptions", &errors));
        }
        Ok(Self {
            grace_period: object
                .get("gracePeriodSeconds")
                .and_then(Value::as_i64)
                .map(|s| if s < 0 { 1 } else { s }),
            uid: text("/preconditions/uid"),
            version: text("/preconditions/resourceVersion"),
            propagation,
            orphan_dependents,
            persist,
        })
    }

    fn check_preconditions(
        &self,
        served: &Served,
        name: &str,
        record: &Record,
    ) -> Result<(), ApiError> {
        let about = About {
            group: &served.resource.group,
            resource: &served.resource.kind,
        };
        if let Some(uid) = self.uid.as_deref().filter(|uid| *uid != record.uid()) {
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have \
                 been deleted and then recreated",
                record.uid()
            );
            return Err(ApiError::conflict(about, name, &why));
        }
        let current = record.revision().to_string();
        if let Some(version) = self.version.as_deref().filter(|v| *v != current) {
            let why = format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
                 ({current}). The object might have been modified"
            );
            return Err(ApiError::conflict(about, name, &why));
        }
        Ok(())
    }

    /// The finalizers that the object has from now on: propagation is asked for by finalizer.
    fn finalizers(&self, by_default: DefaultPropagation, old: &Value) -> Vec<String> {
        let present = object::finalizers(old);
        if by_default == DefaultPropagation::Unsupported {
            return present.into_iter().map(str::to_owned).collect();
        }
        let policy = self.propagation.unwrap_or_else(|| {
            if present.contains(&ORPHAN) {
                Propagation::Orphan
            } else if present.contains(&FOREGROUND) {
                Propagation::Foreground
            } else if by_default == DefaultPropagation::Orphan {
                Propagation::Orphan
            } else {
                Propagation::Background
            }
        });
        let wanted = match policy {
            Propagation::Orphan => Some(ORPHAN),
            Propagation::Foreground => Some(FOREGROUND),
            Propagation::Background => None,
        };
        let kept = present
            .into_iter()
            .filter(|f| *f != ORPHAN && *f != FOREGROUND);
        kept.chain(wanted).map(str::to_owned).collect()
    }
}

fn from_query(query: &Query) -> Result<Value, ApiError> {
    let mut object = json!({});
    if let Some(seconds) = query.integer("gracePeriodSeconds")? {
        object["gracePeriodSeconds"] = json!(seconds);
    }
    if let Some(orphan) = query.tristate("orphanDependents") {
        object["orphanDependents"] = json!(orphan);
    }
    if let Some(policy) = query.get("propagationPolicy") {
        object["propagationPolicy"] = json!(policy);
    }
    object["dryRun"] = query.all("dryRun").filter(|v| !v.is_empty()).collect();
    Ok(object)
}

fn from_body(call: &Call, bytes: &[u8]) -> Result<Value, ApiError> {
    let table = Table::builtin();
    let ty = table
        .named("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")
        .ok_or_else(|| ApiError::internal("DeleteOptions is not in the type table"))?;
    let decoded = decode::decode(table, ty, bytes, body::format(&call.headers)?)
        .map_err(|e| ApiError::bad_request(format!("DeleteOptions cannot be read: {e}")))?;
    // Something that was meant for another purpose must not delete anything.
    match decoded.value.get("kind").and_then(Value::as_str) {
        None | Some("" | "DeleteOptions") => Ok(decoded.value),
        Some(kind) => Err(ApiError::bad_request(format!(
            "decoded object cannot be converted to DeleteOptions: it is a {kind}"
        ))),
    }
}
