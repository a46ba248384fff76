//! Rules of Kubernetes' controllers that a whole cluster keeps, each with the function there that says so.

mod world;

use std::time::Duration;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod, ReplicationController};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::time::sleep;

use world::{all, change, create, has_event, here, start, until};

fn is_running(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running"
}

fn containers() -> Value {
    json!([{"name": "main", "image": "web:1"}])
}

/// `replication/replication_controller.go: NewReplicationManager`: a ReplicationController is run as a ReplicaSet is, by
/// `replicaset/replica_set.go: syncReplicaSet, manageReplicas`.
#[tokio::test(start_paused = true)]
async fn replication_controller_creates_adopts_and_deletes_pods() {
    let cluster = start().await;
    let controllers = here::<ReplicationController>(&cluster);
    let pods = here::<Pod>(&cluster);
    let labels = json!({"app": "web"});
    create(&pods, json!({"metadata": {"name": "orphan", "labels": labels}, "spec": {"containers": containers()}})).await;
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers()}});
    let spec = json!({"replicas": 3, "selector": labels, "template": template});
    create(
        &controllers,
        json!({"metadata": {"name": "web"}, "spec": spec}),
    )
    .await;
    let ready = |count: i64| move |c: &Value| c["status"]["readyReplicas"] == count;
    let web = until(&controllers, "web", ready(3)).await;
    assert_eq!(web["status"]["replicas"], 3);
    assert_eq!(web["status"]["fullyLabeledReplicas"], 3);
    let adopted = until(&pods, "orphan", Value::is_object).await;
    let owner = &adopted["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["apiVersion"]),
        (&json!("ReplicationController"), &json!("v1"))
    );
    assert_eq!(all(&pods).await.len(), 3);
    change(&controllers, "web", json!({"spec": {"replicas": 1}})).await;
    until(&controllers, "web", ready(1)).await;
    let deleted = controllers.delete("web", &DeleteParams::background()).await;
    deleted.expect("deleted");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(all(&pods).await.len(), 0, "pods go with their controller");
}

/// `volume/ephemeral/controller.go: handleVolume`.
#[tokio::test(start_paused = true)]
async fn generic_ephemeral_volume_gets_a_claim_that_goes_with_its_pod() {
    let cluster = start().await;
    let (pods, claims) = (
        here::<Pod>(&cluster),
        here::<PersistentVolumeClaim>(&cluster),
    );
    let asked =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let template = json!({"metadata": {"labels": {"of": "pod"}}, "spec": asked});
    let volume = json!({"name": "v", "ephemeral": {"volumeClaimTemplate": template}});
    let pod = |name: &str| json!({"metadata": {"name": name}, "spec": {"containers": containers(), "volumes": [volume]}});
    create(&pods, pod("e")).await;
    let running = until(&pods, "e", is_running).await;
    let claim = until(&claims, "e-v", |claim| claim["status"]["phase"] == "Bound").await;
    assert_eq!(claim["metadata"]["labels"]["of"], "pod");
    assert_eq!(
        claim["metadata"]["ownerReferences"][0]["uid"],
        running["metadata"]["uid"]
    );
    pods.delete("e", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&claims, "e-v", Value::is_null).await;
    // A claim of that name that somebody else made is not used.
    create(&claims, json!({"metadata": {"name": "f-v"}, "spec": asked})).await;
    create(&pods, pod("f")).await;
    let message =
        "ephemeral volume v: PVC default/f-v was not created for pod default/f (pod is not owner)";
    assert!(has_event(&cluster, "f", "FailedBinding", message).await);
    let waiting = until(&pods, "f", Value::is_object).await;
    assert_eq!(waiting["spec"]["nodeName"], Value::Null, "{waiting:#}");
}

/// `job/job_controller.go: addPod`: an orphan that a job selects wakes it.
#[tokio::test(start_paused = true)]
async fn job_adopts_an_orphan_that_comes_later() {
    let cluster = start().await;
    let (jobs, pods) = (here::<Job>(&cluster), here::<Pod>(&cluster));
    let labels = json!({"app": "once"});
    let sleeps = json!({"sim.kubewright.dev/exit-after": "3600s"});
    let template = json!({"metadata": {"labels": labels, "annotations": sleeps},
        "spec": {"restartPolicy": "Never", "containers": containers()}});
    let spec = json!({"manualSelector": true, "selector": {"matchLabels": labels}, "template": template, "parallelism": 0});
    create(&jobs, json!({"metadata": {"name": "once"}, "spec": spec})).await;
    sleep(Duration::from_secs(60)).await;
    let orphan = json!({"metadata": {"name": "orphan", "labels": labels, "annotations": sleeps},
        "spec": {"restartPolicy": "Never", "containers": containers()}});
    create(&pods, orphan).await;
    let adopted = until(&pods, "orphan", |pod| {
        pod.is_null() || pod["metadata"]["ownerReferences"].is_array()
    })
    .await;
    // A job without parallelism adopts it and then deletes it; either says that it was woken.
    assert!(adopted.is_null() || adopted["metadata"]["ownerReferences"][0]["kind"] == "Job");
}

/// `podgc/gc_controller.go: gcTerminating, gcUnscheduledTerminating`.
#[tokio::test(start_paused = true)]
async fn pods_that_nobody_can_stop_are_removed() {
    let cluster = start().await;
    let pods = here::<Pod>(&cluster);
    let nodes: Api<Node> = Api::all(cluster.client());
    let placed =
        json!({"containers": containers(), "nodeSelector": {"kubernetes.io/hostname": "node-1"}});
    create(
        &pods,
        json!({"metadata": {"name": "stuck"}, "spec": placed}),
    )
    .await;
    until(&pods, "stuck", is_running).await;
    cluster.nodes().stop("node-1").await.expect("stops");
    until(&nodes, "node-1", |node| !world::is_true(node, "Ready")).await;
    pods.delete("stuck", &DeleteParams::default())
        .await
        .expect("deleted");
    sleep(Duration::from_secs(120)).await;
    assert!(
        until(&pods, "stuck", Value::is_object).await["metadata"]["deletionTimestamp"].is_string()
    );
    let taints = json!([{"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}]);
    change(&nodes, "node-1", json!({"spec": {"taints": taints}})).await;
    until(&pods, "stuck", Value::is_null).await;
}

/// `noderesources/fit.go: fitsRequest` and `admission TaintNodesByCondition`.
#[tokio::test(start_paused = true)]
async fn pod_is_not_put_on_a_node_that_nobody_is_behind() {
    let cluster = start().await;
    for name in ["node-1", "node-2"] {
        cluster.nodes().remove(name).await.expect("goes");
    }
    let nodes: Api<Node> = Api::all(cluster.client());
    create(&nodes, json!({"metadata": {"name": "dead"}})).await;
    let pods = here::<Pod>(&cluster);
    create(
        &pods,
        json!({"metadata": {"name": "p"}, "spec": {"containers": containers()}}),
    )
    .await;
    sleep(Duration::from_secs(600)).await;
    let pod = until(&pods, "p", Value::is_object).await;
    assert_eq!(pod["spec"]["nodeName"], Value::Null, "{pod:#}");
    pods.delete("p", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&pods, "p", Value::is_null).await;
}

/// `cronjob/cronjob_controllerv2.go: syncCronJob`.
#[tokio::test(start_paused = true)]
async fn cron_job_tells_of_schedules_that_never_come_and_of_jobs_it_did_not_make() {
    let cluster = start().await;
    let (crons, jobs) = (here::<CronJob>(&cluster), here::<Job>(&cluster));
    let run = json!({"spec": {"template": {"metadata": {"annotations": {"sim.kubewright.dev/exit-after": "30s"}},
        "spec": {"restartPolicy": "Never", "containers": containers()}}}});
    let cron = |name: &str, schedule: &str| {
        json!({"metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": run, "concurrencyPolicy": "Forbid"}})
    };
    create(&crons, cron("never", "59 23 31 2 *")).await;
    let text = "invalid schedule: \"59 23 31 2 *\" never comes";
    assert!(has_event(&cluster, "never", "InvalidSchedule", text).await);
    create(&crons, cron("often", "*/10 * * * *")).await;
    let often = until(&crons, "often", Value::is_object).await;
    let owner = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "often", "controller": true,
        "uid": often["metadata"]["uid"]}]);
    let mut manual = run.clone();
    manual["metadata"] = json!({"name": "by-hand", "ownerReferences": owner});
    create(&jobs, manual).await;
    let text = "Saw a job that the controller did not create or forgot: by-hand";
    assert!(has_event(&cluster, "often", "UnexpectedJob", text).await);
    let seen = until(&crons, "often", Value::is_object).await;
    assert_eq!(
        seen["status"]["active"],
        Value::Null,
        "it is not one of its runs"
    );
}

/// `cronjob/cronjob_controllerv2.go: syncCronJob`: a run that somebody deletes is missed.
#[tokio::test(start_paused = true)]
async fn cron_job_tells_of_a_run_that_went_missing() {
    let cluster = start().await;
    let (crons, jobs) = (here::<CronJob>(&cluster), here::<Job>(&cluster));
    let run = json!({"spec": {"template": {"metadata": {"annotations": {"sim.kubewright.dev/exit-after": "3600s"}},
        "spec": {"restartPolicy": "Never", "containers": containers()}}}});
    let spec = json!({"schedule": "0 * * * *", "jobTemplate": run, "concurrencyPolicy": "Forbid"});
    create(
        &crons,
        json!({"metadata": {"name": "hourly"}, "spec": spec}),
    )
    .await;
    sleep(Duration::from_secs(3_700)).await;
    let hourly = until(&crons, "hourly", |cron| cron["status"]["active"].is_array()).await;
    let name = hourly["status"]["active"][0]["name"].as_str();
    let name = name.expect("a run has a name").to_owned();
    let deleted = jobs.delete(&name, &DeleteParams::background()).await;
    deleted.expect("deleted");
    until(&crons, "hourly", |cron| cron["status"]["active"].is_null()).await;
    let text = format!("Active job went missing: {name}");
    assert!(has_event(&cluster, "hourly", "MissingJob", &text).await);
}
