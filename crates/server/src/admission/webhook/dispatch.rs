//! Asks the webhooks: those that change the object one after the other, those that look all at once.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::Value;

use super::hook::{Again, Hook, OnFailure, SideEffects};
use super::review::{self, Answer, Role, decode_patch};
use super::{Reinvocation, Webhooks};
use crate::admission::attributes::Asked;
use crate::admission::chain::extend;
use crate::admission::expression::Inputs;
use crate::callout;
use crate::core::Core;
use crate::http::query::Persist;
use crate::resource::Served;
use crate::status::ApiError;

/// Why a webhook did not let a request pass.
enum Failure {
    /// It could not be asked or did not answer as it should; its failure policy decides.
    Call(String),
    Refused(ApiError),
}

impl Webhooks {
    /// Asks the mutating webhooks, by the names of their configurations.
    pub(in crate::admission) async fn mutate(
        &self,
        core: &Core,
        asked: &Asked<'_>,
        object: &mut Value,
        old: &Value,
        rounds: &mut Reinvocation,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        for configuration in self.mutating.all() {
            for hook in &configuration.hooks {
                let Some(shown) = relevant(core, hook, asked, object, old).await? else {
                    continue;
                };
                if !rounds.wants(&hook.identity) {
                    continue;
                }
                let changed = mutate_by(core, hook, &shown, asked, object, old, warnings).await;
                match changed {
                    Ok(true) => rounds.changed(),
                    Ok(false) => {}
                    Err(failure) => judge(hook, failure)?,
                }
                if hook.again == Again::IfNeeded {
                    rounds.remember(&hook.identity);
                }
            }
        }
        Ok(())
    }

    /// Asks the validating webhooks. Of several refusals the one of the first webhook is told.
    pub(in crate::admission) async fn validate(
        &self,
        core: &Core,
        asked: &Asked<'_>,
        object: &Value,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let configurations = self.validating.all();
        let mut relevant_hooks = Vec::new();
        for hook in configurations.iter().flat_map(|c| &c.hooks) {
            if let Some(shown) = relevant(core, hook, asked, object, old).await? {
                relevant_hooks.push((hook, shown));
            }
        }
        let calls = relevant_hooks.iter().map(|(hook, shown)| async move {
            let mut told = Vec::new();
            let result = validate_by(core, hook, shown, asked, object, old, &mut told).await;
            (*hook, result, told)
        });
        let mut refusal = None;
        for (hook, result, told) in join_all(calls).await {
            extend(warnings, told);
            let judged = result.or_else(|failure| judge(hook, failure));
            refusal = refusal.or(judged.err());
        }
        refusal.map_or(Ok(()), Err)
    }
}

/// The version at which a webhook wants to see the object; nothing when it does not.
async fn relevant(
    core: &Core,
    hook: &Hook,
    asked: &Asked<'_>,
    object: &Value,
    old: &Value,
) -> Result<Option<Arc<Served>>, ApiError> {
    let criteria = hook.criteria.as_ref().map_err(ApiError::internal)?;
    let Some(shown) = criteria.matches(core, asked, object, old)? else {
        return Ok(None);
    };
    if hook.conditions.is_empty() {
        return Ok(Some(shown));
    }
    let (object, old) = at_version(core, asked, &shown, object, old).await?;
    let held = hook
        .conditions
        .hold(&Inputs::new(core, asked, &shown, &object, &old));
    match (held, hook.on_failure) {
        (Ok(true), _) => Ok(Some(shown)),
        (Ok(false), _) | (Err(_), OnFailure::Ignore) => Ok(None),
        (Err(why), OnFailure::Fail) => Err(asked.forbidden(&object, &why)),
    }
}

/// The objects at the version that is to be shown. Parts with a kind of their own have one version.
async fn at_version(
    core: &Core,
    asked: &Asked<'_>,
    shown: &Arc<Served>,
    object: &Value,
    old: &Value,
) -> Result<(Value, Value), ApiError> {
    let object = core.shown_at(asked.served, shown, object.clone()).await?;
    let old = core.shown_at(asked.served, shown, old.clone()).await?;
    Ok((object, old))
}

async fn mutate_by(
    core: &Core,
    hook: &Hook,
    shown: &Arc<Served>,
    asked: &Asked<'_>,
    object: &mut Value,
    old: &Value,
    warnings: &mut Vec<String>,
) -> Result<bool, Failure> {
    let (before, old) = at_version(core, asked, shown, object, old)
        .await
        .map_err(Failure::Refused)?;
    let answer = ask(core, hook, shown, asked, &before, &old, Role::Mutating).await?;
    extend(warnings, answer.warnings.iter().cloned());
    if !answer.allowed {
        return Err(Failure::Refused(answer.refusal(&hook.name)));
    }
    let Some(patch) = &answer.patch else {
        return Ok(false);
    };
    let patch = decode_patch(patch).map_err(|why| {
        Failure::Call(format!(
            "received undecodable patch in webhook response: {why}"
        ))
    })?;
    if before.is_null() {
        let why = format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            hook.name
        );
        return Err(Failure::Refused(ApiError::internal(why)));
    }
    let patched = patch.apply(before.clone());
    let mut after = patched.map_err(|e| Failure::Refused(ApiError::internal(e)))?;
    let changed = after != before;
    if changed {
        core.settle(asked, shown, &mut after, &before)
            .await
            .map_err(Failure::Refused)?;
        *object = after;
    }
    Ok(changed)
}

async fn validate_by(
    core: &Core,
    hook: &Hook,
    shown: &Arc<Served>,
    asked: &Asked<'_>,
    object: &Value,
    old: &Value,
    warnings: &mut Vec<String>,
) -> Result<(), Failure> {
    let (object, old) = at_version(core, asked, shown, object, old)
        .await
        .map_err(Failure::Refused)?;
    let answer = ask(core, hook, shown, asked, &object, &old, Role::Validating).await?;
    extend(warnings, answer.warnings.iter().cloned());
    match answer.allowed {
        true => Ok(()),
        false => Err(Failure::Refused(answer.refusal(&hook.name))),
    }
}

async fn ask(
    core: &Core,
    hook: &Hook,
    shown: &Served,
    asked: &Asked<'_>,
    object: &Value,
    old: &Value,
    role: Role,
) -> Result<Answer, Failure> {
    if asked.persist == Persist::DryRun && hook.side_effects == SideEffects::Some {
        let why = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(Failure::Refused(ApiError::bad_request(why)));
    }
    let version = hook.review.ok_or_else(|| {
        let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        Failure::Call(why.into())
    })?;
    let target = hook.target.as_ref();
    let target =
        target.map_err(|why| Failure::Call(format!("could not get REST client: {why}")))?;
    let uid = core.environment.uid();
    let question = version.question(&uid, review::request(asked, shown), object, old);
    let answered = callout::call(core, target, &question, Some(hook.timeout)).await;
    let answered =
        answered.map_err(|why| Failure::Call(format!("failed to call webhook: {why}")))?;
    Answer::read(&answered, &uid, role, version)
        .map_err(|why| Failure::Call(format!("received invalid webhook response: {why}")))
}

/// What a failure means for the request.
fn judge(hook: &Hook, failure: Failure) -> Result<(), ApiError> {
    match (failure, hook.on_failure) {
        (Failure::Refused(error), _) => Err(error),
        (Failure::Call(why), OnFailure::Ignore) => {
            tracing::warn!(webhook = hook.name, why, "webhook failed, and is ignored");
            Ok(())
        }
        (Failure::Call(why), OnFailure::Fail) => Err(ApiError::internal(format!(
            "failed calling webhook {:?}: {why}",
            hook.name
        ))),
    }
}
