use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::finish;
use super::plan::{Plan, plan};
use super::template::pod;
use super::{TRACKING, per_index, template};
use crate::pods::samples::at;

fn job(spec: Value, status: Value) -> Job {
    let mut object = json!({
        "metadata": {"name": "j", "namespace": "default", "uid": "uid-j"},
        "spec": {
            "completions": 1, "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed",
            "podReplacementPolicy": "TerminatingOrFailed",
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]}},
        },
        "status": status,
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    serde_json::from_value(object).expect("the test's job is one")
}

/// A pod with the finalizer, in a phase; ended at 0 where it has ended.
fn one(name: &str, phase: &str) -> Arc<Pod> {
    let mut object = json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "finalizers": [TRACKING]},
        "status": {"phase": phase},
    });
    if phase == "Failed" {
        let ended = json!({"exitCode": 3, "finishedAt": at(0).to_string()});
        object["status"]["containerStatuses"] = json!([
            {"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": ended}},
        ]);
    }
    Arc::new(serde_json::from_value(object).expect("the test's pod is one"))
}

fn freed(pod: &Arc<Pod>) -> Arc<Pod> {
    let mut pod = Pod::clone(pod);
    pod.metadata.finalizers = None;
    Arc::new(pod)
}

fn indexed(pod: &Arc<Pod>, index: i32) -> Arc<Pod> {
    let mut pod = Pod::clone(pod);
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(template::INDEX.to_owned(), index.to_string());
    Arc::new(pod)
}

/// What a plan does, in words.
fn shown(plan: &Plan) -> String {
    let names = |pods: &mut dyn Iterator<Item = &Arc<Pod>>| -> Vec<String> {
        pods.filter_map(|pod| pod.metadata.name.clone()).collect()
    };
    let created: Vec<String> = plan
        .create
        .iter()
        .map(|index| index.map_or("pod".to_owned(), |index| index.to_string()))
        .collect();
    let conditions = plan.status.conditions.iter().flatten();
    let conditions: Vec<String> = conditions
        .map(|c| {
            format!(
                "{}={}({})",
                c.type_,
                c.status,
                c.reason.as_deref().unwrap_or_default()
            )
        })
        .collect();
    format!(
        "create {created:?} delete {:?} release {:?} conditions {conditions:?}",
        names(&mut plan.delete.iter().map(|gone| &gone.pod)),
        names(&mut plan.release.iter()),
    )
    .replace('"', "")
}

fn check(what: &str, spec: Value, status: Value, pods: &[Arc<Pod>], expected: &str) -> Plan {
    let plan = plan(&job(spec, status), pods, at(100));
    assert_eq!(shown(&plan), expected, "{what}");
    plan
}

#[test]
fn pods_are_created_until_enough_run() {
    let running = one("a", "Running");
    let going = {
        let mut pod = Pod::clone(&running);
        pod.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(0)));
        Arc::new(pod)
    };
    let none = "create [] delete [] release [] conditions []";
    check(
        "new",
        json!({}),
        json!({}),
        &[],
        "create [pod] delete [] release [] conditions []",
    );
    check("runs", json!({}), json!({}), from_ref(&running), none);
    let three = json!({"completions": 5, "parallelism": 3});
    check(
        "parallel",
        three.clone(),
        json!({}),
        from_ref(&running),
        "create [pod, pod] delete [] release [] conditions []",
    );
    check(
        "few left",
        three,
        json!({"succeeded": 4}),
        from_ref(&running),
        none,
    );
    let none_wanted = json!({"parallelism": 0});
    check(
        "scaled down",
        none_wanted,
        json!({}),
        from_ref(&running),
        "create [] delete [a] release [] conditions []",
    );
    let queue = json!({"completions": null, "parallelism": 2});
    check(
        "queue with work",
        queue.clone(),
        json!({}),
        from_ref(&running),
        "create [pod] delete [] release [] conditions []",
    );
    check(
        "queue without",
        queue,
        json!({"succeeded": 1}),
        &[running],
        none,
    );
    let careful = json!({"podReplacementPolicy": "Failed"});
    check("pod that goes", careful, json!({}), from_ref(&going), none);
    let plan = plan(&job(json!({}), json!({})), &[going], at(100));
    assert_eq!(plan.release.len(), 1, "a pod that goes counts as failed");
}

#[test]
fn an_end_is_noted_first_then_freed_then_counted() {
    let done = one("a", "Succeeded");
    let two = json!({"completions": 2});
    let plan = check(
        "seen",
        two.clone(),
        json!({}),
        from_ref(&done),
        "create [pod] delete [] release [a] conditions []",
    );
    assert_eq!(plan.status.succeeded, None);
    let uncounted = plan
        .status
        .uncounted_terminated_pods
        .clone()
        .unwrap_or_default();
    assert_eq!(uncounted.succeeded, Some(vec!["uid-a".to_owned()]));
    let status = json!({"uncountedTerminatedPods": {"succeeded": ["uid-a"]}});
    // Seen again with the finalizer, as after a crash: the same once more, not twice.
    let again = plan_of(&two, &status, from_ref(&done));
    assert_eq!(
        again.status.uncounted_terminated_pods,
        plan.status.uncounted_terminated_pods
    );
    for pods in [vec![freed(&done)], vec![]] {
        let plan = plan_of(&two, &status, &pods);
        assert_eq!(plan.status.succeeded, Some(1));
        assert_eq!(
            plan.status.uncounted_terminated_pods,
            Some(Default::default())
        );
    }
}

fn plan_of(spec: &Value, status: &Value, pods: &[Arc<Pod>]) -> Plan {
    plan(&job(spec.clone(), status.clone()), pods, at(100))
}

#[test]
fn jobs_end_when_their_pods_are_gone_and_counted() {
    let ended = "SuccessCriteriaMet=True(CompletionsReached)";
    check(
        "not counted yet",
        json!({}),
        json!({}),
        &[one("a", "Succeeded")],
        &format!("create [] delete [] release [a] conditions [{ended}]"),
    );
    let plan = check(
        "counted",
        json!({}),
        json!({"succeeded": 1}),
        &[],
        &format!(
            "create [] delete [] release [] conditions [{ended}, Complete=True(CompletionsReached)]"
        ),
    );
    assert!(plan.status.completion_time.is_some());
    assert_eq!(plan.events[0].message, "Job completed");
    let over = "FailureTarget=True(BackoffLimitExceeded)";
    let spec = json!({"backoffLimit": 1, "parallelism": 2, "completions": 3});
    check(
        "failed, others run",
        spec.clone(),
        json!({"failed": 2}),
        &[one("a", "Running")],
        &format!("create [] delete [a] release [] conditions [{over}]"),
    );
    let plan = check(
        "failed",
        spec.clone(),
        json!({"failed": 2}),
        &[],
        &format!(
            "create [] delete [] release [] conditions [{over}, Failed=True(BackoffLimitExceeded)]"
        ),
    );
    assert_eq!(plan.events[0].reason, "BackoffLimitExceeded");
    assert_eq!(
        plan.events[0].message,
        "Job has reached the specified backoff limit"
    );
    assert_eq!(plan.status.completion_time, None);
    check(
        "at the limit",
        spec,
        json!({"failed": 1}),
        &[],
        "create [pod, pod] delete [] release [] conditions []",
    );
    let late = json!({"activeDeadlineSeconds": 100});
    check(
        "late",
        late.clone(),
        json!({"startTime": at(0).to_string()}),
        &[],
        "create [] delete [] release [] conditions [FailureTarget=True(DeadlineExceeded), Failed=True(DeadlineExceeded)]",
    );
    let plan = plan_of(
        &late,
        &json!({"startTime": at(10).to_string()}),
        &[one("a", "Running")],
    );
    assert_eq!(plan.again, Some(Duration::from_secs(10)));
}

/// `job/backoff_utils.go: getRemainingTime, getRemainingTimeForFailuresCount`.
#[test]
fn failures_delay_the_next_pod() {
    let check = |failures: usize, seconds: i64, expected: Option<u64>| {
        let pods: Vec<_> = (0..failures)
            .map(|n| freed(&one(&format!("p{n}"), "Failed")))
            .collect();
        let plan = plan(
            &job(json!({"backoffLimit": 99}), json!({})),
            &pods,
            at(seconds),
        );
        assert_eq!(
            plan.again,
            expected.map(Duration::from_secs),
            "{failures} failures after {seconds} s"
        );
        assert_eq!(plan.create.is_empty(), expected.is_some());
    };
    check(0, 0, None);
    check(1, 0, Some(10));
    check(1, 9, Some(1));
    check(1, 10, None);
    check(2, 0, Some(20));
    check(5, 0, Some(160));
    check(6, 0, Some(320));
    // `job_controller.go: MaxJobPodFailureBackOff`.
    check(7, 0, Some(600));
    check(60, 0, Some(600));
    check(60, 600, None);
}

/// `job/backoff_utils.go: getFinishedTime`.
#[test]
fn pods_that_never_ran_delay_the_next_one_no_longer_than_others() {
    let check = |what: &str, metadata: Value, status: Value, seconds: i64| {
        let mut pod = json!({"metadata": {"name": "p", "creationTimestamp": at(50).to_string()}, "status": {"phase": "Failed"}});
        for (field, added) in [("metadata", metadata), ("status", status)] {
            for (key, value) in added.as_object().into_iter().flatten() {
                pod[field][key] = value.clone();
            }
        }
        let pods = [Arc::new(serde_json::from_value(pod).expect("a pod"))];
        let job = job(json!({"backoffLimit": 99}), json!({}));
        let before = plan(&job, &pods, at(seconds - 1));
        assert_eq!(before.again, Some(Duration::from_secs(1)), "{what}");
        assert_eq!(plan(&job, &pods, at(seconds)).create.len(), 1, "{what}");
    };
    check("created", json!({}), json!({}), 60);
    let unready =
        json!({"type": "Ready", "status": "False", "lastTransitionTime": at(70).to_string()});
    check("not ready", json!({}), json!({"conditions": [unready]}), 80);
    let going = json!({"deletionTimestamp": at(120).to_string(), "deletionGracePeriodSeconds": 30});
    check("deleted", going, json!({}), 100);
}

#[test]
fn suspended_jobs_have_no_pods_and_go_on_later() {
    let suspended = json!({"suspend": true});
    let started = json!({"startTime": at(0).to_string()});
    let plan = check(
        "suspended",
        suspended.clone(),
        started,
        &[one("a", "Running")],
        "create [] delete [a] release [] conditions [Suspended=True(JobSuspended)]",
    );
    assert!(plan.delete[0].uncounted && plan.status.start_time.is_none());
    let status = serde_json::to_value(&plan.status).expect("json");
    let still = plan_of(&suspended, &status, &[]);
    assert!(still.events.is_empty());
    let plan = check(
        "resumed",
        json!({}),
        status,
        &[],
        "create [pod] delete [] release [] conditions [Suspended=False(JobResumed)]",
    );
    assert_eq!(plan.events[0].message, "Job resumed");
    assert!(plan.status.start_time.is_some());
}

#[test]
fn every_index_has_one_pod_until_it_is_done() {
    let spec = json!({"completionMode": "Indexed", "completions": 5, "parallelism": 3});
    check(
        "new",
        spec.clone(),
        json!({}),
        &[],
        "create [0, 1, 2] delete [] release [] conditions []",
    );
    let pods = [
        indexed(&one("a", "Succeeded"), 1),
        indexed(&one("b", "Running"), 2),
    ];
    let plan = check(
        "some",
        spec.clone(),
        json!({"completedIndexes": "0"}),
        &pods,
        "create [3, 4] delete [] release [a] conditions []",
    );
    assert_eq!(plan.status.completed_indexes.as_deref(), Some("0,1"));
    assert_eq!(plan.status.succeeded, Some(2));
    let twins = [
        indexed(&one("a", "Running"), 2),
        indexed(&one("b", "Running"), 2),
        indexed(&one("c", "Running"), 9),
    ];
    check(
        "twins",
        spec.clone(),
        json!({"completedIndexes": "0,1"}),
        &twins,
        "create [3, 4] delete [b, c] release [] conditions []",
    );
    let made = pod(&job(spec, json!({})), Some(3), None);
    assert_eq!(made.metadata.generate_name.as_deref(), Some("j-3-"));
    let spec = made.spec.expect("a spec");
    assert_eq!(spec.hostname.as_deref(), Some("j-3"));
    assert_eq!(
        spec.containers[0]
            .env
            .as_ref()
            .map(|env| env[0].name.as_str()),
        Some("JOB_COMPLETION_INDEX")
    );
}

#[test]
fn policies_decide_what_an_end_means() {
    let policy = |action: &str, codes: Value| {
        json!({
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": codes}}]},
        })
    };
    let failed = [one("a", "Failed")];
    let plan = plan_of(&policy("FailJob", json!([3])), &json!({}), &failed);
    let target = finish::find(&plan.status, "FailureTarget").expect("it fails");
    assert_eq!(target.reason.as_deref(), Some("PodFailurePolicy"));
    assert_eq!(
        target.message.as_deref(),
        Some(
            "Container main for pod default/a failed with exit code 3 matching FailJob rule at index 0"
        )
    );
    let failures = |plan: &Plan| {
        plan.status
            .uncounted_terminated_pods
            .clone()
            .unwrap_or_default()
            .failed
    };
    assert_eq!(
        failures(&plan_of(&policy("Ignore", json!([3])), &json!({}), &failed)),
        None
    );
    assert!(failures(&plan_of(&policy("Ignore", json!([4])), &json!({}), &failed)).is_some());
    let leader = json!({
        "completionMode": "Indexed", "completions": 3, "parallelism": 3,
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
    });
    check(
        "leader is done",
        leader,
        json!({"completedIndexes": "0", "succeeded": 1}),
        &[indexed(&one("b", "Running"), 1)],
        "create [] delete [b] release [] conditions [SuccessCriteriaMet=True(SuccessPolicy)]",
    );
}

/// A pod of an index that had failed so often before.
fn tried(name: &str, phase: &str, index: i32, failures: i32) -> Arc<Pod> {
    let mut pod = Pod::clone(&indexed(&one(name, phase), index));
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(per_index::FAILURES.to_owned(), failures.to_string());
    Arc::new(pod)
}

#[test]
fn an_index_that_fails_too_often_is_given_up_and_the_others_go_on() {
    let limited = |most: Value| {
        json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimit": 99,
            "backoffLimitPerIndex": 1, "maxFailedIndexes": most})
    };
    let any = || limited(Value::Null);
    let others = [
        indexed(&one("y", "Running"), 1),
        indexed(&one("z", "Running"), 2),
    ];
    let with = |pods: &[Arc<Pod>]| [pods, &others].concat();

    let plan = check(
        "first failure: tried again, its pod held",
        any(),
        json!({}),
        &with(&[tried("a", "Failed", 0, 0)]),
        "create [0] delete [] release [] conditions []",
    );
    assert_eq!(
        plan.failures.get(&0).map(|f| (f.counted, f.ignored)),
        Some((1, 0))
    );
    let made = pod(
        &job(any(), json!({})),
        Some(0),
        plan.failures.get(&0).copied(),
    );
    let annotations = made.metadata.annotations.unwrap_or_default();
    assert_eq!(
        annotations.get(per_index::FAILURES).map(String::as_str),
        Some("1")
    );

    check(
        "its successor runs: the first is counted",
        any(),
        json!({}),
        &with(&[tried("a", "Failed", 0, 0), tried("b", "Running", 0, 1)]),
        "create [] delete [] release [a] conditions []",
    );
    let plan = check(
        "second failure: given up",
        any(),
        json!({}),
        &with(&[tried("b", "Failed", 0, 1)]),
        "create [] delete [] release [b] conditions []",
    );
    assert_eq!(plan.status.failed_indexes.as_deref(), Some("0"));
    check(
        "stays given up",
        any(),
        json!({"failedIndexes": "0", "failed": 2}),
        &others,
        "create [] delete [] release [] conditions []",
    );
    let plan = check(
        "all others are done",
        any(),
        json!({"failedIndexes": "0", "failed": 2, "completedIndexes": "1,2"}),
        &[],
        "create [] delete [] release [] conditions [FailureTarget=True(FailedIndexes), Failed=True(FailedIndexes)]",
    );
    assert_eq!(
        (plan.events[0].reason, &*plan.events[0].message),
        ("FailedIndexes", "Job has failed indexes")
    );
    check(
        "as many as allowed",
        limited(json!(1)),
        json!({"failedIndexes": "0"}),
        &others,
        "create [] delete [] release [] conditions []",
    );
    let plan = check(
        "more than allowed",
        limited(json!(0)),
        json!({"failedIndexes": "0"}),
        &others,
        "create [] delete [y, z] release [] conditions [FailureTarget=True(MaxFailedIndexesExceeded)]",
    );
    let target = finish::find(&plan.status, "FailureTarget").expect("it fails");
    assert_eq!(
        target.message.as_deref(),
        Some("Job has exceeded the specified maximal number of failed indexes")
    );
    check(
        "what is held goes with the job",
        limited(json!(0)),
        json!({"failedIndexes": "1"}),
        &[tried("a", "Failed", 0, 0)],
        "create [] delete [] release [a] conditions [FailureTarget=True(MaxFailedIndexesExceeded)]",
    );
    let none = plan_of(&any(), &json!({}), &others);
    assert_eq!(none.status.failed_indexes.as_deref(), Some(""));
    let unlimited = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3});
    assert_eq!(
        plan_of(&unlimited, &json!({}), &others)
            .status
            .failed_indexes,
        None
    );
}

#[test]
fn an_index_waits_after_its_own_failures_alone() {
    let spec = json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 9});
    for (failures, seconds, created, again) in [
        (0, 5, vec![Some(1)], Some(5)),
        (0, 10, vec![Some(0), Some(1)], None),
        (1, 10, vec![Some(1)], Some(10)),
        (8, 100, vec![Some(1)], Some(500)),
    ] {
        let pods = [tried("a", "Failed", 0, failures)];
        let plan = plan(&job(spec.clone(), json!({})), &pods, at(seconds));
        assert_eq!(
            plan.create, created,
            "{failures} failures before, after {seconds} s"
        );
        assert_eq!(plan.again, again.map(Duration::from_secs));
    }
}

#[test]
fn policies_give_up_an_index_or_do_not_count_its_failure() {
    let spec = |action: &str| {
        json!({"completionMode": "Indexed", "completions": 1, "backoffLimitPerIndex": 1, "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [3]}}]}})
    };
    let given_up = plan_of(
        &spec("FailIndex"),
        &json!({}),
        &[tried("a", "Failed", 0, 0)],
    );
    assert_eq!(given_up.status.failed_indexes.as_deref(), Some("0"));
    let ignored = plan_of(&spec("Ignore"), &json!({}), &[tried("a", "Failed", 0, 1)]);
    assert_eq!(ignored.status.failed_indexes.as_deref(), Some(""));
    let failures = ignored.failures.get(&0).expect("it is tried again");
    assert_eq!((failures.counted, failures.ignored), (1, 1));
    let counted = plan_of(&spec("Count"), &json!({}), &[tried("a", "Failed", 0, 1)]);
    assert_eq!(counted.status.failed_indexes.as_deref(), Some("0"));
}
