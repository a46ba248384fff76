//! What the probes of a container mean: when each is due, and what follows from what it found.
//!
//! Mirrors `prober.worker.doProbe`. Nothing is probed here: results come in, and callers ask what is due.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Probe};

use crate::node::runtime::ProbeKind;

pub(crate) const KINDS: [ProbeKind; 3] = [
    ProbeKind::Startup,
    ProbeKind::Liveness,
    ProbeKind::Readiness,
];

/// The probes of one run of a container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Prober {
    startup: Track,
    liveness: Track,
    readiness: Track,
}

/// One probe.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Track {
    /// When it is due next; nothing before its first time, and while it is under way.
    next: Option<Timestamp>,
    under_way: bool,
    /// What it found last, and how many times in a row.
    last: Option<(Found, u32)>,
    /// What counts: a result that came often enough.
    result: Option<Found>,
}

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Good,
    Bad,
}

/// What follows from a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Nothing,
    /// The container is stopped, and starts again if its policy says so.
    Kill,
}

impl Prober {
    /// When a probe is due next, and which. Nothing else is probed until a container has started.
    pub(crate) fn due(
        &self,
        container: &Container,
        since: Timestamp,
    ) -> Option<(Timestamp, ProbeKind)> {
        let started = self.has_started(container);
        let candidates = KINDS.into_iter().filter_map(|kind| {
            let probe = spec(container, kind)?;
            let allowed = (kind == ProbeKind::Startup) != started;
            let track = self.track(kind);
            if !allowed || track.under_way {
                return None;
            }
            let first = since + seconds(probe.initial_delay_seconds);
            Some((track.next.unwrap_or(first).max(first), kind))
        });
        candidates.min_by_key(|(at, _)| *at)
    }

    /// A probe was sent.
    pub(crate) fn sent(&mut self, container: &Container, kind: ProbeKind, now: Timestamp) {
        let period = spec(container, kind).map_or(10, |probe| probe.period_seconds.unwrap_or(10));
        let track = self.track_mut(kind);
        track.under_way = true;
        track.next = Some(now + Duration::from_secs(u64::try_from(period.max(1)).unwrap_or(10)));
    }

    /// A probe could not be carried out: what it found before still counts (`worker.doProbe`).
    pub(crate) fn threw_away(&mut self, kind: ProbeKind) {
        self.track_mut(kind).under_way = false;
    }

    /// A result came in; says what follows.
    pub(crate) fn found(
        &mut self,
        container: &Container,
        kind: ProbeKind,
        found: Found,
    ) -> Verdict {
        let Some(probe) = spec(container, kind) else {
            return Verdict::Nothing;
        };
        let track = self.track_mut(kind);
        track.under_way = false;
        let run = match track.last {
            Some((last, run)) if last == found => run.saturating_add(1),
            _ => 1,
        };
        track.last = Some((found, run));
        let threshold = match found {
            Found::Good => probe.success_threshold.unwrap_or(1),
            Found::Bad => probe.failure_threshold.unwrap_or(3),
        };
        if i64::from(run) < i64::from(threshold) {
            return Verdict::Nothing;
        }
        track.result = Some(found);
        match (kind, found) {
            (ProbeKind::Liveness | ProbeKind::Startup, Found::Bad) => Verdict::Kill,
            _ => Verdict::Nothing,
        }
    }

    /// Whether a container has started: its startup probe has succeeded, or it has none.
    pub(crate) fn has_started(&self, container: &Container) -> bool {
        container.startup_probe.is_none() || self.startup.result == Some(Found::Good)
    }

    /// Whether a container that runs is ready: its readiness probe says so, or it has none.
    pub(crate) fn is_ready(&self, container: &Container) -> bool {
        let ready =
            container.readiness_probe.is_none() || self.readiness.result == Some(Found::Good);
        self.has_started(container) && ready
    }

    /// Whether a probe of this run has failed since it last succeeded.
    pub(crate) fn has_failed(&self) -> bool {
        KINDS.iter().any(|kind| {
            let track = self.track(*kind);
            track.result == Some(Found::Bad) || matches!(track.last, Some((Found::Bad, _)))
        })
    }

    /// All probes of a container that was healthy so far, as if they had succeeded.
    pub(crate) fn assume_good(&mut self) {
        for kind in KINDS {
            self.track_mut(kind).result = Some(Found::Good);
        }
    }

    fn track(&self, kind: ProbeKind) -> &Track {
        match kind {
            ProbeKind::Startup => &self.startup,
            ProbeKind::Liveness => &self.liveness,
            ProbeKind::Readiness => &self.readiness,
        }
    }

    fn track_mut(&mut self, kind: ProbeKind) -> &mut Track {
        match kind {
            ProbeKind::Startup => &mut self.startup,
            ProbeKind::Liveness => &mut self.liveness,
            ProbeKind::Readiness => &mut self.readiness,
        }
    }
}

/// The probe of a kind.
pub(crate) fn spec(container: &Container, kind: ProbeKind) -> Option<&Probe> {
    match kind {
        ProbeKind::Startup => container.startup_probe.as_ref(),
        ProbeKind::Liveness => container.liveness_probe.as_ref(),
        ProbeKind::Readiness => container.readiness_probe.as_ref(),
    }
}

/// How long a probe may take.
pub(crate) fn limit(container: &Container, kind: ProbeKind) -> Duration {
    let limit = spec(container, kind).and_then(|probe| probe.timeout_seconds);
    seconds(limit.or(Some(1))).max(Duration::from_secs(1))
}

fn seconds(value: Option<i32>) -> Duration {
    Duration::from_secs(u64::try_from(value.unwrap_or(0)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("in range")
    }

    /// `prober.worker.doProbe`, pkg/kubelet/prober/worker.go.
    #[test]
    fn thresholds_count_results_in_a_row_and_nothing_is_probed_before_the_start() {
        let container: Container = serde_json::from_value(json!({
            "name": "c",
            "startupProbe": {"periodSeconds": 2, "failureThreshold": 2},
            "livenessProbe": {"initialDelaySeconds": 5, "periodSeconds": 3, "failureThreshold": 2},
            "readinessProbe": {"periodSeconds": 1, "successThreshold": 2, "failureThreshold": 1},
        }))
        .expect("a container");
        let mut prober = Prober::default();
        assert_eq!(
            prober.due(&container, at(0)),
            Some((at(0), ProbeKind::Startup))
        );
        prober.sent(&container, ProbeKind::Startup, at(0));
        assert_eq!(prober.due(&container, at(0)), None, "it is under way");
        assert_eq!(
            prober.found(&container, ProbeKind::Startup, Found::Bad),
            Verdict::Nothing
        );
        assert_eq!(
            prober.due(&container, at(0)),
            Some((at(2), ProbeKind::Startup))
        );
        prober.found(&container, ProbeKind::Startup, Found::Good);
        assert!(prober.has_started(&container) && !prober.is_ready(&container));
        assert_eq!(
            prober.due(&container, at(0)),
            Some((at(0), ProbeKind::Readiness))
        );
        prober.found(&container, ProbeKind::Readiness, Found::Good);
        assert!(!prober.is_ready(&container), "once is not often enough");
        prober.found(&container, ProbeKind::Readiness, Found::Good);
        assert!(prober.is_ready(&container));
        prober.found(&container, ProbeKind::Readiness, Found::Bad);
        assert!(!prober.is_ready(&container));
        assert_eq!(
            prober.found(&container, ProbeKind::Liveness, Found::Bad),
            Verdict::Nothing
        );
        prober.found(&container, ProbeKind::Liveness, Found::Good);
        assert_eq!(
            prober.found(&container, ProbeKind::Liveness, Found::Bad),
            Verdict::Nothing
        );
        assert_eq!(
            prober.found(&container, ProbeKind::Liveness, Found::Bad),
            Verdict::Kill
        );
    }
}
