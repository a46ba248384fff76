//! Pods that are resized in place while they run.

use k8s_openapi::api::core::v1::PodCondition;
use serde_json::{Value, json};

use super::Life;
use crate::node::kubelet::resize::{self, Verdict};
use crate::node::signal::Signal;

fn container(cpu: &str, policy: &str) -> Value {
    let policies = json!([{"resourceName": "cpu", "restartPolicy": policy}]);
    json!({"name": "app", "image": "app:1", "resizePolicy": policies,
        "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": "4"}}})
}

/// A pod that has run for a second.
fn running(policy: &str) -> Life {
    let mut life = Life::new(json!({}), json!({"containers": [container("1", policy)]}));
    life.until(1_000);
    life
}

/// Somebody wants other resources, and the node says this to it.
fn resize(life: &mut Life, cpu: &str, policy: &str, verdict: Verdict) {
    let spec = life.pod.spec.as_mut().expect("a spec");
    spec.containers = vec![serde_json::from_value(container(cpu, policy)).expect("a container")];
    life.pod.metadata.generation = life.pod.metadata.generation.map(|count| count + 1);
    assert!(resize::is_wanted(&life.pod, &mut life.run));
    life.run.signals.push(Signal::Resized(verdict));
    let now = life.now;
    life.until(now);
}

fn condition<'a>(life: &'a Life, kind: &str) -> Option<&'a PodCondition> {
    let mut all = life.status().conditions.iter().flatten();
    all.find(|condition| condition.type_ == kind)
}

/// What is allocated, and what the container has.
fn cpus(life: &Life) -> (String, String) {
    let status = &life.status().container_statuses.as_ref().expect("one")[0];
    let allocated = status.allocated_resources.as_ref().expect("some")["cpu"]
        .0
        .clone();
    let resources = status.resources.as_ref().expect("some");
    let has = resources.requests.as_ref().expect("some")["cpu"].0.clone();
    (allocated, has)
}

fn both(allocated: &str, has: &str) -> (String, String) {
    (allocated.to_owned(), has.to_owned())
}

/// `handlePodResourcesResize`, `computePodResizeAction` and `SyncPod` of a kubelet.
#[test]
fn granted_resize_is_in_progress_for_a_moment_and_then_done() {
    let mut life = running("NotRequired");
    resize(&mut life, "2", "NotRequired", Verdict::Granted);
    assert_eq!(cpus(&life), both("2", "1"));
    let progress = condition(&life, "PodResizeInProgress").expect("it is in progress");
    assert_eq!(
        (progress.observed_generation, &progress.reason),
        (Some(2), &None)
    );
    life.until(1_999);
    assert_eq!(cpus(&life), both("2", "1"));
    life.now = 2_000;
    assert_eq!(
        life.step().gone,
        ["PodResizePending", "PodResizeInProgress"]
    );
    assert_eq!(cpus(&life), both("2", "2"));
    assert_eq!(condition(&life, "PodResizeInProgress"), None);
    assert_eq!(life.summary(), "Running Ready [ready]");
    let notes: Vec<&str> = life.notes.iter().map(String::as_str).collect();
    assert!(
        notes.ends_with(&["ResizeStarted", "ResizeCompleted"]),
        "{notes:?}"
    );
    let text = "Pod resize completed: {\"containers\":[{\"name\":\"app\",\"resources\":{\"limits\":{\"cpu\":\"4\"},\
        \"requests\":{\"cpu\":\"2\"}}}],\"generation\":2}";
    assert_eq!(life.texts.last().map(String::as_str), Some(text));
}

#[test]
fn container_whose_policy_says_so_is_started_again() {
    let mut life = running("RestartContainer");
    resize(&mut life, "2", "RestartContainer", Verdict::Granted);
    life.until(2_000);
    assert_eq!(life.summary(), "Running Ready [ready] restarts 1");
    assert_eq!(cpus(&life), both("2", "2"));
    assert_eq!(condition(&life, "PodResizeInProgress"), None);
    let text = "Container app resize requires restart".to_owned();
    assert!(life.texts.contains(&text), "{:?}", life.texts);
    // Another resource has no policy, so that a change of it starts nothing again.
    let mut life = running("RestartContainer");
    let spec = life.pod.spec.as_mut().expect("a spec");
    let resources = spec.containers[0].resources.as_mut().expect("some");
    let memory = serde_json::from_value(json!({"cpu": "1", "memory": "1Gi"})).expect("amounts");
    resources.requests = Some(memory);
    life.pod.metadata.generation = Some(2);
    life.run.signals.push(Signal::Resized(Verdict::Granted));
    life.until(9_000);
    assert_eq!(life.summary(), "Running Ready [ready]");
}

/// `SetPodResizePendingCondition`: everything but `Infeasible` is `Deferred`.
#[test]
fn refused_resize_waits_with_the_reason_and_takes_nothing() {
    let waits = |reason: &str| Verdict::Waits {
        reason: reason.to_owned(),
        message: "too much".to_owned(),
    };
    let mut life = running("NotRequired");
    resize(&mut life, "3", "NotRequired", waits("OutOfcpu"));
    let pending = condition(&life, "PodResizePending")
        .expect("it waits")
        .clone();
    assert_eq!(pending.reason.as_deref(), Some("Deferred"));
    assert_eq!(pending.message.as_deref(), Some("too much"));
    assert_eq!(pending.observed_generation, Some(2));
    assert_eq!(cpus(&life), both("1", "1"));
    assert_eq!(
        life.notes.last().map(String::as_str),
        Some("ResizeDeferred")
    );
    let text = life.texts.last().expect("an event");
    assert!(
        text.starts_with("Pod resize OutOfcpu: {\"containers\":"),
        "{text}"
    );
    assert!(
        text.ends_with("\"generation\":2,\"error\":\"too much\"}"),
        "{text}"
    );
    // The same answer again is not news.
    let events = life.notes.len();
    life.run.signals.push(Signal::Resized(waits("OutOfmemory")));
    life.until(5_000);
    assert_eq!(life.notes.len(), events);
    resize(&mut life, "4", "NotRequired", waits("Infeasible"));
    let pending = condition(&life, "PodResizePending")
        .expect("it waits")
        .clone();
    assert_eq!(
        (pending.reason.as_deref(), pending.observed_generation),
        (Some("Infeasible"), Some(3))
    );
    assert_eq!(
        life.notes.last().map(String::as_str),
        Some("ResizeInfeasible")
    );
    // Whoever takes a wish back waits no longer.
    let spec = life.pod.spec.as_mut().expect("a spec");
    spec.containers = vec![serde_json::from_value(container("1000m", "NotRequired")).expect("one")];
    life.pod.metadata.generation = Some(4);
    assert!(!resize::is_wanted(&life.pod, &mut life.run));
    life.until(6_000);
    assert_eq!(condition(&life, "PodResizePending"), None);
}
