//! The machine of a node was started again: what ran has ended, and pods begin anew in another sandbox.
//!
//! Mirrors `kubeGenericRuntimeManager.computePodActions` where the sandbox of a pod has gone.

use std::time::Duration;

use jiff::Timestamp;
use kubewright_runtime::EventKind;

use super::super::run::{Live, State, Volumes};
use super::super::runtime::{Exit, Life};
use super::super::script::{Restart, Role};
use super::PodMachine;

/// How a container ended that a runtime finds no process of when it starts.
pub(super) fn lost() -> Exit {
    Exit {
        code: 255,
        reason: Some("Unknown".to_owned()),
        message: None,
    }
}

impl PodMachine<'_> {
    /// Ends everything. What the runtime has started ends when it says so.
    pub(super) fn reboot(&mut self) {
        self.run.rebooting = true;
        for index in 0..self.run.containers.len() {
            if self.runtime_knows(index) {
                self.crash(index, lost());
            }
        }
    }

    /// Begins anew once nothing runs any more, and says when to go on.
    pub(super) fn boot(&mut self) -> Option<Timestamp> {
        for index in 0..self.run.containers.len() {
            if self.runtime_knows(index) {
                return None;
            }
            if matches!(self.run.containers[index].state, State::Running { .. }) {
                self.end(index, &lost());
            }
        }
        self.run.rebooting = false;
        let over = self.run.ended.is_some() || self.run.stopping.is_some();
        if !over && self.comes_back() {
            self.make_sandbox();
        }
        Some(self.now)
    }

    /// Whether the runtime will say when a container has ended.
    fn runtime_knows(&self, index: usize) -> bool {
        let container = &self.run.containers[index];
        let runs = matches!(container.state, State::Running { .. });
        runs && self.life(index) == Life::Live && container.live != Live::Unknown
    }

    /// Whether the pod had a sandbox, and is started again in another.
    fn comes_back(&self) -> bool {
        let mut containers = self.run.containers.iter();
        let ran = containers.any(|container| container.last.is_some() || container.end().is_some());
        let starts = (0..self.run.containers.len())
            .any(|index| self.run.containers[index].role == Role::Main && !self.stays_over(index));
        ran && starts && self.restart != Restart::Never
    }

    /// Whether a container has done what it was for.
    fn stays_over(&self, index: usize) -> bool {
        let container = &self.run.containers[index];
        let done = container.end().is_some_and(|end| end.code == 0);
        match container.role {
            Role::Main => done && self.restart == Restart::OnFailure,
            Role::Ephemeral => true,
            Role::Init | Role::Sidecar => false,
        }
    }

    fn make_sandbox(&mut self) {
        for index in 0..self.run.containers.len() {
            if self.stays_over(index) {
                continue;
            }
            let container = &mut self.run.containers[index];
            if let State::Ended(end) = &container.state {
                container.last = Some(end.clone());
            }
            // The kubelet has been started again, too, and knows of no back-off.
            container.pause = None;
            if container.state != State::Starting {
                container.state = State::Waiting;
            }
        }
        self.run.volumes = Volumes::Unmounted {
            until: self.now,
            pause: Duration::ZERO,
        };
        self.run.address = None;
        let text = "Pod sandbox changed, it will be killed and re-created.".to_owned();
        self.note(EventKind::Normal, "SandboxChanged", text, None);
    }
}
