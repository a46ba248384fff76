//! Checks the types of an expression and estimates its cost on the way.

mod construct;
mod fold;

use std::sync::Arc;

use super::ast::{Call, Entry, Kind, Literal, Node};
use super::cost::{self, Argument, Estimate};
use super::declaration::Declaration;
use super::signatures::{self, Overload};
use super::source::Issue;
use super::types::{Bindings, Opaque, Type, type_named};

/// A variable that an expression can use.
#[derive(Debug, Clone)]
pub struct Variable {
    pub(crate) name: Box<str>,
    pub(crate) ty: Type,
    pub(crate) declaration: Option<Arc<Declaration>>,
}

/// What is known of an expression after checking it.
pub(crate) struct Checked {
    pub(crate) ty: Type,
    pub(crate) estimate: Estimate,
}

/// What an expression may construct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Construction {
    Nothing,
    /// Parts of objects, and JSON patches.
    Mutations,
}

/// Checks an expression that sees these variables.
pub(crate) fn check(
    node: &Node,
    variables: &[Variable],
    construction: Construction,
) -> Result<Checked, Vec<Issue>> {
    let mut checker = Checker {
        scope: variables
            .iter()
            .map(|variable| Local {
                name: &variable.name,
                ty: variable.ty.clone(),
                estimate: Estimate::declared(cost::SELECT, variable.declaration.clone()),
            })
            .collect(),
        bindings: Bindings::default(),
        mixed: false,
        construction,
        issues: Vec::new(),
    };
    let mut checked = checker.node(node);
    if !checker.issues.is_empty() {
        return Err(checker.issues);
    }
    checked.ty = checker.bindings.settle(&checked.ty);
    Ok(checked)
}

struct Local<'a> {
    name: &'a str,
    ty: Type,
    estimate: Estimate,
}

struct Checker<'a> {
    /// Inner variables come last and hide outer ones.
    scope: Vec<Local<'a>>,
    bindings: Bindings,
    /// Inside of the arguments of `format`, where lists may hold anything.
    mixed: bool,
    construction: Construction,
    issues: Vec<Issue>,
}

impl<'a> Checker<'a> {
    fn fail(&mut self, at: usize, message: String) -> Type {
        self.issues.push(Issue { at, message });
        Type::Error
    }

    fn mismatch(&mut self, at: usize, expected: &Type, found: &Type) -> Type {
        let expected = self.bindings.settle(expected);
        let found = self.bindings.settle(found);
        self.fail(
            at,
            format!("expected type '{expected}' but found '{found}'"),
        )
    }

    /// Recursion follows the tree, whose depth the parser limits.
    fn node(&mut self, node: &'a Node) -> Checked {
        let (ty, estimate) = match &node.kind {
            Kind::Literal(literal) => (literal_type(literal), Estimate::literal(literal)),
            Kind::Ident(name) => self.identifier(node.at, name),
            Kind::Select(operand, field) => {
                let operand = self.node(operand);
                let ty = self.field(node.at, &operand.ty, field);
                (ty, operand.estimate.select(&operand.ty, field))
            }
            Kind::Has(operand, field) => {
                let operand = self.node(operand);
                self.field(node.at, &operand.ty, field);
                (Type::Bool, Estimate::costing(operand.estimate.cost))
            }
            Kind::OptionalSelect(operand, field) => {
                let operand = self.node(operand);
                let found = self.field(node.at, &operand.ty, field);
                let estimate = operand.estimate.select(&operand.ty, field);
                (optional_once(found), estimate)
            }
            Kind::Call(call) => self.call(node.at, call),
            Kind::And(nodes) | Kind::Or(nodes) => self.logic(nodes),
            Kind::Conditional(nodes) => self.conditional(node.at, nodes),
            Kind::List(items) => {
                let items = items.iter().map(|item| (&item.value, item.optional));
                let (item, estimate) = self.items(items);
                (Type::list(item), estimate)
            }
            Kind::Map(entries) => self.map(entries),
            Kind::Construct(construct) => self.construct(node.at, construct),
            Kind::Fold(fold) => self.fold(node.at, fold),
        };
        Checked {
            ty: self.bindings.resolve(&ty),
            estimate,
        }
    }

    fn undeclared(&mut self, at: usize, name: &str) -> Type {
        self.fail(
            at,
            format!("undeclared reference to '{name}' (in container '')"),
        )
    }

    fn identifier(&mut self, at: usize, name: &str) -> (Type, Estimate) {
        if let Some(local) = self.scope.iter().rev().find(|local| local.name == name) {
            return (local.ty.clone(), local.estimate.clone());
        }
        if type_named(name).is_some() {
            return (Type::Type, Estimate::costing(cost::SELECT));
        }
        (self.undeclared(at, name), Estimate::default())
    }

    /// The type of a field; of an optional object it is optional too.
    fn field(&mut self, at: usize, operand: &Type, field: &str) -> Type {
        match operand {
            Type::Optional(inner) => {
                let inner = self.bindings.resolve(inner);
                optional_once(self.field(at, &inner, field))
            }
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => match object.field(field) {
                Some(field) => Type::from(&*field.declaration),
                None => self.fail(at, format!("undefined field '{field}'")),
            },
            Type::Opaque(Opaque::Authorizer) if field == "requestResource" => {
                Type::Opaque(Opaque::ResourceCheck)
            }
            Type::Dyn | Type::Error | Type::Variable(_) => Type::Dyn,
            other => {
                let other = self.bindings.settle(other);
                self.fail(
                    at,
                    format!("type '{other}' does not support field selection"),
                );
                Type::Dyn
            }
        }
    }

    fn logic(&mut self, nodes: &'a [Node]) -> (Type, Estimate) {
        let mut cost = 0u64;
        for node in nodes {
            let checked = self.node(node);
            cost = cost.saturating_add(checked.estimate.cost);
            if !self.bindings.assign(&checked.ty, &Type::Bool) {
                self.mismatch(node.at, &Type::Bool, &checked.ty);
            }
        }
        (Type::Bool, Estimate::costing(cost))
    }

    fn conditional(&mut self, at: usize, nodes: &'a [Node; 3]) -> (Type, Estimate) {
        let [condition, yes, no] = nodes.each_ref().map(|node| self.node(node));
        let sizes = (
            yes.estimate.known_size(&yes.ty),
            no.estimate.known_size(&no.ty),
        );
        let branch = yes.estimate.cost.max(no.estimate.cost);
        let estimate = Estimate {
            cost: condition.estimate.cost.saturating_add(branch),
            size: sizes.0.zip(sizes.1).map(|(yes, no)| yes.max(no)),
            ..Estimate::default()
        };
        let fits = self.bindings.assign(&condition.ty, &Type::Bool);
        let ty = fits.then(|| self.bindings.join(&yes.ty, &no.ty)).flatten();
        let ty = ty.unwrap_or_else(|| {
            let types = [condition.ty, yes.ty, no.ty];
            self.no_overload(at, "_?_:_", &types, false)
        });
        (ty, estimate)
    }

    /// The common type of the items of a literal.
    fn items(&mut self, items: impl Iterator<Item = (&'a Node, bool)>) -> (Type, Estimate) {
        let mut common: Option<Type> = None;
        let mut estimate = Estimate {
            cost: cost::LIST,
            size: Some(0),
            items: Some(0),
            ..Estimate::default()
        };
        for (node, optional) in items {
            let checked = self.node(node);
            let size = checked.estimate.known_size(&checked.ty);
            estimate.cost = estimate.cost.saturating_add(checked.estimate.cost);
            estimate.size = estimate.size.map(|count| count + 1);
            estimate.items = estimate.items.zip(size).map(|(a, b)| a.max(b));
            let ty = self.item(node.at, checked.ty, optional);
            common = Some(match common {
                None => ty,
                Some(common) => self.common(node.at, common, ty),
            });
        }
        (common.unwrap_or_else(|| self.bindings.fresh()), estimate)
    }

    /// Items are all of one type, except in the arguments of `format`.
    fn common(&mut self, at: usize, first: Type, second: Type) -> Type {
        let joined = self.bindings.join(&first, &second);
        let same = self.bindings.resolve(&first) == self.bindings.resolve(&second);
        let wrong = matches!(first, Type::Error) || matches!(second, Type::Error);
        match joined {
            Some(joined) if same || wrong || self.mixed => joined,
            _ if self.mixed => Type::Dyn,
            _ => self.mismatch(at, &first, &second),
        }
    }

    /// An optional item stands for what is in it.
    fn item(&mut self, at: usize, ty: Type, optional: bool) -> Type {
        match ty {
            Type::Optional(inner) if optional => (*inner).clone(),
            ty if optional && !ty.is_open() => {
                self.mismatch(at, &Type::optional(ty.clone()), &ty);
                ty
            }
            ty => ty,
        }
    }

    fn map(&mut self, entries: &'a [Entry]) -> (Type, Estimate) {
        let (key, keys) = self.items(entries.iter().map(|entry| (&entry.key, false)));
        let (value, values) =
            self.items(entries.iter().map(|entry| (&entry.value, entry.optional)));
        let parts = keys.cost.saturating_add(values.cost) - 2 * cost::LIST;
        let estimate = Estimate {
            cost: parts.saturating_add(cost::MAP),
            ..values
        };
        (Type::map(key, value), estimate)
    }

    fn call(&mut self, at: usize, call: &'a Call) -> (Type, Estimate) {
        let name = &*call.function;
        let outer = self.mixed;
        self.mixed |= name == "format";
        let args: Vec<Checked> = call.args.iter().map(|arg| self.node(arg)).collect();
        self.mixed = outer;
        let method = call.target.is_some();
        let target = call.target.as_ref().map(|target| self.node(target));
        let all: Vec<Checked> = target.into_iter().chain(args).collect();
        let for_mutations = name == "jsonpatch.escapeKey";
        let hidden = for_mutations && self.construction == Construction::Nothing;
        let Some(overloads) = signatures::overloads(name).filter(|_| !hidden) else {
            return (self.undeclared(at, name), Estimate::default());
        };
        let types: Vec<Type> = all.iter().map(|checked| checked.ty.clone()).collect();
        let Some(result) = self.resolve(overloads, method, &types) else {
            return (
                self.no_overload(at, name, &types, method),
                Estimate::default(),
            );
        };
        self.literals(at, name, call);
        let types: Vec<Type> = types.iter().map(|ty| self.bindings.resolve(ty)).collect();
        let arguments: Vec<Argument<'_>> = types
            .iter()
            .zip(&all)
            .map(|(ty, checked)| Argument {
                ty,
                estimate: &checked.estimate,
            })
            .collect();
        let estimate = cost::call(name, &arguments, &result);
        (result, estimate)
    }

    /// The result of the overloads that fit. Of several with different results nothing is known.
    fn resolve(&mut self, overloads: &[Overload], method: bool, types: &[Type]) -> Option<Type> {
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|o| o.method == method) {
            let mark = self.bindings.mark();
            let (parameters, gives) = self.instantiate(overload);
            if !self.bindings.assign_all(types, &parameters) {
                self.bindings.undo(mark);
                continue;
            }
            let gives = self.bindings.resolve(&gives);
            result = Some(match result {
                None => gives,
                Some(before) if before == gives => before,
                Some(_) => Type::Dyn,
            });
        }
        result
    }

    /// An overload with type variables of its own.
    fn instantiate(&mut self, overload: &Overload) -> (Vec<Type>, Type) {
        let fresh = [self.bindings.fresh(), self.bindings.fresh()];
        let parameters = overload.parameters.iter();
        let parameters = parameters.map(|ty| substitute(ty, &fresh)).collect();
        (parameters, substitute(&overload.result, &fresh))
    }

    fn no_overload(&mut self, at: usize, name: &str, types: &[Type], method: bool) -> Type {
        let shown: Vec<String> = types
            .iter()
            .map(|ty| self.bindings.settle(ty).to_string())
            .collect();
        let signature = match shown.split_first() {
            Some((target, args)) if method => format!("{target}.({})", args.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        self.fail(
            at,
            format!("found no matching overload for '{name}' applied to '{signature}'"),
        )
    }

    /// Literals that can never be read as what they are used for.
    fn literals(&mut self, at: usize, name: &str, call: &Call) {
        let Some(Kind::Literal(Literal::Text(text))) = call.args.last().map(|arg| &arg.kind) else {
            return;
        };
        let valid = match name {
            "matches" => crate::pattern::Pattern::new(text).is_ok(),
            "timestamp" => super::time::timestamp(text).is_ok(),
            "duration" => super::time::duration(text).is_ok(),
            _ => true,
        };
        if !valid {
            let at = call.args.last().map_or(at, |arg| arg.at);
            self.fail(at, format!("invalid {name} argument"));
        }
    }
}

fn optional_once(ty: Type) -> Type {
    match ty {
        Type::Optional(_) => ty,
        other => Type::optional(other),
    }
}

fn substitute(ty: &Type, fresh: &[Type; 2]) -> Type {
    match ty {
        Type::Variable(number) => fresh[*number as usize].clone(),
        Type::List(item) => Type::list(substitute(item, fresh)),
        Type::Map(key, value) => Type::map(substitute(key, fresh), substitute(value, fresh)),
        Type::Optional(value) => Type::optional(substitute(value, fresh)),
        other => other.clone(),
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::Text(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
