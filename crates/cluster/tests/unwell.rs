//! Nodes that are unwell without being silent, are started again or shut down, in whole clusters on a paused clock.

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kubewright_cluster::Cluster;
use kubewright_cluster::node::runtime::{ContainerConfig, ContainerId, Exit, Program};
use kubewright_server::Usage;
use serde_json::{Value, json};
use tokio::time::sleep;

use world::{condition, create, has_event, here, is_true, start, until};

const MESSAGE: &str = "container runtime network not ready";

fn pod(name: &str, annotations: Value, policy: &str) -> Value {
    let mut prefixed = json!({});
    for (key, value) in annotations.as_object().into_iter().flatten() {
        prefixed[format!("sim.kubewright.dev/{key}")] = value.clone();
    }
    json!({"metadata": {"name": name, "annotations": prefixed}, "spec": {"nodeName": "node-1",
        "restartPolicy": policy, "containers": [{"name": "app", "image": "app:1"}]}})
}

fn nodes(cluster: &Cluster) -> Api<Node> {
    Api::all(cluster.client())
}

async fn node(cluster: &Cluster, holds: impl Fn(&Value) -> bool) -> Value {
    until(&nodes(cluster), "node-1", holds).await
}

fn effects(node: &Value) -> Vec<String> {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let taints = taints.map(|taint| format!("{}:{}", taint["key"], taint["effect"]));
    taints.map(|text| text.replace('"', "")).collect()
}

/// `nodestatus.ReadyCondition` and `node_lifecycle_controller.go: doNoScheduleTaintingPass, processTaintBaseEviction`.
#[tokio::test(start_paused = true)]
async fn node_that_is_not_ready_is_tainted_and_goes_on() {
    let cluster = start().await;
    let pods: Api<Pod> = here(&cluster);
    create(&pods, pod("p", json!({}), "Always")).await;
    until(&pods, "p", |pod| is_true(pod, "Ready")).await;
    let set = cluster
        .nodes()
        .not_ready("node-1", "KubeletNotReady", MESSAGE);
    set.await.expect("a node");
    let tainted = node(&cluster, |node| effects(node).len() == 2).await;
    let mut found = effects(&tainted);
    found.sort();
    let key = "node.kubernetes.io/not-ready";
    assert_eq!(
        found,
        [format!("{key}:NoExecute"), format!("{key}:NoSchedule")]
    );
    let ready = condition(&tainted, "Ready");
    assert_eq!(ready["status"], "False");
    assert_eq!(
        (&ready["reason"], &ready["message"]),
        (&json!("KubeletNotReady"), &json!(MESSAGE))
    );
    let text = "Node node-1 status is now: NodeNotReady";
    assert!(has_event(&cluster, "node-1", "NodeNotReady", text).await);
    // It is not silent: it renews its lease, and its pods go on until their tolerations run out.
    sleep(Duration::from_secs(200)).await;
    assert_eq!(
        condition(&node(&cluster, |_| true).await, "Ready")["status"],
        "False"
    );
    assert!(is_true(&until(&pods, "p", Value::is_object).await, "Ready"));
    sleep(Duration::from_secs(200)).await;
    until(&pods, "p", Value::is_null).await;
    cluster.nodes().ready("node-1").await.expect("a node");
    node(&cluster, |node| {
        is_true(node, "Ready") && effects(node).is_empty()
    })
    .await;
    assert!(cluster.nodes().not_ready("nobody", "", "").await.is_err());
    cluster.stop().await;
}

/// `nodestatus.MachineInfo` and `kubeGenericRuntimeManager.computePodActions`.
#[tokio::test(start_paused = true)]
async fn rebooted_node_has_another_boot_id_and_its_pods_begin_again() {
    let cluster = start().await;
    let pods: Api<Pod> = here(&cluster);
    create(&pods, pod("p", json!({}), "Always")).await;
    create(&pods, pod("once", json!({"exit-after": "never"}), "Never")).await;
    let before = until(&pods, "p", |pod| is_true(pod, "Ready")).await;
    until(&pods, "once", |pod| is_true(pod, "Ready")).await;
    let boot = |node: &Value| node["status"]["nodeInfo"]["bootID"].clone();
    let first = boot(&node(&cluster, Value::is_object).await);
    cluster.nodes().reboot("node-1").await.expect("a node");
    let restarted = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"] == 1;
    let after = until(&pods, "p", |pod| restarted(pod) && is_true(pod, "Ready")).await;
    assert_ne!(after["status"]["podIP"], before["status"]["podIP"]);
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    let last = &after["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(
        (&last["exitCode"], &last["reason"]),
        (&json!(255), &json!("Unknown"))
    );
    until(&pods, "once", |pod| pod["status"]["phase"] == "Failed").await;
    let node = node(&cluster, |node| boot(node) != first).await;
    let id = boot(&node);
    let text = format!(
        "Node node-1 has been rebooted, boot id: {}",
        id.as_str().expect("text")
    );
    assert!(has_event(&cluster, "node-1", "Rebooted", &text).await);
    let text = "Pod sandbox changed, it will be killed and re-created.";
    assert!(has_event(&cluster, "p", "SandboxChanged", text).await);
    cluster.stop().await;
}

/// A program that counts how often it was started.
struct Counting(Arc<AtomicUsize>);

impl Program for Counting {
    async fn run(&self, container: ContainerConfig) -> Exit {
        self.0.fetch_add(1, Ordering::SeqCst);
        container.stopped().await;
        Exit::code(0)
    }

    fn usage(&self, container: &ContainerId) -> Option<Usage> {
        let memory = if container.run == 1 { 2 << 20 } else { 0 };
        Some(Usage { cpu: 0, memory })
    }
}

#[tokio::test(start_paused = true)]
async fn program_is_started_again_after_a_reboot_and_killed_when_it_uses_too_much() {
    let cluster = start().await;
    let count: Arc<AtomicUsize> = Arc::default();
    cluster
        .nodes()
        .run_image("app:*", Counting(Arc::clone(&count)));
    let mut counted = pod("p", json!({}), "Always");
    counted["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": "1Mi"}});
    let pods: Api<Pod> = here(&cluster);
    create(&pods, counted).await;
    until(&pods, "p", |pod| is_true(pod, "Ready")).await;
    cluster.nodes().reboot("node-1").await.expect("a node");
    let ended = |pod: &Value, runs: i64| {
        let status = &pod["status"]["containerStatuses"][0];
        let same = status["restartCount"] == runs && is_true(pod, "Ready");
        same.then(|| status["lastState"]["terminated"]["exitCode"].clone())
    };
    let after = until(&pods, "p", |pod| ended(pod, 1).is_some()).await;
    assert_eq!(ended(&after, 1), Some(json!(255)));
    // Its second run uses more memory than it may.
    let after = until(&pods, "p", |pod| ended(pod, 2).is_some()).await;
    let last = &after["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(
        (&last["exitCode"], &last["reason"]),
        (&json!(137), &json!("OOMKilled"))
    );
    assert_eq!(count.load(Ordering::SeqCst), 3);
    cluster.stop().await;
}

/// `nodeshutdown.managerImpl`.
#[tokio::test(start_paused = true)]
async fn node_that_shuts_down_ends_its_pods_takes_no_more_and_is_off() {
    let cluster = start().await;
    let pods: Api<Pod> = here(&cluster);
    create(&pods, pod("p", json!({"stop-delay": "12s"}), "Always")).await;
    until(&pods, "p", |pod| is_true(pod, "Ready")).await;
    cluster.nodes().shut_down("node-1").await.expect("a node");
    create(&pods, pod("late", json!({}), "Always")).await;
    let late = until(&pods, "late", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(late["status"]["reason"], "NodeShutdown");
    let unready = node(&cluster, |node| !is_true(node, "Ready")).await;
    let ready = condition(&unready, "Ready");
    assert_eq!(
        (&ready["reason"], &ready["message"]),
        (&json!("KubeletNotReady"), &json!("node is shutting down"))
    );
    let ended = until(&pods, "p", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(ended["status"]["reason"], "Terminated");
    assert_eq!(
        ended["status"]["message"],
        "Pod was terminated in response to imminent node shutdown."
    );
    // The machine is off: nobody hears of it any more, until it is switched on.
    node(&cluster, |node| {
        condition(node, "Ready")["status"] == "Unknown"
    })
    .await;
    let boot = |node: &Value| node["status"]["nodeInfo"]["bootID"].clone();
    cluster.nodes().start("node-1").await.expect("a node");
    let on = node(&cluster, |node| is_true(node, "Ready")).await;
    assert_ne!(boot(&on), boot(&unready));
    create(&pods, pod("next", json!({}), "Always")).await;
    until(&pods, "next", |pod| is_true(pod, "Ready")).await;
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn forks_and_snapshots_keep_how_nodes_are() {
    let cluster = start().await;
    let snapshot = cluster.snapshot().await;
    let nodes = cluster.nodes();
    nodes.reboot("node-1").await.expect("a node");
    nodes
        .not_ready("node-1", "KubeletNotReady", MESSAGE)
        .await
        .expect("a node");
    nodes.shut_down("node-2").await.expect("a node");
    let unwell = |node: &Value| condition(node, "Ready")["message"] == MESSAGE;
    let boot = |node: &Value| node["status"]["nodeInfo"]["bootID"].clone();
    let first = boot(&node(&cluster, unwell).await);
    sleep(Duration::from_secs(60)).await;
    let fork = cluster.fork().await.expect("a fork");
    sleep(Duration::from_secs(600)).await;
    for cluster in [&cluster, &fork] {
        let one = node(cluster, Value::is_object).await;
        assert!(unwell(&one), "{one:#}");
        assert_eq!(boot(&one), first);
        let two = until(&self::nodes(cluster), "node-2", Value::is_object).await;
        assert_eq!(condition(&two, "Ready")["status"], "Unknown");
    }
    cluster.restore(&snapshot).await.expect("restored");
    let well = node(&cluster, |node| is_true(node, "Ready")).await;
    assert_ne!(boot(&well), first);
    until(&self::nodes(&cluster), "node-2", |node| {
        is_true(node, "Ready")
    })
    .await;
    fork.stop().await;
    cluster.stop().await;
}
