//! Where the kernel allows no namespaces, containers are plain processes without anybody having asked for that.
#![cfg(target_os = "linux")]

mod world;

use std::process::Command;

use kubewright_process::Isolation;
use serde_json::json;
use world::{World, processes};

/// Set where this program runs in a user namespace in which no further namespace can be made.
const INSIDE: &str = "KUBEWRIGHT_TEST_FORBIDDEN";
/// Forbids namespaces to all that follows, and gives up the capability to allow them again.
const FORBID: &str = "for kind in user mnt pid; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; \
                      exec setpriv --inh-caps=-all --ambient-caps=-all \"$@\"";
/// The fact that is tested.
const FACT: &str = "containers_are_plain_processes_where_the_kernel_forbids_namespaces";

/// A command in a user namespace of its own in which no other can be made.
fn forbidden(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-current-user", "--keep-caps"]);
    command.args(["sh", "-ec", FORBID, "sh", program]);
    command.args(arguments);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_are_plain_processes_where_the_kernel_forbids_namespaces() {
    if std::env::var_os(INSIDE).is_some() {
        return plain_processes_run().await;
    }
    let possible = forbidden("true", &[]).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        // Then namespaces are forbidden as it is, and all other tests run without them.
        println!("no user namespace can be made here");
        return;
    }
    let own = std::env::current_exe().expect("this program");
    let mut inside = forbidden(
        &own.display().to_string(),
        &["--exact", FACT, "--nocapture"],
    );
    let output = inside.env(INSIDE, "1").output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.contains("1 passed"), "{text}");
}

async fn plain_processes_run() {
    let (runtime, world) = World::with_runtime(processes()).await;
    let Isolation::None(why) = runtime.isolation() else {
        panic!("there are {}", runtime.isolation());
    };
    assert!(why.starts_with("namespaces: "), "the reason: {why}");
    let more = json!({
        "container": {"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]},
        "spec": {"volumes": [{"name": "scratch", "emptyDir": {}}]},
    });
    let script = "echo $POD_IP | grep -c [0-9]; echo kept > $VOLUME_SCRATCH/file && cat $VOLUME_SCRATCH/file; exit 3";
    world.script("plain", script, more).await;
    let pod = world.until_phase("plain", "Failed").await;
    let ended = world::container(&pod).state.and_then(|it| it.terminated);
    assert_eq!(ended.map(|ended| ended.exit_code), Some(3));
    assert_eq!(world.log("plain").await, "1\nkept\n");
    world.script("sleeps", "exec sleep 98765", json!({})).await;
    world.until_phase("sleeps", "Running").await;
    world.delete("sleeps", 0).await;
    world::until_none("sleep\u{0}98765").await;
    world.cluster.stop().await;
}
