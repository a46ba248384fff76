//! What a simulated node remembers of a pod: where each container is in its life.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod};

use super::script::{Role, containers};

/// The first pause before a container is started yet again; it doubles up to the last one.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(10);
pub(crate) const LAST_PAUSE: Duration = Duration::from_secs(300);
/// A container that ran for this long has been forgiven its crashes.
pub(crate) const FORGIVEN: Duration = Duration::from_secs(600);

/// One pod on a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) uid: String,
    /// When the node took the pod up.
    pub(crate) since: Timestamp,
    pub(crate) address: Option<Ipv4Addr>,
    /// Init containers first, in the order of the spec.
    pub(crate) containers: Vec<ContainerRun>,
    /// Status of conditions and since when, by type.
    pub(crate) marks: BTreeMap<&'static str, (bool, Timestamp)>,
    pub(crate) stopping: Option<Stopping>,
    /// The pod was ended by the node, for this reason.
    pub(crate) ended: Option<Ended>,
    /// A hash of the status that was written last.
    pub(crate) published: Option<u64>,
    /// What was said about the annotations, so that it is said once.
    pub(crate) complained: Vec<String>,
}

/// The pod has been told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopping {
    pub(crate) since: Timestamp,
    /// What runs then is killed.
    pub(crate) deadline: Timestamp,
}

/// Why a node ended a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was active for longer than it may be.
    DeadlineExceeded,
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
}

/// Where a container is in its life.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State {
    /// It waits for its turn.
    Waiting,
    /// It is being made.
    Creating { until: Timestamp },
    /// Its image cannot be had.
    NoImage,
    /// It runs.
    Running { since: Timestamp },
    /// It waits before it is started again.
    BackOff { until: Timestamp, pause: Duration },
    /// It has ended and stays so.
    Ended(End),
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
        let mut run = Self {
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            since: since.unwrap_or(now),
            address: address.and_then(|text| text.parse().ok()),
            containers: Vec::new(),
            marks: BTreeMap::new(),
            stopping: None,
            ended: None,
            published: None,
            complained: Vec::new(),
        };
        let known: Vec<&ContainerStatus> = status
            .into_iter()
            .flat_map(|s| {
                let init = s.init_container_statuses.iter().flatten();
                init.chain(s.container_statuses.iter().flatten())
            })
            .collect();
        for (role, container) in containers(pod) {
            let before = known.iter().find(|status| status.name == container.name);
            run.containers.push(match before {
                Some(status) => ContainerRun::revive(role, status, now),
                None => ContainerRun::new(role, &container.name),
            });
        }
        for condition in status.iter().flat_map(|s| s.conditions.iter().flatten()) {
            let own = super::conditions::OWN_CONDITIONS
                .iter()
                .find(|own| **own == condition.type_);
            if let (Some(own), Some(at)) = (own, &condition.last_transition_time) {
                run.marks.insert(own, (condition.status == "True", at.0));
            }
        }
        run
    }

    /// Whether containers that come before this one let it start.
    pub(crate) fn may_start(&self, index: usize) -> bool {
        let before = |role: Role| match role {
            Role::Main => self.containers.len(),
            Role::Init | Role::Sidecar => index,
        };
        let Some(container) = self.containers.get(index) else {
            return false;
        };
        let limit = before(container.role);
        self.containers
            .iter()
            .take(limit)
            .filter(|other| other.role != Role::Main)
            .all(ContainerRun::lets_others_start)
    }

    /// Whether everything before the main containers is done.
    pub(crate) fn is_initialized(&self) -> bool {
        let init = |c: &&ContainerRun| c.role != Role::Main;
        let mut all = self.containers.iter().filter(init);
        all.all(ContainerRun::lets_others_start)
    }

    /// The containers that the pod is for.
    pub(crate) fn main(&self) -> impl Iterator<Item = &ContainerRun> {
        self.containers.iter().filter(|c| c.role == Role::Main)
    }

    /// Whether nothing runs.
    pub(crate) fn is_still(&self) -> bool {
        let running = |c: &ContainerRun| matches!(c.state, State::Running { .. });
        !self.containers.iter().any(running)
    }
}

impl ContainerRun {
    pub(crate) fn new(role: Role, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            role,
            state: State::Waiting,
            last: None,
            restarts: 0,
            pause: None,
        }
    }

    /// Goes on from what a status says.
    fn revive(role: Role, status: &ContainerStatus, now: Timestamp) -> Self {
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
        Self {
            name: status.name.clone(),
            role,
            state,
            last,
            restarts,
            pause,
        }
    }

    fn lets_others_start(&self) -> bool {
        match (&self.state, self.role) {
            (State::Ended(end), Role::Init) => end.code == 0,
            (State::Running { .. } | State::BackOff { .. } | State::Ended(_), Role::Sidecar) => {
                true
            }
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
