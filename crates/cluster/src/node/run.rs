//! What a node remembers of a pod: where each container is in its life.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateTerminated, ContainerStatus, Pod,
};

use super::kubelet::prober::Prober;
use super::kubelet::resize::{Allocation, CONDITIONS, Resize};
use super::script::{Role, containers};
use super::signal::Signal;
use super::status::Published;

/// The first pause before a container is started yet again; it doubles up to the last one.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(10);
pub(crate) const LAST_PAUSE: Duration = Duration::from_secs(300);
/// After running for this long a container's back-off is reset.
pub(crate) const RESET_AFTER: Duration = Duration::from_secs(600);

/// One pod on a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) uid: String,
    /// When the node took the pod up.
    pub(crate) since: Timestamp,
    pub(crate) address: Option<Ipv4Addr>,
    /// Init containers first, then the main ones, then ephemeral ones, each in the order of the spec.
    pub(crate) containers: Vec<ContainerRun>,
    /// Status of conditions and since when, by type.
    pub(crate) marks: BTreeMap<&'static str, (bool, Timestamp)>,
    pub(crate) volumes: Volumes,
    pub(crate) stopping: Option<Stopping>,
    /// The pod was ended by the node, for this reason.
    pub(crate) ended: Option<Ended>,
    /// The machine of the node was started again, and the runtime has not reported yet that everything has ended.
    pub(crate) rebooting: bool,
    pub(crate) resize: Resize,
    /// The status that was written last.
    pub(crate) published: Option<Published>,
    /// What was reported about the annotations, so that it is reported once.
    pub(crate) complained: Vec<String>,
    /// What happened to the pod since it was looked at last.
    pub(crate) signals: Vec<Signal>,
}

/// Whether the volumes of a pod are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Volumes {
    /// They are looked at then; after a failure the pause doubles.
    Unmounted {
        until: Timestamp,
        pause: Duration,
    },
    Mounted,
}

/// The pod has been asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopping {
    pub(crate) since: Timestamp,
    /// What runs then is killed.
    pub(crate) deadline: Timestamp,
}

/// Why a node ended a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was active for longer than it may be.
    DeadlineExceeded,
    /// The node did not take it.
    Rejected { reason: String, message: String },
    /// The node needed what it used.
    Evicted { message: String },
    /// The node shuts down.
    ShutDown(Stopping),
}

/// One container.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ContainerRun {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) state: State,
    /// How the run before this one ended.
    pub(crate) last: Option<End>,
    pub(crate) restarts: u32,
    /// The pause before the next restart; none before the first.
    pub(crate) pause: Option<Duration>,
    /// The pause before its image is pulled again; none before the first failure.
    pub(crate) pull_pause: Option<Duration>,
    /// The pause after the last time that the runtime could not mount a volume for it.
    pub(crate) mount_pause: Duration,
    pub(crate) prober: Prober,
    /// Whether probes of this run are carried out one by one; see `Machine::is_probing`.
    pub(crate) probing: bool,
    /// How far the hook is that runs when it has started.
    pub(crate) hooking: Hooking,
    /// Whether it was reported that the hook before its end failed.
    pub(crate) pre_stop_reported: bool,
    /// It is being stopped to be started again.
    pub(crate) killing: Option<Stopping>,
    /// It does nothing any more, and hears nothing.
    pub(crate) hung: bool,
    /// What its node has set aside for it.
    pub(crate) allocated: Allocation,
    /// What the current run has, while that is something else.
    pub(crate) actual: Option<Allocation>,
    /// How many lines of its output have been written.
    pub(crate) printed: usize,
    /// What the runtime knows of this run.
    pub(crate) live: Live,
}

/// How far the hook is that runs when a container has started; until it is over, nobody hears that the container runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Hooking {
    /// It is done, or the container has no such hook.
    #[default]
    Over,
    /// It is done then, if ever.
    Runs { until: Option<Timestamp> },
    /// It failed, and the container ends.
    Failed,
}

/// What the runtime knows of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Live {
    /// Nothing: it was not started there, or by another process.
    #[default]
    Unknown,
    Started,
    /// It was asked to end.
    Stopping,
}

/// Where a container is in its life.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State {
    /// It waits for its turn.
    Waiting,
    /// Something is missing; it is tried again then.
    Blocked { why: Blocked, until: Timestamp },
    /// It is being made.
    Creating { until: Timestamp },
    /// The runtime was asked to start it.
    Starting,
    /// It runs since then.
    Running { since: Timestamp },
    /// It waits before it is started again.
    BackOff { until: Timestamp, pause: Duration },
    /// It has ended and stays so.
    Ended(End),
}

/// Why a container cannot be made; the reasons and texts are the kubelet's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) code: i32,
    pub(crate) reason: String,
    pub(crate) message: Option<String>,
    pub(crate) started: Timestamp,
    pub(crate) finished: Timestamp,
    /// The number of the run, from zero.
    pub(crate) run: u32,
}

impl Run {
    /// Takes a pod up. One that has a status already goes on from there.
    pub(crate) fn adopt(pod: &Pod, now: Timestamp) -> Self {
        let status = pod.status.as_ref();
        let since = status.and_then(|s| s.start_time.as_ref()).map(|t| t.0);
        let address = status.and_then(|s| s.pod_ip.as_deref());
        let known: Vec<&ContainerStatus> = status
            .into_iter()
            .flat_map(|s| {
                let init = s.init_container_statuses.iter().flatten();
                let main = s.container_statuses.iter().flatten();
                init.chain(main)
                    .chain(s.ephemeral_container_statuses.iter().flatten())
            })
            .collect();
        let begun = |status: &&&ContainerStatus| status.container_id.is_some();
        let mut run = Self {
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            since: since.unwrap_or(now),
            address: address.and_then(|text| text.parse().ok()),
            containers: Vec::new(),
            marks: BTreeMap::new(),
            volumes: match known.iter().find(begun) {
                Some(_) => Volumes::Mounted,
                None => Volumes::Unmounted {
                    until: now,
                    pause: Duration::ZERO,
                },
            },
            stopping: None,
            ended: None,
            rebooting: false,
            resize: Resize::default(),
            published: None,
            complained: Vec::new(),
            signals: Vec::new(),
        };
        for (role, container) in containers(pod) {
            let before = known.iter().find(|status| status.name == container.name);
            run.containers.push(match before {
                Some(status) => ContainerRun::revive(role, &container, status, now),
                None => ContainerRun::new(role, &container),
            });
        }
        for condition in status.iter().flat_map(|s| s.conditions.iter().flatten()) {
            run.resize.was_shown |= CONDITIONS.contains(&&*condition.type_);
            let own = super::conditions::OWN_CONDITIONS
                .iter()
                .find(|own| **own == condition.type_);
            if let (Some(own), Some(at)) = (own, &condition.last_transition_time) {
                run.marks.insert(own, (condition.status == "True", at.0));
            }
        }
        run
    }

    /// Goes on from what was remembered: what was written last may have been written by somebody else since, and the
    /// runtime is asked anew for what runs.
    pub(crate) fn again(mut self) -> Self {
        self.published = None;
        for container in &mut self.containers {
            container.live = Live::Unknown;
            if matches!(container.state, State::Starting) {
                container.state = State::Waiting;
            }
        }
        self
    }

    /// Whether a node has taken the pod before.
    pub(crate) fn is_admitted(pod: &Pod) -> bool {
        let status = pod.status.as_ref();
        status.is_some_and(|status| status.start_time.is_some())
    }

    /// Containers that were added to a pod that runs: ephemeral ones.
    pub(crate) fn follow(&mut self, pod: &Pod) {
        for (role, container) in containers(pod).skip(self.containers.len()) {
            self.containers.push(ContainerRun::new(role, &container));
        }
    }

    /// Whether containers that come before this one let it start.
    pub(crate) fn may_start(&self, index: usize) -> bool {
        let Some(container) = self.containers.get(index) else {
            return false;
        };
        let limit = match container.role {
            // Whoever debugs a pod need not wait for what does not work.
            Role::Ephemeral => 0,
            Role::Main => self.containers.len(),
            Role::Init | Role::Sidecar => index,
        };
        self.containers
            .iter()
            .take(limit)
            .filter(|other| matches!(other.role, Role::Init | Role::Sidecar))
            .all(ContainerRun::lets_others_start)
    }

    /// Whether everything before the main containers is done.
    pub(crate) fn is_initialized(&self) -> bool {
        let init = |c: &&ContainerRun| matches!(c.role, Role::Init | Role::Sidecar);
        let mut all = self.containers.iter().filter(init);
        all.all(ContainerRun::lets_others_start)
    }

    /// The containers that the pod is for.
    pub(crate) fn main(&self) -> impl Iterator<Item = &ContainerRun> {
        self.containers.iter().filter(|c| c.role == Role::Main)
    }

    /// Why and until when everything in the pod may end in its own time.
    pub(crate) fn graceful_stop(&self) -> Option<Stopping> {
        match self.ended {
            Some(Ended::ShutDown(stopping)) => Some(stopping),
            Some(_) => None,
            None => self.stopping,
        }
    }

    /// Whether the pod was ended by the node, and at once.
    pub(crate) fn is_killed(&self) -> bool {
        self.ended.is_some() && self.graceful_stop().is_none()
    }

    /// Whether a container that the pod is for has ever started.
    pub(crate) fn has_started(&self) -> bool {
        !self.main().all(ContainerRun::is_fresh)
    }

    /// Whether nothing runs.
    pub(crate) fn is_still(&self) -> bool {
        !self.containers.iter().any(ContainerRun::is_up)
    }

    /// The container of a name, if this is its current run.
    pub(crate) fn find(&self, name: &str, run: u32) -> Option<usize> {
        let found = self.containers.iter().position(|c| c.name == name);
        found.filter(|index| self.containers[*index].current_run() == run)
    }
}

impl ContainerRun {
    pub(crate) fn new(role: Role, container: &Container) -> Self {
        Self {
            name: container.name.clone(),
            role,
            state: State::Waiting,
            last: None,
            restarts: 0,
            pause: None,
            pull_pause: None,
            mount_pause: Duration::ZERO,
            prober: Prober::default(),
            probing: false,
            hooking: Hooking::Over,
            pre_stop_reported: false,
            killing: None,
            hung: false,
            allocated: Allocation::of(container),
            actual: None,
            printed: 0,
            live: Live::Unknown,
        }
    }

    /// Goes on from what a status says.
    fn revive(role: Role, container: &Container, status: &ContainerStatus, now: Timestamp) -> Self {
        let restarts = u32::try_from(status.restart_count).unwrap_or(0);
        let ended = |state: &Option<ContainerState>, run: u32| {
            let terminated = state.as_ref()?.terminated.as_ref()?;
            Some(End::revive(terminated, now, run))
        };
        let last = ended(&status.last_state, restarts.saturating_sub(1));
        let current = status.state.as_ref();
        let running = current.and_then(|s| s.running.as_ref());
        let pause = pause_after(restarts);
        let state = match (running, ended(&status.state, restarts), &last) {
            (Some(running), _, _) => State::Running {
                since: running.started_at.as_ref().map_or(now, |t| t.0),
            },
            (None, Some(end), _) => State::Ended(end),
            (None, None, Some(last)) => State::BackOff {
                until: last.finished + pause.unwrap_or(FIRST_PAUSE),
                pause: pause.unwrap_or(FIRST_PAUSE),
            },
            (None, None, None) => State::Waiting,
        };
        let mut prober = Prober::default();
        if status.ready {
            prober.assume_good();
        }
        Self {
            state,
            last,
            restarts,
            pause,
            prober,
            printed: usize::MAX,
            allocated: Allocation::reported(status).unwrap_or_else(|| Allocation::of(container)),
            ..Self::new(role, container)
        }
    }

    fn lets_others_start(&self) -> bool {
        match (&self.state, self.role) {
            (State::Ended(end), Role::Init) => end.code == 0,
            (State::Running { .. }, Role::Sidecar) => self.hooking == Hooking::Over,
            (State::BackOff { .. } | State::Ended(_), Role::Sidecar) => true,
            // It has run before: a sidecar that is started again holds nobody up.
            (_, Role::Sidecar) => self.last.is_some(),
            _ => false,
        }
    }

    /// How the container ended, if it has and stays so.
    pub(crate) fn end(&self) -> Option<&End> {
        match &self.state {
            State::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Whether it runs, or is about to by the runtime's hand.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, State::Running { .. } | State::Starting)
    }

    /// Whether it runs, and nobody has heard of that yet.
    pub(crate) fn is_hooking(&self) -> bool {
        matches!(self.state, State::Running { .. }) && self.hooking != Hooking::Over
    }

    /// Whether it has never run.
    pub(crate) fn is_fresh(&self) -> bool {
        let before = matches!(
            self.state,
            State::Waiting | State::Creating { .. } | State::Blocked { .. } | State::Starting
        );
        self.last.is_none() && (before || self.is_hooking())
    }

    /// The number of the run that is, or that comes next.
    pub(crate) fn current_run(&self) -> u32 {
        match (&self.state, &self.last) {
            (State::Running { .. } | State::Ended(_), _) | (_, None) => self.restarts,
            (_, Some(_)) => self.restarts.saturating_add(1),
        }
    }

    /// Everything that belongs to one run begins anew.
    pub(crate) fn begin_run(&mut self, now: Timestamp) {
        self.state = State::Running { since: now };
        if self.last.is_some() {
            self.restarts = self.restarts.saturating_add(1);
        }
        self.prober = Prober::default();
        self.probing = false;
        self.hooking = Hooking::Over;
        self.pre_stop_reported = false;
        self.killing = None;
        self.hung = false;
        self.actual = None;
        self.printed = 0;
        self.pull_pause = None;
        self.mount_pause = Duration::ZERO;
    }
}

impl End {
    fn revive(terminated: &ContainerStateTerminated, now: Timestamp, run: u32) -> Self {
        let at = |time: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
            time.as_ref().map_or(now, |t| t.0)
        };
        Self {
            code: terminated.exit_code,
            reason: terminated.reason.clone().unwrap_or_default(),
            message: terminated.message.clone(),
            started: at(&terminated.started_at),
            finished: at(&terminated.finished_at),
            run,
        }
    }
}

/// The pause that comes after this many restarts: none, ten seconds, twenty, up to five minutes.
fn pause_after(restarts: u32) -> Option<Duration> {
    let doublings = restarts.checked_sub(1)?.min(16);
    Some((FIRST_PAUSE * 2u32.pow(doublings)).min(LAST_PAUSE))
}
