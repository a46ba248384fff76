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

fn probed(kind: &str, probe: serde_json::Value) -> Life {
    let mut container = json!({"name": "app", "image": "app:1", "ports": [{"containerPort": 80}]});
    container[kind] = probe;
    Life::new(json!({}), json!({"containers": [container]}))
}

/// `probe/exec/exec.go: Probe`: an exit code other than zero is a failure.
#[test]
fn command_that_fails_everywhere_fails_as_a_probe() {
    let command = json!({"exec": {"command": ["sh", "-c", "echo broken; exit 1"]},
        "initialDelaySeconds": 5, "periodSeconds": 10, "failureThreshold": 2});
    let mut life = probed("readinessProbe", command.clone());
    for (at, summary) in [
        (0, "Running NotReady [running]"),
        (4_999, "Running NotReady [running]"),
        (60_000, "Running NotReady [running]"),
    ] {
        life.until(at);
        assert_eq!(life.summary(), summary, "after {at}");
    }
    let text = "Readiness probe failed: broken\n".to_owned();
    assert!(life.texts.contains(&text), "{:?}", life.texts);
    let mut life = probed("livenessProbe", command);
    life.until(15_000);
    assert_eq!(life.summary(), "Running Ready [ready] restarts 1");
    // Annotations win over what the command says.
    let mut annotated = probed(
        "readinessProbe",
        json!({"exec": {"command": ["false"]}, "periodSeconds": 1}),
    );
    let annotations = annotated.pod.metadata.annotations.get_or_insert_default();
    annotations.insert(
        "sim.kubewright.dev/readiness".to_owned(),
        "succeed".to_owned(),
    );
    annotated.until(60_000);
    assert_eq!(annotated.summary(), "Running Ready [ready]");
}

/// `prober.go: probe` and `worker.doProbe`: what cannot be probed is reported, and the result so far stands.
#[test]
fn port_that_does_not_exist_is_never_ready_and_never_restarted() {
    let port = json!({"httpGet": {"port": "web"}, "periodSeconds": 10, "failureThreshold": 1});
    for (kind, summary) in [
        ("readinessProbe", "Running NotReady [running]"),
        ("livenessProbe", "Running Ready [ready]"),
        ("startupProbe", "Running NotReady [running]"),
    ] {
        let mut life = probed(kind, port.clone());
        life.until(300_000);
        assert_eq!(life.summary(), summary, "{kind}");
        let text = "probe errored and resulted in unknown state: port \"web\" not found";
        let found = life.texts.iter().any(|other| other.ends_with(text));
        assert!(found, "{kind}: {:?}", life.texts);
    }
}

/// A container that is well is not looked at again.
#[test]
fn probes_that_succeed_need_no_timer() {
    for probe in [
        json!({"exec": {"command": ["true"]}, "periodSeconds": 1}),
        json!({"httpGet": {"port": 9090}, "periodSeconds": 1}),
    ] {
        let mut life = probed("readinessProbe", probe);
        assert_eq!(life.step().wake, None);
        assert_eq!(life.summary(), "Running Ready [ready]");
    }
}
