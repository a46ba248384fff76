//! What has become of a job's pods: running, going, ended well, ended badly. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::finalizer;

use super::TRACKING;
use super::per_index::{self, is_limited};
use super::policy::{self, Verdict};
use super::template::index_of;
use super::{indexes, saturate};
use crate::controllers::nonzero;
use crate::pods::{is_active, is_finished, is_terminating, phase};

/// The wait after a first failure, doubled with each further one.
const BACKOFF: Duration = Duration::from_secs(10);
/// The longest wait after a failure (`job_controller.go: MaxJobPodFailureBackOff`).
const LONGEST_BACKOFF: Duration = Duration::from_secs(600);
/// The most ends that one write of the status takes in.
const MOST_UNCOUNTED: usize = 500;

/// The state of a job's pods, those that are gone included.
#[derive(Debug, Default)]
pub(crate) struct Count {
    pub(crate) active: Vec<Arc<Pod>>,
    /// Pods on their way out that have not ended yet.
    pub(crate) terminating: i32,
    /// How many pods ended well; of an indexed job, how many indexes have.
    pub(crate) succeeded: i32,
    pub(crate) failed: i32,
    /// The indexes that are done.
    pub(crate) completed: BTreeSet<i32>,
    /// The indexes that are given up.
    pub(crate) failed_indexes: BTreeSet<i32>,
    /// The last failed pod of each index that is tried again. It says how often that was, and stays until another does.
    pub(crate) held: BTreeMap<i32, Arc<Pod>>,
    /// Pods whose end is in the status once that is written.
    pub(crate) release: Vec<Arc<Pod>>,
    /// The first failure that ends the job at once, in words.
    pub(crate) verdict: Option<String>,
    folded_succeeded: i32,
    folded_failed: i32,
    uncounted: UncountedTerminatedPods,
}

/// Whether the pods of a job have indexes.
pub(crate) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

/// Whether pods on their way out are replaced only once they have ended.
pub(crate) fn replaces_ended_only(spec: &JobSpec) -> bool {
    spec.pod_replacement_policy.as_deref() == Some("Failed") || spec.pod_failure_policy.is_some()
}

/// Whether a pod that has not ended well counts as failed.
pub(super) fn has_failed(spec: &JobSpec, pod: &Pod) -> bool {
    match phase(pod) {
        "Failed" => true,
        "Succeeded" => false,
        _ => is_terminating(pod) && !replaces_ended_only(spec),
    }
}

/// Counts the pods of a job on top of what its status says.
pub(crate) fn count(job: &Job, spec: &JobSpec, pods: &[Arc<Pod>]) -> Count {
    let status = job.status.clone().unwrap_or_default();
    let is_going = |pod: &&Arc<Pod>| is_terminating(pod) && !is_finished(pod);
    let mut count = Count {
        active: pods.iter().filter(|pod| is_active(pod)).cloned().collect(),
        terminating: saturate(pods.iter().filter(is_going).count()),
        ..Count::default()
    };
    count.fold(&status, pods);
    if is_indexed(spec) {
        let ranges = status.completed_indexes.as_deref().unwrap_or_default();
        count.completed = indexes::parse(ranges, spec.completions.unwrap_or_default());
        if is_limited(spec) {
            let ranges = status.failed_indexes.as_deref().unwrap_or_default();
            count.failed_indexes = indexes::parse(ranges, spec.completions.unwrap_or_default());
            (count.failed_indexes, count.held) = per_index::look(spec, &count, pods);
        }
    }
    let tracked = pods
        .iter()
        .filter(|pod| finalizer::contains(&***pod, TRACKING));
    for pod in tracked {
        let is_held = |index| count.held.get(&index) == Some(pod);
        if !index_of(pod).is_some_and(is_held) {
            count.take(spec, pod);
        }
    }
    count.add_up(spec);
    count
}

impl Count {
    /// Adds ends to the counts whose pods have lost their finalizer.
    fn fold(&mut self, status: &JobStatus, pods: &[Arc<Pod>]) {
        let held: BTreeSet<&str> = pods
            .iter()
            .filter(|pod| finalizer::contains(&***pod, TRACKING))
            .filter_map(|pod| pod.metadata.uid.as_deref())
            .collect();
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let settle = |uids: Option<Vec<String>>, counted: Option<i32>| {
            let all = uids.unwrap_or_default();
            let before = all.len();
            let left: Vec<_> = all
                .into_iter()
                .filter(|uid| held.contains(uid.as_str()))
                .collect();
            let settled = saturate(before - left.len());
            (
                (!left.is_empty()).then_some(left),
                counted.unwrap_or_default() + settled,
            )
        };
        let (succeeded, folded_succeeded) = settle(uncounted.succeeded, status.succeeded);
        let (failed, folded_failed) = settle(uncounted.failed, status.failed);
        self.uncounted = UncountedTerminatedPods { failed, succeeded };
        (self.folded_succeeded, self.folded_failed) = (folded_succeeded, folded_failed);
    }

    fn add_up(&mut self, spec: &JobSpec) {
        let uncounted = |uids: &Option<Vec<String>>| saturate(uids.as_ref().map_or(0, Vec::len));
        self.failed = self.folded_failed + uncounted(&self.uncounted.failed);
        self.succeeded = if is_indexed(spec) {
            saturate(self.completed.len())
        } else {
            self.folded_succeeded + uncounted(&self.uncounted.succeeded)
        };
    }

    /// Takes in what was held: nothing is tried again.
    pub(crate) fn let_go(&mut self, spec: &JobSpec) {
        for pod in std::mem::take(&mut self.held).into_values() {
            self.take(spec, &pod);
        }
        self.add_up(spec);
    }

    /// Takes in a pod that has the finalizer.
    fn take(&mut self, spec: &JobSpec, pod: &Arc<Pod>) {
        if self.release.len() >= MOST_UNCOUNTED {
            return;
        }
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if phase(pod) == "Succeeded" {
            match index_of(pod).filter(|_| is_indexed(spec)) {
                Some(index) if index < spec.completions.unwrap_or_default() => {
                    self.completed.insert(index);
                }
                Some(_) => {}
                None => add(&mut self.uncounted.succeeded, uid),
            }
        } else if has_failed(spec, pod) {
            match policy::judge(spec, pod) {
                Verdict::Ignore => {}
                Verdict::Count | Verdict::FailIndex => add(&mut self.uncounted.failed, uid),
                Verdict::FailJob(message) => {
                    add(&mut self.uncounted.failed, uid);
                    self.verdict.get_or_insert(message);
                }
            }
        } else {
            return;
        }
        self.release.push(pod.clone());
    }

    /// Whether every end is in the counts.
    pub(crate) fn is_settled(&self) -> bool {
        self.release.is_empty() && self.uncounted == UncountedTerminatedPods::default()
    }

    /// Writes the counts into a status.
    pub(crate) fn tell(&self, spec: &JobSpec, status: &mut JobStatus) {
        let ready = self.active.iter().filter(|pod| crate::pods::is_ready(pod));
        status.active = nonzero(saturate(self.active.len()));
        status.ready = Some(saturate(ready.count()));
        status.terminating = Some(self.terminating);
        status.failed = nonzero(self.folded_failed);
        status.uncounted_terminated_pods = Some(self.uncounted.clone());
        if is_indexed(spec) {
            status.succeeded = nonzero(self.succeeded);
            let text = indexes::format(&self.completed);
            status.completed_indexes = (!text.is_empty()).then_some(text);
            let failed = || indexes::format(&self.failed_indexes);
            status.failed_indexes = is_limited(spec).then(failed);
        } else {
            status.succeeded = nonzero(self.folded_succeeded);
        }
    }
}

fn add(uids: &mut Option<Vec<String>>, uid: String) {
    let uids = uids.get_or_insert_default();
    if !uids.contains(&uid) {
        uids.push(uid);
    }
}

/// How long no pod is created because of the failures since the last success, as far as their pods are still there.
pub(crate) fn backoff(spec: &JobSpec, pods: &[Arc<Pod>], now: Timestamp) -> Option<Duration> {
    let ends = |good: &dyn Fn(&Pod) -> bool| -> Vec<Timestamp> {
        let ended = pods.iter().filter(|pod| good(pod));
        ended.map(|pod| ended_at(pod)).collect()
    };
    let success = ends(&|pod| phase(pod) == "Succeeded").into_iter().max();
    let failures = ends(&|pod| has_failed(spec, pod)).into_iter();
    let failures: Vec<_> = failures
        .filter(|at| success.is_none_or(|s| *at > s))
        .collect();
    let last = failures.iter().max()?;
    wait_after(failures.len(), *last, now)
}

/// How long is left to wait after so many failures, the last of them then.
pub(super) fn wait_after(failures: usize, last: Timestamp, now: Timestamp) -> Option<Duration> {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    let wait = (BACKOFF * 2_u32.pow(doublings.min(16))).min(LONGEST_BACKOFF);
    let until = last
        .checked_add(SignedDuration::try_from(wait).ok()?)
        .ok()?;
    let left = Duration::try_from(until.duration_since(now)).ok()?;
    (!left.is_zero()).then_some(left)
}

/// When a pod ended (`job/backoff_utils.go: getFinishedTime`). One that no container of ever ran, as a node rejects or evicts it, ended
/// when it was seen not to be ready. A time that moves on with the clock would be waited for without end.
pub(super) fn ended_at(pod: &Pod) -> Timestamp {
    let created = pod.metadata.creation_timestamp.as_ref();
    let ended = last_container(pod).or_else(|| not_ready(pod));
    let ended = ended.or_else(|| asked_to_go(pod));
    let ended = ended.or_else(|| created.map(|time| time.0));
    ended.unwrap_or(Timestamp::UNIX_EPOCH)
}

/// When the last container ended, if all have.
fn last_container(pod: &Pod) -> Option<Timestamp> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    let ends = containers.iter().map(|container| {
        let ended = container.state.as_ref()?.terminated.as_ref()?;
        Some(ended.finished_at.as_ref()?.0)
    });
    ends.collect::<Option<Vec<_>>>()?.into_iter().max()
}

fn not_ready(pod: &Pod) -> Option<Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|it| it.type_ == "Ready")?;
    let since = ready.last_transition_time.as_ref()?;
    (ready.status == "False").then_some(since.0)
}

/// When the deletion was asked for: its timestamp is when it is to be over.
fn asked_to_go(pod: &Pod) -> Option<Timestamp> {
    let deadline = pod.metadata.deletion_timestamp.as_ref()?.0;
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
    deadline.checked_sub(SignedDuration::from_secs(grace)).ok()
}
