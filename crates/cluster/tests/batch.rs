//! Jobs, cron jobs, endpoints, claims and autoscalers in a whole cluster, in paused time.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Event, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use kubewright_cluster::{Clock, Cluster};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

async fn start() -> Cluster {
    let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse().expect("a moment"));
    let builder = Cluster::builder().nodes(2).clock(clock).seed(7);
    builder.start().await.expect("starts")
}

/// The objects of a kind in the default namespace.
fn here<K>(cluster: &Cluster) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::default_namespaced(cluster.client())
}

async fn create<K>(api: &Api<K>, told: Value)
where
    K: Serialize + DeserializeOwned + Clone + Debug,
{
    let object: K = serde_json::from_value(told).expect("the test's object is one");
    let created = api.create(&PostParams::default(), &object).await;
    created.expect("the server takes it");
}

async fn change<K>(api: &Api<K>, name: &str, patch: Value)
where
    K: DeserializeOwned + Clone + Debug,
{
    let params = PatchParams::default();
    let patched = api.patch(name, &params, &Patch::Merge(patch)).await;
    patched.expect("the server takes it");
}

/// The object of a name, as JSON, once it is as it should be; within two virtual hours.
async fn until<K>(api: &Api<K>, name: &str, holds: impl Fn(&Value) -> bool) -> Value
where
    K: Serialize + DeserializeOwned + Clone + Debug,
{
    let end = Instant::now() + Duration::from_secs(7200);
    loop {
        let object = api.get_opt(name).await.expect("an answer");
        let shown = serde_json::to_value(object).expect("json");
        if holds(&shown) {
            return shown;
        }
        assert!(
            Instant::now() < end,
            "{name} is not as it should be: {shown:#}"
        );
        sleep(Duration::from_millis(500)).await;
    }
}

async fn all<K>(api: &Api<K>) -> Vec<Value>
where
    K: Serialize + DeserializeOwned + Clone + Debug,
{
    let listed = api.list(&ListParams::default()).await.expect("an answer");
    let shown = listed
        .items
        .iter()
        .map(|object| serde_json::to_value(object).expect("json"));
    shown.collect()
}

/// Whether somebody told this of an object.
async fn told(cluster: &Cluster, name: &str, reason: &str, message: &str) -> bool {
    sleep(Duration::from_secs(5)).await;
    let events = all(&here::<Event>(cluster)).await;
    events.iter().any(|event| {
        event["involvedObject"]["name"] == name
            && event["reason"] == reason
            && event["message"] == message
    })
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let mut found = conditions
        .into_iter()
        .flatten()
        .filter(|c| c["type"] == kind);
    found.next().unwrap_or(&Value::Null)
}

fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind)["status"] == "True"
}

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
    assert!(told(&cluster, "work", "Completed", "Job completed").await);
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
    assert!(told(&cluster, "broken", "BackoffLimitExceeded", message).await);
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
        told(
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
async fn a_service_gets_its_endpoints() {
    let cluster = start().await;
    let (pods, services) = (here::<Pod>(&cluster), here::<Service>(&cluster));
    let slices = here::<EndpointSlice>(&cluster);
    let port = json!({"port": 80, "targetPort": "http"});
    create(
        &services,
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [port]}}),
    )
    .await;
    until(&slices, "web-0", |slice| {
        slice.is_object() && slice["endpoints"].get(0).is_none()
    })
    .await;
    for name in ["a", "b"] {
        let ports = json!([{"name": "http", "containerPort": 8080}]);
        let spec = json!({"containers": [{"name": "main", "image": "web:1", "ports": ports}]});
        create(
            &pods,
            json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}),
        )
        .await;
    }
    let ready = |slice: &Value| {
        let all = slice["endpoints"].as_array();
        all.is_some_and(|all| {
            all.len() == 2 && all.iter().all(|one| one["conditions"]["ready"] == true)
        })
    };
    let slice = until(&slices, "web-0", ready).await;
    assert_eq!(slice["ports"][0]["port"], 8080);
    assert_eq!(
        slice["metadata"]["labels"]["kubernetes.io/service-name"],
        "web"
    );
    pods.delete("a", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&slices, "web-0", |slice| {
        slice["endpoints"]
            .as_array()
            .is_some_and(|all| all.len() == 1)
    })
    .await;
}
