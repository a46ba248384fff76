//! What state an object is in, and why, in one sentence. Pure.
//!
//! Built-in workloads are judged by their own rules; everything else by the conventions of the API: conditions,
//! `observedGeneration` and `phase`, as kstatus and Argo CD do.

use serde::Serialize;
use serde_json::Value;

/// How an object is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Health {
    /// Somebody should look at it.
    Bad,
    /// It is on its way.
    Busy,
    /// It is as it should be.
    Good,
    /// It has no state that could be good or bad.
    None,
}

/// The state of an object and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) health: Health,
    /// Why it is bad or busy; empty otherwise.
    pub(crate) sentence: String,
}

impl Verdict {
    const NONE: Self = Self {
        health: Health::None,
        sentence: String::new(),
    };

    fn good() -> Self {
        Self {
            health: Health::Good,
            sentence: String::new(),
        }
    }

    fn busy(sentence: impl Into<String>) -> Self {
        Self {
            health: Health::Busy,
            sentence: sentence.into(),
        }
    }

    fn bad(sentence: impl Into<String>) -> Self {
        Self {
            health: Health::Bad,
            sentence: sentence.into(),
        }
    }
}

/// Reasons of a waiting container that do not pass by themselves.
const STUCK: [&str; 7] = [
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];
/// Conditions that are good when they are true.
const GOOD_WHEN_TRUE: [&str; 6] = [
    "Ready",
    "Available",
    "Established",
    "Synced",
    "Healthy",
    "Succeeded",
];
/// Conditions that are bad when they are true.
const BAD_WHEN_TRUE: [&str; 4] = ["Stalled", "Degraded", "Failed", "Failure"];

/// Judges an object of a group and kind.
pub(crate) fn of(group: &str, kind: &str, object: &Value) -> Verdict {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return deleting(object);
    }
    match (group, kind) {
        ("", "Pod") => pod(object),
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") | ("", "ReplicationController") => {
            replicas(object)
        }
        ("apps", "DaemonSet") => daemon_set(object),
        ("batch", "Job") => job(object),
        ("", "Node") => node(object),
        ("", "PersistentVolumeClaim") => claim(object),
        ("", "Event") | ("events.k8s.io", "Event") => event(object),
        _ => by_conventions(object),
    }
}

fn deleting(object: &Value) -> Verdict {
    let finalizers: Vec<&str> = object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if finalizers.is_empty() {
        Verdict::busy("is being deleted")
    } else {
        Verdict::busy(format!(
            "is being deleted; waits for {}",
            finalizers.join(", ")
        ))
    }
}

fn pod(object: &Value) -> Verdict {
    let status = &object["status"];
    for list in ["initContainerStatuses", "containerStatuses"] {
        for container in status[list].as_array().into_iter().flatten() {
            let waiting = &container["state"]["waiting"];
            let reason = text(&waiting["reason"]);
            if STUCK.contains(&reason) {
                return Verdict::bad(sentence(
                    &format!("container {}: {reason}", text(&container["name"])),
                    text(&waiting["message"]),
                ));
            }
        }
    }
    match text(&status["phase"]) {
        "Succeeded" => Verdict::good(),
        "Failed" => Verdict::bad(sentence(
            or(text(&status["reason"]), "failed"),
            text(&status["message"]),
        )),
        "Running" if is_true(object, "Ready") => Verdict::good(),
        "Running" => Verdict::busy(unready(object)),
        _ => match condition(object, "PodScheduled") {
            Some(scheduled) if text(&scheduled["reason"]) == "Unschedulable" => {
                Verdict::bad(sentence("cannot be scheduled", text(&scheduled["message"])))
            }
            _ => Verdict::busy("is starting"),
        },
    }
}

fn unready(object: &Value) -> String {
    let containers = object["status"]["containerStatuses"]
        .as_array()
        .into_iter()
        .flatten();
    let waiting: Vec<&str> = containers
        .filter(|container| container["ready"] != true)
        .map(|container| text(&container["name"]))
        .collect();
    if waiting.is_empty() {
        "is not ready yet".to_owned()
    } else {
        format!("not ready yet: {}", waiting.join(", "))
    }
}

fn replicas(object: &Value) -> Verdict {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let status = &object["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    if let Some(failure) = true_condition(object, "ReplicaFailure") {
        return Verdict::bad(sentence("cannot create pods", text(&failure["message"])));
    }
    if let Some(progress) = condition(object, "Progressing")
        && text(&progress["status"]) == "False"
    {
        return Verdict::bad(sentence("does not progress", text(&progress["message"])));
    }
    if is_behind(object) {
        return Verdict::busy("its controller has not seen the last change yet");
    }
    if wanted == 0 && count("replicas") == 0 {
        return Verdict::NONE;
    }
    let ready = count("readyReplicas");
    if !status["updatedReplicas"].is_null() && count("updatedReplicas") < wanted {
        return Verdict::busy(format!(
            "{} of {wanted} replicas updated",
            count("updatedReplicas")
        ));
    }
    if ready < wanted {
        return Verdict::busy(format!("{ready} of {wanted} replicas ready"));
    }
    Verdict::good()
}

fn daemon_set(object: &Value) -> Verdict {
    let count = |field: &str| object["status"][field].as_i64().unwrap_or(0);
    let (ready, wanted) = (count("numberReady"), count("desiredNumberScheduled"));
    if is_behind(object) {
        return Verdict::busy("its controller has not seen the last change yet");
    }
    if ready < wanted {
        return Verdict::busy(format!("{ready} of {wanted} nodes ready"));
    }
    Verdict::good()
}

fn job(object: &Value) -> Verdict {
    if let Some(failed) = true_condition(object, "Failed") {
        return Verdict::bad(sentence(
            or(text(&failed["reason"]), "failed"),
            text(&failed["message"]),
        ));
    }
    if is_true(object, "Complete") {
        return Verdict::good();
    }
    Verdict::busy(format!(
        "{} active pods",
        object["status"]["active"].as_i64().unwrap_or(0)
    ))
}

fn node(object: &Value) -> Verdict {
    match condition(object, "Ready") {
        Some(ready) if text(&ready["status"]) != "True" => {
            Verdict::bad(sentence("is not ready", text(&ready["message"])))
        }
        _ if object["spec"]["unschedulable"] == true => {
            Verdict::busy("takes no new pods (cordoned)")
        }
        Some(_) => Verdict::good(),
        None => Verdict::NONE,
    }
}

fn claim(object: &Value) -> Verdict {
    match text(&object["status"]["phase"]) {
        "Bound" => Verdict::good(),
        "Lost" => Verdict::bad("its volume is lost"),
        _ => Verdict::busy("waits for a volume"),
    }
}

fn event(object: &Value) -> Verdict {
    if text(&object["type"]) == "Warning" {
        let message = or(text(&object["message"]), text(&object["note"]));
        return Verdict::bad(sentence(text(&object["reason"]), message));
    }
    Verdict::NONE
}

/// Judges by conditions, the observed generation and the phase.
fn by_conventions(object: &Value) -> Verdict {
    if let Some(bad) = BAD_WHEN_TRUE
        .iter()
        .find_map(|name| true_condition(object, name))
    {
        return Verdict::bad(sentence(
            or(text(&bad["reason"]), text(&bad["type"])),
            text(&bad["message"]),
        ));
    }
    if is_behind(object) {
        return Verdict::busy("its controller has not seen the last change yet");
    }
    let known = GOOD_WHEN_TRUE
        .iter()
        .find_map(|name| condition(object, name));
    if let Some(found) = known {
        let said = || {
            sentence(
                or(text(&found["reason"]), text(&found["type"])),
                text(&found["message"]),
            )
        };
        let moving = ["Reconciling", "Progressing"]
            .iter()
            .any(|name| is_true(object, name));
        return match text(&found["status"]) {
            "True" => Verdict::good(),
            "False" if !moving => {
                Verdict::bad(format!("{} is false: {}", text(&found["type"]), said()))
            }
            _ => Verdict::busy(said()),
        };
    }
    let status = &object["status"];
    let phase = or(text(&status["phase"]), text(&status["state"]));
    by_phase(phase)
}

fn by_phase(phase: &str) -> Verdict {
    match phase.to_ascii_lowercase().as_str() {
        "" => Verdict::NONE,
        "ready" | "running" | "active" | "bound" | "available" | "succeeded" | "healthy"
        | "completed" | "complete" => Verdict::good(),
        "failed" | "error" | "degraded" | "lost" | "unhealthy" => {
            Verdict::bad(format!("phase {phase}"))
        }
        _ => Verdict::busy(format!("phase {phase}")),
    }
}

fn is_behind(object: &Value) -> bool {
    let observed = object["status"]["observedGeneration"].as_i64();
    let generation = object["metadata"]["generation"].as_i64();
    matches!((observed, generation), (Some(observed), Some(generation)) if observed < generation)
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == name)
}

fn true_condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    condition(object, name).filter(|found| found["status"] == "True")
}

fn is_true(object: &Value, name: &str) -> bool {
    true_condition(object, name).is_some()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn or<'a>(first: &'a str, second: &'a str) -> &'a str {
    if first.is_empty() { second } else { first }
}

/// `reason: message`, with a message of bounded length.
fn sentence(reason: &str, message: &str) -> String {
    const LONGEST: usize = 300;
    let message = match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    };
    if message.is_empty() {
        reason.to_owned()
    } else {
        format!("{reason}: {message}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_judged_by_their_status() {
        let waiting = json!({"status": {"phase": "Pending", "containerStatuses": [
            {"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}});
        let rolling = json!({"metadata": {"generation": 2}, "spec": {"replicas": 3},
            "status": {"observedGeneration": 2, "updatedReplicas": 3, "readyReplicas": 1}});
        let stale = json!({"metadata": {"generation": 3}, "status": {"observedGeneration": 2}});
        let deleted = json!({"metadata": {"deletionTimestamp": "x", "finalizers": ["a/b"]}});
        let ready = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status, "reason": "R"}]}});
        let cases = [
            (
                "",
                "Pod",
                waiting,
                Health::Bad,
                "container web: ImagePullBackOff: no such image",
            ),
            (
                "apps",
                "Deployment",
                rolling,
                Health::Busy,
                "1 of 3 replicas ready",
            ),
            (
                "x.io",
                "Thing",
                stale,
                Health::Busy,
                "its controller has not seen the last change yet",
            ),
            (
                "x.io",
                "Thing",
                deleted,
                Health::Busy,
                "is being deleted; waits for a/b",
            ),
            ("x.io", "Thing", ready("True"), Health::Good, ""),
            (
                "x.io",
                "Thing",
                ready("False"),
                Health::Bad,
                "Ready is false: R",
            ),
            ("x.io", "Thing", ready("Unknown"), Health::Busy, "R"),
            (
                "x.io",
                "Thing",
                json!({"status": {"phase": "front"}}),
                Health::Busy,
                "phase front",
            ),
            (
                "x.io",
                "Thing",
                json!({"status": {"phase": "ready"}}),
                Health::Good,
                "",
            ),
            ("", "ConfigMap", json!({"data": {}}), Health::None, ""),
            (
                "",
                "ConfigMap",
                json!({"status": "nonsense", "metadata": 3}),
                Health::None,
                "",
            ),
        ];
        for (group, kind, object, health, said) in cases {
            let verdict = of(group, kind, &object);
            assert_eq!(
                (verdict.health, verdict.sentence.as_str()),
                (health, said),
                "{object}"
            );
        }
    }
}
