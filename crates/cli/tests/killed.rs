//! A cluster of processes that is killed: whoever starts it again finds nothing that still runs.
#![cfg(target_os = "linux")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use support::process::Running;
use tokio::time::Instant;

/// How long anything may take before a test fails.
const LIMIT: Duration = Duration::from_secs(60);

/// A process, by number and by when it started.
type Process = (i32, String);

fn up(place: &Path, namespaces: &str) -> Running {
    let mut command = support::command(place, &["up", "--runtime", "process", "--no-console"]);
    command.args(["--image", "sh=/bin/sh", "--data-dir", "data"]);
    command.args(["--kubeconfig", "kubeconfig", "--namespaces", namespaces]);
    let mut running = Running::start(&mut command);
    running.until("Ctrl-C stops it");
    running
}

async fn pods(place: &Path) -> Api<Pod> {
    let kubeconfig = Kubeconfig::read_from(place.join("kubeconfig")).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let client = Client::try_from(config.expect("a configuration")).expect("a client");
    Api::default_namespaced(client)
}

/// The fields of `/proc/PID/stat` after the name: state, parent, ... and the start time as the 20th.
fn stat(pid: i32) -> Option<(String, Vec<String>)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, rest) = text.rsplit_once(')')?;
    let name = name.split_once('(')?.1.to_owned();
    let fields = rest.split_whitespace().map(ToOwned::to_owned);
    Some((name, fields.collect()))
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.collect()
}

/// Everything below a process, with names.
fn below(root: i32) -> Vec<(Process, String)> {
    let (mut found, mut next) = (Vec::new(), vec![root]);
    let stats: Vec<_> = all()
        .into_iter()
        .filter_map(|pid| Some((pid, stat(pid)?)))
        .collect();
    while let Some(parent) = next.pop() {
        for (pid, (name, fields)) in &stats {
            if fields[1] == parent.to_string() {
                found.push(((*pid, fields[19].clone()), name.clone()));
                next.push(*pid);
            }
        }
    }
    found
}

fn still_there(processes: &BTreeSet<Process>) -> Vec<&Process> {
    let same = |(pid, started): &&Process| {
        stat(*pid).is_some_and(|(_, fields)| fields[19] == *started && fields[0] != "Z")
    };
    processes.iter().filter(same).collect()
}

/// Kills processes, and waits until the last one has ended.
async fn kill(pids: &[i32]) {
    let words = pids.iter().map(ToString::to_string);
    // Some may have ended by themselves.
    let _ = Command::new("kill").arg("-9").args(words).status();
    let late = Instant::now() + LIMIT;
    let runs = |pid: &i32| stat(*pid).is_some_and(|(_, fields)| fields[0] != "Z");
    while pids.last().is_some_and(runs) {
        assert!(Instant::now() < late, "{pids:?} do not end");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Starts a cluster with a pod whose program has a child of its own; returns both and all of their processes.
async fn with_a_pod(place: &Path, namespaces: &str) -> (Running, BTreeSet<Process>, Vec<i32>) {
    let cluster = up(place, namespaces);
    let pods = pods(place).await;
    let script = "sleep 98761 & sleep 98762";
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "stays"},
        "spec": {"restartPolicy": "Never", "containers": [
            {"name": "main", "image": "sh", "args": ["-c", script]},
        ]},
    }))
    .expect("a pod");
    pods.create(&PostParams::default(), &pod)
        .await
        .expect("it is created");
    let late = Instant::now() + LIMIT;
    loop {
        let found = below(cluster.id());
        let sleeping = found.iter().filter(|(_, name)| name == "sleep").count();
        if sleeping == 2 {
            let helpers = found.iter().filter(|(_, name)| name.starts_with("kw-"));
            let helpers = helpers.map(|((pid, _), _)| *pid).collect();
            let processes = found.iter().map(|(process, _)| process.clone()).collect();
            return (cluster, processes, helpers);
        }
        assert!(Instant::now() < late, "last seen: {found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until_gone(processes: &BTreeSet<Process>) {
    let late = Instant::now() + LIMIT;
    while !still_there(processes).is_empty() {
        let left = still_there(processes);
        assert!(Instant::now() < late, "processes are left: {left:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_cluster_that_was_killed() {
    // One after the other: a cluster that comes back needs the network that it had.
    for namespaces in ["auto", "off"] {
        let (_around, place) = support::folder("killed");
        let (cluster, processes, _) = with_a_pod(&place, namespaces).await;
        kill(&[cluster.id()]).await;
        until_gone(&processes).await;
        helpers_are_killed_too(namespaces).await;
    }
}

/// Whoever comes back ends what was left when the helpers were killed with the cluster.
async fn helpers_are_killed_too(namespaces: &str) {
    let (_around, place) = support::folder("killed");
    let (cluster, processes, mut pids) = with_a_pod(&place, namespaces).await;
    pids.push(cluster.id());
    kill(&pids).await;
    if namespaces == "off" {
        // Without namespaces nobody is there to end the programs.
        assert!(!still_there(&processes).is_empty());
    }
    let again = up(&place, namespaces);
    until_gone(&processes).await;
    let pod = pods(&place)
        .await
        .get("stays")
        .await
        .expect("the pod is there");
    let status = serde_json::to_value(&pod.status).unwrap_or_default();
    let ended = &status["containerStatuses"][0]["state"]["terminated"];
    assert!(ended.is_null() || ended["exitCode"] == 255, "{status}");
    let (_, said) = again.end();
    assert!(said.contains("Stopping."), "{said}");
}
