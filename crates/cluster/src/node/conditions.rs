//! The conditions of a pod as its node tells them.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::kubelet::{resize, shutdown};
use super::run::{Ended, Volumes};
use super::script::Role;
use super::status::View;

/// The conditions that a node tells, in its order. `PodScheduled` is the scheduler's unless nobody else says it.
pub(crate) const OWN_CONDITIONS: [&str; 6] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    // Only when the node evicts the pod or shuts down.
    "DisruptionTarget",
];

/// Whether a condition holds, and why.
#[derive(Debug, Clone)]
struct Truth {
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl View<'_> {
    /// The conditions, and down since when they are as they are.
    pub(super) fn conditions(
        &mut self,
        phase: &str,
        init: &[(Role, ContainerStatus)],
        main: &[(Role, ContainerStatus)],
    ) -> Vec<PodCondition> {
        let initialized = match phase {
            "Succeeded" => Truth::yes_because("PodCompleted"),
            // Init containers that run again take nothing back.
            _ if self.run.is_initialized() || self.run.has_started() => Truth::yes(),
            _ => Truth::no("ContainersNotInitialized", incomplete(init)),
        };
        let ready = containers_ready(phase, init, main);
        let gates = gates(self.pod, &ready);
        let sandbox = match self.run.volumes {
            Volumes::Mounted => Truth::yes(),
            Volumes::Unmounted { .. } => Truth {
                holds: false,
                reason: None,
                message: None,
            },
        };
        let mut truths = vec![sandbox, initialized, gates, ready, Truth::yes()];
        let disruption = match &self.run.ended {
            Some(Ended::Evicted { message }) => Some(message.clone()),
            Some(Ended::ShutDown(_)) => Some(shutdown::MESSAGE.to_owned()),
            _ => None,
        };
        truths.extend(disruption.map(|message| Truth {
            message: Some(message),
            ..Truth::yes_because("TerminationByKubelet")
        }));
        let (now, generation) = (self.now, self.pod.metadata.generation);
        let marks = &mut self.run.marks;
        let conditions = OWN_CONDITIONS.into_iter().zip(truths);
        let mut conditions: Vec<PodCondition> = conditions
            .map(|(type_, truth)| {
                let mark = marks.entry(type_).or_insert((truth.holds, now));
                if mark.0 != truth.holds {
                    *mark = (truth.holds, now);
                }
                truth.condition(type_, mark.1, generation)
            })
            .collect();
        if !matches!(phase, "Succeeded" | "Failed") {
            conditions.extend(self.resize_conditions());
        }
        conditions
    }

    /// How far the pod is with being resized.
    fn resize_conditions(&self) -> impl Iterator<Item = PodCondition> {
        let resize = &self.run.resize;
        let pending = resize.pending.as_ref().map(|pending| {
            let truth = Truth {
                message: Some(pending.message.clone()),
                ..Truth::yes_because(pending.reason)
            };
            truth.condition(resize::PENDING, pending.since, pending.generation)
        });
        let progress = resize.progress.as_ref().map(|progress| {
            Truth::yes().condition(resize::IN_PROGRESS, progress.since, progress.generation)
        });
        pending.into_iter().chain(progress)
    }
}

impl Truth {
    fn yes() -> Self {
        Self {
            holds: true,
            reason: None,
            message: None,
        }
    }

    fn yes_because(reason: &'static str) -> Self {
        Self {
            reason: Some(reason),
            ..Self::yes()
        }
    }

    fn no(reason: &'static str, message: Option<String>) -> Self {
        Self {
            holds: false,
            reason: Some(reason),
            message,
        }
    }

    fn condition(self, type_: &str, since: Timestamp, generation: Option<i64>) -> PodCondition {
        PodCondition {
            type_: type_.to_owned(),
            status: if self.holds { "True" } else { "False" }.to_owned(),
            reason: self.reason.map(str::to_owned),
            message: self.message,
            last_transition_time: Some(Time(since)),
            observed_generation: generation,
            ..PodCondition::default()
        }
    }
}

fn incomplete(init: &[(Role, ContainerStatus)]) -> Option<String> {
    let names = init.iter().filter(|(role, status)| match role {
        Role::Sidecar => status.started != Some(true),
        Role::Init | Role::Main | Role::Ephemeral => !status.ready,
    });
    let names: Vec<&str> = names.map(|(_, status)| status.name.as_str()).collect();
    Some(format!(
        "containers with incomplete status: [{}]",
        names.join(" ")
    ))
}

fn containers_ready(
    phase: &str,
    init: &[(Role, ContainerStatus)],
    main: &[(Role, ContainerStatus)],
) -> Truth {
    match phase {
        "Succeeded" => return Truth::no("PodCompleted", None),
        "Failed" => return Truth::no("PodFailed", None),
        _ => {}
    }
    let lasting = init.iter().filter(|(role, _)| *role == Role::Sidecar);
    let unready: Vec<&str> = lasting
        .chain(main)
        .filter(|(_, status)| !status.ready)
        .map(|(_, status)| status.name.as_str())
        .collect();
    if unready.is_empty() {
        Truth::yes()
    } else {
        Truth::no(
            "ContainersNotReady",
            Some(format!(
                "containers with unready status: [{}]",
                unready.join(" ")
            )),
        )
    }
}

/// A pod is ready when its containers are and its readiness gates are open.
fn gates(pod: &Pod, containers: &Truth) -> Truth {
    if !containers.holds {
        return containers.clone();
    }
    let conditions = || {
        let status = pod.status.iter();
        status.flat_map(|s| s.conditions.iter().flatten())
    };
    let spec = pod.spec.iter();
    let gates = spec.flat_map(|s| s.readiness_gates.iter().flatten());
    let closed: Vec<String> = gates
        .filter_map(|gate| {
            let name = &gate.condition_type;
            match conditions().find(|c| c.type_ == *name) {
                None => Some(format!(
                    "corresponding condition of pod readiness gate {name:?} does not exist."
                )),
                Some(found) if found.status != "True" => Some(format!(
                    "the status of pod readiness gate {name:?} is not \"True\", but {}",
                    found.status
                )),
                Some(_) => None,
            }
        })
        .collect();
    if closed.is_empty() {
        Truth::yes()
    } else {
        Truth::no("ReadinessGatesNotReady", Some(closed.join(", ")))
    }
}
