//! `ResourceQuota`: a namespace uses no more than it may.
//!
//! What is used is the sum over the stored objects ([`Ledger`]), not what the quota's status says: the limit holds
//! whether or not a controller keeps that status.

mod ledger;
mod scope;
mod usage;

use std::collections::BTreeSet;

use kubewright_schema::quantity::Quantity;
use serde_json::Value;

use super::PluginRefusal;
use super::resources::{Amounts, amounts};
use crate::object;

pub(crate) use ledger::{Ledger, QuotaCheck, QuotaError};
pub(super) use usage::Measure;

/// What a quota limits.
#[derive(Debug, Clone)]
struct Terms {
    quota: Value,
    hard: Amounts,
}

impl Terms {
    fn read(quota: &Value) -> Self {
        Self {
            hard: amounts(&quota["spec"]["hard"]),
            quota: quota.clone(),
        }
    }

    /// Whether a line of the quota is about objects that are measured so.
    fn concern(&self, measure: Measure<'_>) -> bool {
        self.hard.keys().any(|name| measure.counts(name))
    }
}

/// Checks an object that is about to be stored. `before` is what it takes already, `used` what all objects take,
/// that one included.
fn check(
    terms: &Terms,
    measure: Measure<'_>,
    new: &Value,
    before: &Amounts,
    used: &Amounts,
) -> Result<(), PluginRefusal> {
    let names = terms.hard.keys().map(String::as_str);
    let counted: BTreeSet<&str> = names.filter(|name| measure.counts(name)).collect();
    if counted.is_empty() || !scope::matches(&terms.quota, measure, new) {
        return Ok(());
    }
    let name = object::name(&terms.quota);
    measure
        .constraints(&counted, new)
        .map_err(|why| format!("failed quota: {name}: {why}"))?;
    let requested: Amounts = measure
        .usage(new)
        .iter()
        .filter(|(name, _)| counted.contains(name.as_str()))
        .map(|(name, quantity)| (name.clone(), increase(quantity, before.get(name))))
        .filter(|(_, quantity)| quantity.is_positive())
        .collect();
    if requested.is_empty() {
        return Ok(());
    }
    verdict(name, &terms.hard, used, &requested)
}

fn increase(now: &Quantity, before: Option<&Quantity>) -> Quantity {
    let difference = before.and_then(|before| now.checked_sub(before).ok());
    match (before, difference) {
        (None, _) => now.clone(),
        (Some(_), Some(difference)) if difference.is_positive() => difference,
        (Some(_), _) => Quantity::default(),
    }
}

fn verdict(
    name: &str,
    hard: &Amounts,
    used: &Amounts,
    requested: &Amounts,
) -> Result<(), PluginRefusal> {
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
    Err(PluginRefusal(format!(
        "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
        shown(requested),
        shown(used),
        shown(hard)
    )))
}

#[cfg(test)]
mod tests;
