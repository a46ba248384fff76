//! Liveness, readiness and startup probes.

use serde_json::json;

use super::Life;
use crate::node::signal::Signal;

/// `prober.worker.doProbe` and `computePodActions`.
#[test]
fn liveness_restarts_and_readiness_takes_out_of_service() {
    let spec = json!({"containers": [{"name": "app", "image": "app:1",
        "livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5, "failureThreshold": 2, "successThreshold": 1},
        "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 2, "failureThreshold": 3, "successThreshold": 1}}]});
    let mut life = Life::new(json!({"liveness": "fail"}), spec.clone());
    life.until(4_999);
    assert_eq!(life.summary(), "Running Ready [ready]");
    assert_eq!(
        life.texts.last().map(String::as_str),
        Some("Liveness probe failed: HTTP probe failed with statuscode: 500")
    );
    life.until(5_000);
    assert_eq!(life.summary(), "Running Ready [ready] restarts 1");
    assert!(
        life.texts
            .contains(&"Container app failed liveness probe, will be restarted".to_owned())
    );
    let mut life = Life::new(json!({}), spec.clone());
    life.until(60_000);
    let key = "sim.kubewright.dev/readiness".to_owned();
    life.pod
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(key.clone(), "fail".to_owned());
    life.until(63_999);
    assert_eq!(
        life.summary(),
        "Running Ready [ready]",
        "two failures are not enough"
    );
    life.until(64_000);
    assert_eq!(life.summary(), "Running NotReady [running]");
    life.pod
        .metadata
        .annotations
        .get_or_insert_default()
        .remove(&key);
    life.until(66_000);
    assert_eq!(life.summary(), "Running Ready [ready]");
    // A container that hangs hears neither probes nor SIGTERM.
    let mut life = Life::new(json!({}), spec);
    life.until(1_000);
    life.run.signals.push(Signal::Hang { container: None });
    life.until(6_000);
    assert_eq!(life.summary(), "Running NotReady [running]");
    life.until(36_000);
    assert_eq!(life.summary(), "Running Ready [ready] restarts 1");
}

/// `computeInitContainerActions` with a startup probe.
#[test]
fn startup_probe_holds_back_the_others_and_kills_in_the_end() {
    let spec = json!({"containers": [{"name": "app", "image": "app:1",
        "startupProbe": {"exec": {"command": ["x"]}, "periodSeconds": 10, "failureThreshold": 3}}]});
    let mut life = Life::new(json!({"startup": "fail"}), spec);
    life.until(19_999);
    assert_eq!(life.summary(), "Running NotReady [running]");
    assert_eq!(
        life.status().container_statuses.as_ref().expect("one")[0].started,
        Some(false)
    );
    life.until(20_000);
    assert_eq!(life.summary(), "Running NotReady [running] restarts 1");
    assert!(
        life.texts
            .contains(&"Container app failed startup probe, will be restarted".to_owned())
    );
}
