//! Jobs and cron jobs in a whole cluster, in paused time.

mod world;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use kubewright_cluster::{Clock, Cluster};
use kubewright_testing::{Fault, Verb, Wire};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use world::{all, change, condition, create, has_event, here, is_true, start, until};

fn job(name: &str, annotations: Value, spec: Value) -> Value {
    let mut job = json!({
        "metadata": {"name": name},
        "spec": {"template": {
            "metadata": {"annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "work:1"}]},
        }},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        job["spec"][key] = value.clone();
    }
    job
}

#[tokio::test(start_paused = true)]
async fn a_job_completes_and_its_pods_are_counted() {
    let cluster = start().await;
    let jobs = here::<Job>(&cluster);
    create(
        &jobs,
        job(
            "work",
            json!({}),
            json!({"completions": 4, "parallelism": 2}),
        ),
    )
    .await;
    let done = until(&jobs, "work", |job| is_true(job, "Complete")).await;
    assert_eq!(done["status"]["succeeded"], 4);
    assert_eq!(done["status"]["uncountedTerminatedPods"], json!({}));
    assert!(done["status"]["active"].is_null() && done["status"]["failed"].is_null());
    assert!(done["status"]["completionTime"].is_string());
    assert!(is_true(&done, "SuccessCriteriaMet"));
    for pod in all(&here::<Pod>(&cluster)).await {
        assert!(pod["metadata"]["finalizers"].is_null(), "{pod:#}");
        assert_eq!(
            pod["metadata"]["labels"]["batch.kubernetes.io/job-name"],
            "work"
        );
    }
    assert!(has_event(&cluster, "work", "Completed", "Job completed").await);
}

#[tokio::test(start_paused = true)]
async fn an_indexed_job_gives_every_index_a_pod() {
    let cluster = start().await;
    let jobs = here::<Job>(&cluster);
    let spec = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"});
    create(&jobs, job("shards", json!({}), spec)).await;
    let done = until(&jobs, "shards", |job| is_true(job, "Complete")).await;
    assert_eq!(done["status"]["completedIndexes"], "0-2");
    let pods = all(&here::<Pod>(&cluster)).await;
    let mut indexes: Vec<_> = pods
        .iter()
        .map(|pod| pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"].clone())
        .collect();
    indexes.sort_by_key(Value::to_string);
    assert_eq!(indexes, ["0", "1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_failing_job_hits_its_backoff_limit_after_growing_waits() {
    let cluster = start().await;
    let jobs = here::<Job>(&cluster);
    let failing = json!({"sim.kubewright.dev/exit-code": "3"});
    let began = Instant::now();
    create(&jobs, job("broken", failing, json!({"backoffLimit": 2}))).await;
    let failed = until(&jobs, "broken", |job| is_true(job, "Failed")).await;
    assert_eq!(failed["status"]["failed"], 3);
    assert_eq!(
        condition(&failed, "Failed")["reason"],
        "BackoffLimitExceeded"
    );
    let waited = began.elapsed().as_secs();
    assert!(
        (30..40).contains(&waited),
        "10 s and 20 s of waiting, not {waited} s"
    );
    let message = "Job has reached the specified backoff limit";
    assert!(has_event(&cluster, "broken", "BackoffLimitExceeded", message).await);
}

/// `job/backoff_utils.go: getRemainingTime` with `job_controller.go: MaxJobPodFailureBackOff`.
#[tokio::test(start_paused = true)]
async fn waits_of_a_failing_job_double_up_to_ten_minutes() {
    let cluster = start().await;
    let jobs = here::<Job>(&cluster);
    let failing = json!({"sim.kubewright.dev/crash-loop": "true"});
    create(&jobs, job("again", failing, json!({"backoffLimit": 8}))).await;
    until(&jobs, "again", |job| is_true(job, "Failed")).await;
    let created = |pod: &Value| -> Timestamp {
        let text = pod["metadata"]["creationTimestamp"].as_str();
        text.and_then(|text| text.parse().ok()).expect("a moment")
    };
    let pods = all(&here::<Pod>(&cluster)).await;
    let mut moments: Vec<Timestamp> = pods.iter().map(created).collect();
    moments.sort();
    let waits = moments
        .windows(2)
        .map(|two| two[1].duration_since(two[0]).as_secs());
    let expected = [10, 20, 40, 80, 160, 320, 600, 600];
    for (waited, expected) in waits.clone().zip(expected) {
        let late = waited - expected;
        assert!((0..=2).contains(&late), "{waited} s instead of {expected}");
    }
    assert_eq!(waits.count(), expected.len());
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_has_no_pods_until_it_is_resumed() {
    let cluster = start().await;
    let (jobs, pods) = (here::<Job>(&cluster), here::<Pod>(&cluster));
    let long = json!({"sim.kubewright.dev/exit-after": "60s"});
    create(&jobs, job("calm", long, json!({}))).await;
    until(&jobs, "calm", |job| job["status"]["ready"] == 1).await;
    change(&jobs, "calm", json!({"spec": {"suspend": true}})).await;
    until(&jobs, "calm", |job| {
        is_true(job, "Suspended") && job["status"]["active"].is_null()
    })
    .await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(all(&pods).await.len(), 0);
    change(&jobs, "calm", json!({"spec": {"suspend": false}})).await;
    let done = until(&jobs, "calm", |job| is_true(job, "Complete")).await;
    assert!(done["status"]["failed"].is_null());
    assert_eq!(condition(&done, "Suspended")["reason"], "JobResumed");
}

#[tokio::test(start_paused = true)]
async fn a_late_job_fails_and_a_deleted_one_takes_its_pods_along() {
    let cluster = start().await;
    let (jobs, pods) = (here::<Job>(&cluster), here::<Pod>(&cluster));
    let endless = json!({"sim.kubewright.dev/exit-after": "never"});
    create(
        &jobs,
        job(
            "late",
            endless.clone(),
            json!({"activeDeadlineSeconds": 30}),
        ),
    )
    .await;
    let failed = until(&jobs, "late", |job| is_true(job, "Failed")).await;
    assert_eq!(condition(&failed, "Failed")["reason"], "DeadlineExceeded");
    create(&jobs, job("gone", endless, json!({}))).await;
    until(&jobs, "gone", |job| job["status"]["ready"] == 1).await;
    jobs.delete("gone", &DeleteParams::background())
        .await
        .expect("deleted");
    until(&jobs, "gone", Value::is_null).await;
    sleep(Duration::from_secs(60)).await;
    let left = all(&pods).await;
    let of_gone = |pod: &&Value| pod["metadata"]["labels"]["job-name"] == "gone";
    assert_eq!(left.iter().filter(of_gone).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_a_cron_job_passes() {
    let cluster = start().await;
    let (crons, jobs) = (here::<CronJob>(&cluster), here::<Job>(&cluster));
    let template = json!({"spec": job("x", json!({}), json!({}))["spec"]});
    let spec = json!({"schedule": "*/5 * * * *", "successfulJobsHistoryLimit": 100, "jobTemplate": template});
    create(&crons, json!({"metadata": {"name": "tick"}, "spec": spec})).await;
    sleep(Duration::from_secs(3600 + 30)).await;
    let made = all(&jobs).await;
    assert_eq!(made.len(), 12);
    assert!(made.iter().all(|job| is_true(job, "Complete")));
    let tick = until(&crons, "tick", |tick| tick["status"]["active"].is_null()).await;
    assert_eq!(tick["status"]["lastScheduleTime"], "2030-01-01T01:00:00Z");
    assert!(tick["status"]["lastSuccessfulTime"].is_string());
    let first = "tick-31557605";
    assert!(
        has_event(
            &cluster,
            "tick",
            "SuccessfulCreate",
            &format!("Created job {first}")
        )
        .await
    );
    change(
        &crons,
        "tick",
        json!({"spec": {"suspend": true, "successfulJobsHistoryLimit": 2}}),
    )
    .await;
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(all(&jobs).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_index_that_keeps_failing_is_given_up_and_the_others_complete() {
    let cluster = start().await;
    let (jobs, pods) = (here::<Job>(&cluster), here::<Pod>(&cluster));
    let spec = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1});
    create(
        &jobs,
        job(
            "shards",
            json!({"sim.kubewright.dev/exit-after": "60s"}),
            spec,
        ),
    )
    .await;
    until(&jobs, "shards", |job| job["status"]["ready"] == 3).await;
    // Whatever runs as index 1 fails from now on.
    let broken = json!({"metadata": {"annotations": {"sim.kubewright.dev/exit-code": "3", "sim.kubewright.dev/exit-after": "1s"}}});
    let index = "batch.kubernetes.io/job-completion-index";
    loop {
        for pod in all(&pods).await {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let running = pod["status"]["phase"] == "Running";
            if running && pod["metadata"]["labels"][index] == "1" {
                change(&pods, name, broken.clone()).await;
            }
        }
        let job = until(&jobs, "shards", Value::is_object).await;
        if is_true(&job, "Failed") {
            break;
        }
        sleep(Duration::from_secs(1)).await;
    }
    let failed = until(&jobs, "shards", |job| is_true(job, "Failed")).await;
    assert_eq!(condition(&failed, "Failed")["reason"], "FailedIndexes");
    assert_eq!(failed["status"]["failedIndexes"], "1");
    assert_eq!(failed["status"]["completedIndexes"], "0,2");
    assert_eq!(failed["status"]["failed"], 2);
    assert!(
        has_event(
            &cluster,
            "shards",
            "FailedIndexes",
            "Job has failed indexes"
        )
        .await
    );
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_follows_the_clocks_of_its_time_zone() {
    let cluster = start().await;
    let (crons, jobs) = (here::<CronJob>(&cluster), here::<Job>(&cluster));
    let template = json!({"spec": job("x", json!({}), json!({}))["spec"]});
    let spec =
        json!({"schedule": "0 6 * * *", "timeZone": "Asia/Kolkata", "jobTemplate": template});
    create(
        &crons,
        json!({"metadata": {"name": "night"}, "spec": spec.clone()}),
    )
    .await;
    let night = until(&crons, "night", |cron| {
        cron["status"]["lastScheduleTime"].is_string()
    })
    .await;
    assert_eq!(night["status"]["lastScheduleTime"], "2030-01-01T00:30:00Z");
    let made = all(&jobs).await;
    let note = "batch.kubernetes.io/cronjob-scheduled-timestamp";
    assert_eq!(
        made[0]["metadata"]["annotations"][note],
        "2030-01-01T06:00:00+05:30"
    );
    let mut unknown = spec;
    unknown["timeZone"] = json!("Mars/Phobos");
    let unknown: CronJob =
        serde_json::from_value(json!({"metadata": {"name": "far"}, "spec": unknown}))
            .expect("a cron job");
    let refused = crons.create(&PostParams::default(), &unknown).await;
    let refused = refused.expect_err("there is no such zone").to_string();
    assert!(
        refused.contains("unknown time zone Mars/Phobos"),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_creation_was_not_answered_is_not_replaced_by_itself() {
    let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse().expect("a moment"));
    let builder = Cluster::builder().nodes(1).clock(clock).seed(7);
    let builder = builder.line(|service| {
        let (wire, first) = (Wire::new(service), AtomicBool::new(true));
        wire.plan(move |call| {
            let is_job = call.verb == Verb::Create && call.path.ends_with("/jobs");
            if is_job && first.swap(false, Ordering::Relaxed) {
                Fault::LoseAnswer
            } else {
                Fault::None
            }
        });
        wire.client()
    });
    let cluster = builder.start().await.expect("starts");
    let template = job(
        "",
        json!({"sim.kubewright.dev/exit-after": "10m"}),
        json!({}),
    );
    let spec = json!({"schedule": "* * * * *", "concurrencyPolicy": "Replace",
        "jobTemplate": {"spec": template["spec"]}});
    let crons = here::<CronJob>(&cluster);
    create(&crons, json!({"metadata": {"name": "tick"}, "spec": spec})).await;
    let run = until(&crons, "tick", |cron| {
        cron["status"]["lastScheduleTime"].is_string()
    })
    .await;
    assert_eq!(run["status"]["lastScheduleTime"], "2030-01-01T00:01:00Z");
    sleep(Duration::from_secs(20)).await;
    let jobs = all(&here::<Job>(&cluster)).await;
    assert_eq!(jobs.len(), 1, "{jobs:#?}");
    let name = jobs[0]["metadata"]["name"].as_str().expect("a name");
    let deleted = format!("Deleted job {name}");
    assert!(!has_event(&cluster, "tick", "SuccessfulDelete", &deleted).await);
    cluster.stop().await;
}
