//! A cluster whose containers are processes, and what tests ask of it.

// Not every test asks everything.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, LogParams, PostParams};
use kubewright_cluster::{Builder, Cluster};
use kubewright_process::{ImageProgram, ImageTable, Namespaces, ProcessRuntime, Processes};
use serde_json::{Value, json};
use tokio::time::Instant;

/// How long anything may take before a test fails.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A cluster with one image, `sh`, which is the shell of this machine.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
}

/// Both ways in which containers run here.
pub(crate) fn both() -> [Namespaces; 2] {
    [Namespaces::Auto, Namespaces::Off]
}

pub(crate) fn helper() -> PathBuf {
    env!("CARGO_BIN_EXE_kubewright-process-helper").into()
}

pub(crate) fn processes() -> Processes {
    let table = ImageTable::default().image("sh", ImageProgram::new("/bin/sh"));
    Processes::default().table(table).helper(helper())
}

impl World {
    pub(crate) async fn start(namespaces: Namespaces) -> Self {
        Self::with(processes().namespaces(namespaces)).await
    }

    pub(crate) async fn with(processes: Processes) -> Self {
        Self::with_runtime(processes).await.1
    }

    pub(crate) async fn with_runtime(processes: Processes) -> (Arc<ProcessRuntime>, Self) {
        let runtime = processes.build().expect("the runtime is made");
        println!("containers: {}", runtime.isolation());
        let world = Self::over(Cluster::builder().runtime(runtime.clone())).await;
        (runtime, world)
    }

    pub(crate) async fn over(cluster: Builder) -> Self {
        let cluster = cluster.start().await.expect("the cluster starts");
        Self { cluster }
    }

    /// Waits for an event about a pod with this reason, and returns its message.
    pub(crate) async fn until_event(&self, pod: &str, reason: &str) -> String {
        let events: Api<Event> = Api::default_namespaced(self.cluster.client());
        let late = Instant::now() + LIMIT;
        loop {
            let all = events.list(&ListParams::default()).await.expect("events");
            let of_pod = |event: &&Event| event.involved_object.name.as_deref() == Some(pod);
            let mut found = all.iter().filter(of_pod);
            let wanted = found.find(|event| event.reason.as_deref() == Some(reason));
            if let Some(event) = wanted {
                return event.message.clone().unwrap_or_default();
            }
            let seen: Vec<_> = all
                .iter()
                .filter(of_pod)
                .map(|e| (&e.reason, &e.message))
                .collect();
            assert!(
                Instant::now() < late,
                "no event {reason} about {pod}: {seen:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.cluster.client())
    }

    /// Creates a pod with one container that runs a script, and more of it from JSON.
    pub(crate) async fn script(&self, name: &str, script: &str, more: Value) {
        let mut container = json!({"name": "main", "image": "sh", "args": ["-c", script]});
        merge(&mut container, &more["container"]);
        let mut spec = json!({"containers": [container], "restartPolicy": "Never"});
        merge(&mut spec, &more["spec"]);
        self.create(json!({"metadata": {"name": name}, "spec": spec}))
            .await;
    }

    pub(crate) async fn create(&self, pod: Value) {
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        self.pods()
            .create(&PostParams::default(), &pod)
            .await
            .expect("it is created");
    }

    /// Waits until a pod is as wanted.
    pub(crate) async fn until(&self, name: &str, what: &str, wanted: impl Fn(&Pod) -> bool) -> Pod {
        let late = Instant::now() + LIMIT;
        loop {
            let pod = self.pods().get(name).await.expect("the pod is there");
            if wanted(&pod) {
                return pod;
            }
            let seen = serde_json::to_string(&pod.status).unwrap_or_default();
            assert!(
                Instant::now() < late,
                "{name} is not {what}; last seen: {seen}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn until_phase(&self, name: &str, phase: &str) -> Pod {
        let of = |pod: &Pod| pod.status.as_ref().and_then(|s| s.phase.clone());
        let over = |found: Option<&str>| matches!(found, Some("Failed" | "Succeeded"));
        let is = |pod: &Pod| {
            let found = of(pod);
            found.as_deref() == Some(phase) || over(found.as_deref())
        };
        let pod = self.until(name, phase, is).await;
        if of(&pod).as_deref() != Some(phase) {
            let log = self.log(name).await;
            panic!("{name} is not {phase} but {:?}; its log: {log}", pod.status);
        }
        pod
    }

    /// The log of a pod; empty while it has none.
    pub(crate) async fn log(&self, name: &str) -> String {
        let log = self.pods().logs(name, &LogParams::default()).await;
        log.unwrap_or_default()
    }

    /// Waits until the log of a pod has a text.
    pub(crate) async fn until_log(&self, name: &str, text: &str) -> String {
        let late = Instant::now() + LIMIT;
        loop {
            let log = self.log(name).await;
            if log.contains(text) {
                return log;
            }
            assert!(
                Instant::now() < late,
                "{text:?} is not in the log of {name}: {log}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn delete(&self, name: &str, grace: u32) {
        let how = DeleteParams::default().grace_period(grace);
        self.pods().delete(name, &how).await.expect("it is deleted");
        let late = Instant::now() + LIMIT;
        while self
            .pods()
            .get_opt(name)
            .await
            .expect("the server answers")
            .is_some()
        {
            assert!(Instant::now() < late, "{name} is still there");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The first container of a pod; as if it had no status while it has none.
pub(crate) fn container(pod: &Pod) -> ContainerStatus {
    let statuses = pod
        .status
        .as_ref()
        .and_then(|s| s.container_statuses.clone());
    statuses
        .unwrap_or_default()
        .into_iter()
        .next()
        .unwrap_or_default()
}

/// The processes of this machine whose command line has a text.
pub(crate) fn processes_with(text: &str) -> Vec<i32> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc")
        .expect("there is a /proc")
        .flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut found = Vec::new();
    for name in names.filter(|name| *name != own) {
        let line = std::fs::read(format!("/proc/{name}/cmdline")).unwrap_or_default();
        let ended = std::fs::read_to_string(format!("/proc/{name}/stat"))
            .is_ok_and(|stat| stat.contains(") Z "));
        if let (Ok(pid), false) = (name.parse(), ended)
            && String::from_utf8_lossy(&line).contains(text)
        {
            found.push(pid);
        }
    }
    found
}

/// Waits until no process has a text in its command line.
pub(crate) async fn until_none(text: &str) {
    let late = Instant::now() + LIMIT;
    loop {
        let left = processes_with(text);
        if left.is_empty() {
            return;
        }
        assert!(
            Instant::now() < late,
            "processes with {text:?} are left: {left:?}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until a directory has nothing in it.
pub(crate) async fn until_empty(directory: &Path) {
    let late = Instant::now() + LIMIT;
    loop {
        let left: Vec<_> = std::fs::read_dir(directory)
            .expect("a directory")
            .flatten()
            .collect();
        if left.is_empty() {
            return;
        }
        assert!(
            Instant::now() < late,
            "{left:?} are left in {}",
            directory.display()
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A JSON object with the fields of another one.
pub(crate) fn with(mut object: Value, more: &Value) -> Value {
    merge(&mut object, more);
    object
}

fn merge(into: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}
