//! Somebody who is attached to a container writes to its input and reads all of its output.
#![cfg(target_os = "linux")]

mod world;

use std::sync::Arc;

use kubewright_cluster::node::runtime::{ContainerId, PodId, Runtime};
use kubewright_process::ProcessRuntime;
use kubewright_server::{StreamEnds, Streams, Wanted};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use world::{LIMIT, World, both};

struct Attached {
    ends: StreamEnds,
    session: JoinHandle<()>,
}

impl Attached {
    async fn to(runtime: &Arc<ProcessRuntime>, world: &World, pod: &str, wanted: Wanted) -> Self {
        let pod = world.pods().get(pod).await.expect("the pod is there");
        let id = ContainerId::new(PodId::of(&pod), "main", 0);
        let (streams, ends) = Streams::pair(wanted);
        let attached = runtime.attach(&id, streams);
        let session = tokio::spawn(async move { attached.await.expect("the container runs") });
        Self { ends, session }
    }

    async fn write(&self, text: &'static str) {
        let stdin = self.ends.stdin.as_ref().expect("there is input");
        stdin.send(text.into()).await.expect("somebody reads");
    }

    /// Reads until the program has ended, or this has been read.
    async fn read(&mut self, until: &str) -> String {
        let stdout = self.ends.stdout.as_mut().expect("there is output");
        let mut all = String::new();
        let read = async {
            while !all.contains(until)
                && let Some(bytes) = stdout.recv().await
            {
                all.push_str(&String::from_utf8_lossy(&bytes));
            }
        };
        let in_time = timeout(LIMIT, read).await.is_ok();
        assert!(in_time, "{until:?} is not in {all:?}");
        all
    }

    async fn leave(self) {
        drop(self.ends);
        self.session.abort();
        // It was aborted, or has ended by itself.
        let _ = self.session.await;
    }
}

fn with_input(once: bool) -> Value {
    json!({"container": {"stdin": true, "stdinOnce": once}})
}

#[tokio::test(flavor = "multi_thread")]
async fn input_that_is_wanted_once_ends_with_its_first_writer() {
    for namespaces in both() {
        let (runtime, world) = World::with_runtime(world::processes().namespaces(namespaces)).await;
        for name in ["said", "left"] {
            let script = "echo up; cat; echo that is all";
            world.script(name, script, with_input(true)).await;
            world.until_log(name, "up").await;
            let mut writer = Attached::to(&runtime, &world, name, Wanted::everything()).await;
            writer.write("hello\n").await;
            if name == "said" {
                // The writer ends the input, and reads the rest.
                writer.ends.stdin = None;
                assert_eq!(writer.read("all\n").await, "hello\nthat is all\n");
            } else {
                writer.read("hello\n").await;
                writer.leave().await;
            }
            world.until_phase(name, "Succeeded").await;
        }
        world.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn input_stays_open_for_the_next_writer_and_readers_do_not_hold_it() {
    let (runtime, world) = World::with_runtime(world::processes()).await;
    let script = "echo up; for n in 1 2; do read line; echo got $line; done";
    world.script("asks", script, with_input(false)).await;
    world.until_log("asks", "up").await;
    let mut reader = Attached::to(&runtime, &world, "asks", Wanted::output()).await;
    for text in ["one\n", "two\n"] {
        let mut writer = Attached::to(&runtime, &world, "asks", Wanted::everything()).await;
        writer.write(text).await;
        writer.ends.stdin = None;
        assert_eq!(reader.read(text).await, format!("got {text}"));
        writer.leave().await;
    }
    world.until_phase("asks", "Succeeded").await;
    world.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_read_to_its_end() {
    let (runtime, world) = World::with_runtime(world::processes()).await;
    let script = "echo up; read go; seq 1 20000";
    world.script("counts", script, with_input(false)).await;
    world.until_log("counts", "up").await;
    let mut reader = Attached::to(&runtime, &world, "counts", Wanted::everything()).await;
    reader.write("go\n").await;
    let all = reader.read("\n20000\n").await;
    assert_eq!(all.lines().count(), 20_000, "some lines are missing");
    world.cluster.stop().await;
}
