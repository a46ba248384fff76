//! Probes of containers: who answers them, and what follows.

use jiff::Timestamp;
use kubewright_runtime::EventKind;

use super::super::kubelet::plain_probes::Trouble;
use super::super::kubelet::prober::{Found, KINDS, Verdict, spec};
use super::super::run::{State, Stopping};
use super::super::runtime::{Health, Life, ProbeKind};
use super::super::script::Role;
use super::super::signal::What;
use super::PodMachine;

impl PodMachine<'_> {
    /// The next probe of a container that runs. Those of scripted containers that are well are not carried out one by one:
    /// what comes of them is known, and costs nothing.
    pub(super) fn next_probe(
        &self,
        index: usize,
        since: Timestamp,
    ) -> Option<(Timestamp, ProbeKind)> {
        if !self.is_probing(index) {
            return None;
        }
        let container = &self.run.containers[index];
        container.prober.due(&self.specs[index], since)
    }

    fn is_probing(&self, index: usize) -> bool {
        let (container, script) = (&self.run.containers[index], &self.scripts[index]);
        if !matches!(container.role, Role::Main | Role::Sidecar) || container.killing.is_some() {
            return false;
        }
        if script.life == Life::Live {
            return true;
        }
        let unwell = |kind| spec(&self.specs[index], kind).is_some() && script.is_unwell(kind);
        KINDS.into_iter().any(unwell) || container.hung || container.prober.has_failed()
    }

    /// A probe is due.
    pub(super) fn probe(&mut self, index: usize, kind: ProbeKind) {
        let container_spec = self.specs[index].clone();
        let (now, script) = (self.now, &self.scripts[index]);
        let ready = script.ready;
        let container = &mut self.run.containers[index];
        if !container.probing {
            container.probing = true;
            // It was well until now, as far as anybody knows.
            let was_ready = match (&container.state, ready) {
                (State::Running { since }, Some(delay)) => *since + delay < now,
                _ => false,
            };
            let always_well = script.hopeless.is_empty();
            if script.life == Life::Scripted && was_ready && always_well {
                container.prober.assume_good();
            }
        }
        container.prober.sent(&container_spec, kind, now);
        if script.life == Life::Live {
            return self.order(index, What::Probe(kind));
        }
        if let Some(trouble) = script.trouble(kind).cloned() {
            return self.not_probed(index, kind, trouble);
        }
        let health = if script.unhealthy.contains(&kind) || container.hung {
            Health::Unhealthy(failure_text(&container_spec, kind))
        } else {
            Health::Healthy
        };
        self.probed(index, kind, health);
    }

    /// A probe cannot succeed, whatever runs in the container.
    fn not_probed(&mut self, index: usize, kind: ProbeKind, trouble: Trouble) {
        match trouble {
            Trouble::Fails(output) => self.probed(index, kind, Health::Unhealthy(output)),
            Trouble::Errs(why) => {
                let text = format!(
                    "{} probe errored and resulted in unknown state: {why}",
                    kind.name()
                );
                self.container_note(index, EventKind::Warning, "Unhealthy", text);
                self.run.containers[index].prober.threw_away(kind);
            }
        }
    }

    /// What a probe found.
    pub(super) fn probed(&mut self, index: usize, kind: ProbeKind, health: Health) {
        let container_spec = self.specs[index].clone();
        let running = matches!(self.run.containers[index].state, State::Running { .. });
        if !running {
            return;
        }
        let found = match health {
            Health::Healthy => Found::Good,
            Health::Unhealthy(output) => {
                let text = format!("{} probe failed: {output}", kind.name());
                self.container_note(index, EventKind::Warning, "Unhealthy", text);
                Found::Bad
            }
        };
        let container = &mut self.run.containers[index];
        container.probing = true;
        let verdict = container.prober.found(&container_spec, kind, found);
        if self.scripts[index].life == Life::Scripted
            && found == Found::Good
            && !container.prober.has_failed()
            && container.prober.is_ready(&container_spec)
        {
            // All is well again: nothing more has to be carried out.
            container.probing = false;
        }
        if verdict == Verdict::Kill && container.killing.is_none() {
            self.kill(index, kind);
        }
    }

    /// A container has failed its liveness or startup probe.
    fn kill(&mut self, index: usize, kind: ProbeKind) {
        let seconds =
            spec(&self.specs[index], kind).and_then(|probe| probe.termination_grace_period_seconds);
        let of_pod = || self.pod.spec.as_ref()?.termination_grace_period_seconds;
        let seconds = seconds.or_else(of_pod).unwrap_or(30);
        let grace = std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let name = self.run.containers[index].name.clone();
        let text = format!(
            "Container {name} failed {} probe, will be restarted",
            kind.name().to_lowercase()
        );
        self.container_note(index, EventKind::Normal, "Killing", text);
        self.run.containers[index].killing = Some(Stopping {
            since: self.now,
            deadline: self.now + grace,
        });
    }
}

/// What a kubelet would have seen of a probe that nobody answers.
fn failure_text(container: &k8s_openapi::api::core::v1::Container, kind: ProbeKind) -> String {
    let Some(probe) = spec(container, kind) else {
        return String::new();
    };
    if probe.http_get.is_some() {
        return "HTTP probe failed with statuscode: 500".to_owned();
    }
    if probe.tcp_socket.is_some() {
        return "dial tcp: connect: connection refused".to_owned();
    }
    match &probe.grpc {
        Some(_) => "service unhealthy (responded with \"NOT_SERVING\")".to_owned(),
        None => String::new(),
    }
}
