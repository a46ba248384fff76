//! Scheduler, simulated nodes and the node lifecycle controller against a server in the same process, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::{DeleteParams, LogParams, Patch, PatchParams, PostParams};
use kubewright_cluster::node::Logs;
use kubewright_cluster::{NodeLifecycle, NodeSpec, Nodes, NodesOptions, Scheduler};
use kubewright_runtime::environment::{Clock, VirtualClock};
use kubewright_runtime::{Client, Environment};
use kubewright_server::Server;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The server's clock is the same as everybody's.
struct Shared(VirtualClock);

impl kubewright_server::Clock for Shared {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// A server with everything that makes pods run.
struct World {
    kube: kube::Client,
    nodes: Nodes,
    cancel: CancellationToken,
    tasks: JoinSet<()>,
    _server: Server,
}

impl World {
    async fn new(options: NodesOptions) -> Self {
        let start = Timestamp::from_second(1_800_000_000).expect("in range");
        let clock = VirtualClock::starting_at(start);
        let environment = Environment::seeded(clock, 7);
        let logs = Logs::default();
        let server = Server::builder()
            .environment(kubewright_server::Environment::seeded(Shared(clock), 7))
            .pod_logs(Arc::new(logs.clone()));
        let server = server.start().await.expect("starts");
        let kube = kube::Client::new(server.service(), "default");
        let client = Client::new(kube.clone());
        // Filled one after the other: those who wait for the same store are woken in no particular order.
        client.of::<Pod>().informer().synced().await.expect("pods");
        client
            .of::<Node>()
            .informer()
            .synced()
            .await
            .expect("nodes");
        client
            .of::<Lease>()
            .informer()
            .synced()
            .await
            .expect("leases");
        let nodes = Nodes::new(options.logs(logs));
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let (c, e, stop) = (client.clone(), environment.clone(), cancel.clone());
        tasks.spawn(async move { Scheduler::new().run(c, e, stop).await.expect("runs") });
        let (c, e, stop, n) = (
            client.clone(),
            environment.clone(),
            cancel.clone(),
            nodes.clone(),
        );
        tasks.spawn(async move { n.run(c, e, stop).await.expect("runs") });
        let (c, e, stop) = (client, environment, cancel.clone());
        tasks.spawn(async move { NodeLifecycle::new().run(c, e, stop).await.expect("runs") });
        Self {
            kube,
            nodes,
            cancel,
            tasks,
            _server: server,
        }
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.kube.clone())
    }

    async fn create(&self, name: &str, annotations: Value, spec: Value) {
        let mut all = serde_json::Map::new();
        for (key, value) in annotations.as_object().into_iter().flatten() {
            all.insert(format!("sim.kubewright.dev/{key}"), value.clone());
        }
        let mut pod = json!({
            "metadata": {"name": name, "labels": {"app": "web"}, "annotations": all},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            pod["spec"][key] = value.clone();
        }
        let pod = serde_json::from_value(pod).expect("a pod");
        let created = self.pods().create(&PostParams::default(), &pod).await;
        created.expect("the server takes the pod");
    }

    /// Waits until a pod is as it should be; for ten virtual minutes at most.
    async fn until(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..2_400 {
            let pod = self.pods().get_opt(name).await.expect("an answer");
            last = serde_json::to_value(pod).expect("json");
            if holds(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        panic!("{name} is never {what}: {last:#}");
    }

    async fn running(&self, name: &str) -> Value {
        self.until(name, "ready", is_ready).await
    }

    async fn node(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let api: Api<Node> = Api::all(self.kube.clone());
        let mut last = Value::Null;
        for _ in 0..2_400 {
            last = serde_json::to_value(api.get_opt(name).await.expect("an answer")).expect("json");
            if holds(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        panic!("{name} is never {what}: {last:#}");
    }

    /// Reasons and messages of the events about a pod, once they contain this reason.
    async fn events(&self, name: &str, reason: &str) -> Vec<(String, String)> {
        let api: Api<Event> = Api::default_namespaced(self.kube.clone());
        for _ in 0..200 {
            let events = api.list(&Default::default()).await.expect("an answer");
            let about = events.items.into_iter();
            let about = about.filter(|e| e.involved_object.name.as_deref() == Some(name));
            let found: Vec<_> = about
                .map(|e| (e.reason.unwrap_or_default(), e.message.unwrap_or_default()))
                .collect();
            if found.iter().any(|(r, _)| r == reason) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        panic!("nobody tells {reason} of {name}");
    }

    async fn end(mut self) {
        self.cancel.cancel();
        while let Some(task) = self.tasks.join_next().await {
            task.expect("ends well");
        }
    }
}

fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    static NOTHING: Value = Value::Null;
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.find(|c| c["type"] == type_).unwrap_or(&NOTHING)
}

fn is_ready(object: &Value) -> bool {
    condition(object, "Ready")["status"] == "True"
}

fn three() -> NodesOptions {
    NodesOptions::default().count(3)
}

#[tokio::test(start_paused = true)]
async fn pods_are_spread_over_nodes_and_run() {
    let world = World::new(three()).await;
    let mut places = Vec::new();
    for name in ["a", "b", "c"] {
        world.create(name, json!({}), json!({})).await;
        let pod = world.running(name).await;
        let status = &pod["status"];
        assert_eq!(status["phase"], "Running");
        assert_eq!(status["qosClass"], "BestEffort");
        assert_eq!(condition(&pod, "PodScheduled")["status"], "True");
        assert!(
            status["podIP"]
                .as_str()
                .expect("an address")
                .starts_with("10.244.")
        );
        assert!(
            status["hostIP"]
                .as_str()
                .expect("an address")
                .starts_with("172.18.0.")
        );
        let container = &status["containerStatuses"][0];
        assert_eq!(
            (&container["ready"], &container["restartCount"]),
            (&json!(true), &json!(0))
        );
        places.push(pod["spec"]["nodeName"].as_str().expect("a node").to_owned());
    }
    places.sort();
    assert_eq!(places, ["node-1", "node-2", "node-3"]);
    let events = world.events("a", "Started").await;
    let expected = [
        ("Scheduled", "Successfully assigned default/a to node-1"),
        (
            "Pulled",
            "Container image \"app:1\" already present on machine",
        ),
        ("Created", "Container created"),
        ("Started", "Container started"),
    ];
    for (reason, message) in expected {
        assert!(
            events.contains(&(reason.to_owned(), message.to_owned())),
            "{reason}: {events:?}"
        );
    }
    let node = world.node("node-2", "ready", is_ready).await;
    assert_eq!(
        node["metadata"]["labels"]["topology.kubernetes.io/zone"],
        "zone-b"
    );
    assert_eq!(node["status"]["allocatable"]["cpu"], "8");
    let leases: Api<Lease> = Api::namespaced(world.kube.clone(), "kube-node-lease");
    assert!(leases.get("node-2").await.is_ok());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn lease_is_renewed_every_ten_seconds_whatever_others_do_to_it() {
    let world = World::new(three()).await;
    world.node("node-1", "ready", is_ready).await;
    let leases: Api<Lease> = Api::namespaced(world.kube.clone(), "kube-node-lease");
    let renewed = |lease: &Lease| {
        let spec = lease.spec.as_ref().expect("a spec");
        assert_eq!(spec.lease_duration_seconds, Some(40));
        spec.renew_time.as_ref().expect("it was renewed").0
    };
    let mut last = renewed(&leases.get("node-1").await.expect("a lease"));
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let now = renewed(&leases.get("node-1").await.expect("a lease"));
        assert_eq!(now.duration_since(last).as_secs(), 10);
        last = now;
    }
    let note = Patch::Merge(json!({"metadata": {"annotations": {"seen": "yes"}}}));
    let noted = leases.patch("node-1", &PatchParams::default(), &note).await;
    noted.expect("it takes a note");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let lease = leases.get("node-1").await.expect("a lease");
    assert_eq!(renewed(&lease).duration_since(last).as_secs(), 10);
    assert_eq!(lease.metadata.annotations.expect("notes")["seen"], "yes");
    let deleted = leases.delete("node-1", &DeleteParams::default()).await;
    deleted.expect("it goes");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(leases.get("node-1").await.is_ok(), "it is made again");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn pod_that_fits_nowhere_says_why_until_a_node_comes() {
    let world = World::new(three()).await;
    let resources = json!({"requests": {"cpu": "12"}});
    let spec = json!({"containers": [{"name": "app", "image": "app:1", "resources": resources}]});
    world.create("big", json!({}), spec).await;
    let message = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: \
                3 Preemption is not helpful for scheduling.";
    let refused = |pod: &Value| condition(pod, "PodScheduled")["reason"] == "Unschedulable";
    let pod = world.until("big", "refused", refused).await;
    let scheduled = condition(&pod, "PodScheduled");
    assert_eq!(
        (&scheduled["status"], &scheduled["message"]),
        (&json!("False"), &json!(message))
    );
    let events = world.events("big", "FailedScheduling").await;
    assert!(events.contains(&("FailedScheduling".to_owned(), message.to_owned())));
    let huge = NodeSpec::new("huge").resource("cpu", "64");
    world.nodes.add(huge).await.expect("registers");
    let pod = world.running("big").await;
    assert_eq!(pod["spec"]["nodeName"], "huge");
    assert_eq!(condition(&pod, "PodScheduled")["reason"], Value::Null);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn gates_and_other_schedulers_keep_pods_waiting_and_cordons_keep_nodes_free() {
    let world = World::new(NodesOptions::default().count(2)).await;
    world
        .create(
            "gated",
            json!({}),
            json!({"schedulingGates": [{"name": "example.com/wait"}]}),
        )
        .await;
    world
        .create("foreign", json!({}), json!({"schedulerName": "mine"}))
        .await;
    let nodes: Api<Node> = Api::all(world.kube.clone());
    world.node("node-1", "there", |node| !node.is_null()).await;
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    nodes
        .patch("node-1", &PatchParams::default(), &cordon)
        .await
        .expect("cordoned");
    let tainted =
        |node: &Value| node["spec"]["taints"][0]["key"] == "node.kubernetes.io/unschedulable";
    world.node("node-1", "tainted", tainted).await;
    for name in ["a", "b"] {
        world.create(name, json!({}), json!({})).await;
        assert_eq!(world.running(name).await["spec"]["nodeName"], "node-2");
    }
    for name in ["gated", "foreign"] {
        let pod = world.until(name, "there", |pod| !pod.is_null()).await;
        assert_eq!(pod["spec"]["nodeName"], Value::Null, "{name}");
    }
    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    world
        .pods()
        .patch("gated", &PatchParams::default(), &open)
        .await
        .expect("opened");
    world.running("gated").await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn stages_come_from_annotations_and_logs_tell_of_them() {
    let world = World::new(three()).await;
    world
        .create(
            "slow",
            json!({"start-delay": "5s", "ready-delay": "5s"}),
            json!({}),
        )
        .await;
    world
        .create(
            "loop",
            json!({"crash-loop": "true", "exit-code": "7", "log": "boom"}),
            json!({}),
        )
        .await;
    world
        .create("job", json!({}), json!({"restartPolicy": "Never"}))
        .await;
    world
        .until("job", "done", |pod| pod["status"]["phase"] == "Succeeded")
        .await;
    let looping = |pod: &Value| {
        let container = &pod["status"]["containerStatuses"][0];
        container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
            && container["restartCount"] == 3
    };
    let pod = world.until("loop", "restarted", looping).await;
    let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(
        (&last["exitCode"], &last["reason"]),
        (&json!(7), &json!("Error"))
    );
    world.events("loop", "BackOff").await;
    world.running("slow").await;
    let log = world
        .pods()
        .logs("loop", &LogParams::default())
        .await
        .expect("a log");
    let expected =
        "container app started, image app:1, restarts 3\nboom\ncontainer app exited with code 7\n";
    assert_eq!(log, expected);
    let previous = LogParams {
        previous: true,
        ..LogParams::default()
    };
    let log = world.pods().logs("loop", &previous).await.expect("a log");
    assert!(log.starts_with("container app started, image app:1, restarts 2"));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn deleted_pod_stops_gracefully_and_goes() {
    let world = World::new(three()).await;
    world
        .create("p", json!({"stop-delay": "3s"}), json!({}))
        .await;
    world.running("p").await;
    let before = tokio::time::Instant::now();
    world
        .pods()
        .delete("p", &DeleteParams::default())
        .await
        .expect("deleted");
    let going = world
        .until("p", "going", |pod| {
            !pod["metadata"]["deletionTimestamp"].is_null()
        })
        .await;
    assert_eq!(going["status"]["phase"], "Running");
    world.until("p", "gone", Value::is_null).await;
    let took = before.elapsed();
    assert!(
        took >= Duration::from_secs(3) && took < Duration::from_secs(4),
        "{took:?}"
    );
    world.events("p", "Killing").await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn silent_node_loses_its_pods_and_comes_back() {
    let world = World::new(NodesOptions::default().count(2)).await;
    let here = json!({"nodeSelector": {"kubernetes.io/hostname": "node-1"}});
    world.create("p", json!({}), here).await;
    world.running("p").await;
    world.nodes.stop("node-1").await.expect("stops");
    let unknown = |node: &Value| condition(node, "Ready")["status"] == "Unknown";
    let node = world.node("node-1", "unknown", unknown).await;
    let ready = condition(&node, "Ready");
    assert_eq!(ready["reason"], "NodeStatusUnknown");
    assert_eq!(ready["message"], "Kubelet stopped posting node status.");
    let tainted = |node: &Value| {
        let taints = node["spec"]["taints"].as_array().map_or(0, Vec::len);
        taints == 2
    };
    world.node("node-1", "tainted", tainted).await;
    world
        .until("p", "unready", |pod| {
            condition(pod, "Ready")["status"] == "False"
        })
        .await;
    let evicted = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
    let pod = world.until("p", "evicted", evicted).await;
    assert_eq!(
        condition(&pod, "DisruptionTarget")["reason"],
        "DeletionByTaintManager"
    );
    world.nodes.start("node-1").await.expect("starts");
    world.until("p", "gone", Value::is_null).await;
    let well = |node: &Value| {
        is_ready(node) && node["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
    };
    world.node("node-1", "well", well).await;
    world.end().await;
}

/// `node_lifecycle_controller.go: handleDisruption`, the "master disruption mode".
#[tokio::test(start_paused = true)]
async fn nobody_is_evicted_while_no_node_answers() {
    let world = World::new(NodesOptions::default().count(1)).await;
    world.create("p", json!({}), json!({})).await;
    world.running("p").await;
    world.nodes.stop("node-1").await.expect("stops");
    let unknown = |node: &Value| condition(node, "Ready")["status"] == "Unknown";
    world.node("node-1", "unknown", unknown).await;
    tokio::time::sleep(Duration::from_secs(1_200)).await;
    let node = world.node("node-1", "there", Value::is_object).await;
    let taints = node["spec"]["taints"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let effects: Vec<_> = taints.iter().map(|taint| &taint["effect"]).collect();
    assert_eq!(effects, [&json!("NoSchedule")]);
    let pod = world.until("p", "there", Value::is_object).await;
    assert!(pod["metadata"]["deletionTimestamp"].is_null(), "{pod:#}");
    // A node that joins is the one that serves: now the silent one is given up.
    world
        .nodes
        .add(NodeSpec::new("other"))
        .await
        .expect("registers");
    let evicted = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
    world.until("p", "evicted", evicted).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn nodes_come_and_go() {
    let world = World::new(NodesOptions::default()).await;
    world.create("p", json!({}), json!({})).await;
    let none = |pod: &Value| {
        condition(pod, "PodScheduled")["message"] == "no nodes available to schedule pods"
    };
    world.until("p", "refused", none).await;
    world
        .nodes
        .add(NodeSpec::new("one"))
        .await
        .expect("registers");
    world.running("p").await;
    let again = world.nodes.add(NodeSpec::new("one")).await;
    assert!(again.is_err());
    world.nodes.remove("one").await.expect("goes");
    world.node("one", "gone", Value::is_null).await;
    assert!(world.nodes.stop("one").await.is_err());
    let made = json!({"metadata": {"name": "two", "annotations": {"sim.kubewright.dev/simulate": "true"}}});
    let nodes: Api<Node> = Api::all(world.kube.clone());
    let made = serde_json::from_value(made).expect("a node");
    nodes
        .create(&PostParams::default(), &made)
        .await
        .expect("made by hand");
    world.node("two", "ready", is_ready).await;
    world.create("q", json!({}), json!({})).await;
    assert_eq!(world.running("q").await["spec"]["nodeName"], "two");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn claim_that_waits_for_its_first_pod_gets_the_node() {
    let world = World::new(three()).await;
    let class: StorageClass = serde_json::from_value(json!({
        "metadata": {"name": "lazy"}, "provisioner": "example.com/none", "volumeBindingMode": "WaitForFirstConsumer",
    }))
    .expect("a class");
    let classes: Api<StorageClass> = Api::all(world.kube.clone());
    classes
        .create(&PostParams::default(), &class)
        .await
        .expect("a class");
    let volumes =
        json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]});
    world.create("p", json!({}), volumes).await;
    let missing = |pod: &Value| {
        let message = condition(pod, "PodScheduled")["message"].as_str();
        message.is_some_and(|m| m.contains("persistentvolumeclaim \"data\" not found"))
    };
    world.until("p", "refused", missing).await;
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"name": "data"},
        "spec": {"storageClassName": "lazy", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }))
    .expect("a claim");
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(world.kube.clone());
    claims
        .create(&PostParams::default(), &claim)
        .await
        .expect("a claim");
    let mut chosen = None;
    for _ in 0..400 {
        let claim = claims.get("data").await.expect("the claim");
        let annotations = claim.metadata.annotations.unwrap_or_default();
        chosen = annotations
            .get("volume.kubernetes.io/selected-node")
            .cloned();
        if chosen.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let pod = world.until("p", "there", |pod| !pod.is_null()).await;
    assert_eq!(
        pod["spec"]["nodeName"],
        Value::Null,
        "not before the claim is bound"
    );
    let uid = claims.get("data").await.expect("the claim").metadata.uid;
    let volume: PersistentVolume = serde_json::from_value(json!({
        "metadata": {"name": "pv"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"},
            "claimRef": {"namespace": "default", "name": "data", "uid": uid}},
    }))
    .expect("a volume");
    let volumes: Api<PersistentVolume> = Api::all(world.kube.clone());
    volumes
        .create(&PostParams::default(), &volume)
        .await
        .expect("a volume");
    let params = PatchParams::default();
    let name = Patch::Merge(json!({"spec": {"volumeName": "pv"}}));
    claims
        .patch("data", &params, &name)
        .await
        .expect("a volume");
    let bound = Patch::Merge(json!({"status": {"phase": "Bound"}}));
    claims
        .patch_status("data", &params, &bound)
        .await
        .expect("bound");
    let pod = world.running("p").await;
    assert_eq!(pod["spec"]["nodeName"].as_str(), chosen.as_deref());
    world.end().await;
}

/// Everything that a cluster holds after a minute in which pods came, crashed and went.
async fn history() -> Value {
    let world = World::new(three()).await;
    for i in 0..4 {
        world.create(&format!("p{i}"), json!({}), json!({})).await;
    }
    world
        .create("loop", json!({"crash-loop": "true"}), json!({}))
        .await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let gone = world.pods().delete("p1", &DeleteParams::default()).await;
    gone.expect("deleted");
    world
        .nodes
        .add(NodeSpec::new("late"))
        .await
        .expect("registers");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let events: Api<Event> = Api::all(world.kube.clone());
    let nodes: Api<Node> = Api::all(world.kube.clone());
    let all = json!({
        "pods": world.pods().list(&Default::default()).await.expect("pods"),
        "nodes": nodes.list(&Default::default()).await.expect("nodes"),
        "events": events.list(&Default::default()).await.expect("events"),
    });
    world.end().await;
    all
}

#[test]
fn one_seed_gives_one_history() {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build();
        runtime.expect("a runtime").block_on(history())
    };
    let (one, other) = (run(), run());
    assert_eq!(difference("", &one, &other), None);
}

/// Where two values differ first.
fn difference(path: &str, one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => a
            .iter()
            .find_map(|(key, value)| difference(&format!("{path}.{key}"), value, &b[key])),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut pairs = a.iter().zip(b).enumerate();
            pairs.find_map(|(i, (a, b))| difference(&format!("{path}[{i}]"), a, b))
        }
        _ => (one != other).then(|| format!("{path}: {one} and {other}")),
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_run_again_go_on_where_they_were() {
    let mut world = World::new(NodesOptions::default()).await;
    world
        .nodes
        .add(NodeSpec::new("late"))
        .await
        .expect("registers");
    world.create("p", json!({}), json!({})).await;
    let before = world.running("p").await;
    world.cancel.cancel();
    while let Some(task) = world.tasks.join_next().await {
        task.expect("ends well");
    }
    world
        .pods()
        .delete("p", &DeleteParams::default())
        .await
        .expect("deleted");
    world.cancel = CancellationToken::new();
    let later = Timestamp::from_second(1_800_000_100).expect("in range");
    let environment = Environment::seeded(VirtualClock::starting_at(later), 8);
    let (nodes, stop) = (world.nodes.clone(), world.cancel.clone());
    let client = Client::new(world.kube.clone());
    world.tasks.spawn(async move {
        nodes
            .run(client, environment, stop)
            .await
            .expect("runs again")
    });
    assert_eq!(before["spec"]["nodeName"], "late");
    world.until("p", "gone", Value::is_null).await;
    world.end().await;
}
