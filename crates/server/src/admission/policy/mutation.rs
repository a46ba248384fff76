//! One mutation of a policy: an expression that makes a patch, and the object that the patch makes.

use std::collections::BTreeMap;

use kubewright_schema::apply::{Typed, atomics, merge, validate};
use kubewright_schema::cel::{Evaluated, Expression, Value as Cel};
use kubewright_schema::patch::json::JsonPatch;
use serde_json::Value;

use super::variables::{self, failure};
use crate::admission::PolicyError;
use crate::admission::expression::{Compiled, Inputs};
use crate::kinds::scope::{SCOPE, declare};
use crate::kinds::value::{copy, text};

/// A mutation of a policy.
#[derive(Debug)]
pub(super) struct Mutation {
    form: Form,
    source: String,
    compiled: Compiled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    ApplyConfiguration,
    JsonPatch,
}

impl Mutation {
    pub(super) fn read(mutation: &Value) -> Self {
        let (form, field) = match text(&mutation["patchType"]) {
            "JSONPatch" => (Form::JsonPatch, "jsonPatch"),
            _ => (Form::ApplyConfiguration, "applyConfiguration"),
        };
        let source = text(&mutation[field]["expression"]);
        let compiled = Expression::compile_mutation(source, &declare(&SCOPE));
        Self {
            form,
            source: source.to_owned(),
            compiled: compiled.map_err(|e| PolicyError(format!("compilation failed: {e}"))),
        }
    }

    /// The expression, where it compiles.
    pub(super) fn expression(&self) -> Option<&Expression> {
        self.compiled.as_ref().ok()
    }

    /// What the mutation makes of the object of a request.
    pub(super) fn apply<'a>(
        &'a self,
        typed: Typed<'_>,
        inputs: &'a Inputs<'_>,
        variables: BTreeMap<Box<str>, Evaluated<'a>>,
        budget: &mut u64,
    ) -> Result<Value, PolicyError> {
        let expression = self.compiled.as_ref().map_err(Clone::clone)?;
        let value = variables::evaluate(expression, inputs, variables, budget);
        let value = value.map_err(|error| failure(&self.source, &error))?;
        let made = value
            .to_json()
            .map_err(|error| failure(&self.source, &error))?;
        match (self.form, &value) {
            (Form::ApplyConfiguration, Cel::Map(_)) => configure(typed, &inputs.object, made),
            (Form::ApplyConfiguration, _) => {
                Err("unsupported return type from ApplyConfiguration expression".into())
            }
            (Form::JsonPatch, Cel::List(_)) => patch(&inputs.object, &made),
            (Form::JsonPatch, _) => {
                Err("type mismatch: JSONPatchType.expression should evaluate to array".into())
            }
        }
    }
}

fn configure(typed: Typed<'_>, object: &Value, mut config: Value) -> Result<Value, PolicyError> {
    copy(&mut config, object, "apiVersion");
    copy(&mut config, object, "kind");
    validate(typed, &config).map_err(|errors| {
        format!("error applying patch: failed to convert patch object to typed object: {errors}")
    })?;
    let atomic = atomics(typed, &config);
    if !atomic.is_empty() {
        return Err(PolicyError(format!(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomic.join(", ")
        )));
    }
    Ok(merge(typed, object, &config))
}

/// Applies a patch. One whose test fails leaves the object as it is.
fn patch(object: &Value, operations: &Value) -> Result<Value, PolicyError> {
    let decoded = JsonPatch::decode(operations.to_string().as_bytes());
    let decoded = decoded.map_err(|e| format!("JSON Patch: {e}"))?;
    match decoded.apply(object.clone()) {
        Ok(patched) => Ok(patched),
        Err(error) if error.is_failed_test() => Ok(object.clone()),
        Err(error) => Err(PolicyError(format!("JSON Patch: {error}"))),
    }
}
