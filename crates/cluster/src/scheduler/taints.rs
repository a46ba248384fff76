//! Taints of nodes and the tolerations of pods.

use k8s_openapi::api::core::v1::{Taint, Toleration};

/// Whether a toleration covers a taint.
pub(crate) fn covers(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or("");
    let key = toleration.key.as_deref().unwrap_or("");
    if !effect.is_empty() && effect != taint.effect {
        return false;
    }
    if !key.is_empty() && key != taint.key {
        return false;
    }
    let value = toleration.value.as_deref().unwrap_or("");
    let given = taint.value.as_deref().unwrap_or("");
    match toleration.operator.as_deref().unwrap_or("") {
        "" | "Equal" => !key.is_empty() && value == given,
        "Exists" => true,
        "Gt" => compares(given, value, |have, bound| have > bound),
        "Lt" => compares(given, value, |have, bound| have < bound),
        _ => false,
    }
}

fn compares(given: &str, bound: &str, holds: fn(i64, i64) -> bool) -> bool {
    matches!((given.parse(), bound.parse()), (Ok(given), Ok(bound)) if holds(given, bound))
}

/// The first taint that keeps a pod off a node.
pub(crate) fn first_untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
) -> Option<&'a Taint> {
    taints
        .iter()
        .filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"))
        .find(|taint| !tolerations.iter().any(|one| covers(one, taint)))
}

/// How many taints with the effect `PreferNoSchedule` a pod does not tolerate.
pub(crate) fn untolerated_preferences(taints: &[Taint], tolerations: &[Toleration]) -> usize {
    taints
        .iter()
        .filter(|taint| taint.effect == "PreferNoSchedule")
        .filter(|taint| !tolerations.iter().any(|one| covers(one, taint)))
        .count()
}

/// How long a pod may stay on a node with taints that evict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// As long as it wants.
    Forever,
    /// This many seconds after the taint.
    Seconds(i64),
    /// It has to leave at once.
    No,
}

/// How long a pod with these tolerations may stay.
pub(crate) fn stay(taints: &[Taint], tolerations: &[Toleration]) -> Stay {
    let mut shortest: Option<i64> = None;
    for taint in taints.iter().filter(|taint| taint.effect == "NoExecute") {
        let mut covering = tolerations
            .iter()
            .filter(|one| covers(one, taint))
            .peekable();
        if covering.peek().is_none() {
            return Stay::No;
        }
        let seconds = covering.filter_map(|one| one.toleration_seconds).min();
        shortest = match (shortest, seconds) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    match shortest {
        None => Stay::Forever,
        Some(seconds) if seconds <= 0 => Stay::No,
        Some(seconds) => Stay::Seconds(seconds),
    }
}
