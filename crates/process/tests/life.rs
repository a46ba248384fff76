//! Containers live and die as processes: output, exit codes, signals, grace periods, and nothing that stays.
#![cfg(target_os = "linux")]

mod world;

use serde_json::json;
use world::{World, both, container, processes_with, until_none};

#[tokio::test(flavor = "multi_thread")]
async fn output_environment_and_exit_code_are_those_of_the_process() {
    for namespaces in both() {
        let world = World::start(namespaces).await;
        let script = "echo to-output $GREETING; echo to-errors >&2; pwd; exit 3";
        let env = json!([{"name": "GREETING", "value": "hello"}]);
        let more = json!({"container": {"env": env, "workingDir": "/usr"}});
        world.script("speaks", script, more).await;
        let pod = world.until_phase("speaks", "Failed").await;
        let state = container(&pod)
            .state
            .and_then(|s| s.terminated)
            .expect("it ended");
        assert_eq!(
            (state.exit_code, state.reason.as_deref()),
            (3, Some("Error"))
        );
        let log = world.log("speaks").await;
        for line in ["to-output hello", "to-errors", "/usr"] {
            assert!(
                log.lines().any(|found| found == line),
                "{line} is not in {log}"
            );
        }
        world.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there_is_a_start_error() {
    for namespaces in both() {
        let world = World::start(namespaces).await;
        let more = json!({"container": {"command": ["/no/such/program"]}});
        world.script("missing", "", more).await;
        let pod = world.until_phase("missing", "Failed").await;
        let state = container(&pod)
            .state
            .and_then(|s| s.terminated)
            .expect("it ended");
        assert_eq!(
            (state.exit_code, state.reason.as_deref()),
            (128, Some("StartError"))
        );
        let message = state.message.unwrap_or_default();
        assert!(message.contains("no such file"), "{message}");
        world.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_image_is_an_image_pull_error() {
    let world = World::start(both()[1]).await;
    world
        .script(
            "unknown",
            "true",
            json!({"container": {"image": "nowhere/unknown:1"}}),
        )
        .await;
    let waits = |pod: &k8s_openapi::api::core::v1::Pod| {
        let statuses = pod
            .status
            .as_ref()
            .and_then(|s| s.container_statuses.as_ref());
        let state = statuses.and_then(|all| all.first()?.state.as_ref()?.waiting.as_ref());
        state.is_some_and(|waiting| waiting.reason.as_deref() == Some("ErrImagePull"))
    };
    world.until("unknown", "waiting for its image", waits).await;
    world.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_pod_hears_sigterm_and_is_killed_when_its_grace_is_over() {
    for namespaces in both() {
        let world = World::start(namespaces).await;
        let polite = "trap 'echo bye; exit 0' TERM; echo up; while true; do sleep 0.05; done";
        world.script("polite", polite, json!({})).await;
        world.until_log("polite", "up").await;
        world.delete("polite", 30).await;
        let deaf = "trap '' TERM; echo up; while true; do sleep 0.05; done # deaf-marker";
        world.script("deaf", deaf, json!({})).await;
        world.until_log("deaf", "up").await;
        assert!(!processes_with("deaf-marker").is_empty());
        world.delete("deaf", 1).await;
        until_none("deaf-marker").await;
        world.cluster.stop().await;
    }
}

/// Shells clear the mask themselves when they set a trap; other programs have what they inherit.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_starts_with_no_signal_blocked() {
    for namespaces in both() {
        let world = World::start(namespaces).await;
        let grep = json!({"command": ["/bin/grep"], "args": ["SigBlk", "/proc/self/status"]});
        world.script("mask", "", json!({ "container": grep })).await;
        world.until_phase("mask", "Succeeded").await;
        let log = world.log("mask").await;
        assert_eq!(log.trim(), "SigBlk:\t0000000000000000");
        world.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_container_leaves_in_the_background_ends_with_it() {
    for (at, namespaces) in both().into_iter().enumerate() {
        let world = World::start(namespaces).await;
        let marker = format!("10{at}977.25");
        let script =
            format!("setsid sh -c '(sleep {marker} &) ; sleep {marker}' & sleep 0.2; exit 0");
        world.script("daemon", &script, json!({})).await;
        world.until_phase("daemon", "Succeeded").await;
        until_none(&marker).await;
        world.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_is_in_the_exit_code_and_a_restart_has_a_log_of_its_own() {
    let world = World::start(both()[0]).await;
    let more = json!({"spec": {"restartPolicy": "OnFailure"}});
    let script = "echo run; kill -9 $$$$";
    world.script("killed", script, more).await;
    let again = |pod: &k8s_openapi::api::core::v1::Pod| {
        container(pod)
            .last_state
            .is_some_and(|state| state.terminated.is_some())
    };
    let pod = world.until("killed", "ended once", again).await;
    let last = container(&pod)
        .last_state
        .and_then(|s| s.terminated)
        .expect("it ended");
    assert_eq!(last.exit_code, 137);
    world.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_when_the_cluster_stops_or_is_dropped_or_a_node_goes() {
    for (at, namespaces) in both().into_iter().enumerate() {
        let marker = |what: usize| format!("10{at}{what}866.5");
        for what in 0..3 {
            let world = World::start(namespaces).await;
            let script = format!("sleep {} & echo up; sleep {}", marker(what), marker(what));
            world.script("stays", &script, json!({})).await;
            world.until_log("stays", "up").await;
            assert!(!processes_with(&marker(what)).is_empty());
            match what {
                0 => world.cluster.stop().await,
                1 => drop(world),
                _ => {
                    world
                        .cluster
                        .nodes()
                        .remove("node-1")
                        .await
                        .expect("it goes");
                    until_none(&marker(what)).await;
                    world.cluster.stop().await;
                }
            }
            until_none(&marker(what)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_in_a_place_that_containers_have_their_own_of_is_there() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir_in("/tmp").expect("a directory");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open.clone()).expect("opened");
    let program = directory.path().join("program");
    std::fs::write(&program, "#!/bin/sh\necho from /tmp\n").expect("written");
    std::fs::set_permissions(&program, open).expect("opened");
    let table = kubewright_process::ImageTable::default().image(
        "here",
        kubewright_process::ImageProgram::new(program.display().to_string()),
    );
    let world = World::with(world::processes().table(table)).await;
    let more = json!({"container": {"image": "here", "args": []}});
    world.script("here", "", more).await;
    world.until_phase("here", "Succeeded").await;
    assert_eq!(world.log("here").await, "from /tmp\n");
    world.cluster.stop().await;
}

/// Without namespaces nothing but the helper ends what it started. As root control groups do as well.
#[tokio::test(flavor = "multi_thread")]
async fn programs_whose_helper_is_killed_end() {
    for (at, namespaces) in both().into_iter().enumerate() {
        let world = World::start(namespaces).await;
        let marker = format!("10{at}533.75");
        let script = format!("sleep {marker} & setsid sleep {marker} & echo up; wait");
        let more = json!({"spec": {"restartPolicy": "Never"}});
        world.script("alone", &script, more).await;
        world.until_log("alone", "up").await;
        let programs = processes_with(&marker);
        let helpers = programs.iter().filter_map(|pid| helper_above(*pid));
        let helper = helpers.max().expect("a helper started them");
        let killed = std::process::Command::new("kill")
            .args(["-KILL", &helper.to_string()])
            .status();
        assert!(killed.is_ok_and(|status| status.success()));
        world.until_phase("alone", "Failed").await;
        until_none(&marker).await;
        world.cluster.stop().await;
    }
}

/// The nearest helper above a process.
fn helper_above(mut pid: i32) -> Option<i32> {
    while pid > 1 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, rest) = stat.rsplit_once(')')?;
        if name.contains("(kw-") {
            return Some(pid);
        }
        pid = rest.split_whitespace().nth(1)?.parse().ok()?;
    }
    None
}
