//! The stages of a pod that runs: what annotations, restart policies and tests ask for.

use std::time::Duration;

use k8s_openapi::api::core::v1::ContainerStateTerminated;
use serde_json::{Value, json};

use super::{Life, at, check};
use crate::node::run::Run;
use crate::node::runtime::Exit;
use crate::node::script::parse_duration;
use crate::node::signal::Signal;
use crate::node::step::Fate;

#[test]
fn stages_follow_annotations() {
    let never = json!({"restartPolicy": "Never"});
    let on_failure = json!({"restartPolicy": "OnFailure"});
    check(
        json!({}),
        json!({}),
        &[
            (0, "Running Ready [ready]"),
            (9_000_000, "Running Ready [ready]"),
        ],
    );
    check(
        json!({"start-delay": "5s", "ready-delay": "250ms"}),
        json!({}),
        &[
            (0, "Pending NotReady [ContainerCreating]"),
            (4_999, "Pending NotReady [ContainerCreating]"),
            (5_000, "Running NotReady [running]"),
            (5_250, "Running Ready [ready]"),
        ],
    );
    check(
        json!({"never-ready": "true"}),
        json!({}),
        &[(90_000, "Running NotReady [running]")],
    );
    check(
        json!({"pull": "fail"}),
        json!({}),
        &[(90_000, "Pending NotReady [ImagePullBackOff]")],
    );
    check(
        json!({}),
        never.clone(),
        &[
            (0, "Running Ready [ready]"),
            (100, "Succeeded NotReady [Completed=0]"),
        ],
    );
    check(
        json!({"exit-after": "2s", "exit-code": "3"}),
        never.clone(),
        &[
            (1_999, "Running Ready [ready]"),
            (2_000, "Failed NotReady [Error=3]"),
        ],
    );
    check(
        json!({"exit-code": "137", "exit-reason": "OOMKilled", "exit-after": "1s"}),
        never.clone(),
        &[(1_000, "Failed NotReady [OOMKilled=137]")],
    );
    let limits =
        json!({"containers": [{"name": "app", "resources": {"limits": {"memory": "1Gi"}}}]});
    check(
        json!({"memory": "2Gi"}),
        limits.clone(),
        &[
            (999, "Running Ready [ready]"),
            (1_000, "Running Ready [ready] restarts 1"),
            (2_000, "Running NotReady [CrashLoopBackOff] restarts 1"),
        ],
    );
    check(
        json!({"memory": "1Gi"}),
        limits,
        &[(90_000, "Running Ready [ready]")],
    );
    check(
        json!({"exit-after": "never"}),
        never.clone(),
        &[(90_000, "Running Ready [ready]")],
    );
    check(
        json!({"fail": "once"}),
        on_failure,
        &[
            (0, "Running Ready [ready] restarts 1"),
            (100, "Succeeded NotReady [Completed=0] restarts 1"),
        ],
    );
    check(
        json!({"fail": "2"}),
        json!({}),
        &[
            (0, "Running NotReady [CrashLoopBackOff] restarts 1"),
            (10_000, "Running Ready [ready] restarts 2"),
        ],
    );
    check(
        json!({"app.exit-code": "1"}),
        json!({"restartPolicy": "Never", "containers": [{"name": "app"}, {"name": "side"}]}),
        &[(100, "Failed NotReady [Error=1 Completed=0]")],
    );
    check(
        json!({"exit-after": "1h"}),
        json!({"restartPolicy": "Never", "activeDeadlineSeconds": 5}),
        &[
            (4_000, "Running Ready [ready]"),
            (5_000, "Failed NotReady [Error=137] DeadlineExceeded"),
        ],
    );
}

#[test]
fn crash_loop_backs_off_from_ten_seconds_to_five_minutes() {
    // Restarts happen at once, then after 10, 20, 40, 80, 160 and 300 seconds.
    let starts = [0, 0, 10, 30, 70, 150, 310, 610, 910];
    for (restarts, start) in starts.into_iter().enumerate().skip(1) {
        let mut life = Life::new(json!({"crash-loop": "true"}), json!({}));
        life.until(start * 1_000);
        let summary = format!("Running NotReady [CrashLoopBackOff] restarts {restarts}");
        assert_eq!(life.summary(), summary, "after {start} s");
    }
    let mut life = Life::new(json!({"crash-loop": "true"}), json!({}));
    life.until(80_000);
    let status = life.status().container_statuses.as_ref().expect("one")[0].clone();
    let waiting = status.state.and_then(|s| s.waiting).expect("it waits");
    assert_eq!(
        waiting.message.as_deref(),
        Some("back-off 1m20s restarting failed container=app pod=p_default(u)")
    );
    let last = status
        .last_state
        .and_then(|s| s.terminated)
        .expect("it ended");
    assert_eq!((last.exit_code, last.reason.as_deref()), (1, Some("Error")));
}

#[test]
fn init_containers_run_in_turn_and_sidecars_stay() {
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [
            {"name": "one"},
            {"name": "side", "restartPolicy": "Always"},
            {"name": "two"},
        ],
    });
    check(
        json!({"one.exit-after": "1s", "two.exit-after": "1s", "exit-after": "1s", "side.exit-after": "never"}),
        spec.clone(),
        &[
            (
                0,
                "Pending NotReady [running PodInitializing PodInitializing PodInitializing]",
            ),
            (
                1_000,
                "Pending NotReady [Completed=0 ready running PodInitializing]",
            ),
            (2_000, "Running Ready [Completed=0 ready Completed=0 ready]"),
            (
                3_000,
                "Succeeded NotReady [Completed=0 Completed=0 Completed=0 Completed=0]",
            ),
        ],
    );
    check(
        json!({"one.exit-code": "1"}),
        spec,
        &[(
            0,
            "Failed NotReady [Error=1 PodInitializing PodInitializing PodInitializing]",
        )],
    );
    check(
        json!({"one.fail": "2"}),
        json!({"initContainers": [{"name": "one"}]}),
        &[
            (
                0,
                "Pending NotReady [CrashLoopBackOff PodInitializing] restarts 1",
            ),
            (10_000, "Running Ready [Completed=0 ready] restarts 2"),
        ],
    );
}

#[test]
fn annotations_change_a_pod_that_runs_and_wrong_ones_are_reported_once() {
    let mut life = Life::new(json!({}), json!({}));
    life.until(1_000);
    let annotations = life.pod.metadata.annotations.get_or_insert_default();
    annotations.insert(
        "sim.kubewright.dev/never-ready".to_owned(),
        "true".to_owned(),
    );
    annotations.insert(
        "sim.kubewright.dev/ready-delay".to_owned(),
        "soon".to_owned(),
    );
    life.until(2_000);
    assert_eq!(life.summary(), "Running NotReady [running]");
    life.until(3_000);
    let complaints = life
        .notes
        .iter()
        .filter(|note| *note == "InvalidSimulation");
    assert_eq!(complaints.count(), 1);
}

#[test]
fn node_that_comes_back_goes_on_where_it_was() {
    let mut life = Life::new(json!({"crash-loop": "true"}), json!({}));
    life.until(15_000);
    let before = life.summary();
    life.run = Run::adopt(&life.pod, at(life.now));
    life.until(16_000);
    assert_eq!(life.summary(), before);
    life.until(31_000);
    assert_eq!(
        life.summary(),
        "Running NotReady [CrashLoopBackOff] restarts 3"
    );
}

#[test]
fn durations_are_read_as_people_write_them() {
    let cases = [
        ("0", Some(0)),
        ("250ms", Some(250)),
        ("1.5s", Some(1_500)),
        ("1m30s", Some(90_000)),
        ("2h", Some(7_200_000)),
        ("", None),
        ("5", None),
        ("-1s", None),
        ("5 parsecs", None),
        ("1e999s", None),
        ("..s", None),
    ];
    for (text, expect) in cases {
        let expect = expect.map(Duration::from_millis);
        assert_eq!(parse_duration(text), expect, "{text:?}");
    }
}

/// `podutil.ContainerShouldRestart`.
#[test]
fn container_restart_rules_decide() {
    let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
    let container = json!({"name": "app", "image": "app:1", "restartPolicy": "Never", "restartPolicyRules": rules});
    let spec = json!({"restartPolicy": "Never", "containers": [container]});
    check(
        json!({"exit-code": "42", "exit-after": "1s"}),
        spec.clone(),
        &[
            (1_000, "Running Ready [ready] restarts 1"),
            (2_000, "Running NotReady [CrashLoopBackOff] restarts 1"),
        ],
    );
    check(
        json!({"exit-code": "1", "exit-after": "1s"}),
        spec,
        &[(1_000, "Failed NotReady [Error=1]")],
    );
}

/// `startEphemeralContainers` of SyncPod.
#[test]
fn ephemeral_container_is_started_and_never_again() {
    let mut life = Life::new(json!({"never-ready": "true"}), json!({}));
    life.until(1_000);
    let debugger = json!({"name": "debugger", "image": "busybox", "command": ["sleep", "5"]});
    let spec = life.pod.spec.as_mut().expect("a spec");
    spec.ephemeral_containers = Some(vec![serde_json::from_value(debugger).expect("one")]);
    life.until(2_000);
    assert_eq!(life.summary(), "Running NotReady [running running]");
    life.until(7_000);
    assert_eq!(life.summary(), "Running NotReady [running Completed=0]");
    life.until(900_000);
    assert_eq!(life.summary(), "Running NotReady [running Completed=0]");
}

#[test]
fn container_crashes_when_a_test_says_so() {
    let mut life = Life::new(json!({}), json!({}));
    life.until(1_000);
    let exit = Exit::code(3);
    life.run.signals.push(Signal::Crash {
        container: None,
        exit,
    });
    life.until(1_000);
    assert_eq!(life.summary(), "Running Ready [ready] restarts 1");
    let status = life.status().container_statuses.as_ref().expect("one")[0].clone();
    let last = status
        .last_state
        .and_then(|s| s.terminated)
        .expect("it ended");
    assert_eq!((last.exit_code, last.reason.as_deref()), (3, Some("Error")));
}

#[test]
fn commands_that_are_plain_are_done() {
    let with = |command: Value, policy: &str| json!({"restartPolicy": policy, "containers": [{"name": "app", "image": "busybox", "command": command}]});
    check(
        json!({}),
        with(json!(["sleep", "5"]), "Never"),
        &[
            (4_999, "Running Ready [ready]"),
            (5_000, "Succeeded NotReady [Completed=0]"),
        ],
    );
    check(
        json!({}),
        with(json!(["false"]), "Never"),
        &[(0, "Failed NotReady [Error=1]")],
    );
    check(
        json!({}),
        with(json!(["sh", "-c", "exit 3"]), "OnFailure"),
        &[(0, "Running NotReady [CrashLoopBackOff] restarts 1")],
    );
    check(
        json!({}),
        with(json!(["true"]), "Always"),
        &[(0, "Running NotReady [CrashLoopBackOff] restarts 1")],
    );
    // What a test gives the simulation wins.
    check(
        json!({"exit-after": "never"}),
        with(json!(["true"]), "Never"),
        &[(9_000, "Running Ready [ready]")],
    );
    // Nothing handles SIGTERM: it takes the whole grace period.
    let mut life = Life::new(json!({}), with(json!(["sleep", "infinity"]), "Always"));
    life.until(1_000).delete(30);
    assert_eq!(life.step().fate, Fate::Stays);
    life.now = 31_000;
    assert_eq!(life.step().fate, Fate::Goes);
    assert_eq!(life.summary(), "Failed NotReady [Error=137]");
}

fn end(life: &Life) -> ContainerStateTerminated {
    let status = life.status().container_statuses.as_ref().expect("one")[0].clone();
    let state = status.state.and_then(|state| state.terminated);
    state.expect("it has ended")
}

#[test]
fn container_that_is_declared_to_use_too_much_memory_is_killed() {
    let resources = json!({"limits": {"memory": "64Mi"}});
    let containers = json!([{"name": "app", "image": "app:1", "resources": resources}]);
    let spec = json!({"restartPolicy": "Never", "containers": containers});
    let mut life = Life::new(json!({"memory": "10Mi", "exit-after": "never"}), spec);
    life.until(60_000);
    assert_eq!(life.summary(), "Running Ready [ready]");
    // Annotations are read all the time.
    let annotations = life.pod.metadata.annotations.as_mut().expect("some");
    annotations.insert("sim.kubewright.dev/memory".to_owned(), "65Mi".to_owned());
    life.until(60_001);
    let end = end(&life);
    assert_eq!(
        (end.exit_code, end.reason.as_deref()),
        (137, Some("OOMKilled"))
    );
}

/// `kuberuntime_container.go: getTerminationMessage, readLastStringFromContainerLogs`.
#[test]
fn end_of_the_log_is_the_message_of_a_failure_where_the_policy_says_so() {
    let policy = "FallbackToLogsOnError";
    let containers = json!([{"name": "app", "image": "app:1", "terminationMessagePolicy": policy}]);
    let spec = json!({"restartPolicy": "Never", "containers": containers});
    let message = |annotations: Value| {
        let mut life = Life::new(annotations, spec.clone());
        life.until(60_000);
        end(&life).message
    };
    let log = "container app started, image app:1, restarts 0\none\ntwo\ncontainer app exited with code 3\n";
    let failing = json!({"exit-code": "3", "log": "one\ntwo"});
    assert_eq!(message(failing).as_deref(), Some(log));
    assert_eq!(message(json!({"exit-code": "0", "log": "one"})), None);
    let own = json!({"exit-code": "3", "termination-message": "no disk"});
    assert_eq!(message(own).as_deref(), Some("no disk"));
}
