//! How many replicas a metric asks for. Pure.
//!
//! All values are in thousandths. Pods that are not ready or that nobody has measured never make a scaling larger: they
//! are counted in the way that makes it smaller, and if that reverses the direction, nothing is scaled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kubewright_schema::quantity::Quantity;

use crate::node::script::{Role, containers};
use crate::pods::{is_ready, is_terminating, phase};

/// How long the processor of a new pod says little.
const INITIALISATION: SignedDuration = SignedDuration::from_mins(5);
/// Who turns unready so soon after its start has not been ready yet.
const FIRST_READINESS: SignedDuration = SignedDuration::from_secs(30);

/// Values by the name of the pod.
pub(super) type Samples = BTreeMap<String, i64>;

/// What was measured of pods, and how long before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measurements {
    pub(super) values: Samples,
    /// When the window of a value began, by the name of the pod. Values that are of this moment have none.
    pub(super) since: BTreeMap<String, Timestamp>,
}

/// By how much a value may be off before anything is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tolerance {
    pub(super) up: f64,
    pub(super) down: f64,
}

/// What is to be reached.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal<'a> {
    /// So many percent of what the pods request.
    Utilization { percent: i32, requests: &'a Samples },
    /// So much for each pod.
    Average(i64),
}

/// The pods, and what is known of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd<'a> {
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) current: i32,
    pub(super) tolerance: Tolerance,
    pub(super) now: Timestamp,
}

/// What a metric asks for, and how it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    pub(super) utilization: Option<i32>,
    pub(super) value: i64,
}

/// Why no number of replicas can be calculated, in the words of the real controller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CalculateError {
    #[error("no pods returned by selector while calculating replica count")]
    NoPods,
    #[error("did not receive metrics for any ready pods")]
    NoReadyPods,
    #[error("no metrics returned matched known pods")]
    NoKnownPods,
    #[error("missing request for {resource} in container {container} of Pod {pod}")]
    MissingRequest {
        resource: String,
        container: String,
        pod: String,
    },
    #[error("container {container} not found in Pod {pod}")]
    MissingContainer { container: String, pod: String },
}

/// Where a metric stands over some pods.
#[derive(Clone, Copy, Debug)]
struct Usage {
    ratio: f64,
    utilization: Option<i32>,
    average: i64,
}

/// Pods by what they are worth to a decision.
#[derive(Debug, Default)]
struct Groups {
    ready: usize,
    unready: BTreeSet<String>,
    missing: BTreeSet<String>,
    ignored: BTreeSet<String>,
}

impl Tolerance {
    fn covers(self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}

impl Goal<'_> {
    fn usage(&self, samples: &Samples) -> Result<Usage, CalculateError> {
        match self {
            Self::Average(target) => {
                let total: i64 = samples.values().fold(0, |sum, v| sum.saturating_add(*v));
                let average = total / count(samples.len());
                Ok(Usage {
                    ratio: average as f64 / *target as f64,
                    utilization: None,
                    average,
                })
            }
            Self::Utilization { percent, requests } => {
                let known = samples
                    .iter()
                    .filter_map(|(pod, used)| Some((*used, *requests.get(pod)?)));
                let (mut used, mut asked, mut pods) = (0_i64, 0_i64, 0_i64);
                for (one, request) in known {
                    used = used.saturating_add(one);
                    asked = asked.saturating_add(request);
                    pods += 1;
                }
                if asked == 0 {
                    return Err(CalculateError::NoKnownPods);
                }
                let now = i32::try_from(used.saturating_mul(100) / asked).unwrap_or(i32::MAX);
                Ok(Usage {
                    ratio: f64::from(now) / f64::from(*percent),
                    utilization: Some(now),
                    average: used / pods,
                })
            }
        }
    }

    /// What a pod without a measurement is thought to use when there are to be fewer: all that it should.
    fn fully_used(&self, pod: &str) -> i64 {
        match self {
            Self::Average(target) => *target,
            Self::Utilization { percent, requests } => {
                let request = requests.get(pod).copied().unwrap_or(0);
                request.saturating_mul(i64::from((*percent).max(100))) / 100
            }
        }
    }
}

/// What a metric of each pod asks for.
///
/// # Errors
/// When nothing can be calculated.
pub(super) fn by_pods(
    crowd: &Crowd<'_>,
    measured: Measurements,
    goal: Goal<'_>,
    resource: Option<&str>,
) -> Result<Proposal, CalculateError> {
    let groups = group(crowd, &measured, resource)?;
    let mut samples = measured.values;
    samples.retain(|pod, _| !groups.unready.contains(pod) && !groups.ignored.contains(pod));
    if samples.is_empty() {
        return Err(CalculateError::NoReadyPods);
    }
    let usage = goal.usage(&samples)?;
    let proposal = |replicas| Proposal {
        replicas,
        utilization: usage.utilization,
        value: usage.average,
    };
    let rebalance = !groups.unready.is_empty() && usage.ratio > 1.0;
    if !rebalance && groups.missing.is_empty() {
        return Ok(proposal(if crowd.tolerance.covers(usage.ratio) {
            crowd.current
        } else {
            ceiling(usage.ratio * groups.ready as f64)
        }));
    }
    assume(&mut samples, &groups, &goal, usage.ratio);
    let ratio = goal.usage(&samples)?.ratio;
    let turned = (usage.ratio < 1.0 && ratio > 1.0) || (usage.ratio > 1.0 && ratio < 1.0);
    let wanted = ceiling(ratio * samples.len() as f64);
    let other_way =
        (ratio < 1.0 && wanted > crowd.current) || (ratio > 1.0 && wanted < crowd.current);
    let stays = crowd.tolerance.covers(ratio) || turned || other_way;
    Ok(proposal(if stays { crowd.current } else { wanted }))
}

/// Fills in what is not known, to the disadvantage of a scaling.
fn assume(samples: &mut Samples, groups: &Groups, goal: &Goal<'_>, ratio: f64) {
    let plain = matches!(goal, Goal::Average(_));
    for pod in &groups.missing {
        if ratio < 1.0 {
            samples.insert(pod.clone(), goal.fully_used(pod));
        } else if ratio > 1.0 || plain {
            samples.insert(pod.clone(), 0);
        }
    }
    if ratio > 1.0 {
        samples.extend(groups.unready.iter().map(|pod| (pod.clone(), 0)));
    }
}

/// What one value for all pods together asks for.
///
/// # Errors
/// When there are no pods to relate it to.
pub(super) fn by_value(
    crowd: &Crowd<'_>,
    value: i64,
    target: i64,
) -> Result<Proposal, CalculateError> {
    let ratio = value as f64 / target as f64;
    let replicas = if crowd.current == 0 {
        // From zero pods the ratio is all there is.
        ceiling(ratio)
    } else if crowd.tolerance.covers(ratio) {
        crowd.current
    } else {
        some_pods(crowd)?;
        let ready = crowd
            .pods
            .iter()
            .filter(|pod| phase(pod) == "Running" && is_ready(pod));
        ceiling(ratio * ready.count() as f64)
    };
    Ok(Proposal {
        replicas,
        utilization: None,
        value,
    })
}

/// What one value asks for that is shared among the pods that there are.
pub(super) fn by_share(replicas: i32, tolerance: Tolerance, value: i64, target: i64) -> Proposal {
    let ratio = value as f64 / (target as f64 * f64::from(replicas));
    let stays = replicas > 0 && tolerance.covers(ratio);
    Proposal {
        replicas: if stays {
            replicas
        } else {
            ceiling(value as f64 / target as f64)
        },
        utilization: None,
        value: (value as f64 / f64::from(replicas.max(1))).ceil() as i64,
    }
}

/// What pods request of a resource, or one container of each.
///
/// # Errors
/// When one of them says nothing of it: there is no percentage of nothing.
pub(super) fn requests(
    pods: &[Arc<Pod>],
    container: Option<&str>,
    resource: &str,
) -> Result<Samples, CalculateError> {
    let mut requests = Samples::new();
    for pod in pods {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let running = containers(pod).filter(|(role, one)| {
            *role != Role::Init && container.is_none_or(|wanted| wanted == one.name)
        });
        let mut total = None;
        for (_, one) in running {
            let asked = one.resources.as_ref().and_then(|r| r.requests.as_ref());
            let asked = asked.and_then(|asked| asked.get(resource));
            let milli = asked.and_then(|text| Quantity::parse(&text.0).ok()?.milli_value());
            let milli = milli.ok_or_else(|| CalculateError::MissingRequest {
                resource: resource.to_owned(),
                container: one.name.clone(),
                pod: name.clone(),
            })?;
            total = Some(total.unwrap_or(0_i64).saturating_add(milli));
        }
        let missing = || CalculateError::MissingContainer {
            container: container.unwrap_or_default().to_owned(),
            pod: name.clone(),
        };
        let total = total.ok_or_else(missing)?;
        requests.insert(name, total);
    }
    Ok(requests)
}

fn some_pods(crowd: &Crowd<'_>) -> Result<(), CalculateError> {
    if crowd.pods.is_empty() {
        Err(CalculateError::NoPods)
    } else {
        Ok(())
    }
}

fn group(
    crowd: &Crowd<'_>,
    measured: &Measurements,
    resource: Option<&str>,
) -> Result<Groups, CalculateError> {
    some_pods(crowd)?;
    let mut groups = Groups::default();
    for pod in crowd.pods {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let since = measured.since.get(&name).copied();
        if is_terminating(pod) || phase(pod) == "Failed" {
            groups.ignored.insert(name);
        } else if phase(pod) == "Pending" {
            groups.unready.insert(name);
        } else if !measured.values.contains_key(&name) {
            groups.missing.insert(name);
        } else if resource == Some("cpu") && says_little(pod, since, crowd.now) {
            groups.unready.insert(name);
        } else {
            groups.ready += 1;
        }
    }
    Ok(groups)
}

/// Whether the processor of a pod says nothing of its load: it is being started and busy with that, or what was measured
/// is of a time before it became ready (`replica_calculator.go: groupPods`).
fn says_little(pod: &Pod, since: Option<Timestamp>, now: Timestamp) -> bool {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == "Ready");
    let started = status.and_then(|status| status.start_time.as_ref());
    let (Some(ready), Some(started)) = (ready, started) else {
        return true;
    };
    let unready = ready.status == "False";
    let turned = ready.last_transition_time.as_ref().map(|time| time.0);
    let turned = turned.unwrap_or(started.0);
    if now.duration_since(started.0) < INITIALISATION {
        return unready || since.is_some_and(|since| since < turned);
    }
    unready && turned.duration_since(started.0) < FIRST_READINESS
}

fn ceiling(replicas: f64) -> i32 {
    // A cast of a float stops at the ends of the range.
    replicas.ceil() as i32
}

fn count(pods: usize) -> i64 {
    i64::try_from(pods).unwrap_or(i64::MAX).max(1)
}
