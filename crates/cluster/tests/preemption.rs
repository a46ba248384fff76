//! Important pods in a full cluster: others make way, and nobody takes the room that they leave.

mod world;

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Api;
use serde_json::{Value, json};
use tokio::time::sleep;

use world::{all, condition, create, has_event, here, start, until};

fn pod(name: &str, cpu: &str, class: Option<&str>) -> Value {
    let container =
        json!({"name": "main", "image": "work:1", "resources": {"requests": {"cpu": cpu}}});
    let annotations = json!({"sim.kubewright.dev/stop-delay": "5s"});
    json!({"metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [container], "priorityClassName": class}})
}

fn node(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn less_important_pods_make_way_for_a_more_important_one() {
    let cluster = start().await;
    let pods = here::<Pod>(&cluster);
    let classes: Api<PriorityClass> = Api::all(cluster.client());
    create(
        &classes,
        json!({"metadata": {"name": "high"}, "value": 1000}),
    )
    .await;
    create(
        &classes,
        json!({"metadata": {"name": "patient"}, "value": 1000, "preemptionPolicy": "Never"}),
    )
    .await;
    // Two nodes of eight cores are full.
    for name in ["a", "b"] {
        create(&pods, pod(name, "7", None)).await;
        until(&pods, name, |pod| {
            condition(pod, "Ready")["status"] == "True"
        })
        .await;
        sleep(Duration::from_secs(10)).await;
    }
    create(&pods, pod("patient", "6", Some("patient"))).await;
    sleep(Duration::from_secs(60)).await;
    let patient = until(&pods, "patient", Value::is_object).await;
    let why = "0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.";
    assert_eq!(condition(&patient, "PodScheduled")["message"], why);
    pods.delete("patient", &Default::default())
        .await
        .expect("deleted");

    create(&pods, pod("late", "6", None)).await;
    create(&pods, pod("vip", "6", Some("high"))).await;
    let nominated = until(&pods, "vip", |pod| {
        pod["status"]["nominatedNodeName"].is_string()
    })
    .await;
    let why = "0/2 nodes are available: 2 Insufficient cpu.";
    assert_eq!(condition(&nominated, "PodScheduled")["message"], why);
    let victim = until(&pods, "b", |pod| {
        pod["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    let target = condition(&victim, "DisruptionTarget");
    assert_eq!(target["reason"], "PreemptionByScheduler");
    assert_eq!(
        target["message"],
        "default-scheduler: preempting to accommodate a higher priority pod"
    );
    let vip = until(&pods, "vip", |pod| {
        condition(pod, "Ready")["status"] == "True"
    })
    .await;
    assert_eq!(node(&vip), node(&victim));
    assert!(vip["status"]["nominatedNodeName"].is_null());
    assert_eq!(nominated["status"]["nominatedNodeName"], node(&victim));
    let uid = vip["metadata"]["uid"].as_str().unwrap_or_default();
    let message = format!("Preempted by pod {uid} on node {}", node(&victim));
    assert!(has_event(&cluster, "b", "Preempted", &message).await);
    // The one that waited longer did not take the room, and the older pod stays.
    assert_eq!(node(&until(&pods, "late", Value::is_object).await), "");
    assert!(until(&pods, "a", Value::is_object).await["metadata"]["deletionTimestamp"].is_null());
    let events = all(&here::<Event>(&cluster)).await;
    assert_eq!(
        events
            .iter()
            .filter(|event| event["reason"] == "Preempted")
            .count(),
        1
    );
}
