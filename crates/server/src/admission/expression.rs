//! Expressions over a request: what they can see, what they may cost, and conditions made of them.

use kubewright_schema::cel::{EvalError, Expression, Inquiry, Value as Cel};
use serde_json::Value;

use super::AdmissionContext;
use super::PolicyError;
use super::authority::Asker;
use crate::kinds::scope::{AUTHORIZER, NAMES, declare};
use crate::kinds::value::{items, text};
use crate::resource::Served;

/// What all conditions of a webhook or policy may cost together, as in Kubernetes.
const CONDITIONS_BUDGET: u64 = 2_500_000;
/// What one expression may cost.
pub(super) const EXPRESSION_BUDGET: u64 = 10_000_000;

/// What an expression can see. Absent values are null.
pub(super) struct Inputs<'c> {
    pub(super) object: Value,
    pub(super) old: Value,
    pub(super) request: Value,
    pub(super) namespace: Value,
    pub(super) params: Value,
    /// Whom to ask about access.
    pub(super) authority: Option<Asker<'c>>,
}

impl<'c> Inputs<'c> {
    /// A request, with the objects at the version that is shown.
    pub(super) fn new(
        cx: AdmissionContext<'c>,
        shown: &Served,
        object: &Value,
        old: &Value,
    ) -> Self {
        Self {
            object: object.clone(),
            old: old.clone(),
            request: super::webhook::request(cx.request, shown),
            namespace: Value::Null,
            params: Value::Null,
            authority: Some(Asker::new(cx.chain, cx.request)),
        }
    }

    pub(super) fn variables(&self) -> Vec<(&str, Cel<'_>)> {
        let values = [
            &self.object,
            &self.old,
            &self.request,
            &self.namespace,
            &self.params,
        ];
        let mut variables: Vec<_> = NAMES.into_iter().zip(values.map(Cel::dynamic)).collect();
        if let Some(asker) = &self.authority {
            let inquiry = Inquiry::new(asker, asker.request.clone());
            variables.push((AUTHORIZER, Cel::Inquiry(inquiry)));
        }
        variables
    }
}

/// An expression, or why it is none.
pub(super) type Compiled = Result<Expression, PolicyError>;

/// Compiles an expression that sees these variables.
pub(super) fn compile(source: &str, names: &[&str]) -> Compiled {
    Expression::compile(source, &declare(names))
        .map_err(|e| PolicyError(format!("compilation failed: {e}")))
}

/// Evaluates an expression to true or false.
pub(super) fn holds(
    expression: &Expression,
    variables: Vec<(&str, Cel<'_>)>,
    budget: &mut u64,
) -> Result<bool, PolicyError> {
    let (result, spent) = expression.evaluate(variables, *budget);
    *budget = budget.saturating_sub(spent);
    match result {
        Ok(Cel::Bool(value)) => Ok(value),
        Ok(_) => Err("the expression does not evaluate to bool".into()),
        Err(error) => Err(PolicyError(message_of(&error))),
    }
}

/// An error as the API server words it.
pub(super) fn message_of(error: &EvalError) -> String {
    match error {
        EvalError::Budget => {
            "validation failed due to running out of cost budget, no further validation rules will be run".into()
        }
        other => other.to_string(),
    }
}

/// What has to hold besides rules and selectors.
#[derive(Debug)]
pub(super) struct Conditions(Vec<Condition>);

#[derive(Debug)]
struct Condition {
    source: String,
    compiled: Compiled,
}

impl Conditions {
    /// Reads `matchConditions`.
    pub(super) fn read(list: &Value, names: &[&str]) -> Self {
        let conditions = items(list).iter().map(|condition| Condition {
            source: text(&condition["expression"]).trim().to_owned(),
            compiled: compile(text(&condition["expression"]), names),
        });
        Self(conditions.collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all hold. One that is false decides, whatever fails besides.
    pub(super) fn hold(&self, inputs: &Inputs<'_>) -> Result<bool, PolicyError> {
        let mut budget = CONDITIONS_BUDGET;
        let mut failures = Vec::new();
        for condition in &self.0 {
            let held = match &condition.compiled {
                Err(error) => Err(error.clone()),
                Ok(expression) => holds(expression, inputs.variables(), &mut budget),
            };
            match held {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(why) => failures.push(format!(
                    "expression '{}' resulted in error: {why}",
                    condition.source
                )),
            }
        }
        match failures.as_slice() {
            [] => Ok(true),
            [one] => Err(PolicyError(one.clone())),
            many => Err(PolicyError(format!("[{}]", many.join(", ")))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inputs() -> Inputs<'static> {
        Inputs {
            object: json!({"metadata": {"name": "a"}, "spec": {"n": 2}}),
            old: Value::Null,
            request: json!({"operation": "CREATE"}),
            namespace: Value::Null,
            params: Value::Null,
            authority: None,
        }
    }

    fn check(expressions: &[&str], expect: Result<bool, &str>) {
        let list: Vec<Value> = expressions
            .iter()
            .map(|e| json!({"name": "c", "expression": e}))
            .collect();
        let conditions = Conditions::read(&json!(list), &NAMES);
        let found = conditions.hold(&inputs());
        assert_eq!(found, expect.map_err(PolicyError::from), "{expressions:?}");
    }

    #[test]
    fn conditions_see_the_request() {
        check(
            &["object.spec.n == 2", "request.operation == 'CREATE'"],
            Ok(true),
        );
        check(&["oldObject == null"], Ok(true));
        check(&["object.metadata.name == 'b'"], Ok(false));
    }

    #[test]
    fn false_decides_over_failure() {
        let failure = "expression 'object.nothing' resulted in error: no such key: nothing";
        check(&["object.nothing"], Err(failure));
        check(&["object.nothing", "false"], Ok(false));
    }

    #[test]
    fn what_is_not_there_does_not_compile() {
        let why = compile("variables.x", &NAMES).map(drop).unwrap_err();
        let why = why.to_string();
        assert!(why.contains("undeclared reference to 'variables'"), "{why}");
    }
}
