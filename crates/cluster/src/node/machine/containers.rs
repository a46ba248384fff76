//! What happens to a container next, and when.

use std::time::Duration;

use jiff::Timestamp;

use super::super::run::{ContainerRun, Live, State, Stopping};
use super::super::runtime::{Exit, Life};
use super::super::script::{Role, Script};
use super::super::signal::What;
use super::{Change, PodMachine};

/// How long a container takes to use more memory than it may.
const OUT_OF_MEMORY_AFTER: Duration = Duration::from_secs(1);
/// What exit codes of killed containers say: 128 and the signal.
const KILLED: i32 = 137;

impl PodMachine<'_> {
    /// What happens to a container next, and when.
    pub(super) fn change(&self, index: usize) -> Option<(Timestamp, Change)> {
        let (container, script) = (self.run.containers.get(index)?, self.scripts.get(index)?);
        let now = self.now;
        if container.is_up() && self.life(index) == Life::Live && container.live == Live::Unknown {
            // Somebody else started it, or a fork was made of it: the runtime is asked for it again.
            return Some((now, Change::Start));
        }
        if let Some(stop) = self.stop_of(index) {
            return self.stop_change(index, stop);
        }
        if self.run.ended.is_some() || self.run.stopping.is_some() || self.is_over() {
            return None;
        }
        let mounted = self.run.volumes == super::Volumes::Mounted;
        match &container.state {
            State::Waiting if !mounted => None,
            State::Waiting => self.run.may_start(index).then_some((now, Change::Prepare)),
            State::Creating { until } => Some((*until, Change::Start)),
            State::Blocked { until, .. } | State::BackOff { until, .. } => {
                Some((*until, Change::Prepare))
            }
            State::Running { since } => self.running_change(index, *since, script),
            State::Starting | State::Ended(_) => None,
        }
    }

    /// Why and until when a container is to end; nothing while it may go on.
    fn stop_of(&self, index: usize) -> Option<Stopping> {
        let container = &self.run.containers[index];
        if !container.is_up() {
            return None;
        }
        let now = self.now;
        if self.run.is_killed() {
            return Some(Stopping {
                since: now,
                deadline: now,
            });
        }
        if let Some(stopping) = self.run.graceful_stop() {
            return Some(match self.turn_to_stop(index) {
                Some(at) => Stopping {
                    since: at.max(stopping.since),
                    deadline: stopping.deadline,
                },
                // Sidecars outlive the others, but not the grace period.
                None => Stopping {
                    since: stopping.deadline,
                    deadline: stopping.deadline,
                },
            });
        }
        if self.is_over() {
            let since = self.turn_to_stop(index)?;
            let deadline = since + self.grace();
            return Some(Stopping { since, deadline });
        }
        container.killing
    }

    /// Since when it is a container's turn to stop: main containers at once, a sidecar when all that came after it have
    /// ended.
    ///
    /// Mirrors `terminationOrdering` of kuberuntime.
    fn turn_to_stop(&self, index: usize) -> Option<Timestamp> {
        if self.run.containers[index].role != Role::Sidecar {
            return Some(self.run.since);
        }
        let mut latest = self.run.since;
        for (other, container) in self.run.containers.iter().enumerate() {
            let before =
                container.role == Role::Main || (container.role == Role::Sidecar && other > index);
            if !before {
                continue;
            }
            if container.is_up() {
                return None;
            }
            latest = container
                .end()
                .map_or(latest, |end| latest.max(end.finished));
        }
        Some(latest)
    }

    fn stop_change(&self, index: usize, stop: Stopping) -> Option<(Timestamp, Change)> {
        let (container, script) = (&self.run.containers[index], &self.scripts[index]);
        if self.life(index) == Life::Live {
            let grace =
                Duration::try_from(stop.deadline.duration_since(self.now)).unwrap_or_default();
            let ask = container.live != Live::Stopping;
            return ask.then_some((stop.since, Change::Ask(grace)));
        }
        let stop = match self.stop_after_hook(index, stop) {
            Ok(stop) => stop,
            Err(change) => return Some(change),
        };
        let delay = script.stop_delay.filter(|_| !container.hung);
        let stops = delay.map(|delay| stop.since + delay);
        let code = if container.killing.is_some() {
            KILLED
        } else {
            0
        };
        Some(match stops {
            Some(at) if at <= stop.deadline && !self.run.is_killed() => (at, Change::Stop(code)),
            _ => (stop.deadline, Change::Stop(KILLED)),
        })
    }

    fn running_change(
        &self,
        index: usize,
        since: Timestamp,
        script: &Script,
    ) -> Option<(Timestamp, Change)> {
        let container = &self.run.containers[index];
        let scripted = self.life(index) == Life::Scripted && !container.hung;
        let print = script.log.get(container.printed).filter(|_| scripted);
        let print = print.map(|(after, _)| (since + *after, Change::Print));
        let exit = script.exit(container.restarts).filter(|_| scripted);
        let exit = exit.map(|exit| {
            let ends = Exit {
                code: exit.code,
                reason: exit.reason.clone(),
                message: None,
            };
            (since + exit.after, Change::Exit(ends))
        });
        let probe = self
            .next_probe(index, since)
            .filter(|_| !container.is_hooking());
        let probe = probe.map(|(at, kind)| (at, Change::Probe(kind)));
        // What was written before an end is in the log.
        let hooked = self.next_hooked(index);
        let full = self.runs_out_of_memory(index).then(|| {
            (
                since + OUT_OF_MEMORY_AFTER,
                Change::Exit(Exit::out_of_memory()),
            )
        });
        let all = [print, exit, hooked, full, probe].into_iter().flatten();
        all.min_by_key(|(at, _)| *at)
    }

    /// Whether a scripted container is declared to use more memory than it may.
    fn runs_out_of_memory(&self, index: usize) -> bool {
        let (container, script) = (&self.run.containers[index], &self.scripts[index]);
        let Some(used) = script.memory.filter(|_| script.life == Life::Scripted) else {
            return false;
        };
        let has = container.actual.as_ref().unwrap_or(&container.allocated);
        has.memory_limit().is_some_and(|limit| used > limit)
    }

    /// When the next container that runs becomes ready.
    pub(super) fn next_ready(&self) -> Option<Timestamp> {
        let pairs = self.run.containers.iter().zip(&self.scripts);
        let moments = pairs.filter_map(|(container, script)| match container.state {
            State::Running { since } if !container.probing => match container.role {
                Role::Main | Role::Sidecar => Some(since + script.ready?),
                Role::Init | Role::Ephemeral => None,
            },
            _ => None,
        });
        moments.filter(|at| *at > self.now).min()
    }

    pub(super) fn apply(&mut self, index: usize, change: Change) {
        match change {
            Change::Prepare => self.prepare(index),
            Change::Start => self.start_or_resume(index),
            Change::Print => self.print(index),
            Change::Exit(exit) => self.exit(index, &exit),
            Change::Stop(code) => self.stopped(index, code),
            Change::Ask(grace) => {
                self.run.containers[index].live = Live::Stopping;
                self.order(index, What::Stop { grace });
            }
            Change::Probe(kind) => self.probe(index, kind),
            Change::Hooked => self.hooked(index),
            Change::PreStopFailed => self.pre_stop_failed(index),
        }
    }

    fn start_or_resume(&mut self, index: usize) {
        let container: &mut ContainerRun = &mut self.run.containers[index];
        if matches!(container.state, State::Creating { .. }) {
            return self.start(index);
        }
        let lost = self.around.engine.of(&self.specs[index]).lost();
        if let (State::Running { .. }, Some(exit)) = (&container.state, lost) {
            return self.exited(index, &exit);
        }
        container.live = Live::Started;
        self.order(index, What::Start);
    }
}
