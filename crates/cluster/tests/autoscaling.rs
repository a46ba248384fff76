//! Autoscalers in a whole cluster: load comes and goes, and Deployments, StatefulSets and custom kinds follow.

mod world;

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kubewright_cluster::Measured;
use serde_json::{Value, json};
use tokio::time::sleep;

use world::{change, condition, create, has_event, here, is_true, start, until};

fn workload(annotations: Value, spec: Value) -> Value {
    let container =
        json!({"name": "c", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}});
    let mut made = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}, "annotations": annotations},
            "spec": {"containers": [container]}}},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        made["spec"][key] = value.clone();
    }
    made
}

fn scaler(kind: &str, spec: Value) -> Value {
    let mut made = json!({
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": "web"},
            "minReplicas": 1, "maxReplicas": 5,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}}]},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        made["spec"][key] = value.clone();
    }
    made
}

#[tokio::test(start_paused = true)]
async fn deployment_follows_its_load_up_and_down() {
    let cluster = start().await;
    let deployments = here::<Deployment>(&cluster);
    let scalers = here::<HorizontalPodAutoscaler>(&cluster);
    let load = |milli: &str| json!({"sim.kubewright.dev/cpu": milli});
    create(&deployments, workload(load("90m"), json!({}))).await;
    create(&scalers, scaler("Deployment", json!({}))).await;
    let up = until(&scalers, "web", |s| s["status"]["desiredReplicas"] == 4).await;
    assert_eq!(
        up["status"]["currentMetrics"][0]["resource"]["current"],
        json!({"averageUtilization": 90, "averageValue": "90m"})
    );
    assert_eq!(condition(&up, "AbleToScale")["reason"], "SucceededRescale");
    assert_eq!(
        condition(&up, "ScalingActive")["reason"],
        "ValidMetricFound"
    );
    assert_eq!(
        condition(&up, "ScalingLimited")["reason"],
        "DesiredWithinRange"
    );
    let message =
        "New size: 4; reason: cpu resource utilization (percentage of request) above target";
    assert!(has_event(&cluster, "web", "SuccessfulRescale", message).await);
    until(&deployments, "web", |d| d["status"]["readyReplicas"] == 4).await;
    // The same load on more pods asks for the greatest number.
    let top = until(&scalers, "web", |s| s["status"]["desiredReplicas"] == 5).await;
    assert_eq!(
        condition(&top, "ScalingLimited")["reason"],
        "TooManyReplicas"
    );
    // The load goes with the old pods; nothing happens for five minutes.
    change(
        &deployments,
        "web",
        json!({"spec": {"template": {"metadata": {"annotations": load("10m")}}}}),
    )
    .await;
    let calm = until(&scalers, "web", |s| {
        condition(s, "AbleToScale")["reason"] == "ScaleDownStabilized"
    })
    .await;
    assert_eq!(calm["status"]["currentReplicas"], 5);
    let down = until(&scalers, "web", |s| s["status"]["desiredReplicas"] == 1).await;
    assert_eq!(
        condition(&down, "AbleToScale")["reason"],
        "SucceededRescale"
    );
    assert!(
        has_event(
            &cluster,
            "web",
            "SuccessfulRescale",
            "New size: 1; reason: All metrics below target"
        )
        .await
    );
    until(&deployments, "web", |d| d["status"]["replicas"] == 1).await;
}

#[tokio::test(start_paused = true)]
async fn stateful_set_follows_a_queue_and_a_fork_has_another() {
    let cluster = start().await;
    let sets = here::<StatefulSet>(&cluster);
    create(&sets, workload(json!({}), json!({"serviceName": "web"}))).await;
    let metric = json!({"type": "External", "external": {"metric": {"name": "jobs"},
        "target": {"type": "AverageValue", "averageValue": "10"}}});
    let scalers = here::<HorizontalPodAutoscaler>(&cluster);
    create(
        &scalers,
        scaler("StatefulSet", json!({"metrics": [metric]})),
    )
    .await;
    let blind = until(&scalers, "web", |s| {
        condition(s, "ScalingActive")["status"] == "False"
    })
    .await;
    assert_eq!(
        condition(&blind, "ScalingActive")["reason"],
        "FailedGetExternalMetric"
    );
    assert_eq!(blind["status"]["currentReplicas"], 2);
    let jobs = |cluster: &kubewright_cluster::Cluster, count| {
        let set = cluster
            .metrics()
            .set(Measured::external("default"), "jobs", count);
        set.expect("a quantity");
    };
    jobs(&cluster, "30");
    until(&sets, "web", |s| s["status"]["readyReplicas"] == 3).await;
    let fork = cluster.fork().await.expect("a fork");
    jobs(&fork, "50");
    until(&here::<StatefulSet>(&fork), "web", |s| {
        s["status"]["readyReplicas"] == 5
    })
    .await;
    assert_eq!(
        until(&sets, "web", Value::is_object).await["spec"]["replicas"],
        3
    );
}

#[tokio::test(start_paused = true)]
async fn bounds_are_kept_without_metrics_and_zero_replicas_switch_it_off() {
    let cluster = start().await;
    let deployments = here::<Deployment>(&cluster);
    let scalers = here::<HorizontalPodAutoscaler>(&cluster);
    create(&deployments, workload(json!({}), json!({"replicas": 9}))).await;
    create(&scalers, scaler("Deployment", json!({}))).await;
    until(&deployments, "web", |d| d["spec"]["replicas"] == 5).await;
    let message = "New size: 5; reason: Current number of replicas above Spec.MaxReplicas";
    assert!(has_event(&cluster, "web", "SuccessfulRescale", message).await);
    change(&deployments, "web", json!({"spec": {"replicas": 0}})).await;
    until(&scalers, "web", |s| {
        condition(s, "ScalingActive")["reason"] == "ScalingDisabled"
    })
    .await;
    sleep(Duration::from_secs(120)).await;
    assert_eq!(
        until(&deployments, "web", Value::is_object).await["spec"]["replicas"],
        0
    );
    change(
        &scalers,
        "web",
        json!({"spec": {"scaleTargetRef": {"name": "other"}}}),
    )
    .await;
    let lost = until(&scalers, "web", |s| {
        condition(s, "AbleToScale")["status"] == "False"
    })
    .await;
    let text = "the HPA controller was unable to get the target's current scale: deployments.apps \"other\" not found";
    assert_eq!(condition(&lost, "AbleToScale")["message"], text);
}

/// `podautoscaler/horizontal.go: reconcileAutoscaler`: a target that somebody else set to zero is paused, one that the
/// autoscaler did is not.
#[tokio::test(start_paused = true)]
async fn target_that_an_autoscaler_scaled_to_zero_comes_back_and_one_that_a_user_paused_does_not() {
    let cluster = start().await;
    let deployments = here::<Deployment>(&cluster);
    let scalers = here::<HorizontalPodAutoscaler>(&cluster);
    let queue = |length: &str| {
        let metrics = cluster.metrics();
        metrics
            .set(Measured::external("default"), "queue", length)
            .expect("a quantity");
    };
    let metric = json!([{"type": "External", "external": {"metric": {"name": "queue"},
        "target": {"type": "AverageValue", "averageValue": "10"}}}]);
    let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": 0}});
    queue("20");
    create(&deployments, workload(json!({}), json!({}))).await;
    create(
        &scalers,
        scaler(
            "Deployment",
            json!({"minReplicas": 0, "metrics": metric, "behavior": behavior}),
        ),
    )
    .await;
    sleep(Duration::from_secs(60)).await;
    queue("0");
    until(&deployments, "web", |d| d["spec"]["replicas"] == 0).await;
    let zero = until(&scalers, "web", |s| is_true(s, "ScaledToZero")).await;
    assert_eq!(condition(&zero, "ScaledToZero")["reason"], "ScaledToZero");
    queue("30");
    until(&deployments, "web", |d| d["spec"]["replicas"] == 3).await;
    let back = until(&scalers, "web", |s| !is_true(s, "ScaledToZero")).await;
    assert_eq!(
        condition(&back, "ScaledToZero")["reason"],
        "NotScaledToZero"
    );
    change(&deployments, "web", json!({"spec": {"replicas": 0}})).await;
    until(&scalers, "web", |s| {
        condition(s, "ScalingActive")["reason"] == "ScalingDisabled"
    })
    .await;
    sleep(Duration::from_secs(120)).await;
    assert_eq!(
        until(&deployments, "web", Value::is_object).await["spec"]["replicas"],
        0
    );
}

/// A kind with a scale, and nobody who cares for it.
fn workers() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": open, "status": open}});
    let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector"});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale}});
    json!({"metadata": {"name": "workers.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"kind": "Worker", "plural": "workers"}, "versions": [version]}})
}

#[tokio::test(start_paused = true)]
async fn custom_kinds_with_a_scale_are_scaled_by_one_autoscaler_alone() {
    let cluster = start().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    create(&definitions, workers()).await;
    let kind = GroupVersionKind::gvk("example.com", "v1", "Worker");
    let resource = ApiResource::from_gvk(&kind);
    let objects: Api<DynamicObject> = Api::default_namespaced_with(cluster.client(), &resource);
    let worker = json!({"apiVersion": "example.com/v1", "kind": "Worker", "metadata": {"name": "web"}, "spec": {"replicas": 1}});
    create(&objects, worker).await;
    let status = Patch::Merge(json!({"status": {"replicas": 1, "selector": "app=web"}}));
    let patched = objects
        .patch_status("web", &PatchParams::default(), &status)
        .await;
    patched.expect("it has a status");
    let template =
        &workload(json!({"sim.kubewright.dev/cpu": "90m"}), json!({}))["spec"]["template"];
    let mut pod = template.clone();
    pod["metadata"]["name"] = json!("web-1");
    create(&here::<Pod>(&cluster), pod).await;
    let target = json!({"apiVersion": "example.com/v1", "kind": "Worker", "name": "web"});
    let scalers = here::<HorizontalPodAutoscaler>(&cluster);
    create(
        &scalers,
        scaler("Worker", json!({"scaleTargetRef": target})),
    )
    .await;
    until(&objects, "web", |worker| worker["spec"]["replicas"] == 2).await;

    let mut second = scaler("Worker", json!({"scaleTargetRef": target}));
    second["metadata"]["name"] = json!("again");
    create(&scalers, second).await;
    let torn = until(&scalers, "again", |s| {
        condition(s, "ScalingActive")["status"] == "False"
    })
    .await;
    assert_eq!(
        condition(&torn, "ScalingActive")["reason"],
        "AmbiguousSelector"
    );
    let text =
        "pods by selector app=web are controlled by multiple HPAs: [{again default} {web default}]";
    assert_eq!(condition(&torn, "ScalingActive")["message"], text);
    scalers
        .delete("web", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&scalers, "again", |s| {
        condition(s, "ScalingActive")["status"] == "True"
    })
    .await;
}
