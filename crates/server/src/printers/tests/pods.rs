//! Pods: the status word, readiness and restarts.

use serde_json::{Value, json};

use super::cells;
use super::{check, now};

/// Checks ready, status and restarts of a pod.
#[track_caller]
fn check_status(pod: Value, expect: [&str; 3]) {
    let row = cells("", "Pod", &pod, now());
    assert_eq!(row[1..4], expect.map(Value::from), "{pod}");
}

fn running(name: &str) -> Value {
    json!({"name": name, "ready": true, "restartCount": 0, "state": {"running": {}}})
}

fn terminated(name: &str, state: Value) -> Value {
    json!({"name": name, "ready": false, "restartCount": 0, "state": {"terminated": state}})
}

fn waiting(name: &str, reason: &str) -> Value {
    json!({"name": name, "ready": false, "restartCount": 0, "state": {"waiting": {"reason": reason}}})
}

/// A pod with two containers in the given states.
fn pod(phase: &str, statuses: [Value; 2]) -> Value {
    json!({
        "metadata": {},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
        "status": {"phase": phase, "containerStatuses": statuses},
    })
}

fn ready(mut pod: Value) -> Value {
    pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    pod
}

fn deleted(mut pod: Value) -> Value {
    pod["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:59:00Z");
    pod
}

#[test]
fn whole_row_has_the_wide_columns() {
    check(
        "",
        "Pod",
        json!({
            "metadata": {"name": "web-0"},
            "spec": {
                "nodeName": "node-1",
                "containers": [{"name": "web"}],
                "readinessGates": [{"conditionType": "example.com/a"}, {"conditionType": "example.com/b"}],
            },
            "status": {
                "phase": "Running",
                "podIP": "10.1.0.7",
                "podIPs": [{"ip": "10.1.0.7"}, {"ip": "fd00::7"}],
                "conditions": [
                    {"type": "example.com/a", "status": "True"},
                    {"type": "example.com/b", "status": "False"},
                ],
                "containerStatuses": [running("web")],
            },
        }),
        json!([
            "web-0", "1/1", "Running", "0", "90s", "10.1.0.7", "node-1", "<none>", "1/2"
        ]),
    );
    check(
        "",
        "Pod",
        json!({"spec": {"containers": [{}]}, "status": {"phase": "Pending", "nominatedNodeName": "node-2"}}),
        json!([
            "x", "0/1", "Pending", "0", "90s", "<none>", "<none>", "node-2", "<none>"
        ]),
    );
}

#[test]
fn pod_without_container_statuses_shows_its_phase_or_reason() {
    check_status(
        json!({"status": {"phase": "Pending"}}),
        ["0/0", "Pending", "0"],
    );
    check_status(
        json!({"status": {"phase": "Failed", "reason": "Evicted"}}),
        ["0/0", "Evicted", "0"],
    );
    check_status(
        json!({"status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}}),
        ["0/0", "SchedulingGated", "0"],
    );
}

#[test]
fn first_container_has_the_last_word() {
    check_status(
        pod("Running", [waiting("a", "CrashLoopBackOff"), running("b")]),
        ["1/2", "CrashLoopBackOff", "0"],
    );
    check_status(
        pod(
            "Pending",
            [
                waiting("a", "ImagePullBackOff"),
                waiting("b", "ContainerCreating"),
            ],
        ),
        ["0/2", "ImagePullBackOff", "0"],
    );
    check_status(
        pod(
            "Running",
            [
                running("a"),
                terminated("b", json!({"reason": "OOMKilled", "exitCode": 137})),
            ],
        ),
        ["1/2", "OOMKilled", "0"],
    );
}

#[test]
fn termination_without_reason_shows_signal_or_exit_code() {
    check_status(
        pod(
            "Failed",
            [
                terminated("a", json!({"signal": 9, "exitCode": 137})),
                running("b"),
            ],
        ),
        ["1/2", "Signal:9", "0"],
    );
    check_status(
        pod(
            "Failed",
            [terminated("a", json!({"exitCode": 2})), running("b")],
        ),
        ["1/2", "ExitCode:2", "0"],
    );
}

#[test]
fn finished_container_does_not_finish_a_pod() {
    let completed = || terminated("a", json!({"reason": "Completed", "exitCode": 0}));
    let failed = || terminated("b", json!({"reason": "Error", "exitCode": 1}));
    check_status(
        pod("Succeeded", [completed(), completed()]),
        ["0/2", "Completed", "0"],
    );
    check_status(
        ready(pod("Running", [completed(), running("b")])),
        ["1/2", "Running", "0"],
    );
    check_status(
        pod("Running", [completed(), running("b")]),
        ["1/2", "NotReady", "0"],
    );
    check_status(
        pod("Running", [completed(), failed()]),
        ["0/2", "Error", "0"],
    );
}

#[test]
fn deleted_pod_is_terminating_until_it_has_ended() {
    check_status(
        deleted(pod("Running", [running("a"), running("b")])),
        ["2/2", "Terminating", "0"],
    );
    let completed = terminated("a", json!({"reason": "Completed", "exitCode": 0}));
    check_status(
        deleted(pod("Succeeded", [completed.clone(), completed])),
        ["0/2", "Completed", "0"],
    );
    let mut lost = deleted(pod("Running", [running("a"), running("b")]));
    lost["status"]["reason"] = json!("NodeLost");
    check_status(lost, ["2/2", "Unknown", "0"]);
}

#[test]
fn restarts_tell_when_the_last_one_was() {
    let restarted = |name: &str, count: i64, finished: Value| {
        json!({"name": name, "ready": true, "restartCount": count, "state": {"running": {}},
            "lastState": {"terminated": {"finishedAt": finished}}})
    };
    check_status(
        pod(
            "Running",
            [
                restarted("a", 2, json!("2026-03-01T11:55:00Z")),
                restarted("b", 3, json!("2026-03-01T11:20:00Z")),
            ],
        ),
        ["2/2", "Running", "5 (5m ago)"],
    );
    check_status(
        pod("Running", [restarted("a", 2, json!(null)), running("b")]),
        ["2/2", "Running", "2"],
    );
    check_status(
        pod(
            "Running",
            [
                restarted("a", 0, json!("2026-03-01T11:20:00Z")),
                running("b"),
            ],
        ),
        ["2/2", "Running", "0"],
    );
}

/// A pod with one main container and two init containers, the second of which may be a sidecar.
fn initializing(policy: Value, statuses: Value) -> Value {
    json!({
        "spec": {"containers": [{"name": "main"}],
            "initContainers": [{"name": "one"}, {"name": "two", "restartPolicy": policy}]},
        "status": {"phase": "Pending", "initContainerStatuses": statuses,
            "containerStatuses": [waiting("main", "PodInitializing")]},
    })
}

#[test]
fn init_containers_show_how_far_they_are() {
    let done = || terminated("one", json!({"reason": "Completed", "exitCode": 0}));
    let cases = [
        (
            json!([
                waiting("one", "PodInitializing"),
                waiting("two", "PodInitializing")
            ]),
            "Init:0/2",
        ),
        (json!([done(), running("two")]), "Init:1/2"),
        (
            json!([done(), waiting("two", "CrashLoopBackOff")]),
            "Init:CrashLoopBackOff",
        ),
        (
            json!([terminated("one", json!({"reason": "Error", "exitCode": 1}))]),
            "Init:Error",
        ),
        (
            json!([terminated("one", json!({"signal": 9, "exitCode": 137}))]),
            "Init:Signal:9",
        ),
        (
            json!([terminated("one", json!({"exitCode": 3}))]),
            "Init:ExitCode:3",
        ),
        (
            json!([done(), terminated("two", json!({"exitCode": 0}))]),
            "PodInitializing",
        ),
    ];
    for (statuses, expect) in cases {
        check_status(initializing(json!(null), statuses), ["0/1", expect, "0"]);
    }
}

#[test]
fn sidecars_count_as_containers_once_started() {
    let done = terminated("one", json!({"exitCode": 0}));
    let mut sidecar = running("two");
    sidecar["restartCount"] = json!(4);
    check_status(
        initializing(json!("Always"), json!([done, sidecar])),
        ["0/2", "Init:1/2", "4"],
    );
    sidecar["started"] = json!(true);
    let mut pod = initializing(json!("Always"), json!([done, sidecar]));
    pod["status"]["containerStatuses"] = json!([running("main")]);
    pod["status"]["phase"] = json!("Running");
    check_status(pod, ["2/2", "Running", "4"]);
}

#[test]
fn restarts_of_finished_init_containers_are_forgotten() {
    let mut done = terminated("one", json!({"exitCode": 0}));
    done["restartCount"] = json!(7);
    let two = terminated("two", json!({"exitCode": 0}));
    let mut pod = initializing(json!(null), json!([done, two]));
    pod["status"]["containerStatuses"] = json!([running("main")]);
    pod["status"]["phase"] = json!("Running");
    check_status(pod, ["1/1", "Running", "0"]);
}

#[test]
fn initialized_pod_asks_its_main_containers() {
    let mut pod = initializing(
        json!("Always"),
        json!([
            terminated("one", json!({"exitCode": 0})),
            waiting("two", "CrashLoopBackOff")
        ]),
    );
    pod["status"]["conditions"] = json!([{"type": "Initialized", "status": "True"}]);
    pod["status"]["containerStatuses"] = json!([running("main")]);
    check_status(pod, ["1/2", "Init:CrashLoopBackOff", "0"]);
}

#[test]
fn pod_template_shows_its_containers() {
    check(
        "",
        "PodTemplate",
        json!({"template": {
            "metadata": {"labels": {"b": "2", "a": "1"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "j:2"}]}}}),
        json!(["x", "c,d", "i:1,j:2", "a=1,b=2"]),
    );
}
