//! What becomes of pods when the machine of their node shuts down or starts again.

use std::time::Duration;

use serde_json::{Value, json};

use super::Life;
use crate::node::signal::Signal;

/// `nodeshutdown.podManager.killPods`.
#[test]
fn pod_on_a_node_that_shuts_down_has_its_time_and_fails() {
    for (delay, ends, summary) in [
        ("3s", 4_000, "Failed NotReady [Completed=0] Terminated"),
        ("1m", 21_000, "Failed NotReady [Error=137] Terminated"),
    ] {
        let mut life = Life::new(json!({"stop-delay": delay}), json!({}));
        life.until(1_000);
        for _ in 0..2 {
            // The node asks every second.
            let grace = Duration::from_secs(20);
            life.run.signals.push(Signal::ShutDown { grace });
            life.until(1_500);
        }
        life.until(ends - 1);
        assert_eq!(
            life.summary(),
            "Running Ready [ready] Terminated",
            "{delay}"
        );
        life.until(ends);
        assert_eq!(life.summary(), summary);
        let status = life.status();
        let message = "Pod was terminated in response to imminent node shutdown.";
        assert_eq!(status.message.as_deref(), Some(message));
        let mut conditions = status.conditions.iter().flatten();
        let target = conditions.find(|condition| condition.type_ == "DisruptionTarget");
        let reason = target.and_then(|condition| condition.reason.as_deref());
        assert_eq!(reason, Some("TerminationByKubelet"));
        let killing = life.notes.iter().filter(|note| *note == "Killing");
        assert_eq!(killing.count(), 1);
    }
}

/// What a pod is like after its node was started again when it had run for a second.
fn rebooted(annotations: Value, spec: Value) -> Life {
    let mut life = Life::new(annotations, spec);
    life.until(1_000);
    life.run.signals.push(Signal::Rebooted);
    life.until(1_000);
    life
}

/// `kubeGenericRuntimeManager.computePodActions` without a sandbox.
#[test]
fn reboot_ends_everything_and_starts_again_what_its_policy_starts() {
    let init = json!({"initContainers": [{"name": "first", "image": "a"},
        {"name": "side", "image": "a", "restartPolicy": "Always"}]});
    let two = json!({"restartPolicy": "OnFailure", "containers": [{"name": "a"}, {"name": "b"}]});
    let once = json!({"a.exit-after": "100ms", "b.exit-after": "never"});
    let never = json!({"restartPolicy": "Never"});
    for (annotations, spec, summary) in [
        (json!({}), json!({}), "Running Ready [ready] restarts 1"),
        (
            json!({}),
            init,
            "Running Ready [Completed=0 ready ready] restarts 3",
        ),
        (once, two, "Running NotReady [Completed=0 ready] restarts 1"),
        (
            json!({"exit-after": "never"}),
            never,
            "Failed NotReady [Unknown=255]",
        ),
        (
            json!({"start-delay": "1h"}),
            json!({}),
            "Pending NotReady [ContainerCreating]",
        ),
    ] {
        let life = rebooted(annotations, spec.clone());
        assert_eq!(life.summary(), summary, "{spec}");
        let again = summary.contains("restarts");
        let sandbox = life.notes.contains(&"SandboxChanged".to_owned());
        assert_eq!(sandbox, again, "{spec}");
        if again {
            let status = life.status().container_statuses.as_ref().expect("some");
            let last = status.last().and_then(|status| status.last_state.clone());
            let end = last.and_then(|last| last.terminated).expect("it ended");
            assert_eq!(
                (end.exit_code, end.reason.as_deref()),
                (255, Some("Unknown"))
            );
        }
    }
}

#[test]
fn reboot_waits_for_secrets_again_and_forgets_back_offs() {
    let mut life = Life::new(json!({"crash-loop": "true"}), json!({}));
    life.until(80_000);
    assert_eq!(
        life.summary(),
        "Running NotReady [CrashLoopBackOff] restarts 4"
    );
    life.run.signals.push(Signal::Rebooted);
    life.until(80_000);
    assert_eq!(
        life.summary(),
        "Running NotReady [CrashLoopBackOff] restarts 6"
    );
    let volume =
        json!({"volumes": [{"name": "v", "secret": {"secretName": "s", "optional": true}}]});
    let mut life = Life::new(json!({}), volume);
    life.until(0);
    life.pod.spec.as_mut().expect("a spec").volumes =
        serde_json::from_value(json!([{"name": "v", "secret": {"secretName": "s"}}]))
            .expect("volumes");
    life.run.signals.push(Signal::Rebooted);
    life.until(1_000);
    assert_eq!(life.summary(), "Running NotReady [ContainerCreating]");
}
