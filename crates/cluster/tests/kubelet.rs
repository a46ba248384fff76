//! What nodes do before and while containers run, in whole clusters on a paused clock: the classic bugs of operators are
//! only found where these are true.

mod world;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Node, Pod, Secret};
use kube::Api;
use kube::api::ListParams;
use kubewright_cluster::node::Pressure;
use kubewright_cluster::node::runtime::{
    ContainerConfig, ContainerId, ExecTarget, Exit, Health, ProbeKind, Program,
};
use kubewright_cluster::{Cluster, NodeSpec};
use kubewright_server::{Streams, Usage};
use serde_json::{Value, json};
use tokio::time::sleep;

use world::{all, condition, create, has_event, here, is_true, start, until};

fn web(replicas: i32) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "app:1",
                "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "web", "key": "password"}}}]}]},
        },
    }})
}

fn secret() -> Value {
    json!({"metadata": {"name": "web"}, "stringData": {"password": "hunter2"}})
}

async fn only_pod(cluster: &Cluster) -> Value {
    let pods: Api<Pod> = here(cluster);
    for _ in 0..600 {
        let found = pods.list(&ListParams::default()).await.expect("an answer");
        if let Some(pod) = found.items.first() {
            return serde_json::to_value(pod).expect("json");
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("there is no pod");
}

fn waiting(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["state"]["waiting"]
}

fn name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().expect("a name")
}

/// The bug of an operator that creates its Deployment before the Secret that it needs.
#[tokio::test(start_paused = true)]
async fn deployment_before_its_secret_is_not_ready_and_says_why() {
    let cluster = start().await;
    create(&here::<Deployment>(&cluster), web(1)).await;
    let pod = only_pod(&cluster).await;
    let pods: Api<Pod> = here(&cluster);
    let reason = "CreateContainerConfigError";
    let pod = until(&pods, name(&pod), |pod| waiting(pod)["reason"] == reason).await;
    assert_eq!(waiting(&pod)["message"], "secret \"web\" not found");
    assert_eq!(pod["status"]["phase"], "Pending");
    assert!(!is_true(&pod, "Ready"));
    assert!(
        has_event(
            &cluster,
            name(&pod),
            "Failed",
            "Error: secret \"web\" not found"
        )
        .await
    );
    sleep(Duration::from_secs(900)).await;
    let deployment = until(&here::<Deployment>(&cluster), "web", |_| true).await;
    assert_eq!(
        condition(&deployment, "Progressing")["reason"],
        "ProgressDeadlineExceeded"
    );
    // The operator makes up for it: the kubelet looks again within seconds.
    create(&here::<Secret>(&cluster), secret()).await;
    until(&here::<Deployment>(&cluster), "web", |d| {
        is_true(d, "Available")
    })
    .await;
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deployment_after_its_secret_is_ready_at_once() {
    let cluster = start().await;
    create(&here::<Secret>(&cluster), secret()).await;
    create(&here::<Deployment>(&cluster), web(2)).await;
    until(&here::<Deployment>(&cluster), "web", |d| {
        is_true(d, "Available")
    })
    .await;
    let events = all(&here::<Event>(&cluster)).await;
    let warnings = events
        .iter()
        .filter(|event| event["type"] == "Warning" && event["reason"] == "Failed");
    assert_eq!(warnings.count(), 0);
    cluster.stop().await;
}

/// `scheduler/eventhandlers.go: AdmissionCheck`: a kubelet looks at ports of the node too, whoever put the pod there.
#[tokio::test(start_paused = true)]
async fn pod_that_is_put_on_a_taken_host_port_is_rejected() {
    let cluster = start().await;
    let pods: Api<Pod> = here(&cluster);
    let node = all(&Api::<Node>::all(cluster.client())).await;
    let node = name(&node[0]).to_owned();
    let pod = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "app", "image": "app:1", "ports": [{"containerPort": 80, "hostPort": 80}]}]}})
    };
    create(&pods, pod("first")).await;
    until(&pods, "first", |pod| is_true(pod, "Ready")).await;
    create(&pods, pod("second")).await;
    let second = until(&pods, "second", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(second["status"]["reason"], "NodePorts");
    assert_eq!(
        second["status"]["message"],
        "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    );
    let gone = pods.delete("first", &Default::default()).await;
    gone.expect("it goes");
    until(&pods, "first", Value::is_null).await;
    create(&pods, pod("third")).await;
    until(&pods, "third", |pod| is_true(pod, "Ready")).await;
    cluster.stop().await;
}

/// A database: it refuses to be ready before its operator has initialised it.
struct FakeDatabase {
    started: Arc<AtomicUsize>,
    initialised: Arc<AtomicUsize>,
}

impl Program for FakeDatabase {
    async fn run(&self, container: ContainerConfig) -> Exit {
        self.started.fetch_add(1, Ordering::SeqCst);
        let user = container.env("USER").unwrap_or("nobody").to_owned();
        container.log.print(&format!("listening as {user}"));
        container.stopped().await;
        container.log.print("goodbye");
        Exit::code(0)
    }

    async fn exec(&self, _: ExecTarget, command: Vec<String>, streams: Streams) -> i32 {
        if command == ["init"] {
            self.initialised.fetch_add(1, Ordering::SeqCst);
            streams.write("done\n").await;
            return 0;
        }
        2
    }

    async fn http(&self, _: ContainerId, port: u16, _: Request<Bytes>) -> Option<Response<Bytes>> {
        (port == 5432).then(|| Response::new(Bytes::from("hello")))
    }

    async fn probe(&self, _: ContainerId, _: ProbeKind) -> Health {
        match self.initialised.load(Ordering::SeqCst) {
            0 => Health::Unhealthy("not initialised".to_owned()),
            _ => Health::Healthy,
        }
    }

    fn usage(&self, _: &ContainerId) -> Option<Usage> {
        Some(Usage {
            cpu: 250,
            memory: 1 << 20,
        })
    }
}

#[tokio::test(start_paused = true)]
async fn program_of_a_test_lives_in_its_container() {
    let cluster = start().await;
    let (started, initialised) = (Arc::default(), Arc::default());
    let program = FakeDatabase {
        started: Arc::clone(&started),
        initialised: Arc::clone(&initialised),
    };
    cluster.nodes().run_image("postgres:*", program);
    let pods: Api<Pod> = here(&cluster);
    create(
        &pods,
        json!({"metadata": {"name": "db"}, "spec": {"containers": [{
            "name": "db", "image": "postgres:16", "env": [{"name": "USER", "value": "admin"}],
            "readinessProbe": {"exec": {"command": ["pg_isready"]}, "periodSeconds": 5},
        }]}}),
    )
    .await;
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    let pod = until(&pods, "db", running).await;
    assert!(!is_true(&pod, "Ready"));
    assert!(
        has_event(
            &cluster,
            "db",
            "Unhealthy",
            "Readiness probe failed: not initialised"
        )
        .await
    );
    let log = pods.logs("db", &Default::default()).await.expect("a log");
    assert_eq!(log, "listening as admin\n");
    initialised.store(1, Ordering::SeqCst);
    until(&pods, "db", |pod| is_true(pod, "Ready")).await;
    // What it uses is served as a metrics server serves it.
    let request = Request::get("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/db");
    let request = request.body(Vec::new()).expect("a request");
    let metrics: Value = cluster.client().request(request).await.expect("an answer");
    assert_eq!(
        metrics["containers"][0]["usage"],
        json!({"cpu": "250m", "memory": "1024Ki"})
    );
    let request = Request::get("/api/v1/namespaces/default/pods/db:5432/proxy/x?y=1");
    let request = request.body(Vec::new()).expect("a request");
    let answer = cluster
        .client()
        .request_text(request)
        .await
        .expect("an answer");
    assert_eq!(answer, "hello");
    // Killed, it comes back as any other container.
    cluster.nodes().pod("db").crash(1).await.expect("it runs");
    let pod = until(&pods, "db", |pod| {
        pod["status"]["containerStatuses"][0]["restartCount"] == 1
    })
    .await;
    let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(
        (&last["exitCode"], &last["reason"]),
        (&json!(137), &json!("Error"))
    );
    until(&pods, "db", |pod| is_true(pod, "Ready")).await;
    assert_eq!(started.load(Ordering::SeqCst), 2);
    pods.delete("db", &Default::default())
        .await
        .expect("it is deleted");
    until(&pods, "db", Value::is_null).await;
    cluster.stop().await;
}

/// A server whose hooks open and drain it.
struct Hooked {
    heard: Arc<Mutex<Vec<String>>>,
}

impl Hooked {
    fn hear(&self, what: impl Into<String>) {
        self.heard.lock().expect("no test panics").push(what.into());
    }
}

impl Program for Hooked {
    async fn run(&self, container: ContainerConfig) -> Exit {
        self.hear("run");
        container.stopped().await;
        self.hear("SIGTERM");
        Exit::code(143)
    }

    async fn exec(&self, _: ExecTarget, command: Vec<String>, _: Streams) -> i32 {
        sleep(Duration::from_secs(3)).await;
        self.hear(command.join(" "));
        i32::from(command == ["refuse"])
    }

    async fn http(
        &self,
        _: ContainerId,
        port: u16,
        request: Request<Bytes>,
    ) -> Option<Response<Bytes>> {
        self.hear(request.uri().path());
        (port == 8080).then(|| Response::new(Bytes::new()))
    }
}

/// `kuberuntime_container.go: startContainer, killContainer` and `lifecycle/handlers.go: handlerRunner.Run`.
#[tokio::test(start_paused = true)]
async fn hooks_ask_the_program_of_a_container() {
    let cluster = start().await;
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let program = Hooked {
        heard: Arc::clone(&heard),
    };
    cluster.nodes().run_image("server:*", program);
    let pods: Api<Pod> = here(&cluster);
    let pod = |name: &str, command: &str| {
        json!({"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [{
            "name": "app", "image": "server:1", "ports": [{"name": "admin", "containerPort": 8080}], "lifecycle": {
                "postStart": {"exec": {"command": [command]}},
                "preStop": {"httpGet": {"port": "admin", "path": "/drain"}}}}]}})
    };
    create(&pods, pod("good", "open")).await;
    let reason = |pod: &Value| waiting(pod)["reason"].clone();
    until(&pods, "good", |pod| reason(pod) == "ContainerCreating").await;
    until(&pods, "good", |pod| is_true(pod, "Ready")).await;
    pods.delete("good", &Default::default())
        .await
        .expect("it is deleted");
    until(&pods, "good", Value::is_null).await;
    let all = std::mem::take(&mut *heard.lock().expect("no test panics"));
    assert_eq!(all, ["run", "open", "/drain", "SIGTERM"]);
    create(&pods, pod("bad", "refuse")).await;
    let bad = until(&pods, "bad", |pod| pod["status"]["phase"] == "Failed").await;
    let state = &bad["status"]["containerStatuses"][0]["state"];
    assert_eq!(state["terminated"]["exitCode"], 143);
    let message = "PostStartHook failed";
    assert!(has_event(&cluster, "bad", "FailedPostStartHook", message).await);
    assert!(has_event(&cluster, "bad", "Killing", "FailedPostStartHook").await);
    let all = heard.lock().expect("no test panics").clone();
    assert_eq!(all, ["run", "refuse", "/drain", "SIGTERM"]);
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn node_that_is_low_on_memory_evicts_and_takes_no_more() {
    let cluster = start().await;
    let pods: Api<Pod> = here(&cluster);
    let pod = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {"nodeName": "node-1",
        "containers": [{"name": "app", "image": "app:1"}]}})
    };
    create(&pods, pod("first")).await;
    until(&pods, "first", |pod| is_true(pod, "Ready")).await;
    cluster
        .nodes()
        .pressure("node-1", [Pressure::Memory])
        .await
        .expect("a node");
    let first = until(&pods, "first", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(first["status"]["reason"], "Evicted");
    assert_eq!(
        condition(&first, "DisruptionTarget")["reason"],
        "TerminationByKubelet"
    );
    let node = until(&Api::<Node>::all(cluster.client()), "node-1", |node| {
        is_true(node, "MemoryPressure")
    })
    .await;
    assert_eq!(
        condition(&node, "MemoryPressure")["reason"],
        "KubeletHasInsufficientMemory"
    );
    create(&pods, pod("second")).await;
    let second = until(&pods, "second", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(
        second["status"]["message"],
        "Pod was rejected: The node had condition: [MemoryPressure]. "
    );
    cluster
        .nodes()
        .pressure("node-1", [])
        .await
        .expect("a node");
    create(&pods, pod("third")).await;
    until(&pods, "third", |pod| is_true(pod, "Ready")).await;
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pod_on_a_node_without_room_is_rejected() {
    let cluster = start().await;
    let pods: Api<Pod> = here(&cluster);
    create(
        &pods,
        json!({"metadata": {"name": "large"}, "spec": {"nodeName": "node-1", "containers": [
        {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "9"}}}]}}),
    )
    .await;
    let pod = until(&pods, "large", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(pod["status"]["reason"], "OutOfcpu");
    let message = "Node didn't have enough resource: cpu, requested: 9000, used: 0, capacity: 8000";
    assert_eq!(
        pod["status"]["message"],
        format!("Pod was rejected: {message}")
    );
    assert!(has_event(&cluster, "large", "OutOfcpu", message).await);
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn fork_and_restore_keep_what_nodes_know() {
    let cluster = start().await;
    cluster
        .nodes()
        .add(NodeSpec::new("third"))
        .await
        .expect("added");
    let snapshot = cluster.snapshot().await;
    cluster.nodes().remove("node-2").await.expect("removed");
    cluster.nodes().stop("third").await.expect("silenced");
    cluster
        .nodes()
        .pressure("node-1", [Pressure::Disk])
        .await
        .expect("a node");
    let api = |cluster: &Cluster| Api::<Node>::all(cluster.client());
    until(&api(&cluster), "node-1", |node| {
        is_true(node, "DiskPressure")
    })
    .await;
    let fork = cluster.fork().await.expect("a fork");
    sleep(Duration::from_secs(600)).await;
    for cluster in [&cluster, &fork] {
        assert_eq!(all(&api(cluster)).await.len(), 2, "node-2 was removed");
        let third = until(&api(cluster), "third", |_| true).await;
        assert_eq!(condition(&third, "Ready")["status"], "Unknown");
        let first = until(&api(cluster), "node-1", |_| true).await;
        assert!(is_true(&first, "DiskPressure"));
    }
    cluster.restore(&snapshot).await.expect("restored");
    until(&api(&cluster), "node-2", |node| is_true(node, "Ready")).await;
    until(&api(&cluster), "third", |node| is_true(node, "Ready")).await;
    until(&api(&cluster), "node-1", |node| {
        !is_true(node, "DiskPressure")
    })
    .await;
    fork.stop().await;
    cluster.stop().await;
}
