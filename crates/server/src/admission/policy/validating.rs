//! ValidatingAdmissionPolicies.

use http::StatusCode;
use kubewright_schema::cel::{Expression, Value as Cel};
use serde_json::Value;

use super::binding::{Application, applications};
use super::definition::Definition;
use super::variables::{self, failure};
use super::{OnFailure, Policies};
use crate::admission::expression::{Compiled, Inputs, compile};
use crate::admission::lookup;
use crate::admission::{AdmissionContext, PolicyError};
use crate::kinds::scope::SCOPE;
use crate::kinds::value::text;
use crate::object;
use crate::status::ApiError;

/// Longest message that an expression may make.
const MAX_MESSAGE: usize = 5 * 1024;

/// One rule of a policy.
#[derive(Debug)]
pub(super) struct Validation {
    source: String,
    compiled: Compiled,
    message: String,
    message_expression: Option<Compiled>,
    reason: String,
}

/// Why a policy is against a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Denial {
    message: String,
    /// Empty for the usual one.
    reason: String,
}

impl Validation {
    pub(super) fn read(rule: &Value) -> Self {
        let expression = text(&rule["messageExpression"]);
        Self {
            source: text(&rule["expression"]).to_owned(),
            compiled: compile(text(&rule["expression"]), &SCOPE),
            message: text(&rule["message"]).trim().to_owned(),
            message_expression: (!expression.is_empty()).then(|| compile(expression, &SCOPE)),
            reason: text(&rule["reason"]).to_owned(),
        }
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let message = self.message_expression.iter();
        [&self.compiled]
            .into_iter()
            .chain(message)
            .filter_map(|c| c.as_ref().ok())
    }
}

impl Definition<Validation> {
    /// What the policy has against a request.
    fn judge(&self, inputs: &Inputs<'_>) -> Vec<Denial> {
        let error = |why: PolicyError| Denial {
            message: why.to_string(),
            reason: String::new(),
        };
        let errors = |why: PolicyError| match self.on_failure {
            OnFailure::Ignore => Vec::new(),
            OnFailure::Fail => vec![error(why)],
        };
        match self.conditions.hold(inputs) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(why) => return errors(why),
        }
        let mut budget = variables::budget();
        let users: Vec<&Expression> = self
            .rules
            .iter()
            .flat_map(Validation::expressions)
            .collect();
        let results = self.variables.evaluate(&users, inputs, &mut budget);
        let mut denials = Vec::new();
        for rule in &self.rules {
            let value = match &rule.compiled {
                Err(why) => Err(why.clone()),
                Ok(expression) => {
                    let value =
                        variables::evaluate(expression, inputs, results.clone(), &mut budget);
                    value.map_err(|error| failure(&rule.source, &error))
                }
            };
            match value {
                Ok(Cel::Bool(true)) => {}
                Err(why) => denials.extend(errors(why)),
                Ok(_) => {
                    let message = rule.message_expression.as_ref().and_then(|compiled| {
                        let expression = compiled.as_ref().ok()?;
                        let value =
                            variables::evaluate(expression, inputs, results.clone(), &mut budget);
                        fit_to_tell(value.ok()?)
                    });
                    denials.push(rule.denial(message));
                }
            }
        }
        denials
    }
}

/// A message that an expression made, if it is one line of reasonable length.
fn fit_to_tell(value: Cel<'_>) -> Option<String> {
    let Cel::Text(text) = value else { return None };
    let message = text.trim();
    let fits = !message.is_empty() && message.len() <= MAX_MESSAGE && !message.contains('\n');
    fits.then(|| message.to_owned())
}

impl Validation {
    fn denial(&self, evaluated: Option<String>) -> Denial {
        let message = match (evaluated, self.message.as_str()) {
            (Some(evaluated), _) => evaluated,
            (None, "") => format!("failed expression: {}", self.source.trim()),
            (None, message) => message.to_owned(),
        };
        Denial {
            message,
            reason: self.reason.clone(),
        }
    }
}

impl Policies {
    /// Asks the validating policies. The first denial is the answer; later ones do not change it.
    pub(in crate::admission) async fn validate(
        &self,
        cx: AdmissionContext<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        let policies = self.validating.all();
        if policies.is_empty() {
            return Ok(());
        }
        let bindings = self.validating_bindings.all();
        let found = applications(cx, policies, bindings, object, old).await?;
        let mut refusal = None;
        for application in found {
            for denial in judge(cx, &application, object, old).await? {
                let refused = act(cx, &application, &denial, object);
                refusal = refusal.or(refused);
            }
        }
        refusal.map_or(Ok(()), Err)
    }
}

async fn judge(
    cx: AdmissionContext<'_>,
    application: &Application<Validation>,
    object: &Value,
    old: &Value,
) -> Result<Vec<Denial>, ApiError> {
    let policy = &application.policy;
    let params = match (&application.params, policy.on_failure) {
        (Ok(params), _) => params,
        (Err(_), OnFailure::Ignore) => return Ok(Vec::new()),
        (Err(why), OnFailure::Fail) => {
            return Ok(vec![Denial {
                message: format!("failed to configure binding: {why}"),
                reason: String::new(),
            }]);
        }
    };
    let shown = &application.shown;
    let new = cx.shown_at(shown, object.clone()).await?;
    let old = cx.shown_at(shown, old.clone()).await?;
    let mut inputs = Inputs::new(cx, shown, &new, &old);
    inputs.namespace = namespace(cx)?;
    let mut denials = Vec::new();
    for param in params {
        inputs.params = param.clone();
        denials.extend(policy.judge(&inputs));
    }
    Ok(denials)
}

/// The namespace of a request, as expressions see it.
pub(super) fn namespace(cx: AdmissionContext<'_>) -> Result<Value, ApiError> {
    let Some(name) = cx.request.namespace else {
        return Ok(Value::Null);
    };
    let mut namespace = lookup::namespace(cx.chain, name)?.unwrap_or_default();
    object::remove_meta(&mut namespace, "managedFields");
    Ok(namespace)
}

/// What a denial leads to: a refusal, a warning, or nothing that the client sees.
fn act(
    cx: AdmissionContext<'_>,
    application: &Application<Validation>,
    denial: &Denial,
    object: &Value,
) -> Option<ApiError> {
    let (policy, binding) = (&application.policy.name, &application.binding.name);
    let does = |action: &str| application.binding.actions.iter().any(|a| a == action);
    if does("Warn") {
        cx.request.warnings.extend([format!(
            "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {}",
            denial.message
        )]);
    }
    does("Deny").then(|| {
        let message = format!(
            "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {}",
            denial.message
        );
        let (code, reason) = match denial.reason.as_str() {
            "Unauthorized" => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            "Forbidden" => (StatusCode::FORBIDDEN, "Forbidden"),
            "RequestEntityTooLarge" => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
            _ => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
        };
        let error = cx.request.forbidden(object, &message).because(code, reason);
        error.with_cause("", &message, "")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge(spec: Value, object: Value) -> Vec<String> {
        let policy = json!({"metadata": {"name": "p"}, "spec": spec});
        let policy = Definition::read(&policy, "validations", Validation::read);
        let inputs = Inputs {
            object,
            old: Value::Null,
            request: json!({"operation": "CREATE"}),
            namespace: json!({"metadata": {"name": "n"}}),
            params: json!({"most": 3}),
            authority: None,
        };
        policy
            .judge(&inputs)
            .into_iter()
            .map(|d| d.message)
            .collect()
    }

    #[test]
    fn denials_have_the_message_that_fits_best() {
        let object = json!({"spec": {"n": 5}});
        let rule = |more: Value| {
            let mut rule = json!({"expression": "object.spec.n <= params.most"});
            rule.as_object_mut()
                .expect("a rule")
                .extend(more.as_object().cloned().unwrap_or_default());
            json!({"validations": [rule]})
        };
        for (spec, expect) in [
            (
                rule(json!({})),
                "failed expression: object.spec.n <= params.most",
            ),
            (rule(json!({"message": "too many"})), "too many"),
            (
                rule(
                    json!({"message": "too many", "messageExpression": "'at most ' + string(params.most)"}),
                ),
                "at most 3",
            ),
            (
                rule(json!({"message": "too many", "messageExpression": "object.none"})),
                "too many",
            ),
        ] {
            assert_eq!(judge(spec, object.clone()), [expect]);
        }
        assert!(judge(rule(json!({})), json!({"spec": {"n": 3}})).is_empty());
    }

    #[test]
    fn variables_are_evaluated_when_they_are_used() {
        let spec = json!({
            "variables": [
                {"name": "n", "expression": "object.spec.n"},
                {"name": "twice", "expression": "variables.n * 2"},
                {"name": "broken", "expression": "object.none.at.all"},
            ],
            "validations": [
                {"expression": "variables.twice < 5"},
                {"expression": "object.spec.n > 0 || variables.broken"},
                {"expression": "variables.broken == 1"},
            ],
        });
        assert_eq!(
            judge(spec, json!({"spec": {"n": 3}})),
            [
                "failed expression: variables.twice < 5",
                "expression 'variables.broken == 1' resulted in error: composited variable \"broken\" fails to evaluate: no such key: none",
            ]
        );
    }

    #[test]
    fn failures_can_be_ignored_but_denials_cannot() {
        let rules =
            json!([{"expression": "object.none"}, {"expression": "false", "message": "no"}]);
        let spec = json!({"failurePolicy": "Ignore", "validations": rules});
        assert_eq!(judge(spec, json!({})), ["no"]);
        let conditions = json!([{"name": "c", "expression": "request.operation == 'UPDATE'"}]);
        let spec = json!({"matchConditions": conditions, "validations": rules});
        assert!(judge(spec, json!({})).is_empty());
    }
}
