//! What a DaemonSet does next: on which nodes it starts pods, which pods it deletes, what it reports. Pure.
//!
//! First every node gets what it should have; only when nothing is amiss does an update move on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod};

use super::eligibility::{Fit, fit};
use super::template::{daemon_spec, is_updated, make, target};
use super::{rolling, status};
use crate::pods::{
    is_available, is_finished, is_ready, is_terminating, next_availability, node_name, phase,
};
use crate::portion::{self, Round};

/// The most pods that one pass creates, and deletes.
const BURST: usize = 250;

/// What the controller sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed<'a> {
    /// The set.
    pub(crate) set: &'a DaemonSet,
    /// The hash of its template's revision.
    pub(crate) hash: &'a str,
    /// All nodes.
    pub(crate) nodes: &'a [Arc<Node>],
    /// The set's pods.
    pub(crate) pods: &'a [Arc<Pod>],
    /// Nodes whose failed pods are left alone for now.
    pub(crate) resting: &'a BTreeSet<String>,
    /// The time.
    pub(crate) now: Timestamp,
}

/// A pod that goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Doomed {
    /// The pod.
    pub(crate) pod: Arc<Pod>,
    /// Why.
    pub(crate) why: Why,
}

/// Why a pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It failed on this node.
    Failed(String),
    /// It succeeded on this node, which is no more use.
    Succeeded(String),
    /// There are others, or it should not be there, or it is out of date.
    Surplus,
}

/// What the controller does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// The pods to create.
    pub(crate) create: Vec<Pod>,
    /// The pods to delete.
    pub(crate) delete: Vec<Doomed>,
    /// What the set reports.
    pub(crate) status: DaemonSetStatus,
    /// When to look again though nothing happens.
    pub(crate) check_after: Option<Duration>,
}

/// What the controller does about what it sees.
pub(crate) fn plan(observed: &Observed<'_>) -> Plan {
    let view = View::new(observed);
    let mut moves = Moves::default();
    for (name, node) in &view.nodes {
        manage(&view, name, node, &mut moves);
    }
    drop_unplaced(&view, &mut moves);
    if moves.is_empty() && view.rolls() {
        rolling::roll(&view, &mut moves);
    }
    moves.start.truncate(BURST);
    moves.delete.truncate(BURST);
    let make = |node: &String| make(observed.set, node, observed.hash);
    Plan {
        create: moves.start.iter().map(make).collect(),
        delete: moves.delete,
        status: status::status(&view),
        check_after: next_availability(
            observed.pods.iter().map(AsRef::as_ref),
            view.min_ready,
            observed.now,
        ),
    }
}

/// Nodes that get a pod and pods that go.
#[derive(Debug, Default)]
pub(super) struct Moves {
    pub(super) start: Vec<String>,
    pub(super) delete: Vec<Doomed>,
}

impl Moves {
    fn is_empty(&self) -> bool {
        self.start.is_empty() && self.delete.is_empty()
    }

    pub(super) fn drop(&mut self, pod: &Arc<Pod>) {
        self.doom(pod, Why::Surplus);
    }

    fn doom(&mut self, pod: &Arc<Pod>, why: Why) {
        self.delete.push(Doomed {
            pod: pod.clone(),
            why,
        });
    }
}

/// One node as the set sees it.
#[derive(Debug)]
pub(super) struct Place {
    /// What the node means for the set's pods; none for a node that is gone.
    pub(super) fit: Option<Fit>,
    /// The set's pods there, the one that has been there longest first.
    pub(super) pods: Vec<Arc<Pod>>,
}

/// What the controller sees, sorted by node.
pub(super) struct View<'a> {
    pub(super) observed: &'a Observed<'a>,
    pub(super) nodes: BTreeMap<String, Place>,
    pub(super) min_ready: i32,
}

impl<'a> View<'a> {
    fn new(observed: &'a Observed<'a>) -> Self {
        let spec = daemon_spec(observed.set);
        let place = |node: &Arc<Node>| {
            let name = node.metadata.name.clone().unwrap_or_default();
            let fit = Some(fit(node, &spec));
            (
                name,
                Place {
                    fit,
                    pods: Vec::new(),
                },
            )
        };
        let mut nodes: BTreeMap<String, Place> = observed.nodes.iter().map(place).collect();
        for pod in observed.pods {
            // What has finished and is on its way out takes no place any more.
            if is_finished(pod) && is_terminating(pod) {
                continue;
            }
            if let Some(node) = target(pod) {
                let gone = || Place {
                    fit: None,
                    pods: Vec::new(),
                };
                nodes
                    .entry(node.to_owned())
                    .or_insert_with(gone)
                    .pods
                    .push(pod.clone());
            }
        }
        for place in nodes.values_mut() {
            place.pods.sort_by_cached_key(|pod| seniority(pod));
        }
        Self {
            observed,
            nodes,
            min_ready: observed.set.spec.min_ready_seconds.unwrap_or_default(),
        }
    }

    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        is_available(pod, self.min_ready, self.observed.now)
    }

    pub(super) fn is_updated(&self, pod: &Pod) -> bool {
        is_updated(self.observed.set, pod, self.observed.hash)
    }

    /// On how many nodes a pod should run.
    pub(super) fn desired(&self) -> i32 {
        let fits = self
            .nodes
            .values()
            .filter(|place| place.fit == Some(Fit::Run));
        i32::try_from(fits.count()).unwrap_or(i32::MAX)
    }

    fn rolls(&self) -> bool {
        let strategy = self.observed.set.spec.update_strategy.as_ref();
        strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete")
    }

    /// How many more pods than nodes an update may make.
    pub(super) fn surge(&self, nodes: i32) -> i32 {
        let strategy = self
            .observed
            .set
            .spec
            .update_strategy
            .as_ref()
            .filter(|_| self.rolls());
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref());
        surge
            .and_then(|surge| portion::of(surge, nodes, Round::Up))
            .unwrap_or(0)
            .max(0)
    }

    /// How many nodes an update may leave without a pod that serves.
    pub(super) fn unavailable(&self, nodes: i32) -> i32 {
        let strategy = self.observed.set.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let limit = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        limit
            .and_then(|limit| portion::of(limit, nodes, Round::Up))
            .unwrap_or(0)
            .max(0)
    }
}

/// Placed before unplaced, then by age, then by name.
fn seniority(pod: &Pod) -> (bool, Option<Timestamp>, String) {
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let name = pod.metadata.name.clone().unwrap_or_default();
    (node_name(pod).is_empty(), created, name)
}

/// Gives one node what it should have.
fn manage(view: &View<'_>, name: &str, place: &Place, moves: &mut Moves) {
    match place.fit {
        None => {}
        Some(Fit::Run) if place.pods.is_empty() => moves.start.push(name.to_owned()),
        Some(Fit::Leave) => {
            let staying = place.pods.iter().filter(|pod| !is_terminating(pod));
            staying.for_each(|pod| moves.drop(pod));
        }
        Some(fit) => {
            let running = bury(view, name, place, moves);
            if view.surge(1) == 0 {
                running.iter().skip(1).for_each(|pod| moves.drop(pod));
            } else if running.is_empty() {
                let start = (fit == Fit::Run).then(|| name.to_owned());
                moves.start.extend(start);
            } else {
                keep_pair(view, &running, moves);
            }
        }
    }
}

/// Deletes the pods that finished; gives those that run.
fn bury(view: &View<'_>, name: &str, place: &Place, moves: &mut Moves) -> Vec<Arc<Pod>> {
    let mut running = Vec::new();
    for pod in place.pods.iter().filter(|pod| !is_terminating(pod)) {
        match phase(pod) {
            "Failed" if view.observed.resting.contains(name) => {}
            "Failed" => moves.doom(pod, Why::Failed(name.to_owned())),
            "Succeeded" => moves.doom(pod, Why::Succeeded(name.to_owned())),
            _ => running.push(pod.clone()),
        }
    }
    running
}

/// While an update surges, keeps one old and one new pod, until the new one serves or the old one does not.
fn keep_pair(view: &View<'_>, running: &[Arc<Pod>], moves: &mut Moves) {
    let (new, old): (Vec<_>, Vec<_>) = running.iter().partition(|pod| view.is_updated(pod));
    for extra in new.iter().skip(1).chain(old.iter().skip(1)) {
        moves.drop(extra);
    }
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (!is_ready(old) || view.is_available(new))
    {
        moves.drop(old);
    }
}

/// Deletes pods that wait for a node that is gone: nobody else would.
fn drop_unplaced(view: &View<'_>, moves: &mut Moves) {
    let gone = view.nodes.values().filter(|place| place.fit.is_none());
    for pod in gone.flat_map(|place| &place.pods) {
        if node_name(pod).is_empty() && !is_terminating(pod) {
            moves.drop(pod);
        }
    }
}
