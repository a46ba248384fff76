//! The life of a pod on a node as a pure function: what happens to it next, given what has happened.
//!
//! A step lets everything happen that is due at a moment and says when the next thing is. Time, objects and what the
//! runtime tells come in as arguments; the status, events, log lines and orders to the runtime go out.

mod containers;
mod ending;
mod hooks;
mod probing;
mod reboot;
mod resizing;
mod starting;

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use kubewright_runtime::EventKind;

use super::behaviour::Behaviour;
use super::engine::Engine;
use super::kubelet::downward::Place;
use super::kubelet::environment;
use super::kubelet::sources::Sources;
use super::kubelet::volumes;
use super::run::{Ended, Run, State, Stopping, Volumes};
use super::runtime::{Exit, Life, ProbeKind, interpret};
use super::script::{Known, Restart, Role, Script, containers, scripts};
use super::signal::{Order, Report, Signal, What};
use super::status;
use super::step::{Fate, Note, Output, Step, Written};

/// More changes than a pod can go through at one moment.
const MOST_CHANGES: usize = 100_000;
/// The pauses between attempts to mount volumes, as in `exponentialbackoff`.
const FIRST_MOUNT_PAUSE: Duration = Duration::from_millis(500);
const LAST_MOUNT_PAUSE: Duration = Duration::from_secs(122);

/// What a pod's machine sees besides the pod.
pub(crate) struct Surroundings<'a> {
    pub(crate) behaviour: &'a Behaviour,
    pub(crate) host: &'a status::Host,
    pub(crate) sources: &'a dyn Sources,
    pub(crate) engine: &'a Engine,
}

/// The machine of one pod for the length of a step.
pub(crate) struct PodMachine<'a> {
    pod: &'a Pod,
    run: &'a mut Run,
    now: Timestamp,
    around: &'a Surroundings<'a>,
    specs: Vec<Cow<'a, Container>>,
    scripts: Vec<Script>,
    restart: Restart,
    step: Step,
}

/// Something that happens to a container.
enum Change {
    Prepare,
    Start,
    Print,
    Exit(Exit),
    /// It ends because it was asked to, with this code.
    Stop(i32),
    /// The runtime is asked to end it.
    Ask(Duration),
    Probe(ProbeKind),
    /// The hook after its start is done.
    Hooked,
    /// The hook before its end has failed.
    PreStopFailed,
}

impl<'a> PodMachine<'a> {
    /// Lets everything happen to a pod that is due now.
    ///
    /// # Panics
    /// Never: a pod without a spec has no containers and does not change.
    pub(crate) fn step(
        now: Timestamp,
        pod: &'a Pod,
        run: &'a mut Run,
        around: &'a Surroundings<'a>,
    ) -> Step {
        run.follow(pod);
        let (roles, specs): (Vec<Role>, Vec<Cow<'_, Container>>) = containers(pod).unzip();
        let place = place(pod, run, around);
        let known = roles.iter().zip(&specs).map(|(role, container)| Known {
            role: *role,
            container,
            plan: plan(pod, container, &place, around.sources),
            life: around.engine.life(pod, container),
        });
        let (scripts, problems) = scripts(pod, known.collect(), around.behaviour);
        let machine = Self {
            pod,
            run,
            now,
            around,
            specs,
            scripts,
            restart: Restart::of(pod),
            step: Step::default(),
        };
        machine.finish(problems)
    }

    fn finish(mut self, problems: Vec<String>) -> Step {
        if status::is_terminal(self.pod) {
            // What has ended does not change. Its object goes when it is deleted, if no finalizer holds it.
            if self.pod.metadata.deletion_timestamp.is_some() && !status::is_held(self.pod) {
                self.step.fate = Fate::Goes;
            }
            return self.step;
        }
        self.complain(problems);
        self.hear_signals();
        self.begin_stopping();
        self.step.wake = if self.run.rebooting {
            self.boot()
        } else {
            self.settle()
        };
        let view = status::View {
            pod: self.pod,
            run: self.run,
            specs: &self.specs,
            scripts: &self.scripts,
            now: self.now,
            host: self.around.host,
        };
        let status = view.status();
        let is_published = self.run.published.as_ref().is_some_and(|published| {
            published.fingerprint == status::fingerprint(&status)
                && !published.is_overwritten(self.pod, &status)
        });
        if !is_published {
            self.step.gone = status::gone(self.run, &status);
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
                let text = problem.clone();
                self.note(EventKind::Warning, "InvalidSimulation", text, None);
                self.run.complained.push(problem);
            }
        }
    }

    fn hear_signals(&mut self) {
        for signal in std::mem::take(&mut self.run.signals) {
            match signal {
                Signal::Rejected { reason, message } => {
                    let text = message.clone();
                    self.note(EventKind::Warning, reason.clone(), text, None);
                    self.run.ended = Some(Ended::Rejected { reason, message });
                }
                Signal::Evicted { message } => {
                    self.note(EventKind::Warning, "Evicted", message.clone(), None);
                    self.run.ended = Some(Ended::Evicted { message });
                }
                Signal::Resized(verdict) => self.resized(verdict),
                Signal::ShutDown { grace } => self.shut_down(grace),
                Signal::Rebooted => self.reboot(),
                Signal::Crash { container, exit } => {
                    if let Some(index) = self.running(container.as_deref()) {
                        self.crash(index, exit);
                    }
                }
                Signal::Hang { container } => {
                    if let Some(index) = self.running(container.as_deref()) {
                        self.run.containers[index].hung = true;
                    }
                }
                Signal::Reported {
                    container,
                    run,
                    report,
                } => {
                    if let Some(index) = self.run.find(&container, run) {
                        self.reported(index, report);
                    }
                }
            }
        }
    }

    /// Takes what the runtime reports about the current run of a container.
    fn reported(&mut self, index: usize, report: Report) {
        let starting = matches!(self.run.containers[index].state, State::Starting);
        match report {
            Report::MountFailed(why) if starting => self.mount_failed(index, why),
            Report::PullFailed(why) if starting => self.pull_failed(index, why),
            Report::StartFailed(why) if starting => self.start_failed(index, why),
            Report::Started if starting => self.start(index),
            Report::Exited(exit) => self.exited(index, &exit),
            Report::Probed(kind, health) => self.probed(index, kind, health),
            Report::MountFailed(_)
            | Report::PullFailed(_)
            | Report::StartFailed(_)
            | Report::Started => {}
        }
    }

    /// The container of a name that runs, or the first main one.
    fn running(&self, name: Option<&str>) -> Option<usize> {
        self.run.containers.iter().position(|container| {
            let meant = match name {
                Some(name) => container.name == name,
                None => container.role == Role::Main,
            };
            meant && matches!(container.state, State::Running { .. })
        })
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
        self.announce_stop();
    }

    /// The node shuts down: everything has to end within this time, if it does not end already.
    fn shut_down(&mut self, grace: Duration) {
        if self.run.ended.is_some() || self.run.stopping.is_some() {
            return;
        }
        self.run.ended = Some(Ended::ShutDown(Stopping {
            since: self.now,
            deadline: self.now + grace,
        }));
        self.announce_stop();
    }

    fn announce_stop(&mut self) {
        for index in 0..self.run.containers.len() {
            if matches!(self.run.containers[index].state, State::Running { .. }) {
                let text = format!("Stopping container {}", self.run.containers[index].name);
                self.container_note(index, EventKind::Normal, "Killing", text);
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
            if let Some(at) = self.next_mount() {
                if at <= self.now {
                    self.mount();
                    continue;
                }
                next = earliest(next, Some(at));
            }
            if let Some(at) = self.next_resize() {
                if at <= self.now {
                    self.go_on_resizing();
                    continue;
                }
                next = earliest(next, Some(at));
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
                None => return self.wake(earliest(next, self.next_ready())),
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
        self.note(EventKind::Normal, "DeadlineExceeded", text, None);
    }

    /// When volumes are looked at next; nothing when they are there, or when the pod does not need them any more.
    fn next_mount(&self) -> Option<Timestamp> {
        let over = self.run.ended.is_some() || self.run.stopping.is_some();
        match self.run.volumes {
            Volumes::Unmounted { until, .. } if !over => Some(until),
            _ => None,
        }
    }

    fn mount(&mut self) {
        let Volumes::Unmounted { pause, .. } = self.run.volumes else {
            return;
        };
        let failures = volumes::failures(self.pod, self.around.sources);
        if failures.is_empty() {
            self.run.volumes = Volumes::Mounted;
            return;
        }
        for failure in failures {
            self.note(EventKind::Warning, "FailedMount", failure.message, None);
        }
        self.mount_later(pause);
    }

    fn mount_later(&mut self, pause: Duration) {
        let pause = (pause * 2).clamp(FIRST_MOUNT_PAUSE, LAST_MOUNT_PAUSE);
        let until = self.now + pause;
        self.run.volumes = Volumes::Unmounted { until, pause };
    }

    /// The runtime could not mount a volume: the container waits until it is tried again.
    fn mount_failed(&mut self, index: usize, why: String) {
        self.note(EventKind::Warning, "FailedMount", why, None);
        let container = &mut self.run.containers[index];
        container.state = State::Waiting;
        container.live = super::run::Live::Unknown;
        let pause = container.mount_pause;
        container.mount_pause = (pause * 2).clamp(FIRST_MOUNT_PAUSE, LAST_MOUNT_PAUSE);
        self.mount_later(pause);
    }

    /// Whether the main containers, or an init container on the way there, have ended for good.
    fn is_over(&self) -> bool {
        let failed = |c: &super::run::ContainerRun| {
            c.role == Role::Init && c.end().is_some_and(|end| end.code != 0)
        };
        let mut main = self.run.main().peekable();
        let done = main.peek().is_some() && main.all(|c| c.end().is_some());
        done || self.run.containers.iter().any(failed)
    }

    fn note(
        &mut self,
        kind: EventKind,
        reason: impl Into<Cow<'static, str>>,
        message: String,
        part: Option<String>,
    ) {
        self.step.notes.push(Note {
            kind,
            reason: reason.into(),
            message,
            part,
        });
    }

    fn container_note(
        &mut self,
        index: usize,
        kind: EventKind,
        reason: &'static str,
        message: String,
    ) {
        let container = &self.run.containers[index];
        let list = match container.role {
            Role::Main => "containers",
            Role::Init | Role::Sidecar => "initContainers",
            Role::Ephemeral => "ephemeralContainers",
        };
        let part = format!("spec.{list}{{{}}}", container.name);
        self.note(kind, reason, message, Some(part));
    }

    fn write(&mut self, index: usize, what: Written) {
        let container = self.run.containers[index].name.clone();
        self.step.output.push(Output { container, what });
    }

    fn order(&mut self, index: usize, what: What) {
        let container = &self.run.containers[index];
        self.step.orders.push(Order {
            container: container.name.clone(),
            run: container.current_run(),
            what,
        });
    }

    fn image(&self, index: usize) -> String {
        let image = self.specs.get(index).and_then(|spec| spec.image.clone());
        image.unwrap_or_default()
    }

    fn life(&self, index: usize) -> Life {
        self.scripts
            .get(index)
            .map_or(Life::Scripted, |script| script.life)
    }
}

/// Where a pod is, for the downward API.
pub(crate) fn place(pod: &Pod, run: &Run, around: &Surroundings<'_>) -> Place {
    Place {
        pod_ip: run.address.map(|a| a.to_string()).unwrap_or_default(),
        host_ip: around.host.address.clone(),
        node: crate::pods::node_name(pod).to_owned(),
        allocatable: around.host.allocatable,
    }
}

/// What the command of a container says, if it is plain. Its environment is looked up only when the command names it.
fn plan(
    pod: &Pod,
    container: &Container,
    place: &Place,
    sources: &dyn Sources,
) -> Option<super::runtime::Plan> {
    let words = container.command.iter().flatten();
    let mut words = words.chain(container.args.iter().flatten());
    let env = if words.any(|word| word.contains('$') || word.contains("env")) {
        environment::environment(pod, container, place, sources).unwrap_or_default()
    } else {
        Vec::new()
    };
    interpret(container, &env)
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
