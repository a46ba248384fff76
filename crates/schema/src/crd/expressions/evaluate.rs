//! Holds objects to the rules of their schema.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::super::compile::CompiledVersion;
use super::super::failure::NOWHERE;
use super::super::ratchet::{self, OldItems};
use super::super::{path, step};
use super::message::{broken, default_message, failure, invalid, named};
use super::{Expressions, Node, Rule, declared_type};
use crate::cel::{EvalError, Value as CelValue};
use crate::field::FieldError;
use crate::go::sorted;
use crate::types::{Shape, TypeId};

/// Most that one evaluation may cost.
const CALL_LIMIT: u64 = 1_000_000;
/// Most that all evaluations of one object may cost.
const OBJECT_LIMIT: u64 = 10_000_000;
/// Longest message that an expression may make, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

impl Expressions {
    /// What the rules find in an object, compared with the old one on an update.
    pub(in super::super) fn evaluate(
        &self,
        version: &CompiledVersion,
        new: &Value,
        old: Option<&Value>,
    ) -> Vec<FieldError> {
        let place = Place {
            path: String::new(),
            ty: version.root,
            value: new,
            old,
            current: old.map(|old| (version.root, new, old)),
            parent: None,
        };
        self.evaluate_place(version, &place)
    }

    /// What the rules find in a default value of a type inside the schema. Rules that do not compile are reported
    /// elsewhere, and not here.
    pub(in super::super) fn evaluate_default(
        &self,
        version: &CompiledVersion,
        ty: TypeId,
        value: &Value,
    ) -> Vec<FieldError> {
        let mut rules = self.nodes.values().flat_map(|node| &node.rules);
        if rules.any(|rule| matches!(rule.compiled, Some(Err(_)))) {
            return Vec::new();
        }
        let place = Place {
            path: String::new(),
            ty,
            value,
            old: None,
            current: None,
            parent: None,
        };
        self.evaluate_place(version, &place)
    }

    fn evaluate_place(&self, version: &CompiledVersion, place: &Place<'_>) -> Vec<FieldError> {
        let mut walk = Walk {
            version,
            expressions: self,
            budget: OBJECT_LIMIT,
            compared: HashMap::new(),
            errors: Vec::new(),
        };
        // Running out of budget has been reported where it happened.
        let _ = walk.node(place);
        walk.errors
    }
}

/// A new value with the old one it correlates with.
type Pair<'a> = (TypeId, &'a Value, &'a Value);

/// A value and where it is.
struct Place<'a> {
    path: String,
    ty: TypeId,
    value: &'a Value,
    /// What `oldSelf` is.
    old: Option<&'a Value>,
    /// Decides whether an error is held against an update: the value itself if it correlates, else the closest value
    /// around it that does.
    current: Option<Pair<'a>>,
    parent: Option<Pair<'a>>,
}

/// The budget is spent; nothing more is evaluated.
struct Exhausted;

/// Why the expression that makes a message stopped, which ends the evaluation of all rules.
#[derive(Debug, thiserror::Error)]
enum MessageError {
    #[error(
        "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
    )]
    Budget,
    #[error(
        "no further validation rules will be run due to call cost exceeds limit for messageExpression: {0:?}"
    )]
    CallLimit(String),
}

struct Walk<'a> {
    version: &'a CompiledVersion,
    expressions: &'a Expressions,
    budget: u64,
    /// Which values have not changed, by their address: many items may ask about the same list.
    compared: HashMap<*const Value, bool>,
    errors: Vec<FieldError>,
}

impl<'a> Walk<'a> {
    /// Recursion follows the schema, whose depth is limited.
    fn node(&mut self, place: &Place<'a>) -> Result<(), Exhausted> {
        if place.value.is_null() || !self.expressions.on_the_way.contains(&place.ty) {
            return Ok(());
        }
        if let Some(node) = self.expressions.nodes.get(&place.ty) {
            self.rules(node, place)?;
        }
        match place.value {
            Value::Array(items) => self.items(place, items),
            Value::Object(map) => self.properties(place, map),
            _ => Ok(()),
        }
    }

    fn items(&mut self, place: &Place<'a>, items: &'a [Value]) -> Result<(), Exhausted> {
        let Some(item_type) = step::item(self.version.table.get(place.ty)).known() else {
            return Ok(());
        };
        let old_items = OldItems::new(self.version, place.ty, place.old);
        for (i, value) in items.iter().enumerate() {
            let old = old_items.find(value);
            let inner = inner(place, path::index(&place.path, i), item_type, value, old);
            self.node(&inner)?;
        }
        Ok(())
    }

    fn properties(
        &mut self,
        place: &Place<'a>,
        map: &'a Map<String, Value>,
    ) -> Result<(), Exhausted> {
        let ty = self.version.table.get(place.ty);
        let of_map = matches!(ty.shape, Shape::Map { .. });
        let root = place.path.is_empty() && place.ty == self.version.root;
        for (name, value) in sorted(map) {
            let mut child_type = step::property(ty, name).known();
            if root && name == "metadata" {
                child_type = self.version.metadata;
            }
            let Some(child_type) = child_type.filter(|ty| !self.version.is_imported(*ty)) else {
                continue;
            };
            let path = if of_map {
                path::key(&place.path, name)
            } else {
                path::child(&place.path, name)
            };
            let old = place.old.and_then(|old| old.get(name));
            let mut inner = inner(place, path, child_type, value, old);
            // Both are converted to one version, so changes of these cannot be seen.
            if root && matches!(name.as_str(), "apiVersion" | "kind") {
                (inner.current, inner.parent) = (None, None);
            }
            self.node(&inner)?;
        }
        Ok(())
    }

    fn rules(&mut self, node: &'a Node, place: &Place<'a>) -> Result<(), Exhausted> {
        let ty = declared_type(self.version.table.get(place.ty));
        let field = if place.path.is_empty() {
            NOWHERE
        } else {
            &place.path
        };
        let Some(declaration) = &node.declaration else {
            return Ok(());
        };
        let this = declaration.read(place.value);
        let old = place.old.map(|old| declaration.read(old)).transpose();
        let (this, old) = match (this, old) {
            (Ok(this), Ok(old)) => (this, old),
            (Err(error), _) | (_, Err(error)) => {
                for rule in &node.rules {
                    let detail = format!("{error} evaluating rule: {}", named(&rule.written));
                    self.errors.push(invalid(field, ty, &detail));
                }
                return Ok(());
            }
        };
        for rule in &node.rules {
            let case = Case {
                place,
                field,
                ty,
                this: &this,
                old: old.as_ref(),
            };
            self.rule(rule, &case)?;
        }
        Ok(())
    }

    fn rule(&mut self, rule: &'a Rule, case: &Case<'_, 'a>) -> Result<(), Exhausted> {
        let expression = match &rule.compiled {
            Some(Ok(expression)) => expression,
            Some(Err(detail)) => {
                let detail = format!("rule compile error: {detail}");
                self.errors.push(invalid(case.field, case.ty, &detail));
                return Ok(());
            }
            None => return Ok(()),
        };
        let optional = rule.written.optional_old_self == Some(true);
        if rule.uses_old_self && case.old.is_none() && !optional {
            return Ok(());
        }
        if self.budget == 0 {
            return self.exhausted(case);
        }
        let (result, spent) = expression.evaluate(case.variables(optional), CALL_LIMIT);
        if spent > self.budget {
            return self.exhausted(case);
        }
        self.budget -= spent;
        match result {
            Ok(CelValue::Bool(true)) => Ok(()),
            Ok(_) => self.broken(rule, case),
            Err(EvalError::Budget) => {
                let detail = format!(
                    "'{}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                    EvalError::Budget,
                    named(&rule.written)
                );
                self.errors.push(invalid(case.field, case.ty, &detail));
                Err(Exhausted)
            }
            Err(error) => {
                let detail = failure(&error.to_string(), &rule.written);
                self.errors.push(invalid(case.field, case.ty, &detail));
                Ok(())
            }
        }
    }

    fn exhausted(&mut self, case: &Case<'_, 'a>) -> Result<(), Exhausted> {
        let detail = "validation failed due to running out of cost budget, no further validation rules will be run";
        self.errors.push(invalid(case.field, case.ty, detail));
        Err(Exhausted)
    }

    /// A rule that does not hold is an error, unless the value was there before: rules that only compare with the
    /// old value are about the change, so they count always.
    fn broken(&mut self, rule: &'a Rule, case: &Case<'_, 'a>) -> Result<(), Exhausted> {
        let forgiven = !rule.uses_old_self && self.unchanged(case.place);
        let message = self.message(rule, case);
        let field = match rule.written.blamed.as_str() {
            "" => case.field.to_owned(),
            blamed => path::child(&case.place.path, blamed),
        };
        let (detail, result) = match message {
            Ok(Some(message)) => (message, Ok(())),
            Ok(None) => (default_message(&rule.written), Ok(())),
            Err(error) => {
                if !forgiven {
                    let detail = error.to_string();
                    self.errors.push(invalid(&field, case.ty, &detail));
                }
                return Err(Exhausted);
            }
        };
        if !forgiven {
            let value = (case.ty, case.place.value);
            let reason = rule.written.reason.as_deref();
            self.errors.push(broken(&field, value, &detail, reason));
        }
        result
    }

    fn unchanged(&mut self, place: &Place<'a>) -> bool {
        let Some((ty, new, old)) = place.current.or(place.parent) else {
            return false;
        };
        let version = self.version;
        let compared = self.compared.entry(std::ptr::from_ref(new));
        *compared.or_insert_with(|| ratchet::unchanged(version, ty, new, old))
    }

    /// The message that the rule's expression makes, if it makes a proper one.
    fn message(
        &mut self,
        rule: &'a Rule,
        case: &Case<'_, 'a>,
    ) -> Result<Option<String>, MessageError> {
        let Some(Ok(expression)) = &rule.message else {
            return Ok(None);
        };
        let (result, spent) = expression.evaluate(case.variables(false), CALL_LIMIT);
        if spent > self.budget {
            return Err(MessageError::Budget);
        }
        self.budget -= spent;
        match result {
            Ok(CelValue::Text(text)) => {
                let text = text.trim();
                let proper = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
                Ok(proper.then(|| text.to_owned()))
            }
            Err(EvalError::Budget) => {
                let source = rule.written.message_expression.clone();
                Err(MessageError::CallLimit(source))
            }
            _ => Ok(None),
        }
    }
}

/// One rule on one value.
struct Case<'c, 'a> {
    place: &'c Place<'a>,
    field: &'c str,
    /// The `type` of the schema.
    ty: &'static str,
    this: &'c CelValue<'a>,
    old: Option<&'c CelValue<'a>>,
}

impl<'a> Case<'_, 'a> {
    fn variables(&self, optional: bool) -> Vec<(&'a str, CelValue<'a>)> {
        let mut variables = vec![("self", self.this.clone())];
        match self.old {
            Some(old) if optional => variables.push(("oldSelf", CelValue::some(old.clone()))),
            Some(old) => variables.push(("oldSelf", old.clone())),
            None if optional => variables.push(("oldSelf", CelValue::Optional(None))),
            None => {}
        }
        variables
    }
}

/// A part of a value, and what it correlates with.
fn inner<'a>(
    place: &Place<'a>,
    path: String,
    ty: TypeId,
    value: &'a Value,
    old: Option<&'a Value>,
) -> Place<'a> {
    let (current, parent) = match place.current {
        None => (None, place.parent),
        here => (old.map(|old| (ty, value, old)), here),
    };
    Place {
        path,
        ty,
        value,
        old,
        current,
        parent,
    }
}
