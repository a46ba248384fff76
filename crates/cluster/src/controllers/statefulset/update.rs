//! Which pods of a StatefulSet an update replaces, and with which template missing ones are made. Pure.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{RollingUpdateStatefulSetStrategy, StatefulSet};
use k8s_openapi::api::core::v1::Pod;

use super::identity::{Revision, ordinals, replicas, revision};
use super::plan::{Observed, Order, Pass};
use crate::pods::is_terminating;
use crate::portion::{self, Round};

/// How the set replaces pods.
enum Strategy<'a> {
    /// Never: users delete them.
    OnDelete,
    /// From the highest ordinal down.
    Rolling(Option<&'a RollingUpdateStatefulSetStrategy>),
}

fn strategy(set: &StatefulSet) -> Strategy<'_> {
    let strategy = set.spec.update_strategy.as_ref();
    match strategy.and_then(|strategy| strategy.type_.as_deref()) {
        Some("OnDelete") => Strategy::OnDelete,
        _ => Strategy::Rolling(strategy.and_then(|strategy| strategy.rolling_update.as_ref())),
    }
}

/// The lowest ordinal that an update touches.
fn first_updated(set: &StatefulSet, rolling: Option<&RollingUpdateStatefulSetStrategy>) -> i32 {
    let partition = rolling
        .and_then(|rolling| rolling.partition)
        .unwrap_or_default();
    ordinals(set).start.saturating_add(partition.max(0))
}

/// How many pods may be missing; at least one, or nothing would move.
fn limit(set: &StatefulSet, rolling: Option<&RollingUpdateStatefulSetStrategy>) -> usize {
    let limit = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
    let limit = limit.and_then(|limit| portion::of(limit, replicas(set), Round::Down));
    usize::try_from(limit.unwrap_or(1).max(1)).unwrap_or(1)
}

/// The revision with which a missing pod is made.
pub(super) fn revision_for<'a>(observed: &Observed<'a>, ordinal: i32) -> &'a Revision {
    match strategy(observed.set) {
        Strategy::Rolling(rolling) if ordinal < first_updated(observed.set, rolling) => {
            observed.current
        }
        _ => observed.update,
    }
}

impl Pass<'_> {
    /// Deletes pods of other revisions, as many as may be missing.
    pub(super) fn update(&mut self) {
        let set = self.observed.set;
        let Strategy::Rolling(rolling) = strategy(set) else {
            return;
        };
        let first = first_updated(set, rolling);
        let budget = limit(set, rolling).saturating_sub(self.unavailable());
        let outdated = self.wanted.range(first..).rev();
        let outdated = outdated.filter(|(_, pod)| revision(pod) != self.observed.update.name);
        let outdated = outdated.map(|(at, pod)| (*at, pod.clone()));
        let (serving, idle): (Vec<_>, Vec<_>) = outdated.partition(|(_, pod)| self.serves(pod));
        // In parallel, pods that do not serve anyway are replaced whatever the limit: nobody misses them, and waiting
        // for them could take forever. One by one, the pass gets here only when all serve.
        let idle = idle.into_iter().filter(|_| self.order == Order::AtOnce);
        let replaced: Vec<(i32, Arc<Pod>)> = idle.chain(serving.into_iter().take(budget)).collect();
        for (ordinal, pod) in replaced {
            self.replace(ordinal, &pod);
        }
    }

    fn serves(&self, pod: &Pod) -> bool {
        !is_terminating(pod) && self.is_available(pod)
    }

    fn replace(&mut self, ordinal: i32, pod: &Arc<Pod>) {
        if !is_terminating(pod) {
            self.delete(ordinal, pod);
            self.replaced.push(pod.clone());
        }
    }
}
