//! The status of a pod as its node tells it: phase, conditions, containers.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodIP, PodStatus, ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::kubelet::{prober, resize, shutdown};
use super::run::{ContainerRun, End, Ended, Run, State, Volumes};
use super::runtime::Life;
use super::script::{Role, Script};

pub(crate) const DEADLINE_MESSAGE: &str =
    "Pod was active on the node longer than the specified deadline";

/// The node that a pod is on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) address: String,
    /// How much processor, in thousandths, and memory it has for pods.
    pub(crate) allocatable: (i64, i64),
}

/// Everything that a status is made of.
pub(crate) struct View<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) run: &'a mut Run,
    pub(crate) specs: &'a [Cow<'a, Container>],
    pub(crate) scripts: &'a [Script],
    pub(crate) now: Timestamp,
    pub(crate) host: &'a Host,
}

/// Whether a pod has ended for good.
pub(crate) fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether a pod that is being deleted is kept by finalizers alone.
pub(crate) fn is_held(pod: &Pod) -> bool {
    let finalizers = pod.metadata.finalizers.as_ref();
    pod.metadata.deletion_grace_period_seconds == Some(0)
        && finalizers.is_some_and(|all| !all.is_empty())
}

/// A status as it was written last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Published {
    /// The [fingerprint] of what was written.
    pub(crate) fingerprint: u64,
    /// The version of the pod after that, if the server said so.
    pub(crate) version: Option<u64>,
}

impl Published {
    /// Whether somebody has changed the phase or a condition of this status since it was written, as the node lifecycle controller
    /// does when it takes a node for silent. A node says again how its pods are, as `needsReconcile` of the kubelet's status
    /// manager has it. A view of the pod from before the write says nothing.
    pub(crate) fn is_overwritten(&self, pod: &Pod, status: &PodStatus) -> bool {
        let version = pod.metadata.resource_version.as_deref();
        let seen = version.and_then(|version| version.parse::<u64>().ok());
        let is_later = self.version.zip(seen).is_some_and(|(own, seen)| seen > own);
        let Some(found) = pod.status.as_ref().filter(|_| is_later) else {
            return false;
        };
        let of = |status: &PodStatus, kind: &str| {
            let mut all = status.conditions.iter().flatten();
            let condition = all.find(|condition| condition.type_ == kind);
            condition.map(|condition| condition.status.clone())
        };
        let mut own = status.conditions.iter().flatten();
        found.phase != status.phase
            || own.any(|own| of(found, &own.type_).as_ref() != Some(&own.status))
    }
}

/// A number that differs when statuses do.
pub(crate) fn fingerprint(status: &PodStatus) -> u64 {
    // The default hasher has a fixed key: the same status gives the same number in every run.
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(status)
        .unwrap_or_default()
        .hash(&mut hasher);
    hasher.finish()
}

/// The conditions that a pod has had and that are not in its status any more.
pub(crate) fn gone(run: &Run, status: &PodStatus) -> Vec<&'static str> {
    if !run.resize.was_shown {
        return Vec::new();
    }
    let has = |kind: &str| status.conditions.iter().flatten().any(|c| c.type_ == kind);
    let all = resize::CONDITIONS.into_iter();
    all.filter(|kind| !has(kind)).collect()
}

/// `name_namespace(uid)`, as nodes name pods in messages.
pub(crate) fn full_name(pod: &Pod) -> String {
    let meta = &pod.metadata;
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    format!(
        "{}_{}({})",
        text(&meta.name),
        text(&meta.namespace),
        text(&meta.uid)
    )
}

impl View<'_> {
    /// Writes the status, and down since when the conditions are as they are.
    pub(crate) fn status(mut self) -> PodStatus {
        let phase = self.phase();
        let statuses = match self.run.ended {
            // What was never taken has no containers.
            Some(Ended::Rejected { .. }) => Vec::new(),
            _ => self.container_statuses(),
        };
        let of = |wanted: fn(Role) -> bool| -> Vec<(Role, ContainerStatus)> {
            let all = statuses.iter().filter(|(role, _)| wanted(*role));
            all.cloned().collect()
        };
        let init = of(|role| matches!(role, Role::Init | Role::Sidecar));
        let main = of(|role| role == Role::Main);
        let ephemeral = of(|role| role == Role::Ephemeral);
        let plain = |list: Vec<(Role, ContainerStatus)>| -> Option<Vec<ContainerStatus>> {
            let list: Vec<_> = list.into_iter().map(|(_, status)| status).collect();
            (!list.is_empty()).then_some(list)
        };
        let (reason, message) = self.reason();
        let address = self.run.address.map(|a| a.to_string());
        // A pod has an address when its sandbox is made, and that waits for its volumes.
        let address = address.filter(|_| self.run.volumes == Volumes::Mounted);
        let conditions = self.conditions(phase, &init, &main);
        PodStatus {
            observed_generation: self.pod.metadata.generation,
            phase: Some(phase.to_owned()),
            reason,
            message,
            host_ip: Some(self.host.address.clone()),
            host_ips: Some(vec![HostIP {
                ip: self.host.address.clone(),
            }]),
            pod_ips: address.clone().map(|ip| vec![PodIP { ip }]),
            pod_ip: address,
            start_time: Some(Time(self.run.since)),
            init_container_statuses: plain(init),
            container_statuses: plain(main),
            ephemeral_container_statuses: plain(ephemeral),
            conditions: Some(conditions),
            ..PodStatus::default()
        }
    }

    /// Why a pod ended, if its node ended it.
    fn reason(&self) -> (Option<String>, Option<String>) {
        let (reason, message) = match &self.run.ended {
            None => return (None, None),
            Some(Ended::DeadlineExceeded) => ("DeadlineExceeded", DEADLINE_MESSAGE.to_owned()),
            Some(Ended::Rejected { reason, message }) => {
                (reason.as_str(), format!("Pod was rejected: {message}"))
            }
            Some(Ended::Evicted { message }) => ("Evicted", message.clone()),
            Some(Ended::ShutDown(_)) => (shutdown::REASON, shutdown::MESSAGE.to_owned()),
        };
        (Some(reason.to_owned()), Some(message))
    }

    /// As nodes decide it, from what the containers do.
    fn phase(&self) -> &'static str {
        if self.run.ended.is_some() && self.run.is_still() {
            return "Failed";
        }
        if self.init_failed() {
            return "Failed";
        }
        let stopped = self.run.stopping.is_some() && self.run.is_still();
        if !self.run.is_initialized() && !self.run.has_started() && !stopped {
            return "Pending";
        }
        let mut all = self.run.main();
        if self.run.main().any(ContainerRun::is_fresh) {
            // A pod that is stopped before it ran has failed.
            return if stopped { "Failed" } else { "Pending" };
        }
        let ends: Vec<&End> = self.run.main().filter_map(ContainerRun::end).collect();
        let everything_ended = all.all(|c| c.end().is_some());
        let good = ends.iter().all(|end| end.code == 0);
        match (everything_ended && self.run.is_still(), good) {
            (true, true) => "Succeeded",
            (true, false) => "Failed",
            (false, _) if stopped => "Failed",
            (false, _) => "Running",
        }
    }

    fn init_failed(&self) -> bool {
        // One that starts again does not stay in its end.
        let failed =
            |c: &ContainerRun| c.role == Role::Init && c.end().is_some_and(|end| end.code != 0);
        self.run.containers.iter().any(failed)
    }

    fn container_statuses(&self) -> Vec<(Role, ContainerStatus)> {
        let specs = self.specs.iter();
        specs
            .zip(&self.run.containers)
            .zip(self.scripts)
            .map(|((spec, run), script)| (run.role, self.container_status(spec, run, script)))
            .collect()
    }

    fn container_status(
        &self,
        spec: &Container,
        run: &ContainerRun,
        script: &Script,
    ) -> ContainerStatus {
        let image = spec.image.clone().unwrap_or_default();
        let running = matches!(run.state, State::Running { .. }) && !run.is_hooking();
        let begun = running || run.last.is_some() || run.end().is_some();
        let current = match &run.state {
            State::Ended(end) => end.run,
            _ => run.restarts,
        };
        let allocated = self.allocated(spec, run).filter(|_| begun);
        ContainerStatus {
            name: run.name.clone(),
            ready: self.is_ready(spec, run, script),
            started: Some(running && self.has_started(spec, run, script)),
            restart_count: i32::try_from(run.restarts).unwrap_or(i32::MAX),
            image_id: if begun {
                format!("{image}@sha256:{}", digest(&[&image]))
            } else {
                String::new()
            },
            container_id: begun.then(|| self.container_id(&run.name, current)),
            image,
            resources: match &run.actual {
                Some(actual) if running => actual.resources(),
                _ => allocated.clone(),
            },
            allocated_resources: allocated.and_then(|resources| resources.requests),
            state: Some(self.state(run)),
            last_state: Some(match &run.last {
                Some(end) => self.ended(&run.name, end),
                None => ContainerState::default(),
            }),
            ..ContainerStatus::default()
        }
    }

    /// What the node has set aside for a container.
    fn allocated(&self, spec: &Container, run: &ContainerRun) -> Option<ResourceRequirements> {
        if self.run.is_settled(self.pod) {
            return spec.resources.clone();
        }
        run.allocated.resources()
    }

    fn is_ready(&self, spec: &Container, run: &ContainerRun, script: &Script) -> bool {
        if run.is_hooking() {
            return false;
        }
        match (&run.state, run.role) {
            (State::Ended(end), Role::Init) => end.code == 0,
            (State::Running { .. }, Role::Main | Role::Sidecar)
                if probes_decide(spec, run, script) =>
            {
                run.prober.is_ready(spec)
            }
            (State::Running { since }, Role::Main | Role::Sidecar) => {
                script.ready.is_some_and(|delay| *since + delay <= self.now)
            }
            _ => false,
        }
    }

    fn has_started(&self, spec: &Container, run: &ContainerRun, script: &Script) -> bool {
        !probes_decide(spec, run, script) || run.prober.has_started(spec)
    }

    fn state(&self, run: &ContainerRun) -> ContainerState {
        let waiting = |reason: &str, message: Option<String>| ContainerState {
            waiting: Some(ContainerStateWaiting {
                reason: Some(reason.to_owned()),
                message,
            }),
            ..ContainerState::default()
        };
        let before = |c: &ContainerRun| matches!(c.role, Role::Init | Role::Sidecar);
        let has_init = self.run.containers.iter().any(before);
        match &run.state {
            State::Waiting if has_init => waiting("PodInitializing", None),
            State::Creating { .. } | State::Starting if before(run) => {
                waiting("PodInitializing", None)
            }
            State::Running { .. } if run.is_hooking() && before(run) => {
                waiting("PodInitializing", None)
            }
            State::Waiting | State::Creating { .. } | State::Starting => {
                waiting("ContainerCreating", None)
            }
            State::Running { .. } if run.is_hooking() => waiting("ContainerCreating", None),
            State::Blocked { why, .. } => waiting(why.reason, Some(why.message.clone())),
            State::Running { since } => ContainerState {
                running: Some(ContainerStateRunning {
                    started_at: Some(Time(*since)),
                }),
                ..ContainerState::default()
            },
            State::BackOff { pause, .. } => {
                let text = format!(
                    "back-off {} restarting failed container={} pod={}",
                    go_duration(pause.as_secs()),
                    run.name,
                    full_name(self.pod)
                );
                waiting("CrashLoopBackOff", Some(text))
            }
            State::Ended(end) => self.ended(&run.name, end),
        }
    }

    fn ended(&self, name: &str, end: &End) -> ContainerState {
        ContainerState {
            terminated: Some(ContainerStateTerminated {
                exit_code: end.code,
                reason: Some(end.reason.clone()),
                message: end.message.clone(),
                started_at: Some(Time(end.started)),
                finished_at: Some(Time(end.finished)),
                container_id: Some(self.container_id(name, end.run)),
                ..ContainerStateTerminated::default()
            }),
            ..ContainerState::default()
        }
    }

    fn container_id(&self, name: &str, run: u32) -> String {
        let id = digest(&[&self.run.uid, name, &run.to_string()]);
        format!("containerd://{id}")
    }
}

/// Whether probes of a container are carried out one by one. Those of a scripted container that is well are not.
fn probes_decide(spec: &Container, run: &ContainerRun, script: &Script) -> bool {
    let unwell = |kind| prober::spec(spec, kind).is_some() && script.is_unwell(kind);
    script.life == Life::Live || run.probing || prober::KINDS.into_iter().any(unwell)
}

/// 64 hexadecimal digits that follow from the parts.
fn digest(parts: &[&str]) -> String {
    (0u8..4)
        .map(|lane| {
            let mut hasher = DefaultHasher::new();
            (lane, parts).hash(&mut hasher);
            format!("{:016x}", hasher.finish())
        })
        .collect()
}

/// Seconds as Go writes durations: `10s`, `1m20s`, `5m0s`.
fn go_duration(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}
