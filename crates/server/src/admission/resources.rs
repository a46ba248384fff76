//! Sums of resources: what the containers of a pod ask for together.

use std::collections::BTreeMap;

use kubewright_schema::quantity::Quantity;
use serde_json::Value;

use crate::kinds::value::{entries, items, text};

/// Amounts by the names of resources.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// Which of a container's two lists is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Requests,
    Limits,
}

impl Side {
    pub(super) fn field(self) -> &'static str {
        match self {
            Side::Requests => "requests",
            Side::Limits => "limits",
        }
    }
}

/// A list of resources; what cannot be read is left out, since validation has reported it.
pub(super) fn amounts(list: &Value) -> Amounts {
    entries(list)
        .filter_map(|(name, value)| Some((name.clone(), Quantity::parse(text(value)).ok()?)))
        .collect()
}

/// Adds to each amount. A sum too large to tell stays what it was.
pub(super) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, quantity) in more {
        let sum = match to.get(name) {
            Some(held) => held.checked_add(quantity).ok(),
            None => Some(quantity.clone()),
        };
        if let Some(sum) = sum {
            to.insert(name.clone(), sum);
        }
    }
}

/// Takes away from each amount. An amount of zero is forgotten.
pub(super) fn subtract(from: &mut Amounts, less: &Amounts) {
    for (name, quantity) in less {
        let rest = from
            .get(name)
            .and_then(|held| held.checked_sub(quantity).ok());
        match rest {
            Some(rest) if rest.is_zero() => drop(from.remove(name)),
            Some(rest) => drop(from.insert(name.clone(), rest)),
            None => {}
        }
    }
}

fn keep_larger(to: &mut Amounts, others: &Amounts) {
    for (name, quantity) in others {
        if to.get(name).is_none_or(|held| quantity > held) {
            to.insert(name.clone(), quantity.clone());
        }
    }
}

/// What a pod takes: its containers together, or the largest step of its start where that is more. Init containers
/// that keep running count from then on.
pub(super) fn of_pod(spec: &Value, side: Side) -> Amounts {
    let of = |container: &Value| amounts(&container["resources"][side.field()]);
    let mut total = Amounts::new();
    for container in items(&spec["containers"]) {
        add(&mut total, &of(container));
    }
    let (mut running, mut start) = (Amounts::new(), Amounts::new());
    for container in items(&spec["initContainers"]) {
        let own = of(container);
        if text(&container["restartPolicy"]) == "Always" {
            add(&mut total, &own);
            add(&mut running, &own);
            keep_larger(&mut start, &running);
        } else {
            let mut step = own;
            add(&mut step, &running);
            keep_larger(&mut start, &step);
        }
    }
    keep_larger(&mut total, &start);
    for (name, quantity) in amounts(&spec["resources"][side.field()]) {
        if name == "cpu" || name == "memory" {
            total.insert(name, quantity);
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(spec: Value, expect: &[(&str, &str)]) {
        let found = of_pod(&spec, Side::Requests);
        let found: Vec<(String, String)> = found
            .iter()
            .map(|(name, quantity)| (name.clone(), quantity.to_string()))
            .collect();
        let expect: Vec<(String, String)> = expect
            .iter()
            .map(|(a, b)| ((*a).into(), (*b).into()))
            .collect();
        assert_eq!(found, expect, "{spec}");
    }

    #[test]
    fn a_pod_takes_what_its_largest_step_takes() {
        let asks = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let stays =
            |cpu: &str| json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
        for (spec, expect) in [
            (json!({"containers": [asks("1"), asks("500m")]}), "1500m"),
            (
                json!({"containers": [asks("1")], "initContainers": [asks("2")]}),
                "2",
            ),
            (
                json!({"containers": [asks("1")], "initContainers": [stays("1"), asks("2")]}),
                "3",
            ),
            (
                json!({"containers": [asks("1")], "resources": {"requests": {"cpu": "5"}}}),
                "5",
            ),
        ] {
            check(spec, &[("cpu", expect)]);
        }
    }
}
