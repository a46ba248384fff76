//! The Common Expression Language as Kubernetes speaks it: parsing, type checking, cost estimates and evaluation.
//!
//! An [`Expression`] is compiled once against the types of its variables and evaluated often, each time within a budget.
//! It has the libraries of Kubernetes 1.35: lists, regular expressions, URLs, IP addresses and CIDRs, quantities, semantic
//! versions, formats, optional values, two-variable comprehensions, the authorizer. Checks, estimates and messages are
//! those of the API server, so that an expression is accepted, refused or too expensive here when it is there.
//!
//! ```
//! use kubewright_cel::{Expression, Text, Type, Value, Variable};
//!
//! let variables = [Variable::new("replicas", Type::Int), Variable::new("image", Type::String)];
//! let rule = Expression::compile("replicas <= 5 && image.startsWith('registry.example/')", &variables)?;
//! assert_eq!(rule.ty(), &Type::Bool);
//!
//! let image = Value::Text(Text::Borrowed("registry.example/web:1"));
//! let values = vec![("replicas", Value::Int(3)), ("image", image)];
//! let (result, cost) = rule.evaluate(values, 1_000);
//! assert!(matches!(result, Ok(Value::Bool(true))));
//! assert!(cost > 0);
//!
//! let error = Expression::compile("replicas + image", &variables).unwrap_err();
//! assert!(error.to_string().contains("no matching overload"));
//! # Ok::<(), kubewright_cel::CompileError>(())
//! ```
//!
//! Values that a schema declares are read as they are asked for: a [`Declaration`] says what JSON looks like, and
//! [`Declaration::read`] makes a [`Value`] of it without a copy.
//!
//! Guarantees
//! - Nothing panics on foreign input. Expressions are limited in length, depth and size; evaluation stops at its budget.
//! - Nothing does I/O. Zones of time come with the program; what the authorizer says comes from an [`Authority`].
//!
//! Deliberately absent: selectors of the authorizer, and the construction of messages other than those of mutating
//! admission policies.
//!
//! The values that its libraries are about have modules of their own, which are useful alone: [`quantity`], [`names`],
//! [`formats`] and [`pattern`] (RE2 as Go understands it).

mod ast;
mod authority;
mod check;
mod cost;
mod declaration;
mod equal;
mod escape;
mod eval;
pub mod formats;
mod functions;
mod json;
mod lexer;
mod macros;
pub mod names;
mod parser;
pub mod pattern;
pub mod quantity;
mod signatures;
mod source;
mod time;
mod types;
mod value;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use self::ast::{Kind, Literal, Node};
use self::eval::Evaluator;
use self::pattern::Pattern;

use check::Construction;

pub use authority::{Authority, Inquiry, Question, Verdict};
pub use check::Variable;
pub use declaration::{Declaration, Form, ListKind, MAX_REQUEST, Object};
pub use escape::escape;
pub use functions::network::Cidr;
pub use functions::semver::Semver;
pub use functions::url::Url;
pub use source::CompileError;
pub use time::Moment;
pub use types::{Opaque, Type};
pub use value::{EvalError, Evaluated, Key, List, Map, Text, Value};

/// Most patterns that one expression keeps compiled.
const MAX_PATTERNS: usize = 100;

/// A compiled expression, which can be evaluated many times.
#[derive(Debug)]
pub struct Expression {
    node: Node,
    ty: Type,
    cost: u64,
    patterns: HashMap<Box<str>, Pattern>,
}

impl Variable {
    /// A variable of some type.
    pub fn new(name: &str, ty: Type) -> Self {
        Self {
            name: name.into(),
            ty,
            declaration: None,
        }
    }

    /// A variable that a schema declares.
    pub fn declared(name: &str, declaration: &Arc<Declaration>) -> Self {
        Self {
            name: name.into(),
            ty: Type::from(&**declaration),
            declaration: Some(Arc::clone(declaration)),
        }
    }

    /// The same variable, but it may be missing.
    #[must_use]
    pub fn optional(self) -> Self {
        Self {
            ty: Type::optional(self.ty),
            ..self
        }
    }
}

impl Expression {
    /// Compiles an expression that sees these variables.
    ///
    /// # Errors
    /// When it does not parse, or its types do not fit.
    ///
    /// # Examples
    /// ```
    /// use kubewright_cel::{Expression, Type, Value, Variable};
    ///
    /// let rule = Expression::compile("x < 10", &[Variable::new("x", Type::Int)]).unwrap();
    /// let (result, _) = rule.evaluate(vec![("x", Value::Int(3))], 1000);
    /// assert!(matches!(result, Ok(Value::Bool(true))));
    /// ```
    pub fn compile(source: &str, variables: &[Variable]) -> Result<Self, CompileError> {
        Self::compile_as(source, variables, Construction::Nothing)
    }

    /// As [`Expression::compile`], for an expression that makes a change to an object: it may construct `Object`, types
    /// of its fields such as `Object.spec`, and `JSONPatch`.
    ///
    /// # Errors
    /// When it does not parse, or its types do not fit.
    pub fn compile_mutation(source: &str, variables: &[Variable]) -> Result<Self, CompileError> {
        Self::compile_as(source, variables, Construction::Mutations)
    }

    fn compile_as(
        source: &str,
        variables: &[Variable],
        construction: Construction,
    ) -> Result<Self, CompileError> {
        let node = parser::parse(source)?;
        let checked = check::check(&node, variables, construction)
            .map_err(|issues| CompileError::new(source, issues))?;
        let mut patterns = HashMap::new();
        collect_patterns(&node, &mut patterns);
        Ok(Self {
            node,
            ty: checked.ty,
            cost: checked.estimate.cost,
            patterns,
        })
    }

    /// The type of its values.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Returns an upper estimate of what evaluating it may cost.
    pub fn estimated_cost(&self) -> u64 {
        self.cost
    }

    /// The fields of a variable that it names.
    pub fn fields_of(&self, variable: &str) -> Vec<&str> {
        let mut found = Vec::new();
        fields_of(&self.node, variable, &mut found);
        found
    }

    /// Whether it uses a variable.
    pub fn mentions(&self, variable: &str) -> bool {
        mentions(&self.node, variable)
    }

    /// Evaluates it, and tells what that has cost. At the limit it stops with [`EvalError::Budget`].
    pub fn evaluate<'a>(
        &'a self,
        variables: Vec<(&'a str, Value<'a>)>,
        limit: u64,
    ) -> (Evaluated<'a>, u64) {
        let mut evaluator = Evaluator::new(variables, &self.patterns, limit);
        let result = evaluator.node(&self.node);
        (result, evaluator.spent())
    }
}

impl Declaration {
    /// Reads data with this declaration.
    ///
    /// # Errors
    /// When the data is not what is declared.
    pub fn read<'a>(&'a self, data: &'a Json) -> Evaluated<'a> {
        json::value(data, self)
    }
}

/// The nodes directly below a node.
fn children(node: &Node) -> Vec<&Node> {
    match &node.kind {
        Kind::Literal(_) | Kind::Ident(_) => Vec::new(),
        Kind::Select(operand, _) | Kind::Has(operand, _) | Kind::OptionalSelect(operand, _) => {
            vec![operand]
        }
        Kind::Call(call) => call.target.iter().map(|t| &**t).chain(&call.args).collect(),
        Kind::And(nodes) | Kind::Or(nodes) => nodes.iter().collect(),
        Kind::Conditional(nodes) => nodes.iter().collect(),
        Kind::List(items) => items.iter().map(|item| &item.value).collect(),
        Kind::Map(entries) => entries
            .iter()
            .flat_map(|entry| [&entry.key, &entry.value])
            .collect(),
        Kind::Construct(construct) => construct.fields.iter().map(|f| &f.value).collect(),
        Kind::Fold(fold) => [&fold.range, &fold.body]
            .into_iter()
            .chain(&fold.filter)
            .collect(),
    }
}

fn collect_patterns(node: &Node, patterns: &mut HashMap<Box<str>, Pattern>) {
    if let Kind::Call(call) = &node.kind
        && matches!(&*call.function, "matches" | "find" | "findAll")
        && patterns.len() < MAX_PATTERNS
    {
        for argument in &call.args {
            if let Kind::Literal(Literal::Text(source)) = &argument.kind
                && let Ok(pattern) = Pattern::new(source)
            {
                patterns.insert(source.clone(), pattern);
            }
        }
    }
    for child in children(node) {
        collect_patterns(child, patterns);
    }
}

fn fields_of<'a>(node: &'a Node, variable: &str, found: &mut Vec<&'a str>) {
    if let Kind::Select(operand, field)
    | Kind::Has(operand, field)
    | Kind::OptionalSelect(operand, field) = &node.kind
        && matches!(&operand.kind, Kind::Ident(name) if **name == *variable)
    {
        found.push(field);
    }
    for child in children(node) {
        fields_of(child, variable, found);
    }
}

/// Whether a name is used outside of macros that give it another meaning.
fn mentions(node: &Node, name: &str) -> bool {
    match &node.kind {
        Kind::Ident(found) => **found == *name,
        Kind::Fold(fold) => {
            let hidden = *fold.variable == *name || fold.second.as_deref() == Some(name);
            let inner = || {
                fold.filter
                    .iter()
                    .chain([&fold.body])
                    .any(|n| mentions(n, name))
            };
            mentions(&fold.range, name) || (!hidden && inner())
        }
        _ => children(node)
            .into_iter()
            .any(|child| mentions(child, name)),
    }
}

#[cfg(test)]
mod tests;
