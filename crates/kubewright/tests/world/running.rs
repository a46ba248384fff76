//! Clock, seed, nodes, faults, other people's kinds, forks, restarts.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::ResourceExt;
use kube::core::{ApiResource, GroupVersionKind};
use kubewright::prelude::*;
use kubewright::testing::{Break, Clock, Fault, NodeSpec, NodesOptions, Verb, World};

use crate::operator::{Mistake, create, key, until_text};

const CRD: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: extra}
data: {text: extra}
---
apiVersion: other.example.com/v1
kind: Gadget
metadata: {name: first}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.other.example.com}
spec:
  group: other.example.com
  scope: Cluster
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
";

#[tokio::test(start_paused = true)]
async fn other_peoples_kinds_and_objects_are_there_before_the_operator() {
    let world = World::builder()
        .manifest(CRD)
        .without_controllers()
        .start()
        .await;
    let gadgets =
        ApiResource::from_gvk(&GroupVersionKind::gvk("other.example.com", "v1", "Gadget"));
    let gadget = world
        .client
        .dynamic(&gadgets)
        .get_live(&Key::cluster("first"))
        .await;
    assert!(gadget.expect("the server answers").is_some());
    until_text(&world, "extra", "extra").await;
}

#[tokio::test(start_paused = true)]
async fn kind_that_nobody_defines_is_named() {
    let gadget = CRD.split("---\n").nth(1).expect("a gadget");
    let started = World::builder()
        .manifest(gadget)
        .without_controllers()
        .try_start()
        .await;
    let error = started.expect_err("the kind is unknown").to_string();
    assert!(
        error.contains("does not serve Gadget of other.example.com/v1"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn hour_passes_in_no_time_by_the_clock_of_the_world() {
    let start = "2030-01-01T00:00:00Z".parse().expect("a moment");
    let clock = Clock::starting_at(start);
    let world = World::builder()
        .clock(clock)
        .without_controllers()
        .start()
        .await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let note = create(&world, "a", Mistake::None).await;
    let made = note.metadata.creation_timestamp.expect("a time").0;
    assert_eq!(made.to_string()[..14], *"2030-01-01T01:");
    let map = until_text(&world, "a", "hello").await;
    assert!(map.metadata.creation_timestamp.expect("a time").0 >= made);
}

#[tokio::test(start_paused = true)]
async fn seed_decides_uids() {
    let uid = async |seed| {
        let world = World::builder()
            .seed(seed)
            .without_controllers()
            .start()
            .await;
        create(&world, "a", Mistake::None).await.uid()
    };
    assert_eq!(uid(1).await, uid(1).await);
    assert_ne!(uid(1).await, uid(2).await);
}

#[tokio::test(start_paused = true)]
async fn nodes_have_the_capacity_that_is_asked_for() {
    let large = NodeSpec::new("large").resource("cpu", "64");
    let options = NodesOptions::default().node(large);
    let world = World::builder()
        .node_options(options)
        .nodes(2)
        .start()
        .await;
    let nodes = world
        .until_all::<Node>(Query::all(), |nodes| nodes.len() == 3)
        .await;
    let large = nodes
        .iter()
        .find(|node| node.name_any() == "large")
        .expect("it is there");
    let capacity = large
        .status
        .as_ref()
        .and_then(|status| status.capacity.as_ref());
    assert_eq!(capacity.expect("a capacity")["cpu"].0, "64");
}

/// The operator does its work although the first write of it goes wrong.
async fn survives(fault: Fault) {
    let failing = fault.clone();
    let faults = move |call: &kubewright::testing::Call| match (call.verb, call.number) {
        (Verb::Patch, 1) => failing.clone(),
        _ => Fault::None,
    };
    let limit = Duration::from_secs(600);
    let world = World::builder()
        .faults(faults)
        .time_limit(limit)
        .without_controllers()
        .start()
        .await;
    create(&world, "a", Mistake::None).await;
    until_text(&world, "a", "hello").await;
    world.settled().await;
    let calls = world.wire().calls();
    assert!(
        calls.iter().any(|(_, happened)| *happened == fault),
        "{fault:?} happened"
    );
}

#[tokio::test(start_paused = true)]
async fn operator_survives_errors_lost_answers_delays_and_silence() {
    let refuse = |code, reason| Fault::Refuse { code, reason };
    for fault in [
        refuse(500, "InternalError"),
        refuse(409, "Conflict"),
        Fault::LoseRequest,
        Fault::LoseAnswer,
        Fault::Delay(Duration::from_secs(5)),
        Fault::Silence,
    ] {
        Box::pin(survives(fault)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn operator_survives_watches_that_are_cut_and_those_that_fall_silent() {
    let limit = Duration::from_secs(3600);
    let world = World::builder()
        .time_limit(limit)
        .without_controllers()
        .start()
        .await;
    for (number, how) in [Break::Reset, Break::Truncate, Break::Silence]
        .into_iter()
        .enumerate()
    {
        let name = format!("note-{number}");
        world.settled().await;
        world.wire().break_watches(how);
        create(&world, &name, Mistake::None).await;
        until_text(&world, &name, "hello").await;
    }
}

#[tokio::test(start_paused = true)]
async fn fork_goes_its_own_way() {
    let world = World::builder().without_controllers().start().await;
    create(&world, "a", Mistake::None).await;
    until_text(&world, "a", "hello").await;
    let fork = world.fork().await;
    create(&fork, "b", Mistake::None).await;
    until_text(&fork, "b", "hello").await;
    let maps = |world: &World| {
        let client = world.client.clone();
        async move {
            client
                .live()
                .list::<ConfigMap>(Query::all().namespace("default"))
                .await
        }
    };
    let (here, there) = (maps(&world).await, maps(&fork).await);
    let (here, there) = (here.expect("an answer"), there.expect("an answer"));
    assert_eq!(here.len() + 1, there.len());
    let note = world
        .client
        .live()
        .get::<crate::operator::Note>(&key("a"))
        .await;
    let note = note.expect("an answer").expect("it is there");
    drop(fork);
    let mut changed = note.clone();
    changed.spec.text = "bye".to_owned();
    world
        .client
        .patch(&note, &changed)
        .await
        .expect("it is changed");
    until_text(&world, "a", "bye").await;
}

#[tokio::test(start_paused = true)]
async fn operator_that_was_stopped_or_killed_goes_on_where_it_was() {
    let world = World::builder().without_controllers().start().await;
    world.stop_operator().await.expect("it ends well");
    create(&world, "a", Mistake::None).await;
    world.settled().await;
    assert!(world.writes().is_empty());
    world.start_operator().await.expect("it starts");
    until_text(&world, "a", "hello").await;
    world.kill_operator().await;
    create(&world, "b", Mistake::None).await;
    world.assert_no_writes(Duration::from_secs(60)).await;
    world.start_operator().await.expect("it starts");
    until_text(&world, "b", "hello").await;
    let runs = world.reconciles();
    assert!(
        runs.iter()
            .any(|run| run.to_string().contains("Note default/a found at start")),
        "{runs:?}"
    );
}

#[tokio::test]
async fn world_runs_in_real_time_with_all_controllers() {
    let world = World::start().await;
    create(&world, "a", Mistake::None).await;
    until_text(&world, "a", "hello").await;
    world.settled_for(Duration::from_millis(50)).await;
    world.stop_operator().await.expect("it ends well");
}

/// Whether this process handles a signal itself.
#[cfg(target_os = "linux")]
fn handles(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.expect("a line of the signals that are caught");
    let caught = u64::from_str_radix(caught.trim(), 16).expect("a mask");
    caught & (1 << (signal - 1)) != 0
}

/// Whoever runs the tests may end them, whatever worlds there are.
#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn world_leaves_the_signals_of_the_test_program_alone() {
    const SIGINT: u32 = 2;
    const SIGTERM: u32 = 15;
    let world = World::start().await;
    create(&world, "a", Mistake::None).await;
    until_text(&world, "a", "hello").await;
    assert_eq!((handles(SIGINT), handles(SIGTERM)), (false, false));
}
