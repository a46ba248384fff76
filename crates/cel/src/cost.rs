//! How much an expression may cost at most, estimated before anything is evaluated.
//!
//! The numbers are those of the API server, whose users have learned to live with them. Coarser than there: sizes of
//! entries of lists and maps that the expression itself builds are unknown unless all items are literals, and of
//! several overloads that fit a dynamic argument only the first is looked at.

use std::sync::Arc;

use super::ast::{FoldKind, Literal};
use super::declaration::{Declaration, Form};
use super::types::Type;

/// What looking at a variable or a field costs.
pub(crate) const SELECT: u64 = 1;
/// What making a list costs.
pub(crate) const LIST: u64 = 10;
/// What making a map costs.
pub(crate) const MAP: u64 = 30;
/// Size that nothing is known of.
const UNKNOWN: u64 = u64::MAX;

/// The most that a part of an expression may cost, and how large its value may be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Estimate {
    pub(crate) cost: u64,
    /// Items or characters, where known.
    pub(crate) size: Option<u64>,
    /// What the schema says of the value.
    pub(crate) declaration: Option<Arc<Declaration>>,
    /// Size of the items of a list or of the values of a map that the expression built.
    pub(crate) items: Option<u64>,
}

/// The cost of going over a text once.
pub(crate) fn traversal(size: u64) -> u64 {
    size / 10 + u64::from(!size.is_multiple_of(10))
}

/// The cost of a regular expression of this length on a text of this size.
pub(crate) fn regex(text: u64, pattern: u64) -> u64 {
    traversal(text.saturating_add(1)).saturating_mul(pattern.div_ceil(4))
}

impl Estimate {
    pub(crate) fn costing(cost: u64) -> Self {
        Self {
            cost,
            ..Self::default()
        }
    }

    pub(crate) fn literal(literal: &Literal) -> Self {
        let size = match literal {
            Literal::Text(text) => text.chars().count() as u64,
            Literal::Bytes(bytes) => bytes.len() as u64,
            _ => 1,
        };
        Self {
            size: Some(size),
            ..Self::default()
        }
    }

    /// A variable or a field that the schema declares.
    pub(crate) fn declared(cost: u64, declaration: Option<Arc<Declaration>>) -> Self {
        Self {
            cost,
            size: None,
            declaration,
            items: None,
        }
    }

    /// The size, as far as the value, the schema or the type tell it.
    pub(crate) fn known_size(&self, ty: &Type) -> Option<u64> {
        let declared = self.declaration.as_ref().map(|d| d.max_elements);
        self.size
            .or(declared)
            .or_else(|| ty.is_scalar().then_some(1))
    }

    fn size_or_unknown(&self, ty: &Type) -> u64 {
        self.known_size(ty).unwrap_or(UNKNOWN)
    }

    fn field(&self, identifier: &str) -> Option<Arc<Declaration>> {
        match &self.declaration.as_ref()?.form {
            Form::Object(object) => object
                .field(identifier)
                .map(|field| Arc::clone(&field.declaration)),
            Form::Map(value) => Some(Arc::clone(value)),
            _ => None,
        }
    }

    /// `operand.field`
    pub(crate) fn select(&self, operand: &Type, identifier: &str) -> Self {
        let own = match operand {
            Type::Map(..) | Type::Object(_) | Type::Variable(_) => SELECT,
            _ => 0,
        };
        Self::declared(self.cost.saturating_add(own), self.field(identifier))
    }

    /// The items of a list, or the values of a map.
    pub(crate) fn element(&self) -> Self {
        let declaration = match self.declaration.as_ref().map(|d| &d.form) {
            Some(Form::List { item, .. }) => Some(Arc::clone(item)),
            Some(Form::Map(value)) => Some(Arc::clone(value)),
            _ => None,
        };
        Self {
            cost: 0,
            size: self.items,
            declaration,
            items: None,
        }
    }

    /// The key of a map. The API server does not limit the length of keys.
    pub(crate) fn key(&self) -> Self {
        let declared = self.declaration.is_some().then_some(0);
        Self {
            size: declared,
            ..Self::default()
        }
    }
}

/// A typed argument of a call.
pub(crate) struct Argument<'a> {
    pub(crate) ty: &'a Type,
    pub(crate) estimate: &'a Estimate,
}

impl Argument<'_> {
    fn size(&self) -> u64 {
        self.estimate.size_or_unknown(self.ty)
    }
}

/// A call of a function, with the target as its first argument.
pub(crate) fn call(function: &str, arguments: &[Argument<'_>], result: &Type) -> Estimate {
    let before = arguments.iter().fold(0u64, |sum, argument| {
        sum.saturating_add(argument.estimate.cost)
    });
    let size = |at: usize| arguments.get(at).map_or(UNKNOWN, Argument::size);
    let mut estimate = own_cost(function, arguments, result, &size);
    if matches!(function, "_[_]" | "_[?_]")
        && let Some(container) = arguments.first()
    {
        let element = container.estimate.element();
        estimate.declaration = element.declaration;
        estimate.size = element.size;
    }
    if function == "dyn"
        && let Some(same) = arguments.first()
    {
        estimate = Estimate {
            cost: 1,
            ..same.estimate.clone()
        };
    }
    estimate.cost = estimate.cost.saturating_add(before);
    estimate
}

fn own_cost(
    function: &str,
    arguments: &[Argument<'_>],
    result: &Type,
    size: &dyn Fn(usize) -> u64,
) -> Estimate {
    let sized = |cost: u64, size: u64| Estimate {
        cost,
        size: Some(size),
        ..Estimate::default()
    };
    let cost = match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => {
            scan(&arguments[0])
        }
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" => {
            return sized(traversal(size(0)), size(0));
        }
        "replace" => return sized(twice(size(0)), replaced(size(0), size(1), size(2))),
        "split" => return sized(twice(size(0)), size(0)),
        "join" => {
            let items = arguments[0].estimate.element().known_size(&Type::String);
            let separators = if arguments.len() > 1 { size(1) } else { 0 };
            let each = items.unwrap_or(UNKNOWN).saturating_add(separators);
            let all = size(0).saturating_mul(each);
            return sized(traversal(all), all);
        }
        "find" | "findAll" => return sized(regex(size(0), size(1)), size(0)),
        "matches" => regex(size(0), size(1)),
        "contains" => traversal(size(0)).saturating_mul(traversal(size(1))),
        "startsWith" | "endsWith" => traversal(size(1)),
        "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            traversal(size(0))
        }
        "ip" if *arguments[0].ty == Type::String => traversal(size(0)),
        "ip.isCanonical" => twice(size(0)),
        "containsIP" | "containsCIDR" => {
            let parsed = arguments.get(1).is_some_and(|a| *a.ty == Type::String);
            7 + if parsed { traversal(size(1)) } else { 0 }
        }
        "validate" => traversal(size(1)).saturating_mul(32),
        "format" => traversal(size(0)),
        "bytes" if *arguments[0].ty == Type::String => {
            return sized(traversal(size(0)), size(0).saturating_mul(4));
        }
        "string" if *arguments[0].ty == Type::Bytes => return sized(traversal(size(0)), size(0)),
        "strings.quote" => return sized(traversal(size(0)), size(0).saturating_mul(2)),
        "@in" if matches!(arguments[1].ty, Type::List(_)) => size(1),
        "_+_" => match result {
            Type::String | Type::Bytes => {
                let sum = size(0).saturating_add(size(1));
                return sized(traversal(sum), sum);
            }
            Type::List(_) => return sized(1, size(0).saturating_add(size(1))),
            _ => 1,
        },
        "_==_" | "_!=_" => equality(arguments, size),
        "_<_" | "_<=_" | "_>_" | "_>=_"
            if matches!(arguments[0].ty, Type::String | Type::Bytes) =>
        {
            traversal(size(0).min(size(1)))
        }
        _ => 1,
    };
    Estimate::costing(cost)
}

fn twice(size: u64) -> u64 {
    traversal(size.saturating_mul(2))
}

fn equality(arguments: &[Argument<'_>], size: &dyn Fn(usize) -> u64) -> u64 {
    match arguments[0].ty {
        Type::Opaque(_) => 1,
        _ => traversal(size(0).min(size(1))),
    }
}

/// A function that looks at every item, or at every character.
fn scan(target: &Argument<'_>) -> u64 {
    let item = match target.ty {
        Type::List(item) => item,
        _ => return traversal(target.size()),
    };
    let compare = match **item {
        Type::String | Type::Bytes => {
            let element = target.estimate.element();
            traversal(element.size_or_unknown(item))
        }
        _ => 0,
    };
    target.size().saturating_mul(compare.saturating_add(1))
}

/// How long a text can become when parts of it are replaced. Patterns are taken to have a known length only when they
/// are literals, so anything else may match the empty text.
fn replaced(text: u64, pattern: u64, replacement: u64) -> u64 {
    let pattern = pattern.max(1);
    if replacement <= pattern && pattern != UNKNOWN {
        return text;
    }
    text.saturating_add(1).saturating_mul(replacement)
}

/// A macro over a range: what every item costs, and what the macro itself does with it.
pub(crate) fn fold(
    kind: FoldKind,
    range: (&Type, &Estimate),
    filter: Option<&Estimate>,
    body: &Estimate,
) -> Estimate {
    let (range_type, range) = range;
    let filter = filter.map_or(0, |filter| filter.cost);
    // What the loops that the macros stand for cost besides the body: (before, each item, after).
    let (before, each, after) = match kind {
        FoldKind::All => (0, 3, 1),
        FoldKind::Exists => (0, 4, 1),
        FoldKind::ExistsOne => (0, 2, 2),
        FoldKind::Filter => (LIST, 3 + LIST, 1),
        FoldKind::Map => (LIST, 2 + LIST, 1),
        FoldKind::SortBy => (2 * LIST, 3 + LIST, 1),
        FoldKind::TransformMap | FoldKind::TransformMapEntry => (MAP, 3 + MAP, 1),
        FoldKind::OptionalMap | FoldKind::OptionalFlatMap => {
            let cost = range.cost.saturating_add(body.cost).saturating_add(4);
            return Estimate {
                size: body.size,
                ..Estimate::costing(cost)
            };
        }
    };
    let count = range.size_or_unknown(range_type);
    let step = body.cost.saturating_add(filter).saturating_add(each);
    let cost = count
        .saturating_mul(step)
        .saturating_add(range.cost)
        .saturating_add(before + after);
    let size = match kind {
        FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne => Some(1),
        _ => Some(count),
    };
    let (declaration, items) = match kind {
        // What is left of a list has items of the same declaration.
        FoldKind::Filter | FoldKind::SortBy if matches!(range_type, Type::List(_)) => {
            (range.declaration.clone(), range.items)
        }
        FoldKind::Map | FoldKind::TransformMap => (None, body.size),
        _ => (None, None),
    };
    Estimate {
        cost,
        size,
        declaration,
        items,
    }
}
