//! Limits hold, what runs out of memory is reported as that, and what is used is known.
#![cfg(target_os = "linux")]

mod world;

use std::time::Duration;

use kubewright_cluster::node::runtime::Runtime;
use serde_json::json;
use tokio::time::Instant;
use world::{LIMIT, World, both, container, processes};

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_uses_too_much_memory_is_killed_for_it() {
    for namespaces in both() {
        let (runtime, world) = World::with_runtime(processes().namespaces(namespaces)).await;
        println!("limits: {:?}", runtime.no_limits());
        let more = json!({"container": {"resources": {"limits": {"memory": "32Mi"}}}});
        world.script("greedy", "exec tail /dev/zero", more).await;
        let pod = world.until_phase("greedy", "Failed").await;
        let ended = container(&pod).state.and_then(|state| state.terminated);
        let ended = ended.expect("it has ended");
        assert_eq!(
            (ended.exit_code, ended.reason.as_deref()),
            (137, Some("OOMKilled"))
        );
        // One that is killed by somebody else is not out of memory.
        let more = json!({"container": {"resources": {"limits": {"memory": "320Mi"}}}});
        world.script("killed", "kill -9 $$$$", more).await;
        let pod = world.until_phase("killed", "Failed").await;
        let ended = container(&pod).state.and_then(|state| state.terminated);
        let ended = ended.expect("it has ended");
        assert_eq!(
            (ended.exit_code, ended.reason.as_deref()),
            (137, Some("Error"))
        );
        world.cluster.stop().await;
    }
}

/// `eviction.managerImpl.emptyDirLimitEviction`.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_empty_directory_becomes_too_large_is_evicted() {
    for namespaces in both() {
        let world = World::start(namespaces).await;
        for (name, medium) in [("disk", ""), ("memory", "Memory")] {
            let directory = json!({"medium": medium, "sizeLimit": "1Mi"});
            let more = json!({
                "container": {"volumeMounts": [{"name": "cache", "mountPath": "/cache"}]},
                "spec": {"volumes": [{"name": "cache", "emptyDir": directory}]},
            });
            // Where nothing can be mounted, the variable says where the volume is.
            let script = "cd ${VOLUME_CACHE:-/cache} && head -c 900000 /dev/zero > small && echo written; \
                          sleep 2; head -c 900000 /dev/zero > more; exec sleep 1000";
            world.script(name, script, more).await;
            world.until_log(name, "written").await;
            let pod = world.until_phase(name, "Failed").await;
            let status = pod.status.unwrap_or_default();
            assert_eq!(status.reason.as_deref(), Some("Evicted"));
            let expected = "Usage of EmptyDir volume \"cache\" exceeds the limit \"1Mi\". ";
            assert_eq!(status.message.as_deref(), Some(expected));
            assert_eq!(world.until_event(name, "Evicted").await, expected);
        }
        world.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_container_uses_is_measured() {
    for namespaces in both() {
        let (runtime, world) = World::with_runtime(processes().namespaces(namespaces)).await;
        let script = "x=$(head -c 5000000 /dev/zero | tr '\\0' x); echo up; while true; do :; done";
        world.script("busy", script, json!({})).await;
        world.until_log("busy", "up").await;
        let pod = world.pods().get("busy").await.expect("there");
        let late = Instant::now() + LIMIT;
        loop {
            let usage = runtime.usage(&pod, "main");
            if usage.is_some_and(|used| used.cpu > 200 && used.memory > 5_000_000) {
                break;
            }
            assert!(Instant::now() < late, "last seen: {usage:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        world.cluster.stop().await;
    }
}
