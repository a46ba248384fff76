//! What the printer says, sentence by sentence.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kubewright::prelude::*;
use kubewright::testing::World;
use kubewright_example_pod_printer::{cache, controller};

/// Paper that may be out of order.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Sheet>>);

#[derive(Default)]
struct Sheet {
    text: String,
    broken: bool,
    failures: usize,
}

impl Paper {
    fn with<T>(&self, look: impl FnOnce(&mut Sheet) -> T) -> T {
        look(&mut self.0.lock().expect("no printer panics"))
    }

    fn lines(&self) -> Vec<String> {
        self.with(|sheet| sheet.text.lines().map(str::to_owned).collect())
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|sheet| {
            if sheet.broken {
                sheet.failures += 1;
                return Err(io::Error::other("out of paper"));
            }
            sheet.text.push_str(&String::from_utf8_lossy(bytes));
            Ok(bytes.len())
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A server with a Pod on it, and the printer with its role.
async fn world(known: &[&str]) -> (World, Paper) {
    let paper = Paper::default();
    let known: Vec<Key> = known.iter().map(|name| Key::new("default", name)).collect();
    let out = paper.clone();
    let world = World::builder()
        .object(&pod("default", "early"))
        .role(include_str!("../rbac.yaml"))
        .manager(move |manager| {
            let controller = controller(out.clone(), &known);
            manager.cache(cache()).controller(controller)
        })
        .time_limit(Duration::from_secs(600))
        .without_controllers()
        .start()
        .await;
    (world, paper)
}

/// Lets everything that is under way come to rest.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(5)).await;
}

fn pod(namespace: &str, name: &str) -> Pod {
    let sample = include_str!("../sample.yaml");
    let mut pod: Pod = serde_saphyr::from_str(sample).expect("a Pod");
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.namespace = Some(namespace.to_owned());
    pod
}

async fn until_printed(world: &World, paper: &Paper, line: &str) {
    let look = async || {
        paper
            .lines()
            .iter()
            .any(|other| other == line)
            .then_some(())
    };
    world.until_some(line, look).await;
}

async fn label(user: &Client, pod: &Pod, value: &str) -> Pod {
    let labelled = user.modify(pod, |pod| {
        let labels = pod.metadata.labels.get_or_insert_default();
        labels.insert("colour".to_owned(), value.to_owned());
    });
    labelled.await.expect("it is changed").into_object()
}

#[tokio::test(start_paused = true)]
async fn pods_are_printed_when_they_come_change_and_go() {
    let (world, paper) = world(&[]).await;
    let user = &world.client;
    until_printed(&world, &paper, "Sync/Add/Update for Pod early").await;
    let late = user
        .create(&pod("default", "late"))
        .await
        .expect("it is created");
    until_printed(&world, &paper, "Sync/Add/Update for Pod late").await;
    settle().await;
    let before = paper.lines().len();
    let late = label(user, &late, "blue").await;
    settle().await;
    assert_eq!(paper.lines()[before..], ["Sync/Add/Update for Pod late"]);
    user.delete(&late, Delete::background().grace(Duration::ZERO))
        .await
        .expect("it is deleted");
    until_printed(&world, &paper, "Pod default/late does not exist anymore").await;
    assert!(world.writes().is_empty(), "it only reads");
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn pods_of_other_namespaces_are_not_printed() {
    let (world, paper) = world(&[]).await;
    let user = &world.client;
    let mut other = Namespace::default();
    other.metadata.name = Some("other".to_owned());
    user.create(&other).await.expect("it is created");
    user.create(&pod("other", "elsewhere"))
        .await
        .expect("it is created");
    settle().await;
    assert_eq!(paper.lines(), ["Sync/Add/Update for Pod early"]);
    assert!(world.writes().is_empty(), "it only reads");
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn pod_known_from_another_time_is_reported_gone_after_the_first_sync() {
    let (world, paper) = world(&["mypod", "early"]).await;
    settle().await;
    let mut lines = paper.lines();
    lines.sort();
    // Nothing is said before it is known what is there: `early` is not reported gone.
    let expected = [
        "Pod default/mypod does not exist anymore",
        "Sync/Add/Update for Pod early",
    ];
    assert_eq!(lines, expected);
    assert!(world.writes().is_empty(), "it only reads");
    world.stop_operator().await.expect("it ends well");
}

#[tokio::test(start_paused = true)]
async fn pod_that_cannot_be_printed_is_tried_five_times_more_and_dropped() {
    let (world, paper) = world(&[]).await;
    let user = &world.client;
    until_printed(&world, &paper, "Sync/Add/Update for Pod early").await;
    settle().await;
    paper.with(|sheet| sheet.broken = true);
    let mut late = user
        .create(&pod("default", "late"))
        .await
        .expect("it is created");
    for (round, colour) in ["red", "green"].into_iter().enumerate() {
        settle().await;
        assert_eq!(paper.with(|sheet| sheet.failures), (round + 1) * 6);
        // Another change is another six tries: what is dropped is forgotten.
        late = label(user, &late, colour).await;
    }
    settle().await;
    let history = world.reconciles();
    let late_runs = history.iter().filter(|run| run.key.name() == "late");
    let ended: Vec<&str> = late_runs.map(|run| &*run.ended).collect();
    assert_eq!(
        ended[..6],
        [["out of paper"; 5].as_slice(), &["done"]].concat()
    );
    paper.with(|sheet| sheet.broken = false);
    label(user, &late, "blue").await;
    until_printed(&world, &paper, "Sync/Add/Update for Pod late").await;
    assert!(world.writes().is_empty(), "it only reads");
    world.stop_operator().await.expect("it ends well");
}
