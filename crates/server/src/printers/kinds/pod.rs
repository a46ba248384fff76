//! Pods: one word for what phase, conditions and container states say together.

use jiff::Timestamp;
use kubewright_schema::duration::human;
use serde_json::Value;

use super::{Entry, no_condition};
use crate::printers::column::{AGE, Column, NAME, text as column, wide};
use crate::printers::selector;
use crate::printers::table::RowCondition;
use crate::printers::view::{View, at, flag, int, is_true, list, or, text};

const POD: &[Column] = &[
    NAME,
    column("Ready"),
    column("Status"),
    column("Restarts"),
    AGE,
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
];

const POD_TEMPLATE: &[Column] = &[
    NAME,
    column("Containers"),
    column("Images"),
    column("Pod Labels"),
];

pub(super) const KINDS: &[Entry] = &[
    Entry {
        group: "",
        kind: "Pod",
        columns: POD,
        cells: pod,
        condition: completion,
    },
    Entry {
        group: "",
        kind: "PodTemplate",
        columns: POD_TEMPLATE,
        cells: pod_template,
        condition: no_condition,
    },
];

/// How often containers were restarted and when the last of them ended.
#[derive(Debug, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += int(status, "restartCount");
        let ended = text(status, "lastState.terminated.finishedAt").parse().ok();
        self.last = self.last.max(ended);
    }

    fn text(&self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count != 0 => {
                let ago = human(now.duration_since(last).as_secs());
                format!("{} ({ago} ago)", self.count)
            }
            _ => self.count.to_string(),
        }
    }
}

/// What the statuses of the init containers say.
#[derive(Debug, Default)]
struct Initialization {
    /// Of every init container up to the one that is not done.
    restarts: Restarts,
    /// Of the sidecars among them.
    sidecar_restarts: Restarts,
    ready_sidecars: usize,
    /// Why the pod is still initializing; `None` when all are done.
    reason: Option<String>,
}

/// What the statuses of the main containers say.
#[derive(Debug)]
struct Main {
    reason: String,
    ready: usize,
    restarts: Restarts,
}

fn pod(view: &View<'_>) -> Vec<Value> {
    let pod = view.object;
    let initialization = initialization(pod);
    let mut ready = initialization.ready_sidecars;
    let (mut reason, restarts) = match initialization.reason {
        Some(reason) if !is_true(view.list("status.conditions"), "Initialized") => {
            (reason, initialization.restarts)
        }
        reason => {
            let reason = reason.unwrap_or_else(|| pod_reason(pod).to_owned());
            let main = main_containers(pod, reason, initialization.sidecar_restarts);
            ready += main.ready;
            (main.reason, main.restarts)
        }
    };
    if let Some(ending) = ending(view) {
        reason = ending.to_owned();
    }
    let ready = format!("{ready}/{}", total_containers(pod));
    let mut row = cells![
        view.name(),
        ready,
        reason,
        restarts.text(view.now),
        view.age()
    ];
    row.extend(wide_cells(view));
    row
}

fn wide_cells(view: &View<'_>) -> Vec<Value> {
    let first_ip = view
        .list("status.podIPs")
        .first()
        .map_or("", |ip| text(ip, "ip"));
    let ip = or(first_ip, view.text("status.podIP"));
    cells![
        or(ip, "<none>"),
        or(view.text("spec.nodeName"), "<none>"),
        or(view.text("status.nominatedNodeName"), "<none>"),
        readiness_gates(view),
    ]
}

/// What the pod says of itself, before its containers are asked.
fn pod_reason(pod: &Value) -> &str {
    let gated = list(pod, "status.conditions").iter().any(|condition| {
        text(condition, "type") == "PodScheduled" && text(condition, "reason") == "SchedulingGated"
    });
    if gated {
        return "SchedulingGated";
    }
    or(text(pod, "status.reason"), text(pod, "status.phase"))
}

/// What deletion makes of the status, whatever the containers say.
fn ending(view: &View<'_>) -> Option<&'static str> {
    if !view.is_being_deleted() {
        return None;
    }
    if view.text("status.reason") == "NodeLost" {
        return Some("Unknown");
    }
    match view.text("status.phase") {
        "Succeeded" | "Failed" => None,
        _ => Some("Terminating"),
    }
}

fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

fn total_containers(pod: &Value) -> usize {
    let sidecars = list(pod, "spec.initContainers")
        .iter()
        .filter(|container| is_sidecar(container))
        .count();
    list(pod, "spec.containers").len() + sidecars
}

fn initialization(pod: &Value) -> Initialization {
    let containers = list(pod, "spec.initContainers");
    let mut result = Initialization::default();
    for (index, status) in list(pod, "status.initContainerStatuses").iter().enumerate() {
        let sidecar = containers
            .iter()
            .any(|container| container["name"] == status["name"] && is_sidecar(container));
        result.restarts.add(status);
        if sidecar {
            result.sidecar_restarts.add(status);
        }
        let terminated = at(status, "state.terminated");
        if terminated.is_some_and(|state| int(state, "exitCode") == 0) {
            continue;
        }
        if sidecar && flag(status, "started") {
            result.ready_sidecars += usize::from(flag(status, "ready"));
            continue;
        }
        result.reason = Some(init_reason(status, index, containers.len()));
        break;
    }
    result
}

/// Why this init container, the first that is not done, holds up the pod.
fn init_reason(status: &Value, index: usize, total: usize) -> String {
    if let Some(state) = at(status, "state.terminated") {
        return format!("Init:{}", termination(state));
    }
    match text(status, "state.waiting.reason") {
        "" | "PodInitializing" => format!("Init:{index}/{total}"),
        waiting => format!("Init:{waiting}"),
    }
}

/// `OOMKilled`, `Signal:9` or `ExitCode:1`.
fn termination(state: &Value) -> String {
    match (text(state, "reason"), int(state, "signal")) {
        ("", 0) => format!("ExitCode:{}", int(state, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn main_containers(pod: &Value, reason: String, restarts: Restarts) -> Main {
    let mut main = Main {
        reason,
        ready: 0,
        restarts,
    };
    let mut failure = None;
    // The first container in the list has the last word.
    for status in list(pod, "status.containerStatuses").iter().rev() {
        main.restarts.add(status);
        let waiting = text(status, "state.waiting.reason");
        if !waiting.is_empty() {
            main.reason = waiting.to_owned();
        } else if let Some(state) = at(status, "state.terminated") {
            main.reason = termination(state);
            if int(state, "exitCode") != 0 {
                failure = Some(main.reason.clone());
            }
        } else if flag(status, "ready") && at(status, "state.running").is_some() {
            main.ready += 1;
        }
    }
    if main.reason == "Completed" {
        main.reason = completed(pod, main.ready > 0, failure);
    }
    main
}

/// A finished container does not make a finished pod while others run or have failed.
fn completed(pod: &Value, runs: bool, failure: Option<String>) -> String {
    if runs && is_true(list(pod, "status.conditions"), "Ready") {
        return "Running".to_owned();
    }
    failure.unwrap_or_else(|| if runs { "NotReady" } else { "Completed" }.to_owned())
}

fn readiness_gates(view: &View<'_>) -> String {
    let gates = view.list("spec.readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| is_true(view.list("status.conditions"), text(gate, "conditionType")))
        .count();
    format!("{open}/{}", gates.len())
}

/// Rows of pods that are done say so, for clients that hide them.
fn completion(pod: &Value) -> Option<RowCondition> {
    let (reason, message) = match text(pod, "status.phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(RowCondition {
        type_: "Completed",
        status: "True",
        reason,
        message,
    })
}

fn pod_template(view: &View<'_>) -> Vec<Value> {
    let (names, images) = super::containers(view, "template.spec.containers");
    let labels = selector::labels(view.object, "template.metadata.labels");
    cells![view.name(), names, images, labels]
}
