//! Which of the nodes that can take a pod is best. The rules and their weights are those of the real scheduler
//! (`apis/config/v1/default_plugins.go`), but for the locality of images: simulated nodes hold none.

use std::collections::BTreeMap;

use super::board::{Board, NodeName, Place};
use super::demand::{Demand, Strictness};
use super::filter::{Question, has_all_keys};
use super::selector::term_matches;
use super::taints;

/// The best score of one rule.
const BEST: i64 = 100;
/// Weights of the rules, as the real scheduler has them by default.
const NODE_AFFINITY: i64 = 2;
const POD_AFFINITY: i64 = 2;
const SPREAD: i64 = 2;
const TAINTS: i64 = 3;
const LEAST_ALLOCATED: i64 = 1;
const BALANCED_ALLOCATION: i64 = 1;

/// The best of these nodes. Equally good ones are ordered by the number of pods on them, then by name, so that the
/// same question always has the same answer.
pub(crate) fn best(
    board: &mut Board,
    demand: &Demand,
    question: &Question<'_>,
    feasible: &[NodeName],
) -> Option<NodeName> {
    if feasible.len() < 2 {
        return feasible.first().cloned();
    }
    let near = near_scores(board, demand, feasible);
    let board = &*board;
    let places: Vec<&Place> = feasible
        .iter()
        .filter_map(|name| board.node(name))
        .collect();
    let raw = |of: &dyn Fn(&Place) -> i64| places.iter().map(|p| of(p)).collect::<Vec<_>>();
    let mut total = vec![0; places.len()];
    for (weight, scores) in [
        (
            LEAST_ALLOCATED,
            raw(&|place| least_allocated(demand, place)),
        ),
        (
            BALANCED_ALLOCATION,
            raw(&|place| balanced_allocation(demand, place)),
        ),
        (
            NODE_AFFINITY,
            normalized(raw(&|place| preferred_weight(demand, place))),
        ),
        (
            TAINTS,
            normalized(raw(&|place| -untolerated_preferences(demand, place))),
        ),
        (SPREAD, spread_scores(demand, question, &places)),
        (POD_AFFINITY, normalized(near)),
    ] {
        for (sum, score) in total.iter_mut().zip(scores) {
            *sum += weight * score;
        }
    }
    let ranked = places.iter().zip(&total).zip(feasible);
    let best = ranked.min_by_key(|((place, score), name)| (-**score, place.pods, (*name).clone()));
    best.map(|(_, name)| name.clone())
}

/// How empty a node would be with the pod on it: the mean of free CPU and free memory, in percent
/// (`noderesources/least_allocated.go`).
pub(super) fn least_allocated(demand: &Demand, place: &Place) -> i64 {
    let free = |all: i64, used: i64| match all {
        0 => None,
        all => Some(i128::from((all - used).max(0)) * i128::from(BEST) / i128::from(all)),
    };
    let (cpu, memory) = demand.requests.assumed;
    let parts: Vec<i128> = [
        free(place.allocatable.cpu, place.assumed.0.saturating_add(cpu)),
        free(
            place.allocatable.memory,
            place.assumed.1.saturating_add(memory),
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    match parts.len() {
        0 => 0,
        n => i64::try_from(parts.iter().sum::<i128>() / n as i128).unwrap_or(0),
    }
}

fn preferred_weight(demand: &Demand, place: &Place) -> i64 {
    let preferred = demand.preferred_nodes.iter();
    let holding = preferred.filter(|p| term_matches(&p.preference, &place.name, &place.labels));
    holding.map(|p| i64::from(p.weight)).sum()
}

/// How evenly CPU and memory of a node would be used with the pod on it (`noderesources/balanced_allocation.go`). Pods
/// that ask for nothing do not care.
fn balanced_allocation(demand: &Demand, place: &Place) -> i64 {
    let wanted = &demand.requests.exact;
    if wanted.cpu == 0 && wanted.memory == 0 && wanted.others.is_empty() {
        return 0;
    }
    let share = |used: i64, all: i64| match all {
        0 => 1.0,
        all => (used as f64 / all as f64).min(1.0),
    };
    let (used, all) = (&place.used, &place.allocatable);
    let cpu = share(used.cpu.saturating_add(wanted.cpu), all.cpu);
    let memory = share(used.memory.saturating_add(wanted.memory), all.memory);
    ((1.0 - (cpu - memory).abs() / 2.0) * BEST as f64) as i64
}

/// How many taints of a node would rather not have the pod.
fn untolerated_preferences(demand: &Demand, place: &Place) -> i64 {
    let count = taints::untolerated_preferences(&place.taints, &demand.tolerations);
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Scores by the soft spread rules (`podtopologyspread/scoring.go`): the fewer pods a node's domains have the better, and
/// rules with many domains weigh more. A node without one of the keys scores nothing.
fn spread_scores(demand: &Demand, question: &Question<'_>, places: &[&Place]) -> Vec<i64> {
    let soft: Vec<_> = question
        .spread
        .iter()
        .filter(|state| state.rule.strictness == Strictness::Preferred)
        .collect();
    if soft.is_empty() {
        return vec![0; places.len()];
    }
    let raw = |place: &Place| -> Option<i64> {
        if !has_all_keys(Strictness::Preferred, demand, place) {
            return None;
        }
        let scores = soft.iter().map(|state| {
            let domain = place.labels.get(&state.rule.topology_key);
            let count = domain.and_then(|domain| state.by_domain.get(domain).copied());
            let weight = (state.by_domain.len() as f64 + 2.0).ln();
            count.unwrap_or(0) as f64 * weight + (state.rule.max_skew - 1) as f64
        });
        Some(scores.sum::<f64>().round() as i64)
    };
    let raw: Vec<Option<i64>> = places.iter().map(|place| raw(place)).collect();
    let most = raw.iter().flatten().max().copied().unwrap_or(0);
    let least = raw.iter().flatten().min().copied().unwrap_or(0);
    let score = |raw: Option<i64>| match raw {
        None => 0,
        Some(_) if most == 0 => BEST,
        Some(raw) => BEST * (most + least - raw) / most,
    };
    raw.into_iter().map(score).collect()
}

/// Preferences for pods to be near to or away from, added up for each node.
fn near_scores(board: &mut Board, demand: &Demand, feasible: &[NodeName]) -> Vec<i64> {
    let mut scores = vec![0; feasible.len()];
    for (weight, term) in &demand.preferred {
        let tally = board.tally(&term.pods).by_node.clone();
        let mut by_domain: BTreeMap<String, i64> = BTreeMap::new();
        for (node, count) in &tally {
            if let Some(domain) = board.domain(node, &term.topology_key) {
                *by_domain.entry(domain.to_owned()).or_default() += i64::from(*count);
            }
        }
        for (score, node) in scores.iter_mut().zip(feasible) {
            let domain = board.domain(node, &term.topology_key);
            let count = domain.and_then(|domain| by_domain.get(domain)).copied();
            *score += weight * count.unwrap_or(0);
        }
    }
    scores
}

/// Stretches scores to the range from 0 to the best. Equal ones decide nothing.
fn normalized(scores: Vec<i64>) -> Vec<i64> {
    let least = scores.iter().min().copied().unwrap_or(0);
    let most = scores.iter().max().copied().unwrap_or(0);
    if least == most {
        return vec![0; scores.len()];
    }
    let stretch = |score: i64| (score - least) * BEST / (most - least);
    scores.into_iter().map(stretch).collect()
}
