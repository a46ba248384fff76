//! Room for important pods: which less important ones have to go, and from which node. Pure.
//!
//! As in the real scheduler, as few as possible go: all less important pods are thought away, and those come back that
//! leave enough room, the protected and most important first. Budgets are kept where that can be, and broken where not.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kubewright_cache::Key;

use super::board::{Board, Identity, NodeName};
use super::demand::Demand;
use super::filter::Question;
use super::selector::Selector;
use super::verdict::Reason;
use super::volumes::Volumes;

/// The most nodes that are tried for one pod.
const CANDIDATES: usize = 100;

/// A pod that needs room.
#[derive(Debug)]
pub(super) struct Needy<'a> {
    pub(super) demand: &'a Demand,
    pub(super) volumes: &'a Volumes,
}

/// Who has to go, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Eviction {
    pub(super) node: NodeName,
    pub(super) victims: Vec<Key>,
}

/// A pod that may have to go.
#[derive(Debug, Clone)]
struct Candidate {
    identity: Identity,
    demand: Demand,
    started: Timestamp,
    violates: bool,
}

/// What a way of making room costs, the least first: broken budgets, the most important victim, the sum of their
/// importance, their number, and how long the most important of them have run.
type Cost = (usize, i32, i64, usize, Reverse<Timestamp>);

/// Finds the node on which making room costs the least.
pub(super) fn choose(
    board: &mut Board,
    needy: &Needy<'_>,
    pod: impl Fn(&Key) -> Option<Arc<Pod>>,
    budgets: &[Arc<PodDisruptionBudget>],
) -> Option<Eviction> {
    let mut best: Option<(Cost, Eviction)> = None;
    let by_node = board.below(needy.demand.priority);
    for (node, keys) in helpful(board, needy, by_node) {
        let read = keys.iter().filter_map(|key| candidate(key, &*pod(key)?));
        let candidates = judge(read.collect(), budgets);
        let Some(victims) = victims(board, needy, &node, candidates) else {
            continue;
        };
        let cost = cost(&victims);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            let victims = victims.into_iter().map(|victim| victim.identity.key);
            let victims = victims.collect();
            best = Some((cost, Eviction { node, victims }));
        }
    }
    best.map(|(_, eviction)| eviction)
}

/// Nodes that could take the pod if less important ones left, with those.
fn helpful(
    board: &mut Board,
    needy: &Needy<'_>,
    by_node: BTreeMap<NodeName, Vec<Key>>,
) -> Vec<(NodeName, Vec<Key>)> {
    let question = Question::new(board, needy.demand, needy.volumes);
    let may_pass = |node: &NodeName| {
        let place = board.node(node);
        place.is_some_and(|place| question.reasons(place).iter().all(Reason::may_pass))
    };
    let found = by_node.into_iter().filter(|(node, _)| may_pass(node));
    found.take(CANDIDATES).collect()
}

fn candidate(key: &Key, pod: &Pod) -> Option<Candidate> {
    let started = pod.status.as_ref().and_then(|s| s.start_time.as_ref());
    let created = pod.metadata.creation_timestamp.as_ref();
    Some(Candidate {
        identity: Identity {
            key: key.clone(),
            uid: pod.metadata.uid.clone()?,
            generation: pod.metadata.generation.unwrap_or(0),
        },
        demand: Demand::of(pod),
        started: started.or(created).map_or(Timestamp::MAX, |time| time.0),
        violates: false,
    })
}

/// Sorts by importance and finds out whose end breaks a budget.
fn judge(mut all: Vec<Candidate>, budgets: &[Arc<PodDisruptionBudget>]) -> Vec<Candidate> {
    all.sort_by_key(|one| {
        let name = one.identity.key.clone();
        (Reverse(one.demand.priority), one.started, name)
    });
    let allowed = |budget: &Arc<PodDisruptionBudget>| {
        let status = budget.status.as_ref();
        let allowed = status.and_then(|status| status.disruptions_allowed);
        i64::from(allowed.unwrap_or(0))
    };
    let mut left: Vec<i64> = budgets.iter().map(allowed).collect();
    for one in &mut all {
        for (budget, left) in budgets.iter().zip(&mut left) {
            if covers(budget, one) {
                *left -= 1;
                one.violates |= *left < 0;
            }
        }
    }
    all
}

/// Whether a budget speaks of a pod. One that is on its way out has been paid for.
fn covers(budget: &PodDisruptionBudget, one: &Candidate) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let selector = Selector::of(selector);
    let paid = budget
        .status
        .as_ref()
        .and_then(|s| s.disrupted_pods.as_ref());
    let paid = paid.is_some_and(|paid| paid.contains_key(one.identity.key.name()));
    budget.metadata.namespace.as_deref() == Some(&one.demand.namespace)
        && !selector.is_everything()
        && selector.matches(&one.demand.labels)
        && !paid
}

/// Who has to go from a node; nothing if it does not help. The board is as it was afterwards.
fn victims(
    board: &mut Board,
    needy: &Needy<'_>,
    node: &NodeName,
    candidates: Vec<Candidate>,
) -> Option<Vec<Candidate>> {
    for one in &candidates {
        board.remove(&one.identity.key);
    }
    let (violating, others): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|c| c.violates);
    let helps = fits(board, needy, node);
    let mut victims = Vec::new();
    for one in violating.into_iter().chain(others) {
        board.place(one.identity.clone(), node, &one.demand);
        if !helps {
            continue;
        }
        if !fits(board, needy, node) {
            board.remove(&one.identity.key);
            victims.push(one);
        }
    }
    for one in &victims {
        board.place(one.identity.clone(), node, &one.demand);
    }
    (!victims.is_empty()).then_some(victims)
}

fn fits(board: &mut Board, needy: &Needy<'_>, node: &NodeName) -> bool {
    let question = Question::new(board, needy.demand, needy.volumes);
    let place = board.node(node);
    place.is_some_and(|place| question.reasons(place).is_empty())
}

fn cost(victims: &[Candidate]) -> Cost {
    let priorities = victims.iter().map(|victim| victim.demand.priority);
    let highest = priorities.clone().max().unwrap_or(i32::MIN);
    // Moved up so that several unimportant ones weigh more than one.
    let weight = |priority: i32| i64::from(priority) + i64::from(i32::MAX) + 1;
    let first = victims
        .iter()
        .filter(|victim| victim.demand.priority == highest)
        .map(|victim| victim.started)
        .min();
    (
        victims.iter().filter(|victim| victim.violates).count(),
        highest,
        priorities.map(weight).sum(),
        victims.len(),
        Reverse(first.unwrap_or(Timestamp::MAX)),
    )
}

#[cfg(test)]
mod tests;
