//! Makes sets that were written under an earlier schema fit the present one.

use super::form::Typed;
use super::set::{Node, Set};
use crate::types::{ListKind, Shape};

/// The set under the present type: what has become atomic is owned as a whole by whoever owned a part of it. Nothing
/// when the set fits as it is.
///
/// What has become granular stays owned as a whole, as if it had never been otherwise.
pub fn reconcile(typed: Typed<'_>, set: &Set) -> Option<Set> {
    needs(typed, set).then(|| rewrite(typed, set))
}

fn needs(typed: Typed<'_>, set: &Set) -> bool {
    set.nodes().iter().any(|node| {
        typed.step(&node.element).is_some_and(|inner| {
            is_split(inner, node) || (!node.below.is_empty() && needs(inner, &node.below))
        })
    })
}

fn rewrite(typed: Typed<'_>, set: &Set) -> Set {
    let mut out = Set::new();
    for node in set.nodes() {
        let (member, below) = match typed.step(&node.element) {
            Some(inner) if is_split(inner, node) => (true, Set::new()),
            Some(inner) => (node.member, rewrite(inner, &node.below)),
            None => (node.member, node.below.clone()),
        };
        out.put(node.element.clone(), member, below);
    }
    out
}

/// Whether a set owns parts of what is one value.
fn is_split(typed: Typed<'_>, node: &Node) -> bool {
    let atomic = match typed.shape() {
        Some(Shape::List(list)) => list.kind == ListKind::Atomic,
        Some(Shape::Struct(s)) => s.atomic,
        Some(Shape::Map { atomic, .. }) => *atomic,
        _ => false,
    };
    atomic && !node.below.is_empty()
}

/// The set with the declared fields that its fields are in: removing `.spec.a` then removes an empty `.spec`, too.
pub(super) fn with_parents(typed: Option<Typed<'_>>, set: &Set) -> Set {
    let mut out = Set::new();
    for node in set.nodes() {
        let declared = match (typed.and_then(Typed::shape), node.element.as_field()) {
            (Some(Shape::Struct(s)), Some(name)) => s.field(name).is_some(),
            _ => false,
        };
        let inner = typed.and_then(|typed| typed.step(&node.element));
        out.put(
            node.element.clone(),
            node.member || declared,
            with_parents(inner, &node.below),
        );
    }
    out
}
