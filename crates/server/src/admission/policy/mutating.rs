//! MutatingAdmissionPolicies.

use std::sync::Arc;

use http::StatusCode;
use kubewright_schema::Table;
use kubewright_schema::apply::Typed;
use kubewright_schema::cel::Expression;
use serde_json::Value;

use super::binding::{Application, applications};
use super::mutation::Mutation;
use super::validating::namespace;
use super::{OnFailure, Policies, variables};
use crate::admission::AdmissionContext;
use crate::admission::PolicyError;
use crate::admission::attributes::AdmissionRequest;
use crate::admission::expression::Inputs;
use crate::admission::webhook::Reinvocation;
use crate::object;
use crate::resource::Served;
use crate::status::ApiError;

impl Policies {
    /// Lets the mutating policies change an object, by the names of the policies.
    pub(in crate::admission) async fn mutate(
        &self,
        cx: AdmissionContext<'_>,
        object: &mut Value,
        old: &Value,
        rounds: &mut Reinvocation,
    ) -> Result<(), ApiError> {
        let policies = self.mutating.all();
        if policies.is_empty() {
            return Ok(());
        }
        let bindings = self.mutating_bindings.all();
        let found = applications(cx, policies, bindings, object, old).await?;
        let mut failures = Vec::new();
        for application in &found {
            let failed = apply(cx, application, object, old, rounds).await?;
            if application.policy.on_failure == OnFailure::Fail {
                failures.extend(failed.iter().map(|why| message_of(application, why)));
            }
        }
        refusal(cx.request, object, &failures)
    }
}

/// `policy 'p' with binding 'b' denied request: …`
fn message_of(application: &Application<Mutation>, why: &PolicyError) -> String {
    let (policy, binding) = (&application.policy.name, &application.binding.name);
    format!("policy '{policy}' with binding '{binding}' denied request: {why}")
}

fn refusal(
    request: &AdmissionRequest<'_>,
    object: &Value,
    failures: &[String],
) -> Result<(), ApiError> {
    let Some(first) = failures.first() else {
        return Ok(());
    };
    let error = request
        .forbidden(object, "admission request denied by policy")
        .because(StatusCode::FORBIDDEN, "Invalid")
        .saying(first);
    let add = |error: ApiError, failure: &String| error.with_cause("", failure, "");
    Err(failures.iter().fold(error, add))
}

/// Applies a policy once for each of its parameters, and gives what went wrong.
async fn apply(
    cx: AdmissionContext<'_>,
    application: &Application<Mutation>,
    object: &mut Value,
    old: &Value,
    rounds: &mut Reinvocation,
) -> Result<Vec<PolicyError>, ApiError> {
    let params = match &application.params {
        Ok(params) => params,
        Err(why) => {
            let why = format!("failed to configure binding: {why}");
            return Ok(vec![PolicyError(why)]);
        }
    };
    let (policy, shown) = (&application.policy, &application.shown);
    let mut failures = Vec::new();
    for param in params {
        let who = format!(
            "policy/{}/{}/{}/{}",
            policy.name,
            application.binding.name,
            object::namespace(param),
            object::name(param)
        );
        let mut inputs = inputs(cx, shown, object, old).await?;
        inputs.params = param.clone();
        match policy.conditions.hold(&inputs) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(why) => {
                failures.push(why);
                continue;
            }
        }
        if !rounds.wants(&who) {
            continue;
        }
        let before = object.clone();
        failures.extend(run(cx, application, object, &mut inputs).await?);
        if *object != before {
            rounds.changed();
        }
        if policy.again {
            rounds.remember(&who);
        }
    }
    Ok(failures)
}

async fn inputs<'c>(
    cx: AdmissionContext<'c>,
    shown: &Arc<Served>,
    object: &Value,
    old: &Value,
) -> Result<Inputs<'c>, ApiError> {
    let new = cx.shown_at(shown, object.clone()).await?;
    let old = cx.shown_at(shown, old.clone()).await?;
    let mut inputs = Inputs::new(cx, shown, &new, &old);
    inputs.namespace = namespace(cx)?;
    Ok(inputs)
}

/// Runs the mutations of a policy, each on what the one before it made.
async fn run(
    cx: AdmissionContext<'_>,
    application: &Application<Mutation>,
    object: &mut Value,
    inputs: &mut Inputs<'_>,
) -> Result<Vec<PolicyError>, ApiError> {
    let (policy, shown) = (&application.policy, &application.shown);
    let mut failures = Vec::new();
    if inputs.object.is_null() {
        return Ok(failures);
    }
    let mut budget = variables::budget();
    for mutation in &policy.rules {
        match mutated(cx.request, application, mutation, inputs, &mut budget) {
            Err(why) => failures.push(why),
            Ok(made) if made == inputs.object => {}
            Ok(mut made) => {
                cx.chain
                    .normalize(cx.request, shown, &mut made, &inputs.object)
                    .await?;
                *object = made.clone();
                inputs.object = cx.shown_at(shown, made).await?;
            }
        }
    }
    Ok(failures)
}

fn mutated(
    request: &AdmissionRequest<'_>,
    application: &Application<Mutation>,
    mutation: &Mutation,
    inputs: &Inputs<'_>,
    budget: &mut u64,
) -> Result<Value, PolicyError> {
    let users: Vec<&Expression> = mutation.expression().into_iter().collect();
    let variables = application
        .policy
        .variables
        .evaluate(&users, inputs, budget);
    let kind = request.kind();
    let typed = if kind.kind == *request.served.resource.kind {
        let (table, ty) = application.shown.ty();
        Typed::new(table, ty)
    } else {
        let table = Table::builtin();
        let ty = table.kind(&kind.group, &kind.version, &kind.kind);
        ty.map_or(Typed::deduced(table), |ty| Typed::new(table, ty))
    };
    mutation.apply(typed, inputs, variables, budget)
}
