//! Workloads, jobs and autoscalers.

use serde_json::{Value, json};

use super::cells;
use super::{check, now};

/// A workload with two containers and a selector.
fn workload(replicas: Value, status: Value) -> Value {
    json!({
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"spec": {"containers": [
                {"name": "web", "image": "nginx:1"}, {"name": "log", "image": "fluent:2"}]}},
        },
        "status": status,
    })
}

#[test]
fn replica_workloads_count_their_pods() {
    let status =
        json!({"replicas": 3, "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1});
    check(
        "apps",
        "Deployment",
        workload(json!(3), status.clone()),
        json!([
            "x",
            "2/3",
            3,
            1,
            "90s",
            "web,log",
            "nginx:1,fluent:2",
            "app=web"
        ]),
    );
    check(
        "apps",
        "Deployment",
        json!({"spec": {"replicas": 0, "selector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}}),
        json!(["x", "0/0", 0, 0, "90s", "", "", "<invalid>"]),
    );
    check(
        "apps",
        "ReplicaSet",
        workload(json!(3), status.clone()),
        json!([
            "x",
            3,
            3,
            2,
            "90s",
            "web,log",
            "nginx:1,fluent:2",
            "app=web"
        ]),
    );
    check(
        "apps",
        "StatefulSet",
        workload(json!(3), status),
        json!(["x", "2/3", "90s", "web,log", "nginx:1,fluent:2"]),
    );
    check(
        "",
        "ReplicationController",
        json!({"spec": {"replicas": 1, "selector": {"a": "b"}}}),
        json!(["x", 1, 0, 0, "90s", "", "", "a=b"]),
    );
}

#[test]
fn daemon_set_shows_where_it_runs() {
    let mut set = workload(
        json!(null),
        json!({"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
            "updatedNumberScheduled": 2, "numberAvailable": 1}),
    );
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({"os": "linux"});
    check(
        "apps",
        "DaemonSet",
        set,
        json!([
            "x",
            5,
            4,
            3,
            2,
            1,
            "os=linux",
            "90s",
            "web,log",
            "nginx:1,fluent:2",
            "app=web"
        ]),
    );
}

#[test]
fn controller_revision_names_its_controller() {
    let owner = |api_version: &str, controller: bool| json!({"apiVersion": api_version, "kind": "StatefulSet", "name": "web", "controller": controller});
    for (owners, expect) in [
        (json!([owner("apps/v1", true)]), "statefulset.apps/web"),
        (json!([owner("v1", true)]), "statefulset/web"),
        (json!([owner("apps/v1", false)]), "<none>"),
        (json!([]), "<none>"),
    ] {
        check(
            "apps",
            "ControllerRevision",
            json!({"metadata": {"ownerReferences": owners}, "revision": 3}),
            json!(["x", expect, 3, "90s"]),
        );
    }
}

/// Checks status, completions and duration of a job.
#[track_caller]
fn check_job(job: Value, expect: [&str; 3]) {
    let row = cells("batch", "Job", &job, now());
    assert_eq!(row[1..4], expect.map(Value::from), "{job}");
}

#[test]
fn job_shows_its_status_and_completions() {
    let with = |type_: &str| json!({"status": {"conditions": [{"type": type_, "status": "True"}]}});
    check_job(json!({}), ["Running", "0/1", ""]);
    for type_ in [
        "Complete",
        "Failed",
        "Suspended",
        "FailureTarget",
        "SuccessCriteriaMet",
    ] {
        check_job(with(type_), [type_, "0/1", ""]);
    }
    check_job(
        json!({"status": {"conditions": [{"type": "Complete", "status": "False"}]}}),
        ["Running", "0/1", ""],
    );
    check_job(
        json!({"metadata": {"deletionTimestamp": "2026-03-01T11:00:00Z"}}),
        ["Terminating", "0/1", ""],
    );
    check_job(
        json!({"spec": {"parallelism": 3}, "status": {"succeeded": 1, "startTime": "2026-03-01T11:50:00Z"}}),
        ["Running", "1/1 of 3", "10m"],
    );
    check_job(
        json!({"spec": {"completions": 5, "parallelism": 3}, "status": {"succeeded": 5,
            "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}],
            "startTime": "2026-03-01T11:00:00Z", "completionTime": "2026-03-01T11:02:05Z"}}),
        ["Complete", "5/5", "2m5s"],
    );
    check(
        "batch",
        "Job",
        workload(json!(null), json!({})),
        json!([
            "x",
            "Running",
            "0/1",
            "",
            "90s",
            "web,log",
            "nginx:1,fluent:2",
            "app=web"
        ]),
    );
}

#[test]
fn cron_job_shows_its_schedule() {
    let template =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    check(
        "batch",
        "CronJob",
        json!({"spec": {"schedule": "*/5 * * * *", "suspend": false, "jobTemplate": template}}),
        json!([
            "x",
            "*/5 * * * *",
            "<none>",
            "False",
            0,
            "<none>",
            "90s",
            "c",
            "i",
            "<none>"
        ]),
    );
    check(
        "batch",
        "CronJob",
        json!({"spec": {"schedule": "@daily", "suspend": true, "timeZone": "Europe/Rome"},
            "status": {"active": [{}, {}], "lastScheduleTime": "2026-03-01T10:00:00Z"}}),
        json!([
            "x",
            "@daily",
            "Europe/Rome",
            "True",
            2,
            "120m",
            "90s",
            "",
            "",
            "<none>"
        ]),
    );
}

/// Checks the targets of an autoscaler.
#[track_caller]
fn check_targets(autoscaler: Value, expect: &str) {
    let row = cells("autoscaling", "HorizontalPodAutoscaler", &autoscaler, now());
    assert_eq!(row[2], expect, "{autoscaler}");
}

fn second_version(metrics: Value, current: Value) -> Value {
    json!({"apiVersion": "autoscaling/v2", "spec": {"metrics": metrics}, "status": {"currentMetrics": current}})
}

#[test]
fn autoscaler_row_counts_replicas() {
    check(
        "autoscaling",
        "HorizontalPodAutoscaler",
        json!({"apiVersion": "autoscaling/v2",
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 2, "maxReplicas": 9},
            "status": {"currentReplicas": 4}}),
        json!(["x", "Deployment/web", "<none>", "2", 9, 4, "90s"]),
    );
    check(
        "autoscaling",
        "HorizontalPodAutoscaler",
        json!({"apiVersion": "autoscaling/v2", "spec": {"maxReplicas": 1}}),
        json!(["x", "/", "<none>", "<unset>", 1, 0, "90s"]),
    );
    check(
        "autoscaling",
        "Scale",
        json!({"spec": {"replicas": 3}, "status": {"replicas": 2}}),
        json!(["x", 3, 2, "90s"]),
    );
}

#[test]
fn second_version_targets_show_current_and_aim() {
    let resource =
        |target: Value| json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
    let cases = [
        (
            json!([resource(json!({"averageUtilization": 80}))]),
            json!([{"type": "Resource", "resource": {"current": {"averageUtilization": 50, "averageValue": "100m"}}}]),
            "cpu: 50%/80%",
        ),
        (
            json!([resource(json!({"averageUtilization": 80}))]),
            json!(null),
            "cpu: <unknown>/80%",
        ),
        (
            json!([resource(json!({}))]),
            json!(null),
            "cpu: <unknown>/<auto>",
        ),
        (
            json!([resource(json!({"averageValue": "200m"}))]),
            json!([{"resource": {"current": {"averageValue": "50m"}}}]),
            "cpu: 50m/200m",
        ),
        (
            json!([{"type": "ContainerResource", "containerResource": {
                "name": "memory", "container": "c", "target": {"averageUtilization": 60}}}]),
            json!([{"containerResource": {"current": {"averageUtilization": 10}}}]),
            "memory: 10%/60%",
        ),
        (
            json!([{"type": "Pods", "pods": {"target": {"averageValue": "10"}}}]),
            json!([{"pods": {"current": {"averageValue": "5"}}}]),
            "5/10",
        ),
        (
            json!([{"type": "External", "external": {"target": {"value": "30"}}}]),
            json!([{"external": {"current": {"value": "7"}}}]),
            "7/30",
        ),
        (
            json!([{"type": "Object", "object": {"target": {"averageValue": "3"}}}]),
            json!([{"object": {"current": {"averageValue": "1"}}}]),
            "1/3 (avg)",
        ),
        (json!([{"type": "Later"}]), json!(null), "<unknown type>"),
    ];
    for (metrics, current, expect) in cases {
        check_targets(second_version(metrics, current), expect);
    }
}

#[test]
fn targets_beyond_two_are_counted() {
    let pods = json!({"type": "Pods", "pods": {"target": {"averageValue": "10"}}});
    check_targets(
        second_version(json!([pods, pods, pods, pods]), json!([])),
        "<unknown>/10, <unknown>/10 + 2 more...",
    );
}

#[test]
fn first_version_targets_come_from_fields_and_annotations() {
    check_targets(
        json!({"apiVersion": "autoscaling/v1", "spec": {"targetCPUUtilizationPercentage": 70},
            "status": {"currentCPUUtilizationPercentage": 20}}),
        "cpu: 20%/70%",
    );
    check_targets(
        json!({"apiVersion": "autoscaling/v1"}),
        "cpu: <unknown>/80%",
    );
    check_targets(
        json!({"apiVersion": "autoscaling/v1", "metadata": {"annotations": {
            "autoscaling.alpha.kubernetes.io/metrics":
                r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]"#,
            "autoscaling.alpha.kubernetes.io/current-metrics":
                r#"[{"type":"Resource","resource":{"name":"memory","currentAverageValue":"512Mi"}}]"#}}}),
        "memory: 512Mi/1Gi",
    );
    check_targets(
        json!({"apiVersion": "autoscaling/v1", "metadata": {"annotations": {
            "autoscaling.alpha.kubernetes.io/metrics": "{"}}}),
        "cpu: <unknown>/80%",
    );
}
