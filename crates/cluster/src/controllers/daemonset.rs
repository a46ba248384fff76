//! DaemonSets: one pod on each node that fits.

pub(crate) mod backoff;
pub(crate) mod eligibility;
pub(crate) mod plan;
mod rolling;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod simulation;
mod status;
pub(crate) mod template;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubewright_runtime::events::EventKind;
use kubewright_runtime::{
    Cached, ClientError, Context, Controller, Error, Event, Key, Outcome, Predicate, Query,
    Reconciler, Watch,
};
use parking_lot::Mutex;

use self::backoff::{Attempt, Backoff};
use self::plan::{Doomed, Observed, Plan, Why};
use super::revisions::settle::{Settled, forget, name, settle};
use super::revisions::{self, POD_LABEL};
use super::{Remembered, WORKERS};
use crate::pods::adopt::{self, Selecting, claim_all};
use crate::pods::batch::slow_start;
use crate::pods::claim::{selector, selects};
use crate::pods::{is_terminating, label, phase};
use crate::writes::report;

/// The controller of DaemonSets.
pub(crate) fn controller(remembered: &Remembered) -> Controller {
    let nodes = Watch::of::<Node>()
        .when(Predicate::new(matters))
        .map(|_, client| client.reader::<DaemonSet>().keys());
    Controller::of::<DaemonSet>("daemonset-controller")
        .owns::<Pod>()
        .owns::<ControllerRevision>()
        .watches(adopt::orphans::<DaemonSet, Pod>())
        .watches(nodes)
        .workers(WORKERS)
        .reconciler(DaemonSets {
            backoff: remembered.daemon_sets.clone(),
        })
}

impl Selecting for DaemonSet {
    fn label_selector(&self) -> Option<Cow<'_, LabelSelector>> {
        Some(Cow::Borrowed(&self.spec.selector))
    }
}

/// Whether a change of a node may change which pods belong there. Nodes report their health all the time; that does not.
fn matters(event: &Event<Node>) -> bool {
    let Event::Updated { old, new } = event else {
        return true;
    };
    let facts = |node: &Cached<Node>| {
        let node = node.value()?;
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone());
        Some((node.metadata.labels.clone(), taints))
    };
    facts(old) != facts(new)
}

struct DaemonSets {
    backoff: Arc<Mutex<Backoff>>,
}

impl Reconciler<DaemonSet> for DaemonSets {
    async fn reconcile(&self, set: Arc<DaemonSet>, cx: &Context) -> Result<Outcome, Error> {
        let Some(selector) = selector(&set.spec.selector) else {
            let message =
                "This daemon set is selecting all pods. A non-empty selector is required.";
            cx.event(&*set, EventKind::Warning, "SelectingAll", message);
            return Ok(Outcome::done());
        };
        // Revisions of a set that goes away may be gone before its pods; there is nothing left to report.
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::done());
        }
        let ours = |pod: &Pod| selects(&selector, &pod.metadata);
        let pods = claim_all::<_, Pod>(cx.client(), &*set, ours).await?;
        let nodes = cx.client().list::<Node>(Query::all()).await?;
        let before = set
            .status
            .as_ref()
            .and_then(|status| status.collision_count);
        let settled = settle(cx, &*set, &set.spec.template, POD_LABEL, before).await?;
        let resting = self.resting(cx, &set, &pods);
        let mut plan = plan::plan(&Observed {
            set: &set,
            hash: hash_of(&settled.latest),
            nodes: &nodes,
            pods: &pods,
            resting: &resting.keys().cloned().collect(),
            now: cx.now(),
        });
        plan.status.collision_count = settled.collisions;
        let done = self.carry_out(cx, &set, &plan).await;
        report(cx.client(), &*set, |set| set.status = Some(plan.status)).await?;
        done?;
        forget(cx, &expired(&set, &settled, &pods)).await?;
        let wait = resting.into_values().chain(plan.check_after).min();
        Ok(wait.map_or_else(Outcome::done, Outcome::requeue_after))
    }

    async fn gone(&self, key: &Key, _cx: &Context) -> Result<Outcome, Error> {
        self.backoff.lock().forget(key.as_str());
        Ok(Outcome::done())
    }
}

impl DaemonSets {
    /// The nodes whose failed pods are left alone, and for how long.
    fn resting(
        &self,
        cx: &Context,
        set: &DaemonSet,
        pods: &[Arc<Pod>],
    ) -> BTreeMap<String, Duration> {
        let backoff = self.backoff.lock();
        let failed = pods
            .iter()
            .filter(|pod| phase(pod) == "Failed" && !is_terminating(pod));
        let nodes = failed.filter_map(|pod| template::target(pod));
        let left = |node| {
            Some((
                String::from(node),
                backoff.left(&attempt(cx, set, node), cx.now())?,
            ))
        };
        nodes.filter_map(left).collect()
    }

    async fn carry_out(
        &self,
        cx: &Context,
        set: &DaemonSet,
        plan: &Plan,
    ) -> Result<(), ClientError> {
        for doomed in &plan.delete {
            self.tell(cx, set, doomed);
        }
        let create = |at: usize| super::create_pod(cx, set, &plan.create[at]);
        let created = slow_start(plan.create.len(), create).await;
        let deletions = plan
            .delete
            .iter()
            .map(|doomed| super::delete_pod(cx, set, &doomed.pod));
        let deleted = join_all(deletions).await.into_iter().find_map(Result::err);
        created.failure.or(deleted).map_or(Ok(()), Err)
    }

    fn tell(&self, cx: &Context, set: &DaemonSet, doomed: &Doomed) {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let pod = format!("{namespace}/{}", name(&*doomed.pod));
        match &doomed.why {
            Why::Surplus => {}
            Why::Failed(node) => {
                self.backoff.lock().note(attempt(cx, set, node), cx.now());
                let message =
                    format!("Found failed daemon pod {pod} on node {node}, will try to kill it");
                cx.event(set, EventKind::Warning, "FailedDaemonPod", message);
            }
            Why::Succeeded(node) => {
                let message = format!(
                    "Found succeeded daemon pod {pod} on node {node}, will try to delete it"
                );
                cx.event(set, EventKind::Normal, "SucceededDaemonPod", message);
            }
        }
    }
}

fn attempt(cx: &Context, set: &DaemonSet, node: &str) -> Attempt {
    let status = set.status.as_ref();
    Attempt {
        set: cx.key().as_str().to_owned(),
        generation: status
            .and_then(|status| status.observed_generation)
            .unwrap_or_default(),
        node: node.to_owned(),
    }
}

fn hash_of(revision: &ControllerRevision) -> &str {
    label(&revision.metadata, POD_LABEL).unwrap_or_default()
}

/// The oldest revisions that no pod uses, beyond the limit.
fn expired(set: &DaemonSet, settled: &Settled, pods: &[Arc<Pod>]) -> Vec<Arc<ControllerRevision>> {
    let live: BTreeSet<&str> = pods
        .iter()
        .filter_map(|pod| label(&pod.metadata, POD_LABEL))
        .chain([hash_of(&settled.latest)])
        .collect();
    let mut unused = revisions::unused(&settled.all, &live, hash_of);
    let limit =
        usize::try_from(set.spec.revision_history_limit.unwrap_or(10)).unwrap_or(usize::MAX);
    let old = settled.all.len().saturating_sub(1);
    unused.truncate(old.saturating_sub(limit));
    unused
}
