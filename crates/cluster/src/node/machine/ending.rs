//! How a container ends, and whether it comes back.

use kubewright_runtime::EventKind;

use super::super::kubelet::restart::{Again, again};
use super::super::kubelet::termination;
use super::super::run::{ContainerRun, End, FIRST_PAUSE, LAST_PAUSE, Live, RESET_AFTER, State};
use super::super::runtime::{Exit, Life};
use super::super::script::Role;
use super::super::signal::What;
use super::super::status;
use super::super::step::Written;
use super::PodMachine;

impl PodMachine<'_> {
    /// A container ends by itself; it stays so or comes back.
    pub(super) fn exit(&mut self, index: usize, exit: &Exit) {
        let container = &self.run.containers[index];
        let for_resize = container.killing.is_some() && container.actual.is_some();
        self.end(index, exit);
        let container = &self.run.containers[index];
        let Some(spec) = self.specs.get(index) else {
            return;
        };
        match again(spec, container.role, self.restart, exit.code) {
            Again::No if for_resize => self.come_back(index),
            Again::No => {}
            Again::Yes => self.come_back(index),
            Again::Everybody => self.start_over(index),
        }
    }

    /// A container that was stopped has ended: for good with its pod, or to be started again.
    pub(super) fn stopped(&mut self, index: usize, code: i32) {
        let exit = Exit::code(code);
        if self.run.containers[index].killing.is_some() && self.goes_on() {
            self.exit(index, &exit)
        } else {
            self.end(index, &exit)
        }
    }

    /// The runtime says that a run has ended.
    pub(super) fn exited(&mut self, index: usize, exit: &Exit) {
        self.run.containers[index].live = Live::Unknown;
        if matches!(self.run.containers[index].state, State::Starting) {
            // It was over before the node heard that it began.
            self.start(index);
        }
        if self.run.rebooting {
            self.end(index, &super::reboot::lost())
        } else if self.goes_on() {
            self.exit(index, exit)
        } else {
            self.end(index, exit)
        }
    }

    /// Somebody wants a container to end now.
    pub(super) fn crash(&mut self, index: usize, exit: Exit) {
        if self.life(index) == Life::Live {
            self.run.containers[index].live = Live::Stopping;
            let grace = std::time::Duration::ZERO;
            return self.order(index, What::Stop { grace });
        }
        if self.goes_on() {
            self.exit(index, &exit)
        } else {
            self.end(index, &exit)
        }
    }

    /// Whether containers of the pod may start again at all.
    fn goes_on(&self) -> bool {
        self.run.ended.is_none()
            && self.run.stopping.is_none()
            && self.pod.metadata.deletion_timestamp.is_none()
            && !self.is_over()
    }

    /// A container that has ended starts again: at once for the first time, then after a pause that doubles.
    fn come_back(&mut self, index: usize) {
        let container = &mut self.run.containers[index];
        let State::Ended(end) = &container.state else {
            return;
        };
        let end = end.clone();
        if end.finished.duration_since(end.started).unsigned_abs() >= RESET_AFTER {
            container.pause = None;
        }
        container.last = Some(end);
        match container.pause {
            None => {
                container.pause = Some(FIRST_PAUSE);
                container.state = State::Waiting;
            }
            Some(pause) => {
                container.pause = Some((pause * 2).min(LAST_PAUSE));
                let until = self.now + pause;
                container.state = State::BackOff { until, pause };
                let text = format!(
                    "Back-off restarting failed container {} in pod {}",
                    container.name,
                    status::full_name(self.pod)
                );
                self.container_note(index, EventKind::Warning, "BackOff", text);
            }
        }
    }

    /// Everything in the pod begins again, init containers first.
    fn start_over(&mut self, cause: usize) {
        for index in 0..self.run.containers.len() {
            if index != cause && matches!(self.run.containers[index].state, State::Running { .. }) {
                self.crash(index, Exit::killed());
            }
            let container: &mut ContainerRun = &mut self.run.containers[index];
            if container.role == Role::Ephemeral || container.is_up() {
                continue;
            }
            if let State::Ended(end) = &container.state {
                container.last = Some(end.clone());
                container.state = State::Waiting;
            }
        }
    }

    /// How a container ended, with what it says: the runtime's words, those of its annotation, or the end of its log.
    fn with_message(&self, index: usize, exit: &Exit) -> Exit {
        let (Some(script), Some(spec)) = (self.scripts.get(index), self.specs.get(index)) else {
            return exit.clone();
        };
        let exit = Exit {
            message: exit.message.clone().or_else(|| script.message.clone()),
            ..exit.clone()
        };
        if script.life == Life::Live {
            // Its log is the runtime's.
            return exit;
        }
        let code = exit.code;
        termination::complete(exit, spec, || self.lines(index, code))
    }

    /// What a scripted container has written in this run, its end included.
    fn lines(&self, index: usize, code: i32) -> Vec<String> {
        let (container, script) = (&self.run.containers[index], &self.scripts[index]);
        let mut lines: Vec<String> = Vec::new();
        if !script.spoken {
            lines.push(self.first_line(index));
        }
        let printed = script.log.iter().take(container.printed);
        lines.extend(printed.map(|(_, line)| line.clone()));
        if !script.spoken {
            lines.push(last_line(&container.name, code));
        }
        lines
    }

    /// A run is over.
    pub(super) fn end(&mut self, index: usize, exit: &Exit) {
        let exit = self.with_message(index, exit);
        let container = &mut self.run.containers[index];
        let since = match container.state {
            State::Running { since } => since,
            State::Starting => self.now,
            _ => return,
        };
        let code = exit.code;
        let usual = if code == 0 { "Completed" } else { "Error" };
        container.state = State::Ended(End {
            code,
            reason: exit.reason.unwrap_or_else(|| usual.to_owned()),
            message: exit.message,
            started: since,
            finished: self.now,
            run: container.restarts,
        });
        container.killing = None;
        container.live = Live::Unknown;
        let script = self.scripts.get(index);
        if script.is_some_and(|script| script.life == Life::Scripted && !script.spoken) {
            let name = &self.run.containers[index].name;
            let last = last_line(name, code);
            self.write(index, Written::Line(last));
        }
        self.write(index, Written::End);
    }
}

/// What a scripted container writes in the end.
fn last_line(name: &str, code: i32) -> String {
    format!("container {name} exited with code {code}")
}
