//! The life of a pod on a node, without a clock and without a network: what happens until now, what is to be written,
//! and when to look again.
//!
//! Everything that happens at one moment happens in one step, so that it is one write.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::behaviour::Behaviour;
use super::run::{
    ContainerRun, End, Ended, FIRST_PAUSE, FORGIVEN, LAST_PAUSE, Run, State, Stopping,
};
use super::script::{Exit, Pull, Restart, Role, Script, containers, scripts};
use super::status;
use super::step::{Fate, Note, Output, Severity, Step, Written};

/// More changes than a pod can go through at one moment.
const MOST_CHANGES: usize = 100_000;

/// What exit codes of killed containers say: 128 and the signal.
const KILLED: i32 = 137;

/// The machine of one pod for the length of a step.
pub(crate) struct PodMachine<'a> {
    pod: &'a Pod,
    run: &'a mut Run,
    now: Timestamp,
    scripts: Vec<Script>,
    restart: Restart,
    step: Step,
}

/// Something that happens to a container.
enum Change {
    Prepare,
    Start,
    Exit(Exit),
    Stop,
    Kill,
}

impl<'a> PodMachine<'a> {
    /// Lets everything happen to a pod that is due now.
    ///
    /// # Panics
    /// Never: a pod without a spec has no containers and stays as it is.
    pub(crate) fn step(
        now: Timestamp,
        pod: &'a Pod,
        run: &'a mut Run,
        behaviour: &Behaviour,
        host: &status::Host,
    ) -> Step {
        let (scripts, problems) = scripts(pod, behaviour);
        let machine = Self {
            pod,
            run,
            now,
            scripts,
            restart: Restart::of(pod),
            step: Step::default(),
        };
        machine.finish(problems, host)
    }

    fn finish(mut self, problems: Vec<String>, host: &status::Host) -> Step {
        if status::is_terminal(self.pod) {
            // What has ended stays as it is. Its object goes when it is told to, if nobody holds it.
            if self.pod.metadata.deletion_timestamp.is_some() && !status::is_held(self.pod) {
                self.step.fate = Fate::Goes;
            }
            return self.step;
        }
        self.complain(problems);
        self.begin_stopping();
        self.step.wake = self.settle();
        let view = status::View {
            pod: self.pod,
            run: self.run,
            scripts: &self.scripts,
            restart: self.restart,
            now: self.now,
            host,
        };
        let status = view.status();
        let hash = status::fingerprint(&status);
        if self.run.published != Some(hash) {
            self.step.status = Some(status);
        }
        if self.run.stopping.is_some() && self.run.is_still() {
            self.step.fate = Fate::Goes;
            self.step.wake = None;
        }
        self.step
    }

    fn complain(&mut self, problems: Vec<String>) {
        for problem in problems {
            if !self.run.complained.contains(&problem) {
                self.note(
                    Severity::Warning,
                    "InvalidSimulation",
                    problem.clone(),
                    None,
                );
                self.run.complained.push(problem);
            }
        }
    }

    fn begin_stopping(&mut self) {
        let Some(deadline) = &self.pod.metadata.deletion_timestamp else {
            return;
        };
        let deadline = deadline.0.max(self.now);
        if let Some(stopping) = &mut self.run.stopping {
            // A second delete may come with less patience.
            stopping.deadline = deadline.min(stopping.deadline);
            return;
        }
        self.run.stopping = Some(Stopping {
            since: self.now,
            deadline,
        });
        for index in 0..self.run.containers.len() {
            if matches!(self.run.containers[index].state, State::Running { .. }) {
                let text = format!("Stopping container {}", self.run.containers[index].name);
                self.container_note(index, Severity::Normal, "Killing", text);
            }
        }
    }

    /// Lets things happen until nothing more is due; says when the next is.
    fn settle(&mut self) -> Option<Timestamp> {
        for _ in 0..MOST_CHANGES {
            let mut next: Option<Timestamp> = None;
            let mut due = None;
            if let Some(at) = self.deadline() {
                if at <= self.now {
                    self.exceed_deadline();
                    continue;
                }
                next = Some(at);
            }
            for index in 0..self.run.containers.len() {
                let Some((at, change)) = self.change(index) else {
                    continue;
                };
                if at <= self.now {
                    due = Some((index, change));
                    break;
                }
                next = Some(next.map_or(at, |n| n.min(at)));
            }
            match due {
                Some((index, change)) => self.apply(index, change),
                None => return earliest(next, self.next_ready()),
            }
        }
        // Pauses between restarts make this unreachable; a second later is early enough to be wrong again.
        Some(self.now + Duration::from_secs(1))
    }

    /// When the pod has been active for long enough.
    fn deadline(&self) -> Option<Timestamp> {
        let seconds = self.pod.spec.as_ref()?.active_deadline_seconds?;
        let over = self.run.ended.is_some() || self.run.stopping.is_some() || self.is_over();
        let seconds = u64::try_from(seconds).ok()?;
        (!over).then(|| self.run.since + Duration::from_secs(seconds))
    }

    fn exceed_deadline(&mut self) {
        self.run.ended = Some(Ended::DeadlineExceeded);
        let text = status::DEADLINE_MESSAGE.to_owned();
        self.note(Severity::Normal, "DeadlineExceeded", text, None);
    }

    /// What happens to a container next, and when.
    fn change(&self, index: usize) -> Option<(Timestamp, Change)> {
        let (container, script) = (self.run.containers.get(index)?, self.scripts.get(index)?);
        let now = self.now;
        if self.run.ended.is_some() {
            let running = matches!(container.state, State::Running { .. });
            return running.then_some((now, Change::Kill));
        }
        if let Some(stopping) = self.run.stopping {
            let State::Running { .. } = container.state else {
                return None;
            };
            let stops = stopping.since + script.stop_delay;
            return Some(match stops <= stopping.deadline {
                true => (stops, Change::Stop),
                false => (stopping.deadline, Change::Kill),
            });
        }
        if self.is_over() {
            // The sidecars of a pod that has done its work are stopped.
            let running = matches!(container.state, State::Running { .. });
            return running.then_some((now, Change::Stop));
        }
        match &container.state {
            State::Waiting => self.run.may_start(index).then_some((now, Change::Prepare)),
            State::Creating { until } => Some((*until, Change::Start)),
            State::NoImage => (script.pull == Pull::Works).then_some((now, Change::Prepare)),
            State::Running { since } => {
                let exit = script.exit(container.restarts)?;
                Some((*since + exit.after, Change::Exit(exit.clone())))
            }
            State::BackOff { until, .. } => Some((*until, Change::Start)),
            State::Ended(_) => None,
        }
    }

    /// Whether the main containers, or an init container on the way there, have come to an end that stays.
    fn is_over(&self) -> bool {
        let failed =
            |c: &ContainerRun| c.role == Role::Init && c.end().is_some_and(|end| end.code != 0);
        let mut main = self.run.main().peekable();
        let done = main.peek().is_some() && main.all(|c| c.end().is_some());
        done || self.run.containers.iter().any(failed)
    }

    /// When the next container that runs becomes ready.
    fn next_ready(&self) -> Option<Timestamp> {
        let pairs = self.run.containers.iter().zip(&self.scripts);
        let moments = pairs.filter_map(|(container, script)| match container.state {
            State::Running { since } if container.role != Role::Init => Some(since + script.ready?),
            _ => None,
        });
        moments.filter(|at| *at > self.now).min()
    }

    fn apply(&mut self, index: usize, change: Change) {
        match change {
            Change::Prepare => self.prepare(index),
            Change::Start => self.start(index),
            Change::Exit(exit) => self.exit(index, &exit),
            Change::Stop => self.end(index, 0, None),
            Change::Kill => self.end(index, KILLED, None),
        }
    }

    fn prepare(&mut self, index: usize) {
        let script = &self.scripts[index];
        if script.pull == Pull::Works {
            let until = self.now + script.start_delay;
            self.run.containers[index].state = State::Creating { until };
            return;
        }
        self.run.containers[index].state = State::NoImage;
        let image = self.image(index);
        for (severity, reason, text) in [
            (
                Severity::Normal,
                "Pulling",
                format!("Pulling image {image:?}"),
            ),
            (
                Severity::Warning,
                "Failed",
                format!(
                    "Failed to pull image {image:?}: the simulation was told that it cannot be had"
                ),
            ),
            (
                Severity::Warning,
                "Failed",
                "Error: ErrImagePull".to_owned(),
            ),
            (
                Severity::Normal,
                "BackOff",
                format!("Back-off pulling image {image:?}"),
            ),
            (
                Severity::Warning,
                "Failed",
                "Error: ImagePullBackOff".to_owned(),
            ),
        ] {
            self.container_note(index, severity, reason, text);
        }
    }

    fn start(&mut self, index: usize) {
        let again = self.run.containers[index].last.is_some();
        let container = &mut self.run.containers[index];
        container.state = State::Running { since: self.now };
        if again {
            container.restarts = container.restarts.saturating_add(1);
        }
        let (name, restarts) = (container.name.clone(), container.restarts);
        let image = self.image(index);
        let present = format!("Container image {image:?} already present on machine");
        self.container_note(index, Severity::Normal, "Pulled", present);
        self.container_note(
            index,
            Severity::Normal,
            "Created",
            "Container created".to_owned(),
        );
        self.container_note(
            index,
            Severity::Normal,
            "Started",
            "Container started".to_owned(),
        );
        self.write(index, Written::Begin);
        let first = format!("container {name} started, image {image}, restarts {restarts}");
        self.write(index, Written::Line(first));
        for line in self.scripts[index].log.clone() {
            self.write(index, Written::Line(line));
        }
    }

    /// A container ends by itself; it stays so or comes back.
    fn exit(&mut self, index: usize, exit: &Exit) {
        self.end(index, exit.code, exit.reason.clone());
        let container = &mut self.run.containers[index];
        let again = match (container.role, self.restart) {
            (Role::Sidecar, _) | (Role::Main, Restart::Always) => true,
            (Role::Init, Restart::Always) | (_, Restart::OnFailure) => exit.code != 0,
            (_, Restart::Never) => false,
        };
        let State::Ended(end) = &container.state else {
            return;
        };
        if !again {
            return;
        }
        let end = end.clone();
        if end.finished.duration_since(end.started).unsigned_abs() >= FORGIVEN {
            container.pause = None;
        }
        container.last = Some(end);
        match container.pause {
            // The first restart comes at once.
            None => {
                container.pause = Some(FIRST_PAUSE);
                container.state = State::Creating { until: self.now };
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
                self.container_note(index, Severity::Warning, "BackOff", text);
            }
        }
    }

    /// A run is over.
    fn end(&mut self, index: usize, code: i32, reason: Option<String>) {
        let container = &mut self.run.containers[index];
        let State::Running { since } = container.state else {
            return;
        };
        let usual = if code == 0 { "Completed" } else { "Error" };
        container.state = State::Ended(End {
            code,
            reason: reason.unwrap_or_else(|| usual.to_owned()),
            message: self.scripts[index].message.clone(),
            started: since,
            finished: self.now,
            run: container.restarts,
        });
        let last = format!("container {} exited with code {code}", container.name);
        self.write(index, Written::Line(last));
        self.write(index, Written::End);
    }

    fn image(&self, index: usize) -> String {
        let container = containers(self.pod).nth(index);
        let image = container.and_then(|(_, container)| container.image.clone());
        image.unwrap_or_default()
    }

    fn note(
        &mut self,
        severity: Severity,
        reason: &'static str,
        message: String,
        part: Option<String>,
    ) {
        self.step.notes.push(Note {
            severity,
            reason,
            message,
            part,
        });
    }

    fn container_note(
        &mut self,
        index: usize,
        severity: Severity,
        reason: &'static str,
        message: String,
    ) {
        let container = &self.run.containers[index];
        let list = match container.role {
            Role::Main => "containers",
            Role::Init | Role::Sidecar => "initContainers",
        };
        let part = format!("spec.{list}{{{}}}", container.name);
        self.note(severity, reason, message, Some(part));
    }

    fn write(&mut self, index: usize, what: Written) {
        let container = self.run.containers[index].name.clone();
        self.step.output.push(Output { container, what });
    }
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
