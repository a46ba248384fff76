//! Asks the webhooks: those that change the object one after the other, those that look all at once.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::Value;

use super::hook::{Again, Hook, OnFailure, SideEffects};
use super::review::{self, Answer, Role, decode_patch};
use super::{Reinvocation, Webhooks};
use crate::admission::AdmissionContext;
use crate::admission::expression::Inputs;
use crate::flow::release_while;
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
        cx: AdmissionContext<'_>,
        object: &mut Value,
        old: &Value,
        rounds: &mut Reinvocation,
    ) -> Result<(), ApiError> {
        for configuration in self.mutating.all() {
            for hook in &configuration.hooks {
                let Some(call) = relevant(cx, hook, object, old).await? else {
                    continue;
                };
                if !rounds.wants(&hook.identity) {
                    continue;
                }
                match mutate_by(cx, &call, object, old).await {
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

    /// Calls the validating webhooks. Of several refusals the one of the first webhook is returned.
    pub(in crate::admission) async fn validate(
        &self,
        cx: AdmissionContext<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        let configurations = self.validating.all();
        let mut calls = Vec::new();
        for hook in configurations.iter().flat_map(|c| &c.hooks) {
            calls.extend(relevant(cx, hook, object, old).await?);
        }
        let answers = calls.iter().map(|call| validate_by(cx, call, object, old));
        let mut refusal = None;
        for (call, answer) in calls.iter().zip(join_all(answers).await) {
            let judged = answer.and_then(|answer| {
                cx.request.warnings.extend(answer.warnings.iter().cloned());
                answer.verdict(call.hook)
            });
            let judged = judged.or_else(|failure| judge(call.hook, failure));
            refusal = refusal.or(judged.err());
        }
        refusal.map_or(Ok(()), Err)
    }
}

/// A webhook that is to be asked, and the version at which it wants to see the object.
struct HookCall<'h> {
    hook: &'h Hook,
    shown: Arc<Served>,
}

/// The call of a webhook; nothing when the request does not concern it.
async fn relevant<'h>(
    cx: AdmissionContext<'_>,
    hook: &'h Hook,
    object: &Value,
    old: &Value,
) -> Result<Option<HookCall<'h>>, ApiError> {
    let criteria = hook.criteria.as_ref().map_err(ApiError::internal)?;
    let Some(shown) = criteria.matches(cx.chain, cx.request, object, old)? else {
        return Ok(None);
    };
    if hook.conditions.is_empty() {
        return Ok(Some(HookCall { hook, shown }));
    }
    let object = cx.shown_at(&shown, object.clone()).await?;
    let old = cx.shown_at(&shown, old.clone()).await?;
    let held = hook
        .conditions
        .hold(&Inputs::new(cx, &shown, &object, &old));
    match (held, hook.on_failure) {
        (Ok(true), _) => Ok(Some(HookCall { hook, shown })),
        (Ok(false), _) | (Err(_), OnFailure::Ignore) => Ok(None),
        (Err(why), OnFailure::Fail) => Err(cx.request.forbidden(&object, &why.to_string())),
    }
}

/// Asks a mutating webhook and applies its patch; says whether that changed the object.
async fn mutate_by(
    cx: AdmissionContext<'_>,
    call: &HookCall<'_>,
    object: &mut Value,
    old: &Value,
) -> Result<bool, Failure> {
    let hook = call.hook;
    let before = cx.shown_at(&call.shown, object.clone()).await;
    let before = before.map_err(Failure::Refused)?;
    let old = cx.shown_at(&call.shown, old.clone()).await;
    let old = old.map_err(Failure::Refused)?;
    let answer = ask(cx, call, Role::Mutating, &before, &old).await?;
    cx.request.warnings.extend(answer.warnings.iter().cloned());
    answer.verdict(hook)?;
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
        cx.chain
            .normalize(cx.request, &call.shown, &mut after, &before)
            .await
            .map_err(Failure::Refused)?;
        *object = after;
    }
    Ok(changed)
}

/// Asks a validating webhook. Its warnings and its verdict are in the answer, so that those of several webhooks that are
/// asked at once come in the order of the webhooks.
async fn validate_by(
    cx: AdmissionContext<'_>,
    call: &HookCall<'_>,
    object: &Value,
    old: &Value,
) -> Result<Answer, Failure> {
    let object = cx.shown_at(&call.shown, object.clone()).await;
    let object = object.map_err(Failure::Refused)?;
    let old = cx.shown_at(&call.shown, old.clone()).await;
    let old = old.map_err(Failure::Refused)?;
    ask(cx, call, Role::Validating, &object, &old).await
}

impl Answer {
    /// Refuses what the webhook refused.
    fn verdict(&self, hook: &Hook) -> Result<(), Failure> {
        if self.allowed {
            Ok(())
        } else {
            Err(Failure::Refused(self.refusal(&hook.name)))
        }
    }
}

async fn ask(
    cx: AdmissionContext<'_>,
    call: &HookCall<'_>,
    role: Role,
    object: &Value,
    old: &Value,
) -> Result<Answer, Failure> {
    let hook = call.hook;
    if cx.request.persist == Persist::DryRun && hook.side_effects == SideEffects::Some {
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
    let uid = cx.chain.environment.uid();
    let question = review::request(cx.request, &call.shown);
    let question = version.question(&uid, question, object, old);
    let callout = cx.chain.converter.callout();
    let answered = release_while(callout.call(target, &question, Some(hook.timeout))).await;
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
