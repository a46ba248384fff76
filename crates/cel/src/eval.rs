//! Evaluates expressions and counts what it costs. The count is the API server's, and bounds time and memory: whatever
//! takes longer the more data there is, is charged for before it is done.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::rc::Rc;

use super::ast::{Call, Construct, Element, Entry, Kind, Literal, Node};
use super::cost;
use super::functions;
use super::types::type_named;
use super::value::{EvalError, Evaluated, Map, Text, Value, fail, no_overload};
use crate::pattern::Pattern;

mod fold;

/// Largest text that an expression may make, in bytes.
pub(crate) const MAX_TEXT: usize = 10 << 20;

/// The state of one evaluation.
pub(crate) struct Evaluator<'a> {
    /// Inner variables come last and hide outer ones.
    pub(super) scope: Vec<(&'a str, Value<'a>)>,
    /// Patterns of the expression, and those met while evaluating.
    patterns: &'a HashMap<Box<str>, Pattern>,
    met: HashMap<Box<str>, Pattern>,
    spent: u64,
    limit: u64,
    /// Work too small to be charged for by itself.
    small: u64,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(
        scope: Vec<(&'a str, Value<'a>)>,
        patterns: &'a HashMap<Box<str>, Pattern>,
        limit: u64,
    ) -> Self {
        Self {
            scope,
            patterns,
            met: HashMap::new(),
            spent: 0,
            limit,
            small: 0,
        }
    }

    /// What has been spent so far.
    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }

    /// Takes something from the budget.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.limit {
            return Err(EvalError::Budget);
        }
        Ok(())
    }

    /// Takes a tenth of something from the budget: the API server does not count such work, so as long as there is
    /// little of it, it shall not matter here either.
    pub(crate) fn work(&mut self, units: u64) -> Result<(), EvalError> {
        self.small = self.small.saturating_add(units);
        let whole = self.small / 10;
        self.small %= 10;
        self.charge(whole)
    }

    /// A compiled pattern; ones that are not in the expression itself are expensive.
    pub(crate) fn pattern(&mut self, source: &str) -> Result<Pattern, EvalError> {
        if let Some(known) = self.patterns.get(source).or_else(|| self.met.get(source)) {
            return Ok(known.clone());
        }
        let large = source.contains('{') || source.contains("\\p") || source.len() > 1000;
        self.charge(if large { 20_000 } else { 500 })?;
        let pattern = match Pattern::new(source) {
            Ok(pattern) => pattern,
            Err(error) => return fail(error.to_string()),
        };
        if self.met.len() < 64 {
            self.met.insert(source.into(), pattern.clone());
        }
        Ok(pattern)
    }

    /// Recursion follows the tree, whose depth the parser limits.
    pub(crate) fn node(&mut self, node: &'a Node) -> Evaluated<'a> {
        match &node.kind {
            Kind::Literal(literal) => Ok(literal_value(literal)),
            Kind::Ident(name) => self.identifier(name),
            Kind::Select(operand, field) => {
                let operand = self.node(operand)?;
                self.charge(cost::SELECT)?;
                select(&operand, field)
            }
            Kind::Has(operand, field) => {
                let operand = self.node(operand)?;
                has(&operand, field)
            }
            Kind::OptionalSelect(operand, field) => {
                let operand = self.node(operand)?;
                self.charge(cost::SELECT)?;
                optional_select(&operand, field)
            }
            Kind::Call(call) => self.call(call),
            Kind::And(nodes) => self.logic(nodes, false),
            Kind::Or(nodes) => self.logic(nodes, true),
            Kind::Conditional(nodes) => {
                let [condition, yes, no] = &**nodes;
                match self.node(condition)? {
                    Value::Bool(true) => self.node(yes),
                    Value::Bool(false) => self.node(no),
                    _ => no_overload(),
                }
            }
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Construct(construct) => self.construct(construct),
            Kind::Fold(fold) => self.fold(fold),
        }
    }

    fn identifier(&mut self, name: &str) -> Evaluated<'a> {
        self.charge(cost::SELECT)?;
        let found = self.scope.iter().rev().find(|(known, _)| *known == name);
        match (found, type_named(name)) {
            (Some((_, value)), _) => Ok(value.clone()),
            (None, Some(name)) => Ok(Value::Type(name)),
            (None, None) => fail(format!("no such attribute(s): {name}")),
        }
    }

    /// `||` is decided by the first `true`, `&&` by the first `false`; failures count only when nothing decides.
    fn logic(&mut self, nodes: &'a [Node], decisive: bool) -> Evaluated<'a> {
        let mut failure = None;
        for node in nodes {
            match self.node(node) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => {
                    failure = failure.or(Some(EvalError::Failed("no such overload".to_owned())))
                }
                Err(EvalError::Budget) => return Err(EvalError::Budget),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn list(&mut self, items: &'a [Element]) -> Evaluated<'a> {
        self.charge(cost::LIST)?;
        let mut made = Vec::with_capacity(items.len());
        for item in items {
            let value = self.node(&item.value)?;
            made.extend(unwrapped(value, item.optional)?);
        }
        Ok(Value::list(made))
    }

    fn map(&mut self, entries: &'a [Entry]) -> Evaluated<'a> {
        self.charge(cost::MAP)?;
        let mut made = BTreeMap::new();
        for entry in entries {
            let key = self.node(&entry.key)?;
            let value = self.node(&entry.value)?;
            let Some(value) = unwrapped(value, entry.optional)? else {
                continue;
            };
            if made.insert(key.key()?, (key, value)).is_some() {
                return fail("Failed with repeated key");
            }
        }
        Ok(Value::Map(Map::Made(Rc::new(made))))
    }

    fn construct(&mut self, construct: &'a Construct) -> Evaluated<'a> {
        self.charge(cost::MAP)?;
        let mut made = BTreeMap::new();
        for field in &construct.fields {
            let value = self.node(&field.value)?;
            if let Some(value) = unwrapped(value, field.optional)? {
                let key = Value::Text(Text::Borrowed(&field.name));
                made.insert(key.key()?, (key, value));
            }
        }
        Ok(Value::Map(Map::Made(Rc::new(made))))
    }

    fn call(&mut self, call: &'a Call) -> Evaluated<'a> {
        let mut arguments = Vec::with_capacity(call.args.len() + 1);
        if let Some(target) = &call.target {
            arguments.push(self.node(target)?);
        }
        for argument in &call.args {
            arguments.push(self.node(argument)?);
        }
        functions::call(self, &call.function, &arguments)
    }
}

fn literal_value(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::Text(text) => Value::Text(Text::Borrowed(text)),
        Literal::Bytes(bytes) => Value::Bytes((**bytes).into()),
    }
}

/// An item of a literal: optional ones may be missing.
fn unwrapped(value: Value<'_>, optional: bool) -> Result<Option<Value<'_>>, EvalError> {
    match value {
        Value::Optional(inner) if optional => Ok(inner.map(|inner| (*inner).clone())),
        _ if optional => no_overload(),
        value => Ok(Some(value)),
    }
}

pub(super) fn select<'a>(operand: &Value<'a>, field: &str) -> Evaluated<'a> {
    match operand {
        Value::Map(map) => match map.field(field) {
            Some(value) => value,
            None => fail(format!("no such key: {field}")),
        },
        Value::Optional(Some(inner)) => optional_select(inner, field),
        Value::Optional(None) => Ok(Value::Optional(None)),
        Value::Inquiry(inquiry) if field == "requestResource" => {
            Ok(Value::Inquiry(inquiry.about_request()))
        }
        _ => no_overload(),
    }
}

fn optional_select<'a>(operand: &Value<'a>, field: &str) -> Evaluated<'a> {
    match operand {
        Value::Map(map) => match map.field(field) {
            Some(value) => Ok(Value::some(value?)),
            None => Ok(Value::Optional(None)),
        },
        Value::Optional(Some(inner)) => optional_select(inner, field),
        Value::Optional(None) | Value::Null => Ok(Value::Optional(None)),
        _ => no_overload(),
    }
}

/// Whether a field is there, be it `null`.
fn has<'a>(operand: &Value<'a>, field: &str) -> Evaluated<'a> {
    match operand {
        Value::Map(map) => Ok(Value::Bool(map.field(field).is_some())),
        Value::Optional(Some(inner)) => has(inner, field),
        Value::Optional(None) => Ok(Value::Bool(false)),
        _ => no_overload(),
    }
}
