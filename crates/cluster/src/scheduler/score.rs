//! Which of the nodes that can take a pod is best: the emptiest one, bent by preferences.

use std::collections::BTreeMap;

use super::board::{Board, NodeName, Place};
use super::demand::{Demand, Strictness};
use super::filter::Question;
use super::selector::term_matches;
use super::taints;

/// The best score of one rule.
const BEST: i64 = 100;
/// Weights of the rules, as the real scheduler has them by default.
const NODE_AFFINITY: i64 = 2;
const POD_AFFINITY: i64 = 2;
const SPREAD: i64 = 2;
const TAINTS: i64 = 3;

/// The best of these nodes. Equally good ones are told apart by the number of pods on them, then by name, so that the
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
    let mut total: Vec<i64> = places.iter().map(|p| emptiness(demand, p)).collect();
    let raw = |of: &dyn Fn(&Place) -> i64| places.iter().map(|p| of(p)).collect::<Vec<_>>();
    let nodes = raw(&|place| preferred_weight(demand, place));
    let taints = raw(&|place| -reluctance(demand, place));
    let spread = raw(&|place| -crowd(question, place));
    for (weight, scores) in [
        (NODE_AFFINITY, nodes),
        (TAINTS, taints),
        (SPREAD, spread),
        (POD_AFFINITY, near),
    ] {
        for (sum, score) in total.iter_mut().zip(normalized(scores)) {
            *sum += weight * score;
        }
    }
    let ranked = places.iter().zip(&total).zip(feasible);
    let best = ranked.min_by_key(|((place, score), name)| (-**score, place.pods, (*name).clone()));
    best.map(|(_, name)| name.clone())
}

/// How empty a node would be with the pod on it: the mean of free CPU and free memory, in percent.
pub(super) fn emptiness(demand: &Demand, place: &Place) -> i64 {
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

fn reluctance(demand: &Demand, place: &Place) -> i64 {
    let count = taints::reluctance(&place.taints, &demand.tolerations);
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// How many pods of the soft spread rules are where the node is.
fn crowd(question: &Question<'_>, place: &Place) -> i64 {
    let soft = question.spread.iter();
    let soft = soft.filter(|state| state.rule.strictness == Strictness::Preferred);
    soft.map(|state| {
        let domain = place.labels.get(&state.rule.topology_key);
        // A node without the label is in nobody's interest; it counts as the fullest domain.
        domain
            .and_then(|domain| state.by_domain.get(domain).copied())
            .unwrap_or_else(|| state.by_domain.values().max().copied().unwrap_or(0))
    })
    .sum()
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
