//! Limits of failures for each index: which indexes are given up, and how often the others have failed. Pure.
//!
//! How often an index has failed is written on its pods, so that it is known whatever happens to the controller. Of the
//! failed pods of an index the last one is kept until its successor carries the count on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::finalizer;

use super::TRACKING;
use super::count::{Count, ended_at, has_failed, is_indexed, wait_after};
use super::policy::{self, Verdict};
use super::template::index_of;
use crate::pods::{is_active, phase};

/// How often an index had failed before a pod of it.
pub(super) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// The same for failures that do not count.
pub(super) const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// How often an index has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    pub(super) counted: i32,
    pub(super) ignored: i32,
}

/// Whether failures are counted for each index.
pub(super) fn is_limited(spec: &JobSpec) -> bool {
    is_indexed(spec) && spec.backoff_limit_per_index.is_some()
}

/// The indexes that are given up, and the last failed pods of the others.
pub(super) fn look(
    spec: &JobSpec,
    count: &Count,
    pods: &[Arc<Pod>],
) -> (BTreeSet<i32>, BTreeMap<i32, Arc<Pod>>) {
    let mut failed = count.failed_indexes.clone();
    let mut last: BTreeMap<i32, Arc<Pod>> = BTreeMap::new();
    for pod in pods {
        let known = |index: &i32| *index < spec.completions.unwrap_or_default();
        let Some(index) = index_of(pod).filter(known) else {
            continue;
        };
        let done = count.completed.contains(&index) || phase(pod) == "Succeeded";
        let tracked = finalizer::contains(&**pod, TRACKING);
        if done || !tracked || !has_failed(spec, pod) {
            continue;
        }
        if is_given_up(spec, pod) {
            failed.insert(index);
        }
        let later = |old: &Arc<Pod>| number(pod) > number(old);
        if last.get(&index).is_none_or(later) {
            last.insert(index, pod.clone());
        }
    }
    last.retain(|index, pod| {
        let succeeds = |other: &Arc<Pod>| {
            let is_it = is_active(other) || phase(other) == "Succeeded";
            is_it && index_of(other) == Some(*index) && number(other) > number(pod)
        };
        !failed.contains(index) && !pods.iter().any(succeeds)
    });
    (failed, last)
}

fn is_given_up(spec: &JobSpec, pod: &Pod) -> bool {
    match policy::judge(spec, pod) {
        Verdict::FailIndex => true,
        Verdict::Ignore => false,
        Verdict::Count | Verdict::FailJob(_) => {
            before(pod).counted >= spec.backoff_limit_per_index.unwrap_or(i32::MAX)
        }
    }
}

/// How often an index has failed with this pod.
pub(super) fn after(spec: &JobSpec, pod: &Pod) -> Failures {
    let mut failures = before(pod);
    match policy::judge(spec, pod) {
        Verdict::Ignore => failures.ignored = failures.ignored.saturating_add(1),
        _ => failures.counted = failures.counted.saturating_add(1),
    }
    failures
}

/// How long an index waits for its next pod.
pub(super) fn wait(pod: &Pod, now: Timestamp) -> Option<Duration> {
    let failures = usize::try_from(number(pod)).unwrap_or_default();
    wait_after(failures + 1, ended_at(pod), now)
}

/// How often an index had failed before this pod.
fn before(pod: &Pod) -> Failures {
    let read = |key: &str| {
        let text = pod.metadata.annotations.as_ref()?.get(key)?;
        text.parse().ok().filter(|count| *count >= 0)
    };
    Failures {
        counted: read(FAILURES).unwrap_or_default(),
        ignored: read(IGNORED).unwrap_or_default(),
    }
}

/// The place of a pod among those of its index.
fn number(pod: &Pod) -> i32 {
    let Failures { counted, ignored } = before(pod);
    counted.saturating_add(ignored)
}
