//! What a StatefulSet does next: which pods and claims it creates, which pods it deletes, what it reports. Pure.
//!
//! Scaling comes before updating. In order, one pod at a time moves and only while all before it are available; in
//! parallel, all move at once and an update keeps within its limit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};

use super::identity::{self, Revision, ordinals, replicas};
use super::retention::{self, Place};
use super::{status, update};
use crate::pods::{is_available, is_finished, is_ready, is_terminating, phase};

/// The most pods that one pass creates in parallel.
const BURST: usize = 500;

/// What the controller sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed<'a> {
    /// The set.
    pub(crate) set: &'a StatefulSet,
    /// The revision that pods below the partition have.
    pub(crate) current: &'a Revision,
    /// The revision that all others shall have.
    pub(crate) update: &'a Revision,
    /// How often names of revisions collided.
    pub(crate) collisions: i32,
    /// The set's pods.
    pub(crate) pods: &'a [Arc<Pod>],
    /// Claims of the namespace by name; at least those of the set's pods.
    pub(crate) claims: &'a BTreeMap<String, Arc<PersistentVolumeClaim>>,
    /// The time.
    pub(crate) now: Timestamp,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// Create a claim for the pod of this name.
    CreateClaim(String, PersistentVolumeClaim),
    /// Create this pod of the set.
    CreatePod(Pod),
    /// Say that a pod cannot be created because this claim goes away, and try again.
    AwaitClaim(String, String),
    /// Delete this pod of the set.
    DeletePod(Arc<Pod>),
    /// Give a pod the labels of its identity.
    UpdatePod(Arc<Pod>, Pod),
    /// Give a claim other owners.
    UpdateClaim(Arc<PersistentVolumeClaim>, PersistentVolumeClaim),
}

/// What the controller does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// In this order. Claims stand before the pods that use them.
    pub(crate) changes: Vec<Change>,
    /// What the set reports.
    pub(crate) status: StatefulSetStatus,
    /// When to look again though nothing happens.
    pub(crate) check_after: Option<Duration>,
}

/// What the controller does about what it sees.
pub(crate) fn plan(observed: &Observed<'_>) -> Plan {
    let mut pass = Pass::new(observed);
    if observed.set.metadata.deletion_timestamp.is_none() {
        // Each step ends the pass where it has to wait.
        if pass.tend_replicas().is_ok() && pass.condemn().is_ok() {
            pass.update();
        }
    }
    Plan {
        status: status::status(observed, &pass.replaced),
        check_after: status::check_after(observed),
        changes: pass.changes,
    }
}

/// The pass has to wait for the world before it goes on.
pub(super) struct Wait;

/// Whether pods move one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    OneByOne,
    AtOnce,
}

pub(super) struct Pass<'a> {
    pub(super) observed: &'a Observed<'a>,
    pub(super) order: Order,
    /// The pods that shall be, by ordinal.
    pub(super) wanted: BTreeMap<i32, Arc<Pod>>,
    /// The pods that shall not be, by ordinal.
    condemned: BTreeMap<i32, Arc<Pod>>,
    pub(super) changes: Vec<Change>,
    /// Ordinals of pods that this pass deletes.
    pub(super) deleted: BTreeSet<i32>,
    /// Pods of the current revision that this pass deletes for an update.
    pub(super) replaced: Vec<Arc<Pod>>,
}

impl<'a> Pass<'a> {
    fn new(observed: &'a Observed<'a>) -> Self {
        let set = observed.set;
        let range = ordinals(set);
        let known = observed.pods.iter();
        let known = known.filter_map(|pod| Some((identity::ordinal(set, pod)?, pod.clone())));
        let (wanted, condemned) = known.partition(|(ordinal, _)| range.contains(ordinal));
        let policy = set.spec.pod_management_policy.as_deref();
        Self {
            observed,
            order: match policy {
                Some("Parallel") => Order::AtOnce,
                _ => Order::OneByOne,
            },
            wanted,
            condemned,
            changes: Vec::new(),
            deleted: BTreeSet::new(),
            replaced: Vec::new(),
        }
    }

    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        let seconds = self.observed.set.spec.min_ready_seconds;
        is_available(pod, seconds.unwrap_or_default(), self.observed.now)
    }

    /// Whether a pod stands in the way of those after it.
    fn is_unsettled(&self, pod: &Pod) -> bool {
        is_terminating(pod) || phase(pod) != "Running" || !is_ready(pod) || !self.is_available(pod)
    }

    pub(super) fn delete(&mut self, ordinal: i32, pod: &Arc<Pod>) {
        if !is_terminating(pod) && self.deleted.insert(ordinal) {
            self.changes.push(Change::DeletePod(pod.clone()));
        }
    }

    /// Creates the pods that are missing, replaces those that finished, and keeps the rest in order.
    fn tend_replicas(&mut self) -> Result<(), Wait> {
        let mut created = 0;
        for ordinal in ordinals(self.observed.set) {
            let settled = match self.wanted.get(&ordinal).cloned() {
                None => {
                    created += 1;
                    self.create(ordinal);
                    false
                }
                Some(pod) => self.tend(ordinal, &pod),
            };
            if (self.order == Order::OneByOne && !settled) || created == BURST {
                return Err(Wait);
            }
        }
        Ok(())
    }

    /// Keeps one pod in order; says whether those after it may move.
    fn tend(&mut self, ordinal: i32, pod: &Arc<Pod>) -> bool {
        if is_finished(pod) {
            self.delete(ordinal, pod);
            return false;
        }
        if phase(pod) == "Pending" {
            self.create_claims(ordinal);
        }
        let settled = !self.is_unsettled(pod);
        if settled || self.order == Order::AtOnce {
            let after = identity::relabelled(pod, ordinal);
            self.changes
                .extend(after.map(|after| Change::UpdatePod(pod.clone(), after)));
            self.own_claims(ordinal, pod, Place::Wanted);
        }
        settled
    }

    /// Creates a pod after its claims, unless one of those is about to go.
    fn create(&mut self, ordinal: i32) {
        let set = self.observed.set;
        let name = identity::pod_name(set, ordinal);
        let known = self.known_claims(ordinal);
        let leaving = known.iter().find(|claim| {
            claim.metadata.deletion_timestamp.is_some()
                || retention::is_left_over(set, &name, claim)
        });
        if let Some(claim) = leaving {
            let claim = claim.metadata.name.clone().unwrap_or_default();
            self.changes.push(Change::AwaitClaim(name, claim));
            return;
        }
        self.create_claims(ordinal);
        let revision = update::revision_for(self.observed, ordinal);
        let pod = identity::make(set, revision, ordinal);
        self.changes.push(Change::CreatePod(pod));
    }

    fn known_claims(&self, ordinal: i32) -> Vec<Arc<PersistentVolumeClaim>> {
        let wanted = identity::claims(self.observed.set, ordinal);
        let names = wanted
            .iter()
            .filter_map(|claim| claim.metadata.name.as_ref());
        names
            .filter_map(|name| self.observed.claims.get(name).cloned())
            .collect()
    }

    fn create_claims(&mut self, ordinal: i32) {
        let set = self.observed.set;
        for mut claim in identity::claims(set, ordinal) {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            if !self.observed.claims.contains_key(name) {
                claim.metadata.owner_references = retention::first_owners(set);
                let pod = identity::pod_name(set, ordinal);
                self.changes.push(Change::CreateClaim(pod, claim));
            }
        }
    }

    fn own_claims(&mut self, ordinal: i32, pod: &Pod, place: Place) {
        for claim in self.known_claims(ordinal) {
            if let Some(owners) = retention::owners(self.observed.set, pod, place, &claim) {
                let mut after = PersistentVolumeClaim::clone(&claim);
                after.metadata.owner_references = Some(owners);
                self.changes.push(Change::UpdateClaim(claim, after));
            }
        }
    }

    /// Deletes the pods beyond the size, the highest ordinal first. One by one, a pod that does not serve holds up the
    /// rest unless it is the lowest of those that do not. One that finished will never serve and goes; the real
    /// controller would wait for it forever.
    fn condemn(&mut self) -> Result<(), Wait> {
        let condemned = std::mem::take(&mut self.condemned);
        for (ordinal, pod) in &condemned {
            self.own_claims(*ordinal, pod, Place::Condemned);
        }
        let unavailable = |pod: &Pod| is_terminating(pod) || !self.is_available(pod);
        let lowest = condemned
            .iter()
            .find(|(_, pod)| unavailable(pod))
            .map(|(at, _)| *at);
        for (ordinal, pod) in condemned.iter().rev() {
            let hopeful = self.is_unsettled(pod) && !is_finished(pod) && lowest != Some(*ordinal);
            let blocks = is_terminating(pod) || hopeful;
            if self.order == Order::OneByOne {
                if !blocks {
                    self.delete(*ordinal, pod);
                }
                return Err(Wait);
            }
            self.delete(*ordinal, pod);
        }
        Ok(())
    }

    /// How many of the wanted pods do not serve; those that do not exist are among them.
    pub(super) fn unavailable(&self) -> usize {
        let serving = self.wanted.values();
        let serving = serving
            .filter(|pod| !is_terminating(pod) && self.is_available(pod))
            .count();
        usize::try_from(replicas(self.observed.set))
            .unwrap_or_default()
            .saturating_sub(serving)
    }
}
