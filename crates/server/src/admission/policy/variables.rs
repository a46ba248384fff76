//! Variables of a policy: expressions with names that other expressions use.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_schema::cel::{EvalError, Evaluated, Expression, Value as Cel};
use serde_json::Value;

use crate::admission::PolicyError;
use crate::admission::expression::{Compiled, EXPRESSION_BUDGET, Inputs, compile, message_of};
use crate::kinds::scope::SCOPE;
use crate::kinds::value::{items, text};

/// The most that one expression may cost.
const CALL_LIMIT: u64 = 1_000_000;

/// The variables of a policy, in the order in which they may use each other.
#[derive(Debug)]
pub(super) struct Variables(Vec<(Box<str>, Compiled)>);

impl Variables {
    pub(super) fn read(list: &Value) -> Self {
        let variables = items(list).iter().map(|variable| {
            let name = text(&variable["name"]);
            (name.into(), compile(text(&variable["expression"]), &SCOPE))
        });
        Self(variables.collect())
    }

    /// The variables that some expressions use, directly or by way of others.
    fn needed(&self, users: &[&Expression]) -> BTreeSet<&str> {
        let mut needed: BTreeSet<&str> = BTreeSet::new();
        let named = |expression: &Expression| -> Vec<String> {
            let fields = expression.fields_of("variables");
            fields.into_iter().map(str::to_owned).collect()
        };
        let mut wanted: BTreeSet<String> = users.iter().flat_map(|user| named(user)).collect();
        for (name, compiled) in self.0.iter().rev() {
            if wanted.contains(&**name) {
                needed.insert(name);
                wanted.extend(compiled.as_ref().map(named).unwrap_or_default());
            }
        }
        needed
    }

    /// Evaluates what these expressions need. A variable that fails does so where it is used.
    pub(super) fn evaluate<'a>(
        &'a self,
        users: &[&Expression],
        inputs: &'a Inputs<'_>,
        budget: &mut u64,
    ) -> BTreeMap<Box<str>, Evaluated<'a>> {
        let needed = self.needed(users);
        let mut results: BTreeMap<Box<str>, Evaluated<'a>> = BTreeMap::new();
        for (name, compiled) in self.0.iter().filter(|(name, _)| needed.contains(&**name)) {
            let result = match compiled {
                Err(why) => Err(EvalError::Failed(why.to_string())),
                Ok(expression) => evaluate(expression, inputs, results.clone(), budget),
            };
            let failed = |error: EvalError| match error {
                EvalError::Budget => error,
                other => EvalError::Failed(format!(
                    "composited variable {name:?} fails to evaluate: {other}"
                )),
            };
            results.insert(name.clone(), result.map_err(failed));
        }
        results
    }
}

/// Evaluates an expression of a policy.
pub(super) fn evaluate<'a>(
    expression: &'a Expression,
    inputs: &'a Inputs<'_>,
    variables: BTreeMap<Box<str>, Evaluated<'a>>,
    budget: &mut u64,
) -> Evaluated<'a> {
    let mut scope = inputs.variables();
    scope.push((SCOPE[5], Cel::results(variables)));
    let (result, spent) = expression.evaluate(scope, CALL_LIMIT.min(*budget));
    *budget = budget.saturating_sub(spent);
    result
}

/// What all expressions of a policy may cost together.
pub(super) fn budget() -> u64 {
    EXPRESSION_BUDGET
}

/// An error of an expression, as clients see it.
pub(super) fn failure(source: &str, error: &EvalError) -> PolicyError {
    match error {
        EvalError::Budget => PolicyError(message_of(error)),
        other => {
            let why = format!("expression '{}' resulted in error: {other}", source.trim());
            PolicyError(why)
        }
    }
}
