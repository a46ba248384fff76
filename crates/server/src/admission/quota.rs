//! `ResourceQuota`: a namespace uses no more than it may.
//!
//! What is used is counted from the store at the moment of the write, not taken from the quota's status: the limit
//! holds whether or not a controller keeps that status. A lock of the namespace is held from the count to the write.

mod scope;
mod usage;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use kubewright_schema::quantity::Quantity;
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::resources::{Amounts, add, amounts};
use crate::object;

pub(super) use usage::Measure;

/// How many namespaces can be counted at once at most.
const LOCKS: usize = 64;

/// One lock for some of the namespaces each.
#[derive(Debug)]
pub(super) struct Locks(Vec<Arc<Mutex<()>>>);

impl Default for Locks {
    fn default() -> Self {
        Self((0..LOCKS).map(|_| Arc::default()).collect())
    }
}

/// Keeps others from using up what was just found to be free. Dropped after the write.
#[derive(Debug)]
pub(crate) struct Held {
    _guard: OwnedMutexGuard<()>,
}

impl Locks {
    pub(super) async fn hold(&self, namespace: &str) -> Held {
        let mut hasher = DefaultHasher::new();
        namespace.hash(&mut hasher);
        let at = hasher.finish() as usize % self.0.len();
        Held {
            _guard: self.0[at].clone().lock_owned().await,
        }
    }
}

/// What a write does to what is used: the object as it will be, and as it was.
pub(super) struct Change<'a> {
    pub(super) measure: Measure<'a>,
    pub(super) new: &'a Value,
    /// Null for a new object.
    pub(super) old: &'a Value,
}

/// Checks a change against a quota. `others` are the objects of the same resource in the namespace, without the one
/// that changes.
pub(super) fn check(
    quota: &Value,
    change: &Change<'_>,
    others: impl FnOnce() -> Vec<Value>,
) -> Result<(), String> {
    let measure = change.measure;
    let hard = amounts(&quota["spec"]["hard"]);
    let counted: BTreeSet<&str> = hard
        .keys()
        .map(String::as_str)
        .filter(|name| measure.counts(name))
        .collect();
    if counted.is_empty() || !scope::matches(quota, measure, change.new) {
        return Ok(());
    }
    let name = object::name(quota);
    measure
        .constraints(&counted, change.new)
        .map_err(|why| format!("failed quota: {name}: {why}"))?;
    let before = match change.old {
        old if old.is_object() && scope::matches(quota, measure, old) => measure.usage(old),
        _ => Amounts::new(),
    };
    let after = measure.usage(change.new);
    let requested: Amounts = after
        .iter()
        .filter(|(name, _)| counted.contains(name.as_str()))
        .map(|(name, quantity)| (name.clone(), increase(quantity, before.get(name))))
        .filter(|(_, quantity)| quantity.is_positive())
        .collect();
    if requested.is_empty() {
        return Ok(());
    }
    let mut used = before;
    for other in others()
        .iter()
        .filter(|o| scope::matches(quota, measure, o))
    {
        add(&mut used, &measure.usage(other));
    }
    verdict(name, &hard, &used, &requested)
}

fn increase(now: &Quantity, before: Option<&Quantity>) -> Quantity {
    let difference = before.and_then(|before| now.checked_sub(before).ok());
    match (before, difference) {
        (None, _) => now.clone(),
        (Some(_), Some(difference)) if difference.is_positive() => difference,
        (Some(_), _) => Quantity::default(),
    }
}

fn verdict(name: &str, hard: &Amounts, used: &Amounts, requested: &Amounts) -> Result<(), String> {
    let zero = Quantity::default();
    let exceeded: Vec<&String> = requested
        .iter()
        .filter(|(name, quantity)| {
            let total = used.get(*name).unwrap_or(&zero).checked_add(quantity);
            let limit = hard.get(*name).unwrap_or(&zero);
            total.map_or(true, |total| total > *limit)
        })
        .map(|(name, _)| name)
        .collect();
    if exceeded.is_empty() {
        return Ok(());
    }
    let shown = |amounts: &Amounts| -> String {
        let parts = exceeded.iter().map(|name| {
            let quantity = amounts.get(*name).unwrap_or(&zero);
            format!("{name}={quantity}")
        });
        parts.collect::<Vec<_>>().join(",")
    };
    Err(format!(
        "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
        shown(requested),
        shown(used),
        shown(hard)
    ))
}

#[cfg(test)]
mod tests;
