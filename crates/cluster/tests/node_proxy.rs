//! What kubelets serve of their pods through `nodes/proxy`, in whole clusters on a paused clock.

mod world;

use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kubewright_cluster::{Cluster, Measured};
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

use world::{create, here, is_true, start, until};

async fn ask(cluster: &Cluster, path: &str) -> Result<String, kube::Error> {
    let path = format!("/api/v1/nodes/node-1/proxy{path}");
    let request = Request::get(path).body(Vec::new()).expect("a request");
    cluster.client().request_text(request).await
}

async fn json_of(cluster: &Cluster, path: &str) -> Value {
    let text = ask(cluster, path).await.expect("an answer");
    serde_json::from_str(&text).expect("json")
}

/// `pkg/kubelet/server/server.go: getPods`, `stats/summary.go`, `metrics/collectors/resource_metrics.go`.
#[tokio::test(start_paused = true)]
async fn kubelet_serves_its_pods_and_what_they_use() {
    let cluster = start().await;
    let pods: Api<Pod> = here(&cluster);
    for (name, node) in [("p", "node-1"), ("elsewhere", "node-2")] {
        let annotations =
            json!({"sim.kubewright.dev/cpu": "250m", "sim.kubewright.dev/memory": "64Mi"});
        create(
            &pods,
            json!({"metadata": {"name": name, "annotations": annotations},
            "spec": {"nodeName": node, "containers": [{"name": "app", "image": "app:1"}]}}),
        )
        .await;
        until(&pods, name, |pod| is_true(pod, "Ready")).await;
    }
    let list = json_of(&cluster, "/pods").await;
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("PodList"), &json!("v1"))
    );
    let items = list["items"].as_array().expect("a list");
    let names: Vec<_> = items.iter().map(|pod| &pod["metadata"]["name"]).collect();
    assert_eq!(names, ["p"]);
    assert_eq!(
        items[0]["metadata"]["annotations"]["kubernetes.io/config.source"],
        "api"
    );
    let first = json_of(&cluster, "/stats/summary").await;
    sleep(Duration::from_secs(60)).await;
    let second = json_of(&cluster, "/stats/summary").await;
    let pod = &second["pods"][0];
    assert_eq!(pod["podRef"]["name"], "p");
    assert_eq!(pod["containers"][0]["cpu"]["usageNanoCores"], 250_000_000);
    assert_eq!(pod["memory"]["workingSetBytes"], 64 << 20);
    assert_eq!(second["node"]["memory"]["workingSetBytes"], 64 << 20);
    let time = |summary: &Value| {
        summary["node"]["cpu"]["usageCoreNanoSeconds"]
            .as_u64()
            .expect("a number")
    };
    let used = time(&second) - time(&first);
    assert!((15_000_000_000..16_000_000_000).contains(&used), "{used}");
    // What autoscalers are given is what the node reports.
    let set = cluster
        .metrics()
        .set(Measured::container("default", "p", "app"), "memory", "96Mi");
    set.expect("a quantity");
    let text = ask(&cluster, "/metrics/resource").await.expect("an answer");
    let line = "container_memory_working_set_bytes{container=\"app\",namespace=\"default\",pod=\"p\"} 100663296 ";
    assert!(text.lines().any(|found| found.starts_with(line)), "{text}");
    assert_eq!(ask(&cluster, "/healthz").await.expect("an answer"), "ok");
    assert!(ask(&cluster, "/nothing").await.is_err());
    cluster.nodes().stop("node-1").await.expect("a node");
    assert!(ask(&cluster, "/pods").await.is_err());
    cluster.stop().await;
}
