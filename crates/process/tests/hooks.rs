//! Commands in containers: probes, hooks and `exec` meet the real container, and say why they cannot.
#![cfg(target_os = "linux")]

mod world;

use std::sync::Arc;

use kubewright_cluster::node::runtime::{ContainerId, ExecTarget, PodId, Runtime};
use kubewright_process::ProcessRuntime;
use kubewright_server::{Streams, Wanted};
use serde_json::json;
use world::{World, both, container, until_none};

/// Runs a command in the first container of a pod; returns its exit code and what it wrote.
async fn run(
    runtime: &Arc<ProcessRuntime>,
    world: &World,
    pod: &str,
    command: &[&str],
) -> Result<(i32, String), String> {
    let pod = world.pods().get(pod).await.expect("the pod is there");
    let spec = pod.spec.clone().expect("a spec");
    let id = ContainerId::new(PodId::of(&pod), "main", 0);
    let target = ExecTarget::new(id, Arc::new(pod), spec.containers[0].clone());
    let (streams, mut ends) = Streams::pair(Wanted::output());
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let output = async {
        let mut all = Vec::new();
        let mut stdout = ends.stdout.take().expect("there is output");
        while let Some(bytes) = stdout.recv().await {
            all.extend_from_slice(&bytes);
        }
        String::from_utf8_lossy(&all).into_owned()
    };
    let (code, output) = tokio::join!(runtime.exec(target, command, streams), output);
    Ok((code.map_err(|error| error.0)?, output))
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_in_the_container() {
    for namespaces in both() {
        let (runtime, world) = World::with_runtime(world::processes().namespaces(namespaces)).await;
        let more = json!({"container": {"env": [{"name": "GREETING", "value": "hello"}], "workingDir": "/usr"}});
        let script = "echo mine > /tmp/kubewright-commands-mine; echo up; sleep 1000";
        world.script("runs", script, more).await;
        world.until_log("runs", "up").await;
        let command = [
            "sh",
            "-c",
            "echo $GREETING; pwd; cat /tmp/kubewright-commands-mine; exit 7",
        ];
        let ran = run(&runtime, &world, "runs", &command).await;
        assert_eq!(ran, Ok((7, "hello\n/usr\nmine\n".to_owned())));
        let ran = run(&runtime, &world, "runs", &["/no/such/program"]).await;
        let why = ran.expect_err("there is no such program");
        assert!(why.contains("no such file"), "{why}");
        world.cluster.stop().await;
        // Without namespaces the file is the machine's.
        let _ = std::fs::remove_file("/tmp/kubewright-commands-mine");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_leaves_in_the_background_ends_with_its_container() {
    for (at, namespaces) in both().into_iter().enumerate() {
        let (runtime, world) = World::with_runtime(world::processes().namespaces(namespaces)).await;
        world.script("host", "echo up; sleep 1000", json!({})).await;
        world.until_log("host", "up").await;
        let marker = format!("10{at}5533.5");
        let script = format!("(sleep {marker} >/dev/null 2>&1 &) ; true");
        let ran = run(&runtime, &world, "host", &["sh", "-c", &script]).await;
        assert_eq!(ran, Ok((0, String::new())));
        world.delete("host", 0).await;
        until_none(&marker).await;
        world.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_by_command_meet_the_container() {
    for namespaces in both() {
        let world = World::start(namespaces).await;
        let probe = json!({"exec": {"command": ["test", "-e", "/tmp/kubewright-probed"]}, "periodSeconds": 1});
        let script = "sleep 0.3; touch /tmp/kubewright-probed; sleep 1000";
        let more = json!({"container": {"readinessProbe": probe}});
        world.script("probed", script, more).await;
        let ready = |pod: &k8s_openapi::api::core::v1::Pod| container(pod).ready;
        world.until("probed", "ready", ready).await;
        world.cluster.stop().await;
        let _ = std::fs::remove_file("/tmp/kubewright-probed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_run_after_the_start_and_before_the_end() {
    for namespaces in both() {
        let world = World::start(namespaces).await;
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().display().to_string();
        let hook = |text: &str| json!({"exec": {"command": ["sh", "-c", format!("echo {text} >> {path}/story")]}});
        let script = format!(
            "trap 'echo asked >> {path}/story; exit 0' TERM; while true; do sleep 0.05; done"
        );
        let volume = json!([{"name": "here", "hostPath": {"path": path}}]);
        let mounts = json!([{"name": "here", "mountPath": path}]);
        let more = json!({
            "container": {"lifecycle": {"postStart": hook("started"), "preStop": hook("stops")}, "volumeMounts": mounts},
            "spec": {"volumes": volume},
        });
        world.script("hooked", &script, more).await;
        world.until_phase("hooked", "Running").await;
        world.delete("hooked", 30).await;
        let story =
            std::fs::read_to_string(directory.path().join("story")).expect("it was written");
        assert_eq!(story, "started\nstops\nasked\n");
        world.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_fails_ends_the_container_and_says_why() {
    let world = World::start(both()[0]).await;
    let hook = json!({"exec": {"command": ["sh", "-c", "echo broken; exit 3"]}});
    let more = json!({"container": {"lifecycle": {"postStart": hook}}, "spec": {"terminationGracePeriodSeconds": 1}});
    world.script("fails", "exec sleep 1000", more).await;
    let pod = world.until_phase("fails", "Failed").await;
    let ended = container(&pod).state.and_then(|state| state.terminated);
    assert_ne!(ended.map(|ended| ended.exit_code), Some(0));
    let event = world.until_event("fails", "FailedPostStartHook").await;
    assert!(event.contains("exited with 3: broken"), "{event}");
    world.cluster.stop().await;
}
