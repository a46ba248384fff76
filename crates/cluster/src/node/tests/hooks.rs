//! Hooks after the start of containers and before their end.

use serde_json::{Value, json};

use super::Life;
use crate::node::step::Fate;

fn hooked(lifecycle: Value, spec: Value) -> Life {
    let mut all = json!({"containers": [{"name": "app", "image": "app:1", "lifecycle": lifecycle}],
        "terminationGracePeriodSeconds": 30});
    for (key, value) in spec.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    // Whatever the restart policy, it does not end by itself.
    Life::new(json!({"exit-after": "never"}), all)
}

fn exec(script: &str) -> Value {
    json!({"exec": {"command": ["sh", "-c", script]}})
}

/// When a pod goes that is deleted a second after it came, with so much grace.
fn gone_after(lifecycle: Value, grace: u64) -> u64 {
    let mut life = hooked(lifecycle, json!({}));
    life.until(1_000).delete(grace);
    loop {
        let step = life.step();
        if step.fate == Fate::Goes {
            return life.now - 1_000;
        }
        let wake = step.wake.expect("it goes in the end");
        life.now = wake.duration_since(super::at(0)).as_millis() as u64;
    }
}

/// `kuberuntime_container.go: killContainer, executePreStopHook`.
#[test]
fn hook_before_the_end_comes_before_the_signal() {
    for (hook, grace, expected) in [
        (json!({"sleep": {"seconds": 5}}), 30, 5_000),
        (exec("sleep 5"), 30, 5_000),
        (exec("echo draining; sleep 5; true"), 30, 5_000),
        // It may take the whole grace period, and then there are two seconds for the container.
        (json!({"sleep": {"seconds": 60}}), 10, 10_000),
        (json!({"sleep": {"seconds": 5}}), 0, 0),
        // What is not plain takes no time.
        (exec("nginx -s quit; sleep 15"), 30, 0),
        (json!({"httpGet": {"port": 80, "path": "/"}}), 30, 0),
    ] {
        let gone = gone_after(json!({"preStop": hook}), grace);
        assert_eq!(gone, expected, "{hook}");
    }
    // A process that does not hear the signal has at least two seconds after its hook.
    let spec = json!({"containers": [{"name": "app", "image": "a", "command": ["sleep", "infinity"],
        "lifecycle": {"preStop": {"sleep": {"seconds": 60}}}}]});
    let mut life = Life::new(json!({}), spec);
    life.until(1_000).delete(10);
    life.until(12_999);
    assert_eq!(life.summary(), "Running Ready [ready]");
    life.until(13_000);
    assert_eq!(life.summary(), "Failed NotReady [Error=137]");
}

/// `kuberuntime_container.go: executePreStopHook`.
#[test]
fn hook_before_the_end_that_fails_is_reported_and_changes_nothing() {
    let mut life = hooked(json!({"preStop": exec("sleep 1; exit 1")}), json!({}));
    life.until(1_000).delete(30);
    life.until(2_000);
    assert!(life.texts.contains(&"PreStopHook failed".to_owned()));
    assert_eq!(life.summary(), "Succeeded NotReady [Completed=0]");
}

/// `kuberuntime_container.go: startContainer`: a container is not called running before its hook is done.
#[test]
fn hook_after_the_start_holds_the_container_back() {
    let mut life = hooked(json!({"postStart": exec("sleep 5")}), json!({}));
    for (at, summary) in [
        (0, "Pending NotReady [ContainerCreating]"),
        (4_999, "Pending NotReady [ContainerCreating]"),
        (5_000, "Running Ready [ready]"),
    ] {
        life.until(at);
        assert_eq!(life.summary(), summary, "after {at}");
    }
    assert_eq!(life.step().wake, None);
    let sidecar = json!({"initContainers": [{"name": "first", "image": "a", "restartPolicy": "Always",
        "lifecycle": {"postStart": {"sleep": {"seconds": 3}}}}]});
    let mut life = hooked(json!({}), sidecar);
    life.until(2_999);
    let before = "Pending NotReady [PodInitializing PodInitializing]";
    assert_eq!(life.summary(), before);
    life.until(3_000);
    assert_eq!(life.summary(), "Running Ready [ready ready]");
}

/// `kuberuntime_container.go: startContainer`: `FailedPostStartHook`.
#[test]
fn hook_after_the_start_that_fails_ends_the_container() {
    let hook = json!({"postStart": exec("sleep 2; exit 1")});
    let mut life = hooked(hook.clone(), json!({"restartPolicy": "Never"}));
    life.until(1_999);
    assert_eq!(life.summary(), "Pending NotReady [ContainerCreating]");
    life.until(2_000);
    assert_eq!(life.summary(), "Failed NotReady [Error=137]");
    for (reason, text) in [
        ("FailedPostStartHook", "PostStartHook failed"),
        ("Killing", "FailedPostStartHook"),
    ] {
        let at = life.texts.iter().position(|other| other == text);
        let at = at.expect("it is reported");
        assert_eq!(life.notes[at], reason);
    }
    let mut life = hooked(hook, json!({}));
    life.until(4_000);
    assert_eq!(
        life.summary(),
        "Running NotReady [CrashLoopBackOff] restarts 1"
    );
    let missing = json!({"postStart": {"httpGet": {"port": "web"}}});
    let mut life = hooked(missing, json!({"restartPolicy": "Never"}));
    life.until(0);
    assert_eq!(life.summary(), "Failed NotReady [Error=137]");
}
