//! Pods that are resized in place, in whole clusters on a paused clock.

mod world;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kubewright_cluster::{Cluster, NodeSpec};
use serde_json::{Value, json};

use world::{condition, create, has_event, here, is_true, start, until};

fn pod(name: &str, node: &str, cpu: &str) -> Value {
    let resources =
        json!({"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"cpu": cpu, "memory": "1Gi"}});
    json!({"metadata": {"name": name}, "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "app", "image": "app:1", "resources": resources}]}})
}

async fn resize(cluster: &Cluster, name: &str, cpu: &str) -> Result<Pod, kube::Error> {
    let resources = json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
    let patch = json!({"spec": {"containers": [{"name": "app", "resources": resources}]}});
    let (pods, params) = (here::<Pod>(cluster), PatchParams::default());
    let patch = Patch::Strategic(patch);
    pods.patch_subresource("resize", name, &params, &patch)
        .await
}

fn cpu(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"]
}

async fn ready(cluster: &Cluster, pod: Value) {
    let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
    create(&here::<Pod>(cluster), pod).await;
    until(&here::<Pod>(cluster), &name, |pod| is_true(pod, "Ready")).await;
}

#[tokio::test(start_paused = true)]
async fn resize_that_fits_is_carried_out_and_leaves_no_condition() {
    let cluster = start().await;
    let pods: Api<Pod> = here(&cluster);
    ready(&cluster, pod("p", "node-1", "1")).await;
    resize(&cluster, "p", "2").await.expect("it is accepted");
    let begun = until(&pods, "p", |pod| is_true(pod, "PodResizeInProgress")).await;
    assert_eq!(
        begun["status"]["containerStatuses"][0]["allocatedResources"]["cpu"],
        "2"
    );
    let done = until(&pods, "p", |pod| {
        cpu(pod) == "2" && condition(pod, "PodResizeInProgress").is_null()
    })
    .await;
    assert_eq!(done["status"]["containerStatuses"][0]["restartCount"], 0);
    assert_eq!(
        done["status"]["observedGeneration"],
        done["metadata"]["generation"]
    );
    cluster.stop().await;
}

/// `RetryPendingResizes`.
#[tokio::test(start_paused = true)]
async fn resize_without_room_waits_until_another_pod_goes() {
    let cluster = start().await;
    let pods: Api<Pod> = here(&cluster);
    ready(&cluster, pod("a", "node-1", "3")).await;
    ready(&cluster, pod("b", "node-1", "4")).await;
    resize(&cluster, "a", "6").await.expect("it is accepted");
    let waits = until(&pods, "a", |pod| is_true(pod, "PodResizePending")).await;
    let pending = condition(&waits, "PodResizePending");
    assert_eq!(pending["reason"], "Deferred");
    let message =
        "Node didn't have enough resource: cpu, requested: 6000, used: 4000, capacity: 8000";
    assert_eq!(pending["message"], message);
    assert_eq!(
        pending["observedGeneration"],
        waits["metadata"]["generation"]
    );
    assert_eq!(cpu(&waits), "3");
    // What waits takes nothing: there is room for one more core, and no more than that.
    ready(&cluster, pod("c", "node-1", "1")).await;
    let fork = cluster.fork().await.expect("a fork");
    for cluster in [&cluster, &fork] {
        let pods: Api<Pod> = here(cluster);
        let gone = pods
            .delete("b", &DeleteParams::default().grace_period(0))
            .await;
        gone.expect("it goes");
        let done = until(&pods, "a", |pod| cpu(pod) == "6").await;
        assert!(condition(&done, "PodResizePending").is_null());
        create(&pods, pod("d", "node-1", "2")).await;
        let full = until(&pods, "d", |pod| pod["status"]["phase"] == "Failed").await;
        assert_eq!(full["status"]["reason"], "OutOfcpu");
    }
    fork.stop().await;
    cluster.stop().await;
}

/// `podResizesAdmitHandler.Admit`, and the scheduler's `AggregateContainerRequests`.
#[tokio::test(start_paused = true)]
async fn processors_of_its_own_cannot_be_resized() {
    let cluster = start().await;
    let nodes = cluster.nodes();
    let node = NodeSpec::new("pinned").static_cpus();
    nodes.add(node).await.expect("it registers");
    let pods: Api<Pod> = here(&cluster);
    ready(&cluster, pod("p", "pinned", "1")).await;
    resize(&cluster, "p", "2").await.expect("it is accepted");
    let waits = until(&pods, "p", |pod| is_true(pod, "PodResizePending")).await;
    let pending = condition(&waits, "PodResizePending");
    assert_eq!(pending["reason"], "Infeasible");
    let message =
        "Resize is infeasible for Guaranteed Pods alongside CPU Manager policy \"static\"";
    assert_eq!(pending["message"], message);
    let event = "Pod resize Infeasible: {\"containers\":[{\"name\":\"app\",\"resources\":{\"limits\":{\"cpu\":\"2\",\
        \"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"2\",\"memory\":\"1Gi\"}}}],\"generation\":2,\"error\":\"Resize is \
        infeasible for Guaranteed Pods alongside CPU Manager policy \\\"static\\\"\"}";
    assert!(has_event(&cluster, "p", "ResizeInfeasible", event).await);
    resize(&cluster, "p", "1").await.expect("it is taken back");
    until(&pods, "p", |pod| {
        condition(pod, "PodResizePending").is_null()
    })
    .await;
    cluster.stop().await;
}
