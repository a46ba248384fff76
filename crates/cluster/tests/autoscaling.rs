//! Autoscalers in a whole cluster: load comes and goes, and Deployments, StatefulSets and custom kinds follow.

mod world;

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kubewright_cluster::Measured;
use serde_json::{Value, json};
use tokio::time::sleep;

use world::{change, condition, create, here, start, told, until};

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
    assert!(told(&cluster, "web", "SuccessfulRescale", message).await);
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
        told(
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
    assert!(told(&cluster, "web", "SuccessfulRescale", message).await);
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
