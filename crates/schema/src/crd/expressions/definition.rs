//! What is wrong with the rules of a CRD: ones that do not compile, and ones that may cost too much.

use serde_json::json;

use super::super::compile::CompiledVersion;
use super::super::failure::invalid_printed;
use super::super::path::{child, index, key};
use super::{Expressions, Node, Rule};
use crate::cel::{Expression, MAX_REQUEST};
use crate::field::FieldError;
use crate::rules::{Additional, Validation};
use crate::types::{ListKind, Shape, Type, TypeId};

/// Most that one rule may cost.
const RULE_LIMIT: u64 = 10_000_000;
/// Most that all rules of a schema may cost.
const TOTAL_LIMIT: u64 = 100_000_000;

/// Which costs are held against a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Costs {
    /// Those of every rule, and their sum.
    Each,
    /// Only the sum of all rules.
    OnlyTotal,
}

/// What is wrong with the rules of a schema.
pub(in super::super) fn definition_errors(
    version: &CompiledVersion,
    at: &str,
    costs: Costs,
) -> Vec<FieldError> {
    let Some(expressions) = &version.expressions else {
        return Vec::new();
    };
    let mut report = Report {
        version,
        expressions,
        costs,
        total: 0,
        expensive: Vec::new(),
        errors: Vec::new(),
    };
    let place = Place {
        path: at.to_owned(),
        cardinality: Some(1),
        uncorrelatable: None,
    };
    report.node(version.root, &place);
    report.total_errors(at);
    report.errors
}

/// Where a type is in the schema.
struct Place {
    path: String,
    /// How many values of the type an object can have, when lists and maps around it have limits.
    cardinality: Option<u64>,
    /// The outermost list around it whose items cannot be distinguished.
    uncorrelatable: Option<String>,
}

impl Place {
    fn inside(&self, path: String, factor: Option<u64>) -> Self {
        Self {
            path,
            cardinality: self
                .cardinality
                .zip(factor)
                .map(|(a, b)| a.saturating_mul(b)),
            uncorrelatable: self.uncorrelatable.clone(),
        }
    }
}

struct Report<'a> {
    version: &'a CompiledVersion,
    expressions: &'a Expressions,
    costs: Costs,
    total: u64,
    /// The most expensive rules, which are named when the total is too high.
    expensive: Vec<(u64, String)>,
    errors: Vec<FieldError>,
}

impl Report<'_> {
    /// Recursion follows the schema, whose depth is limited.
    fn node(&mut self, id: TypeId, place: &Place) {
        if !self.expressions.on_the_way.contains(&id) {
            return;
        }
        let ty = self.version.table.get(id);
        self.children(id, ty, place);
        if let Some(node) = self.expressions.nodes.get(&id) {
            self.rules(node, place);
        }
    }

    fn children(&mut self, id: TypeId, ty: &Type, place: &Place) {
        let rules = ty.rules.as_deref();
        match &ty.shape {
            Shape::Map { value, .. } => {
                let open = rules.is_some_and(|rules| rules.additional == Additional::Allowed);
                let most = rules
                    .and_then(|rules| rules.max_properties)
                    .filter(|_| !open);
                let path = child(&place.path, "additionalProperties");
                self.node(*value, &place.inside(path, most));
            }
            Shape::Struct(object) => {
                for field in object.fields() {
                    let mut ty = field.ty;
                    if id == self.version.root && *field.name == *"metadata" {
                        ty = self.version.metadata.unwrap_or(ty);
                    }
                    let path = key(&child(&place.path, "properties"), &field.name);
                    self.node(ty, &place.inside(path, Some(1)));
                }
            }
            Shape::List(list) => {
                let most = rules.and_then(|rules| rules.max_items);
                let mut inner = place.inside(child(&place.path, "items"), most);
                if !matches!(list.kind, ListKind::Map(_)) && inner.uncorrelatable.is_none() {
                    inner.uncorrelatable = Some(place.path.clone());
                }
                self.node(list.item, &inner);
            }
            Shape::Scalar(_) | Shape::Any => {}
        }
    }

    fn rules(&mut self, node: &Node, place: &Place) {
        let at = child(&place.path, "x-kubernetes-validations");
        let Some(declaration) = &node.declaration else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                          unable to convert structural schema to CEL declarations";
            return self.errors.push(FieldError::internal(at, detail));
        };
        let repeated = MAX_REQUEST / (declaration.min_size + 1);
        let cardinality = place.cardinality.unwrap_or(repeated);
        for (i, rule) in node.rules.iter().enumerate() {
            self.rule(rule, &index(&at, i), cardinality, place);
        }
    }

    fn rule(&mut self, rule: &Rule, at: &str, cardinality: u64, place: &Place) {
        if let Some(Ok(expression)) = &rule.compiled {
            let cost = expression.estimated_cost().saturating_mul(cardinality);
            self.cost("estimated rule cost", cost, child(at, "rule"));
        }
        if let Some(Err(error)) = &rule.compiled {
            let (printed, detail) = (printed(&rule.written), error.to_string());
            self.errors
                .push(invalid_printed(&child(at, "rule"), &printed, &detail));
        }
        self.message(rule, &child(at, "messageExpression"));
        let old = &rule.written.optional_old_self;
        if rule.uses_old_self {
            if let Some(path) = &place.uncorrelatable {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {path}"
                );
                let value = json!(rule.written.rule);
                self.errors
                    .push(FieldError::invalid(child(at, "rule"), &value, &detail));
            }
        } else if let Some(old) = old {
            let detail = "may not be set if oldSelf is not used in rule";
            self.errors.push(FieldError::invalid(
                child(at, "optionalOldSelf"),
                &json!(old),
                detail,
            ));
        }
    }

    fn message(&mut self, rule: &Rule, at: &str) {
        match &rule.message {
            None => {}
            Some(Err(error)) => {
                let (printed, detail) = (printed(&rule.written), error.to_string());
                self.errors.push(invalid_printed(at, &printed, &detail));
            }
            Some(Ok(message)) => {
                let cost = Expression::estimated_cost(message);
                self.cost("estimated messageExpression cost", cost, at.to_owned());
            }
        }
    }

    fn cost(&mut self, what: &str, cost: u64, at: String) {
        if self.costs == Costs::Each && cost > RULE_LIMIT {
            let detail = excess(what, cost, RULE_LIMIT);
            self.errors.push(FieldError::forbidden(at.clone(), &detail));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= TOTAL_LIMIT / 100 {
            self.expensive.push((cost, at));
            self.expensive
                .sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.expensive.truncate(4);
        }
    }

    fn total_errors(&mut self, at: &str) {
        if self.total <= TOTAL_LIMIT {
            return;
        }
        let named = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        for (_, at) in std::mem::take(&mut self.expensive) {
            self.errors.push(FieldError::forbidden(at, named));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = excess(what, self.total, TOTAL_LIMIT);
        self.errors.push(FieldError::forbidden(at, &detail));
    }
}

fn excess(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, \
         and maxLength where arrays, maps, and strings are declared)"
    )
}

/// A rule as the server prints it in errors, with its own names of fields, and escaped as for a web page.
fn printed(rule: &Validation) -> String {
    let printed = format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        json!(rule.rule),
        json!(rule.message),
        json!(rule.message_expression),
        json!(rule.reason),
        json!(rule.field_path),
        json!(rule.optional_old_self),
    );
    printed
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}
