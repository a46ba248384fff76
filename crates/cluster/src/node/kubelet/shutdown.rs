//! A node that shuts down: which of its pods end when, and when it is off.
//!
//! Mirrors `nodeshutdown.podManager.killPods` of a kubelet with `shutdownGracePeriod: 30s` and
//! `shutdownGracePeriodCriticalPods: 10s`: critical pods end after all others.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::eviction::is_critical;

/// What a node that shuts down says of itself.
pub(crate) const NODE_MESSAGE: &str = "node is shutting down";
/// Reason and message on its pods.
pub(crate) const REASON: &str = "Terminated";
pub(crate) const MESSAGE: &str = "Pod was terminated in response to imminent node shutdown.";
/// Reason and message on pods that come too late.
pub(crate) const REJECTION: (&str, &str) = (
    "NodeShutdown",
    "Pod was rejected as the node is shutting down.",
);
/// How long pods may take, and critical ones after them.
const GRACE: Duration = Duration::from_secs(20);
const CRITICAL_GRACE: Duration = Duration::from_secs(10);

/// How far a node is with shutting down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shutdown {
    since: Timestamp,
    /// Since when it is the turn of critical pods.
    critical_since: Option<Timestamp>,
}

/// What happens next on a node that shuts down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next<T> {
    /// These pods have to end within their time.
    End(Vec<(T, Duration)>),
    /// The machine is off.
    Off,
}

impl Shutdown {
    /// It begins.
    pub(crate) fn begun(now: Timestamp) -> Self {
        Self {
            since: now,
            critical_since: None,
        }
    }

    /// What happens next, given the pods that have not ended.
    pub(crate) fn next<T>(&mut self, now: Timestamp, pods: Vec<(T, &Pod)>) -> Next<T> {
        let (critical, others): (Vec<_>, Vec<_>) =
            pods.into_iter().partition(|(_, pod)| is_critical(pod));
        if self.critical_since.is_none() && !others.is_empty() && now < self.since + GRACE {
            return Next::End(graces(others, self.since + GRACE, now));
        }
        let since = *self.critical_since.get_or_insert(now);
        if critical.is_empty() || now >= since + CRITICAL_GRACE {
            return Next::Off;
        }
        Next::End(graces(critical, since + CRITICAL_GRACE, now))
    }
}

/// Each pod has its own grace period, and no longer than what is left.
fn graces<T>(pods: Vec<(T, &Pod)>, until: Timestamp, now: Timestamp) -> Vec<(T, Duration)> {
    let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
    let pods = pods.into_iter().map(|(key, pod)| {
        let spec = pod.spec.as_ref();
        let own = spec.and_then(|spec| spec.termination_grace_period_seconds);
        let own = own.map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
        (key, own.map_or(left, |own| own.min(left)))
    });
    pods.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(priority: i32, grace: i64) -> Pod {
        let spec =
            json!({"containers": [], "priority": priority, "terminationGracePeriodSeconds": grace});
        serde_json::from_value(json!({"spec": spec})).expect("a pod")
    }

    #[test]
    fn critical_pods_end_after_the_others_and_then_the_node_is_off() {
        let at = |seconds: u64| Timestamp::UNIX_EPOCH + Duration::from_secs(seconds);
        let (short, long, critical) = (pod(0, 5), pod(0, 300), pod(2_000_000_000, 300));
        let mut shutdown = Shutdown::begun(at(0));
        let all = || vec![("short", &short), ("long", &long), ("critical", &critical)];
        let seconds = Duration::from_secs;
        let end = Next::End(vec![("short", seconds(5)), ("long", seconds(20))]);
        assert_eq!(shutdown.next(at(0), all()), end);
        let end = Next::End(vec![("long", seconds(14))]);
        assert_eq!(shutdown.next(at(6), all()[1..].to_vec()), end);
        // The others have ended before their time: critical ones have all of theirs.
        let end = Next::End(vec![("critical", seconds(10))]);
        assert_eq!(shutdown.next(at(7), all()[2..].to_vec()), end);
        let end = Next::End(vec![("critical", seconds(4))]);
        assert_eq!(shutdown.next(at(13), all()[2..].to_vec()), end);
        assert_eq!(shutdown.next(at(17), all()[2..].to_vec()), Next::Off);
        let mut empty = Shutdown::begun(at(0));
        assert_eq!(empty.next(at(0), Vec::<((), &Pod)>::new()), Next::Off);
        let mut stuck = Shutdown::begun(at(0));
        assert_eq!(stuck.next(at(20), vec![("long", &long)]), Next::Off);
    }
}
