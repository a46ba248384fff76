//! StatefulSets: pods with a name, a number and volumes of their own.
//!
//! Absent: mending the volumes of an adopted pod, which no server allows; such a pod is left as it is.

mod apply;
pub(crate) mod identity;
pub(crate) mod plan;
pub(crate) mod retention;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod simulation;
mod status;
#[cfg(test)]
mod tests;
mod update;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubewright_runtime::{ClientError, Context, Controller, Error, Outcome, Query, Reconciler};

use self::identity::Revision;
use self::plan::Observed;
use super::WORKERS;
use super::revisions::settle::{Settled, forget, name, settle};
use super::revisions::{self, REVISION_LABEL};
use crate::pods::adopt::{self, Selecting, claim_all};
use crate::pods::claim::{selector, selects};
use crate::writes::report;

/// The controller of StatefulSets.
pub(crate) fn controller() -> Controller {
    Controller::of::<StatefulSet>("statefulset-controller")
        .owns::<Pod>()
        .owns::<ControllerRevision>()
        .watches(adopt::orphans::<StatefulSet, Pod>())
        .workers(WORKERS)
        .reconciler(StatefulSets)
}

impl Selecting for StatefulSet {
    fn label_selector(&self) -> Option<Cow<'_, LabelSelector>> {
        Some(Cow::Borrowed(&self.spec.selector))
    }
}

struct StatefulSets;

impl Reconciler<StatefulSet> for StatefulSets {
    async fn reconcile(&self, set: Arc<StatefulSet>, cx: &Context) -> Result<Outcome, Error> {
        let Some(selector) = selector(&set.spec.selector) else {
            return Ok(Outcome::done());
        };
        let ours =
            |pod: &Pod| selects(&selector, &pod.metadata) && identity::ordinal(&set, pod).is_some();
        let pods = claim_all::<_, Pod>(cx.client(), &*set, ours).await?;
        let before = set.status.as_ref();
        let collisions = before
            .and_then(|status| status.collision_count)
            .unwrap_or_default();
        let settled = settle(
            cx,
            &*set,
            &set.spec.template,
            REVISION_LABEL,
            Some(collisions),
        )
        .await?;
        let (current, update) = revisions_of(&set, &settled);
        let plan = plan::plan(&Observed {
            set: &set,
            current: &current,
            update: &update,
            collisions: settled.collisions.unwrap_or_default(),
            pods: &pods,
            claims: &claims(cx, &set).await?,
            now: cx.now(),
        });
        let applied = apply::changes(cx, &set, &plan.changes).await;
        let status = plan.status;
        report(cx.client(), &*set, |set| set.status = Some(status)).await?;
        let next = applied?;
        forget(cx, &expired(&set, &settled.all, &pods, [&current, &update])).await?;
        Ok(match (next, plan.check_after) {
            (apply::Next::Retry, _) => Outcome::requeue(),
            (apply::Next::Wait, Some(wait)) => Outcome::requeue_after(wait),
            (apply::Next::Wait, None) => Outcome::done(),
        })
    }
}

/// The revision that pods have had so far, and the one that they shall have. At first they are the same.
fn revisions_of(set: &StatefulSet, settled: &Settled) -> (Revision, Revision) {
    let update = Revision {
        name: name(&*settled.latest).to_owned(),
        template: set.spec.template.clone(),
    };
    let current = set
        .status
        .as_ref()
        .and_then(|status| status.current_revision.as_deref());
    let known = settled
        .all
        .iter()
        .find(|revision| Some(name(&***revision)) == current);
    let current = known.and_then(|revision| {
        Some(Revision {
            name: name(&**revision).to_owned(),
            template: revisions::template(revision)?,
        })
    });
    (current.unwrap_or_else(|| update.clone()), update)
}

/// The claims of the namespace by name, if the set has any.
async fn claims(
    cx: &Context,
    set: &StatefulSet,
) -> Result<BTreeMap<String, Arc<PersistentVolumeClaim>>, ClientError> {
    if set
        .spec
        .volume_claim_templates
        .as_ref()
        .is_none_or(Vec::is_empty)
    {
        return Ok(BTreeMap::new());
    }
    let namespace = set.metadata.namespace.clone().unwrap_or_default();
    let claims = cx
        .client()
        .list::<PersistentVolumeClaim>(Query::all().namespace(namespace))
        .await?;
    Ok(claims
        .into_iter()
        .map(|claim| (name(&*claim).to_owned(), claim))
        .collect())
}

/// The oldest revisions that neither the set nor a pod uses, beyond the limit.
fn expired(
    set: &StatefulSet,
    all: &[Arc<ControllerRevision>],
    pods: &[Arc<Pod>],
    used: [&Revision; 2],
) -> Vec<Arc<ControllerRevision>> {
    let live: BTreeSet<&str> = pods
        .iter()
        .map(|pod| identity::revision(pod))
        .chain(used.map(|revision| revision.name.as_str()))
        .collect();
    let mut unused = revisions::unused(all, &live, |revision| name(revision));
    let limit =
        usize::try_from(set.spec.revision_history_limit.unwrap_or(10)).unwrap_or(usize::MAX);
    unused.truncate(unused.len().saturating_sub(limit));
    unused
}
