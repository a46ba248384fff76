//! The hooks of scripted containers: what runs after their start, and before they are asked to end.
//!
//! Mirrors `kuberuntime_container.go: startContainer, executePreStopHook, killContainer`.

use std::time::Duration;

use jiff::Timestamp;
use kubewright_runtime::EventKind;

use super::super::kubelet::hooks::{Hook, LEAST_GRACE};
use super::super::run::{Hooking, Stopping};
use super::{Change, PodMachine};

impl PodMachine<'_> {
    /// A container has started: until its hook is done it is not reported as running.
    pub(super) fn begin_hook(&mut self, index: usize) {
        let Some(hook) = self.scripts[index].post_start else {
            return;
        };
        let until = hook.takes.map(|takes| self.now + takes);
        self.run.containers[index].hooking = Hooking::Runs { until };
    }

    /// When the hook after the start of a container is done.
    pub(super) fn next_hooked(&self, index: usize) -> Option<(Timestamp, Change)> {
        match self.run.containers[index].hooking {
            Hooking::Runs { until } => Some((until?, Change::Hooked)),
            Hooking::Over | Hooking::Failed => None,
        }
    }

    /// The hook after the start of a container is done; one that failed ends the container.
    pub(super) fn hooked(&mut self, index: usize) {
        let fails = self.scripts[index]
            .post_start
            .is_some_and(|hook| hook.fails);
        if !fails {
            self.run.containers[index].hooking = Hooking::Over;
            return;
        }
        for (kind, reason, text) in [
            (
                EventKind::Warning,
                "FailedPostStartHook",
                "PostStartHook failed",
            ),
            (EventKind::Normal, "Killing", "FailedPostStartHook"),
        ] {
            self.container_note(index, kind, reason, text.to_owned());
        }
        let grace = self.grace();
        let container = &mut self.run.containers[index];
        container.hooking = Hooking::Failed;
        container.killing = Some(Stopping {
            since: self.now,
            deadline: self.now + grace,
        });
    }

    /// The grace period of the pod.
    pub(super) fn grace(&self) -> Duration {
        let spec = self.pod.spec.as_ref();
        let seconds = spec.and_then(|spec| spec.termination_grace_period_seconds);
        Duration::from_secs(u64::try_from(seconds.unwrap_or(30)).unwrap_or(0))
    }

    /// When a container is asked to end and when it is killed, once its hook has run; or the report that
    /// the hook failed. The hooks of sidecars do not wait for their turn.
    pub(super) fn stop_after_hook(
        &self,
        index: usize,
        stop: Stopping,
    ) -> Result<Stopping, (Timestamp, Change)> {
        let begins = self.run.graceful_stop();
        let begins = begins.map_or(stop.since, |all| all.since);
        let hook = self.scripts[index].pre_stop;
        let Some(Hook { takes, fails }) = hook.filter(|_| stop.deadline > begins) else {
            return Ok(stop);
        };
        let done = takes.map_or(stop.deadline, |takes| (begins + takes).min(stop.deadline));
        let container = &self.run.containers[index];
        if fails && !container.pre_stop_reported && done < stop.deadline {
            return Err((done, Change::PreStopFailed));
        }
        let since = stop.since.max(done);
        Ok(Stopping {
            since,
            deadline: stop.deadline.max(since + LEAST_GRACE),
        })
    }

    pub(super) fn pre_stop_failed(&mut self, index: usize) {
        self.run.containers[index].pre_stop_reported = true;
        let text = "PreStopHook failed".to_owned();
        self.container_note(index, EventKind::Warning, "FailedPreStopHook", text);
    }
}
