//! What is wrong with the expressions of a policy, in the form of `validating/typechecking.go`. Pure.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{
    ExpressionWarning, ValidatingAdmissionPolicySpec,
};
use kube::core::GroupVersionKind;
use kubewright_schema::cel::{Declaration, Expression, Variable as Visible};

use super::scope::{self, Params};

/// A kind that a policy is about, and its type.
#[derive(Debug)]
pub(super) struct Matched {
    pub(super) kind: GroupVersionKind,
    pub(super) object: Arc<Declaration>,
}

/// A warning for each expression of the validations that does not fit one of the kinds.
pub(super) fn warnings(
    spec: &ValidatingAdmissionPolicySpec,
    matched: &[Matched],
    params: &Params,
) -> Vec<ExpressionWarning> {
    let scopes: Vec<(String, Vec<Visible>)> = matched
        .iter()
        .map(|matched| (shown(&matched.kind), visible(spec, &matched.object, params)))
        .collect();
    let mut found = Vec::new();
    for (at, validation) in spec.validations.iter().flatten().enumerate() {
        let message = validation.message_expression.as_deref();
        let expressions = [
            ("expression", Some(&*validation.expression)),
            ("messageExpression", message.filter(|text| !text.is_empty())),
        ];
        for (field, expression) in expressions {
            let Some(expression) = expression else {
                continue;
            };
            let misfits = scopes.iter().filter_map(|(kind, visible)| {
                let error = Expression::compile(expression, visible).err()?;
                Some(format!("{kind}: {error}\n"))
            });
            let misfits: Vec<String> = misfits.collect();
            if !misfits.is_empty() {
                found.push(ExpressionWarning {
                    field_ref: format!("spec.validations[{at}].{field}"),
                    warning: misfits.join("\n"),
                });
            }
        }
    }
    found
}

/// A kind as messages show it.
fn shown(kind: &GroupVersionKind) -> String {
    let GroupVersionKind {
        group,
        version,
        kind,
    } = kind;
    format!("{group}/{version}, Kind={kind}")
}

/// What the validations see of a request for an object of this type: variables as well, each of which sees those before it.
fn visible(
    spec: &ValidatingAdmissionPolicySpec,
    object: &Arc<Declaration>,
    params: &Params,
) -> Vec<Visible> {
    let mut visible = scope::of_request(object, params);
    let mut known = Vec::new();
    visible.push(scope::variables(&known));
    for variable in spec.variables.iter().flatten() {
        let compiled = Expression::compile(&variable.expression, &visible);
        // What is wrong with a variable is the server's to say; nothing is known of its values then.
        let declared = compiled.map_or_else(|_| scope::unknown(), |it| scope::as_field(it.ty()));
        known.push((variable.name.clone(), declared));
        visible.pop();
        visible.push(scope::variables(&known));
    }
    visible
}
