//! In-place resizes: a wish waits, or is granted and carried out container by container.

use jiff::Timestamp;
use kubewright_runtime::EventKind;

use super::super::kubelet::resize::{self, INFEASIBLE, Pending, Progress, Verdict};
use super::super::run::{State, Stopping};
use super::super::step::Note;
use super::{PodMachine, earliest};

impl PodMachine<'_> {
    /// The node has looked at what the pod wants.
    pub(super) fn resized(&mut self, verdict: Verdict) {
        let generation = self.pod.metadata.generation;
        self.run.resize.was_shown = true;
        match verdict {
            Verdict::Granted => {
                self.run.allocate(self.pod);
                self.run.resize.progress = Some(Progress {
                    generation,
                    since: self.now,
                });
                let text = resize::message("Pod resize started", self.pod, generation, "");
                self.note(EventKind::Normal, "ResizeStarted", text, None);
            }
            Verdict::Waits { reason, message } => {
                let before = self.run.resize.pending.take();
                let why = (reason.as_str(), message.clone());
                let pending = Pending::new(why, before.as_ref(), self.pod, self.now);
                if pending.is_news(before.as_ref()) {
                    let prefix = format!("Pod resize {reason}");
                    self.step.notes.push(Note {
                        kind: EventKind::Warning,
                        reason: match pending.reason {
                            INFEASIBLE => "ResizeInfeasible".into(),
                            _ => "ResizeDeferred".into(),
                        },
                        message: resize::message(&prefix, self.pod, generation, &message),
                        part: None,
                    });
                }
                self.run.resize.pending = Some(pending);
            }
        }
    }

    /// When a resize goes on, or is tried again.
    pub(super) fn next_resize(&self) -> Option<Timestamp> {
        let resize = &self.run.resize;
        if self.run.ended.is_some() || self.run.stopping.is_some() {
            return None;
        }
        let progress = resize
            .progress
            .as_ref()
            .filter(|_| !self.is_stopping_for_resize());
        progress.map(|progress| progress.since + resize::SHOWN)
    }

    /// When a wish that waits is looked at again if nothing has become free.
    pub(super) fn next_retry(&self) -> Option<Timestamp> {
        let pending = self.run.resize.pending.as_ref()?;
        pending.is_deferred().then(|| self.now + resize::RETRY)
    }

    /// Whether a container is on its way to a new run for its resources, and all others have theirs.
    fn is_stopping_for_resize(&self) -> bool {
        let mut stopping = false;
        for container in self.run.containers.iter().filter(|c| c.is_up()) {
            if container.actual.is_some() && container.killing.is_none() {
                return false;
            }
            stopping |= container.actual.is_some();
        }
        stopping
    }

    /// Gives containers what was set aside for them: at once, or by starting them again.
    pub(super) fn go_on_resizing(&mut self) {
        let mut waits = false;
        for index in 0..self.run.containers.len() {
            let container = &self.run.containers[index];
            if !matches!(container.state, State::Running { .. }) || container.killing.is_some() {
                waits |= container.is_up() && container.actual.is_some();
                continue;
            }
            let Some(actual) = &container.actual else {
                continue;
            };
            if resize::needs_restart(&self.specs[index], actual, &container.allocated) {
                self.restart_for_resize(index);
                waits = true;
            } else {
                self.run.containers[index].actual = None;
            }
        }
        if !waits && let Some(progress) = self.run.resize.progress.take() {
            let generation = progress.generation;
            let text = resize::message("Pod resize completed", self.pod, generation, "");
            self.note(EventKind::Normal, "ResizeCompleted", text, None);
        }
    }

    fn restart_for_resize(&mut self, index: usize) {
        let deadline = self.now + self.grace();
        let container = &mut self.run.containers[index];
        container.killing = Some(Stopping {
            since: self.now,
            deadline,
        });
        let text = format!("Container {} resize requires restart", container.name);
        self.container_note(index, EventKind::Normal, "Killing", text);
    }

    /// The earlier of both, and of when a resize is looked at again.
    pub(super) fn wake(&self, next: Option<Timestamp>) -> Option<Timestamp> {
        earliest(next, self.next_retry())
    }
}
