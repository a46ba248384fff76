//! How pods end: deletion, eviction and the order in which containers stop.

use serde_json::json;

use super::Life;
use crate::node::signal::Signal;
use crate::node::step::Fate;

#[test]
fn deleted_pod_stops_within_its_grace_and_then_goes() {
    // Delay of the container, grace, when the pod goes, and how.
    let cases = [
        (None, 30, 1_000, "Succeeded NotReady [Completed=0]"),
        (Some("3s"), 30, 4_000, "Succeeded NotReady [Completed=0]"),
        (Some("1m"), 5, 6_000, "Failed NotReady [Error=137]"),
    ];
    for (delay, grace, gone, summary) in cases {
        let annotations = delay.map_or(json!({}), |delay| json!({"stop-delay": delay}));
        let mut life = Life::new(annotations, json!({}));
        life.until(1_000).delete(grace);
        if gone > 1_000 {
            assert_eq!(life.step().fate, Fate::Stays);
            life.until(gone - 1);
            assert_eq!(life.summary(), "Running Ready [ready]");
        }
        life.now = gone;
        assert_eq!(life.step().fate, Fate::Goes);
        assert_eq!(life.summary(), summary, "{delay:?}");
        assert!(life.notes.contains(&"Killing".to_owned()));
    }
    let mut unborn = Life::new(json!({"start-delay": "1h"}), json!({}));
    unborn.until(10).delete(30);
    assert_eq!(unborn.step().fate, Fate::Goes);
}

#[test]
fn finished_pod_goes_when_it_is_deleted_and_nobody_holds_it() {
    let mut life = Life::new(json!({}), json!({"restartPolicy": "Never"}));
    life.until(1_000).delete(0);
    life.pod.metadata.deletion_grace_period_seconds = Some(0);
    life.pod.metadata.finalizers = Some(vec!["batch.kubernetes.io/job-tracking".to_owned()]);
    assert_eq!(life.step().fate, Fate::Stays);
    life.pod.metadata.finalizers = None;
    assert_eq!(life.step().fate, Fate::Goes);
}

/// `eviction.managerImpl.evictPod` and `Kubelet.rejectPod`.
#[test]
fn evicted_and_rejected_pods_fail_with_their_reason() {
    let mut life = Life::new(json!({}), json!({}));
    life.until(1_000);
    let message = "The node was low on resource: memory. ".to_owned();
    life.run.signals.push(Signal::Evicted { message });
    life.until(2_000);
    assert_eq!(life.summary(), "Failed NotReady [Error=137] Evicted");
    let target = life
        .status()
        .conditions
        .iter()
        .flatten()
        .find(|c| c.type_ == "DisruptionTarget");
    assert_eq!(
        target.and_then(|c| c.reason.as_deref()),
        Some("TerminationByKubelet")
    );
    let mut life = Life::new(json!({}), json!({}));
    let (reason, message) = ("OutOfcpu".to_owned(), "Node didn't have enough".to_owned());
    life.run.signals.push(Signal::Rejected { reason, message });
    life.until(0);
    assert_eq!(life.summary(), "Failed NotReady [] OutOfcpu");
    assert_eq!(
        life.status().message.as_deref(),
        Some("Pod was rejected: Node didn't have enough")
    );
}

/// `terminationOrdering` of kuberuntime.
#[test]
fn sidecars_stop_after_the_main_containers_in_reverse_order() {
    let spec = json!({"initContainers": [
        {"name": "one", "image": "a", "restartPolicy": "Always"},
        {"name": "two", "image": "a", "restartPolicy": "Always"},
    ]});
    let mut life = Life::new(json!({"stop-delay": "2s"}), spec);
    life.until(1_000).delete(30);
    for (at, summary) in [
        (3_000, "Running NotReady [ready ready Completed=0]"),
        (5_000, "Running NotReady [ready Completed=0 Completed=0]"),
    ] {
        life.until(at);
        assert_eq!(life.summary(), summary, "after {at}");
    }
    life.now = 7_000;
    assert_eq!(life.step().fate, Fate::Goes);
}
