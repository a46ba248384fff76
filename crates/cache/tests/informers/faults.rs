//! What goes wrong on the way, one thing at a time.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::source::StreamingList;
use kubewright_cache::{Keep, Report, Reporter, Shape, SyncError};
use parking_lot::Mutex;

use crate::shared::{options, run, source};
use crate::story::Story;
use crate::wire::{Break, World, stored, until};

/// Deletions that happen while nobody watches are told: kube-runtime's streams lose them.
#[tokio::test(start_paused = true)]
async fn deletion_across_a_relist_is_told_as_not_observed() {
    for streaming in [StreamingList::Try, StreamingList::No] {
        let world = World::new().await;
        world.create("a").await;
        world.create("b").await;
        let running = run(source(&world).with_streaming_list(streaming), options());
        let (story, told) = Story::new();
        let registration = running.informer.add_handler(story).expect("it runs");
        registration.synced().await.expect("it syncs");
        world.wire.answer_all("watch", 429, "TooManyRequests");
        world.wire.break_watches(Break::Reset);
        world.delete("a").await;
        world.delete("b").await;
        world.create("b").await;
        world.expire().await;
        world.wire.heal();
        let truth = world.truth().await;
        until("the story is right", async || told.lock().led_to(&truth)).await;
        assert_eq!(told.lock().about(&["a"]), ["initial a", "missed a"]);
        assert_eq!(
            told.lock().about(&["b"]),
            ["initial b", "missed b", "added b"]
        );
        assert_eq!(stored(&running.informer.reader()), truth);
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_break_is_survived() {
    for how in [Break::Close, Break::Reset, Break::Truncate, Break::Garbage] {
        let world = World::new().await;
        world.create("a").await;
        let running = run(source(&world), options());
        let (story, told) = Story::new();
        running.informer.add_handler(story).expect("it runs");
        running.informer.synced().await.expect("it syncs");
        world.wire.break_watches(how);
        world.update("a", "1").await;
        world.create("b").await;
        let truth = world.truth().await;
        until("the story is right", async || told.lock().led_to(&truth)).await;
        assert_eq!(
            told.lock().about(&["a", "b"]),
            ["initial a", "updated a", "added b"],
            "{how:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn stream_that_is_refused_is_replaced_by_a_list() {
    let world = World::new().await;
    world.wire.answer_all("stream", 422, "Invalid");
    let running = run(source(&world), options());
    running.informer.synced().await.expect("it syncs");
    assert_eq!(world.wire.asked(), ["stream", "list", "watch"]);
}

/// A 410 as the answer to a watch is an expired version as well: kube-runtime asks for it for ever.
#[tokio::test(start_paused = true)]
async fn expired_version_by_code_ends_in_a_relist() {
    let world = World::new().await;
    let running = run(
        source(&world).with_streaming_list(StreamingList::No),
        options(),
    );
    running.informer.synced().await.expect("it syncs");
    world.create("a").await;
    let reader = running.informer.reader();
    let truth = world.truth().await;
    until("the store is right", async || stored(&reader) == truth).await;
    world.wire.answer_next(410, "Expired");
    world.wire.break_watches(Break::Close);
    until("it lists again", async || world.wire.asked().len() >= 5).await;
    assert_eq!(
        world.wire.asked(),
        ["list", "watch", "watch", "list", "watch"]
    );
}

/// Watches that end at once make the delay grow: kube-runtime opens hundreds a second.
#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_no_hot_loop() {
    let world = World::new().await;
    let running = run(
        source(&world).with_streaming_list(StreamingList::No),
        options(),
    );
    running.informer.synced().await.expect("it syncs");
    let start = tokio::time::Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        world.wire.break_watches(Break::Close);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let asked = world
        .wire
        .asked()
        .iter()
        .filter(|sort| *sort == "watch")
        .count();
    assert!(asked < 12, "{asked} watches in a minute");
}

/// Lists that fail make the delay grow: kube-runtime's stays near one second.
#[tokio::test(start_paused = true)]
async fn lists_that_fail_are_asked_ever_more_seldom() {
    let world = World::new().await;
    for sort in ["list", "stream"] {
        world.wire.answer_all(sort, 500, "InternalError");
    }
    let _running = run(source(&world), options());
    tokio::time::sleep(Duration::from_secs(600)).await;
    let asked = world
        .wire
        .asked()
        .iter()
        .filter(|sort| *sort == "list")
        .count();
    assert!((10..30).contains(&asked), "{asked} lists in ten minutes");
}

#[tokio::test(start_paused = true)]
async fn busy_server_is_asked_for_the_watch_only() {
    let world = World::new().await;
    let running = run(
        source(&world).with_streaming_list(StreamingList::No),
        options(),
    );
    running.informer.synced().await.expect("it syncs");
    for _ in 0..3 {
        world.wire.answer_next(429, "TooManyRequests");
    }
    world.create("a").await;
    let reader = running.informer.reader();
    let truth = world.truth().await;
    until("the store is right", async || stored(&reader) == truth).await;
    world.wire.break_watches(Break::Close);
    until("it watches", async || world.wire.asked().len() == 6).await;
    assert_eq!(
        world.wire.asked(),
        ["list", "watch", "watch", "watch", "watch", "watch"]
    );
}

#[tokio::test(start_paused = true)]
async fn forbidden_list_or_watch_is_an_error_for_whoever_waits() {
    for sort in ["list", "watch"] {
        let world = World::new().await;
        world.wire.answer_all("stream", 403, "Forbidden");
        world.wire.answer_all(sort, 403, "Forbidden");
        let running = run(source(&world), options());
        let error = running
            .informer
            .synced()
            .await
            .expect_err("it is forbidden");
        assert!(
            matches!(error, SyncError::Refused(failure) if failure.message == "told so: Forbidden")
        );
        world.wire.heal();
        until("it goes on", async || {
            running.informer.synced().await.is_ok()
        })
        .await;
    }
}

/// One object that cannot be decoded: kube-runtime's whole list fails, for ever.
#[tokio::test(start_paused = true)]
async fn object_that_cannot_be_read_is_reported_and_the_others_are_there() {
    for keep in [Keep::Checked, Keep::Decoded, Keep::Compact] {
        let world = World::new().await;
        world.create("bad").await;
        world.create("good").await;
        let reports: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = reports.clone();
        let reporter = Reporter::new(move |report: &Report| sink.lock().push(report.to_string()));
        let spoil = |object: &mut serde_json::Value| {
            if object["metadata"]["name"] == "bad" {
                object["data"] = serde_json::json!("not a map");
            }
            Ok(())
        };
        let shape = Shape::default().keep(keep).transform(spoil);
        let running = run(source(&world), options().shape(shape).reporter(reporter));
        running.informer.synced().await.expect("it syncs");
        let maps = running.informer.reader().list();
        let names: Vec<_> = maps
            .iter()
            .filter_map(|map: &Arc<ConfigMap>| map.metadata.name.clone())
            .collect();
        assert!(
            names.contains(&"good".to_owned()) && !names.contains(&"bad".to_owned()),
            "{keep:?}"
        );
        assert!(
            reports.lock()[0].starts_with("default/bad cannot be read"),
            "{:?}",
            reports.lock()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn relist_shares_what_is_unchanged() {
    let world = World::new().await;
    world.create("a").await;
    let running = run(source(&world), options());
    running.informer.synced().await.expect("it syncs");
    let reader = running.informer.reader();
    let before = reader
        .entry(&kubewright_cache::Key::new("default", "a"))
        .expect("it is there");
    world.expire().await;
    world.wire.break_watches(Break::Garbage);
    until("it has listed again", async || world.wire.asked().len() > 1).await;
    world.create("b").await;
    let truth = world.truth().await;
    until("the store is right", async || stored(&reader) == truth).await;
    let after = reader
        .entry(&kubewright_cache::Key::new("default", "a"))
        .expect("it is there");
    assert!(Arc::ptr_eq(before.object(), after.object()));
}
