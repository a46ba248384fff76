//! `x-kubernetes-validations`: rules that a CRD's author writes as expressions.
//!
//! They are compiled with the schema. What is wrong with them is reported when the CRD is written
//! ([`definition_errors`]); objects are held to them by [`Expressions::evaluate`].

mod declare;
mod definition;
mod evaluate;
mod message;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::compile::CompiledVersion;
use crate::cel::{CompileError, Declaration, Expression, Type as CelType, Variable};
use crate::rules::{JsonType, Validation};
use crate::types::{Scalar, Shape, Type, TypeId};

use declare::Declarer;
pub(super) use definition::{Costs, definition_errors};

/// The compiled rules of a version.
#[derive(Debug)]
pub(super) struct Expressions {
    nodes: HashMap<TypeId, Node>,
    /// Types with rules on them or anywhere below.
    on_the_way: HashSet<TypeId>,
}

/// A type with rules.
#[derive(Debug)]
struct Node {
    /// Absent when expressions cannot see values of the type at all.
    declaration: Option<Arc<Declaration>>,
    rules: Vec<Rule>,
}

/// A compiled rule.
#[derive(Debug)]
struct Rule {
    written: Validation,
    /// Why it does not compile, if it does not; nothing for an empty rule.
    compiled: Option<Result<Expression, ExpressionError>>,
    message: Option<Result<Expression, ExpressionError>>,
    uses_old_self: bool,
}

/// Why an expression of a rule cannot be used.
#[derive(Debug, thiserror::Error)]
enum ExpressionError {
    #[error("compilation failed: {0}")]
    Rule(CompileError),
    #[error("cel expression must evaluate to a bool")]
    NotABool,
    #[error("messageExpression compilation failed: {0}")]
    Message(CompileError),
    #[error("messageExpression must evaluate to a string")]
    NotAString,
}

impl Expressions {
    pub(super) fn compile(version: &CompiledVersion) -> Self {
        let mut expressions = Self {
            nodes: HashMap::new(),
            on_the_way: HashSet::new(),
        };
        let mut declarer = Declarer::new(version);
        expressions.node(version, version.root, &mut declarer);
        if let Some(metadata) = version.metadata
            && expressions.node(version, metadata, &mut declarer)
        {
            expressions.on_the_way.insert(version.root);
        }
        expressions
    }

    /// Compiles the rules of a type and of all below it; tells whether there are any. Recursion follows the schema,
    /// whose depth is limited.
    fn node(&mut self, version: &CompiledVersion, id: TypeId, declarer: &mut Declarer<'_>) -> bool {
        if version.is_imported(id) {
            return false;
        }
        let ty = version.table.get(id);
        let mut found = false;
        for child in children(ty) {
            found |= self.node(version, child, declarer);
        }
        let written = ty.rules.as_ref().map_or(&[][..], |r| &r.expressions);
        if !written.is_empty() {
            let declaration = declarer.declare(id);
            let rules = written
                .iter()
                .map(|rule| compile(rule, declaration.as_ref()));
            let rules = rules.collect();
            self.nodes.insert(id, Node { declaration, rules });
            found = true;
        }
        if found {
            self.on_the_way.insert(id);
        }
        found
    }
}

fn children(ty: &Type) -> Vec<TypeId> {
    match &ty.shape {
        Shape::Struct(object) => object.fields().iter().map(|field| field.ty).collect(),
        Shape::Map { value, .. } => vec![*value],
        Shape::List(list) => vec![list.item],
        Shape::Scalar(_) | Shape::Any => Vec::new(),
    }
}

fn compile(written: &Validation, declaration: Option<&Arc<Declaration>>) -> Rule {
    let mut rule = Rule {
        written: written.clone(),
        compiled: None,
        message: None,
        uses_old_self: false,
    };
    let Some(declaration) = declaration.filter(|_| !written.rule.trim().is_empty()) else {
        return rule;
    };
    let old = Variable::declared("oldSelf", declaration);
    let old = if written.optional_old_self == Some(true) {
        old.optional()
    } else {
        old
    };
    let variables = [Variable::declared("self", declaration), old];
    let compiled = rule_expression(&written.rule, &variables);
    rule.uses_old_self = compiled.as_ref().is_ok_and(|e| e.mentions("oldSelf"));
    if compiled.is_ok() && !written.message_expression.is_empty() {
        rule.message = Some(message_expression(&written.message_expression, &variables));
    }
    rule.compiled = Some(compiled);
    rule
}

fn rule_expression(source: &str, variables: &[Variable]) -> Result<Expression, ExpressionError> {
    let expression = Expression::compile(source, variables).map_err(ExpressionError::Rule)?;
    if expression.ty() == &CelType::Bool {
        Ok(expression)
    } else {
        Err(ExpressionError::NotABool)
    }
}

fn message_expression(source: &str, variables: &[Variable]) -> Result<Expression, ExpressionError> {
    let expression = Expression::compile(source, variables).map_err(ExpressionError::Message)?;
    if expression.ty() == &CelType::String {
        Ok(expression)
    } else {
        Err(ExpressionError::NotAString)
    }
}

/// The `type` that the schema declares, empty where it declares none.
fn declared_type(ty: &Type) -> &'static str {
    let types = ty.rules.as_ref().and_then(|rules| rules.types.as_ref());
    if types.is_some_and(Vec::is_empty) {
        return "";
    }
    match &ty.shape {
        Shape::Struct(_) | Shape::Map { .. } => JsonType::Object.as_str(),
        Shape::List(_) => JsonType::Array.as_str(),
        Shape::Any | Shape::Scalar(Scalar::IntOrString) => "",
        Shape::Scalar(Scalar::Bool) => JsonType::Boolean.as_str(),
        Shape::Scalar(Scalar::Int32 | Scalar::Int64) => JsonType::Integer.as_str(),
        Shape::Scalar(Scalar::Double) => JsonType::Number.as_str(),
        Shape::Scalar(_) => JsonType::String.as_str(),
    }
}

#[cfg(test)]
mod tests;
