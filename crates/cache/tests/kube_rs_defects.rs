//! Defects found in kube-runtime 5.0.0, each as a fact about this crate. `kube_runtime_peer.rs` runs the same stories
//! against kube-runtime and finds the defect; the letters are those of `docs/parity-kube-runtime.md`.

mod support;

use kubewright_testing::limit;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Patch, PatchParams};
use kubewright_cache::source::StreamingList;
use kubewright_cache::{
    Event, Factory, HandlerOptions, Index, Keep, Key, ListWatch, Object, Report, Reporter, Scope,
    Shape, SharedInformer,
};
use kubewright_workqueue::Queue;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use support::running::{options, run, source, start};
use support::story::Story;
use support::strict::Strict;
use support::wire::{Break, World, late_ones, stored, until};

/// A. A subscriber that hears of an object which is gone by then loses its wake-up, and with it everybody stands still.
#[limited::test(start_paused = true)]
async fn object_that_is_gone_before_it_is_reported_stops_nobody() {
    let world = World::new().await;
    let running = run(source(&world), options());
    let (story, record) = Story::slow(Duration::from_secs(1));
    let few = HandlerOptions::default().backlog(8);
    running
        .informer
        .add_handler_with(story, few)
        .expect("it runs");
    limit(running.informer.synced()).await.expect("it syncs");
    world.create("a").await;
    world.delete("a").await;
    for n in 0..40 {
        world.create(&format!("b{n}")).await;
    }
    let truth = limit(world.truth()).await;
    let reader = running.informer.reader();
    let before = Instant::now();
    until("the store is right", async || stored(&reader) == truth).await;
    assert!(before.elapsed() < Duration::from_secs(1));
    until("the handler agrees", async || record.lock().led_to(&truth)).await;
}

/// B. One watch that fails slows all watches of a controller down.
#[limited::test(start_paused = true)]
async fn forbidden_resource_does_not_slow_the_others() {
    let world = World::new().await;
    world
        .wire
        .answer_all("/api/v1/namespaces", 403, "Forbidden");
    let factory = Factory::new(world.wire.client());
    let _forbidden = factory.informer::<Namespace>();
    let maps = factory.informer_in::<ConfigMap>(Scope::all().namespace("default"));
    let (story, record) = Story::new();
    maps.add_handler(story).expect("it runs");
    factory.start();
    limit(maps.synced()).await.expect("it syncs");
    let heard = |name: &str| !record.lock().about(&[name]).is_empty();
    assert_eq!(late_ones(&world, heard).await, 0);
}

/// C. Watches that end at once are opened again at once, hundreds a second.
#[limited::test(start_paused = true)]
async fn watches_that_end_at_once_are_no_hot_loop() {
    let world = World::new().await;
    world.wire.short_watches();
    let plain = source(&world).with_streaming_list(StreamingList::No);
    let _running = run(plain, options());
    sleep(Duration::from_secs(60)).await;
    let asked = world.wire.count("watch");
    assert!((2..12).contains(&asked), "{asked} watches in a minute");
}

/// D. A 410 as the answer to a watch is not understood: the same version is asked for, for ever.
#[limited::test(start_paused = true)]
async fn expired_version_by_code_ends_in_a_relist() {
    let world = World::new().await;
    let plain = source(&world).with_streaming_list(StreamingList::No);
    let running = run(plain, options());
    limit(running.informer.synced()).await.expect("it syncs");
    world.create("a").await;
    let reader = running.informer.reader();
    let truth = limit(world.truth()).await;
    until("the store is right", async || stored(&reader) == truth).await;
    world.wire.answer_next(410, "Expired");
    world.wire.break_watches(Break::Close);
    until("it lists again", async || world.wire.asked().len() >= 5).await;
    assert_eq!(
        world.wire.asked(),
        ["list", "watch", "watch", "list", "watch"]
    );
}

/// E. A list that may be served from the server's cache is asked for without saying so.
#[limited::test(start_paused = true)]
async fn first_list_may_be_served_from_the_cache_also_in_pages() {
    let world = World::new().await;
    let plain = source(&world).with_streaming_list(StreamingList::No);
    let running = run(plain, options());
    limit(running.informer.synced()).await.expect("it syncs");
    let version = running.informer.reader().resource_version();
    let watched =
        format!("allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds=450&watch=true");
    assert_eq!(
        world.wire.queries(),
        ["limit=500&resourceVersion=0".to_owned(), watched]
    );
}

/// F. A streamed list asks for a state that may be stale, and has no other way where streams are refused.
#[limited::test(start_paused = true)]
async fn stream_asks_for_the_newest_state_and_gives_way_to_a_list() {
    let world = World::new().await;
    let running = run(source(&world), options());
    limit(running.informer.synced()).await.expect("it syncs");
    let streamed = "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=450&watch=true";
    assert_eq!(world.wire.queries(), [streamed]);

    let world = World::new().await;
    world.wire.answer_all("stream", 422, "Invalid");
    let running = run(source(&world), options());
    limit(running.informer.synced()).await.expect("it syncs");
    assert_eq!(world.wire.asked(), ["stream", "list", "watch"]);
}

/// G. Deletions that happen while nobody watches are never reported.
#[limited::test(start_paused = true)]
async fn deletion_across_a_relist_is_reported_as_not_observed() {
    for streaming in [StreamingList::Try, StreamingList::No] {
        let world = World::new().await;
        world.create("a").await;
        world.create("b").await;
        let running = run(source(&world).with_streaming_list(streaming), options());
        let (story, record) = Story::new();
        let registration = running.informer.add_handler(story).expect("it runs");
        limit(registration.synced()).await.expect("it syncs");
        world.wire.answer_all("watch", 429, "TooManyRequests");
        world.wire.break_watches(Break::Reset);
        world.delete("a").await;
        world.delete("b").await;
        world.create("b").await;
        world.expire().await;
        world.wire.heal();
        let truth = limit(world.truth()).await;
        until("the story is right", async || record.lock().led_to(&truth)).await;
        assert_eq!(record.lock().about(&["a"]), ["initial a", "missed a"]);
        assert_eq!(
            record.lock().about(&["b"]),
            ["initial b", "missed b", "added b"]
        );
        assert_eq!(stored(&running.informer.reader()), truth);
    }
}

/// H. A panic in the user's code ends everything.
#[limited::test(start_paused = true)]
async fn handler_that_panics_loses_one_event() {
    let world = World::new().await;
    let (sender, mut heard) = tokio::sync::mpsc::channel(64);
    let (panics, mut panicked) = tokio::sync::mpsc::channel(64);
    let reporter =
        Reporter::new(move |report| panics.try_send(report.to_string()).expect("there is room"));
    let running = run(source(&world), options().reporter(reporter));
    let handler = move |event: Event<ConfigMap>| match event.object().key().name() {
        "bad" => panic!("on purpose"),
        name => sender.try_send(name.to_owned()).expect("there is room"),
    };
    running.informer.add_handler(handler).expect("it runs");
    limit(running.informer.synced()).await.expect("it syncs");
    world.create("bad").await;
    world.create("good").await;
    assert_eq!(
        limit(panicked.recv()).await.as_deref(),
        Some("a handler panicked at default/bad")
    );
    while limit(heard.recv()).await.expect("it goes on") != "good" {}
}

/// H, for workers: the queue takes the key back and goes on.
#[limited::test(start_paused = true)]
async fn worker_that_panics_gives_its_key_back() {
    let queue: Queue<Key> = Queue::new(kubewright_workqueue::Options::new());
    let key = Key::new("default", "bad");
    queue.add(key.clone());
    let taken = queue.clone();
    let mut workers = JoinSet::new();
    workers.spawn(async move {
        let item = limit(taken.get()).await.expect("there is a key");
        panic!("on purpose, at {}", item.key());
    });
    let ended = limit(workers.join_next()).await.expect("a worker");
    assert!(ended.expect_err("it panics").is_panic());
    queue.add(key.clone());
    let item = limit(queue.get()).await.expect("there is a key");
    assert_eq!(*item.key(), key);
    item.done();
}

/// I. Work is done in a random order.
#[limited::test(start_paused = true)]
async fn keys_are_worked_on_in_the_order_in_which_they_came() {
    let world = World::new().await;
    for n in 0..100 {
        world.create(&format!("a{n:03}")).await;
    }
    let running = run(source(&world), options());
    let queue: Queue<Key> = Queue::new(kubewright_workqueue::Options::new());
    let feed = queue.clone();
    let handler = move |event: Event<ConfigMap>| feed.add(event.object().key().clone());
    let registration = running.informer.add_handler(handler).expect("it runs");
    limit(registration.synced()).await.expect("it syncs");
    let mut worked = Vec::new();
    while !queue.is_empty() {
        let item = limit(queue.get()).await.expect("there is a key");
        worked.push(item.key().clone());
        item.done();
    }
    assert_eq!(worked, running.informer.reader().keys());
}

/// J. One object that does not decode makes the whole list fail, for ever.
#[limited::test(start_paused = true)]
async fn object_that_cannot_be_read_is_reported_and_the_others_are_there() {
    for keep in [Keep::Checked, Keep::Decoded, Keep::Compact] {
        let world = World::new().await;
        world.create("bad").await;
        world.update("bad", "x").await;
        world.create("good").await;
        let reports: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = reports.clone();
        let reporter = Reporter::new(move |report: &Report| sink.lock().push(report.to_string()));
        let scope = Scope::all().namespace("default");
        let source = ListWatch::typed::<Strict>(world.wire.client(), scope);
        let options = options()
            .shape(Shape::default().keep(keep))
            .reporter(reporter);
        let informer: SharedInformer<Strict> = SharedInformer::new(source, options);
        let mut tasks = JoinSet::new();
        let running = informer.clone();
        tasks.spawn(async move { running.run(CancellationToken::new()).await });
        limit(informer.synced()).await.expect("it syncs");
        let reader = informer.reader();
        assert!(
            reader.get(&Key::new("default", "bad")).is_none(),
            "{keep:?}"
        );
        assert!(reader.get(&Key::new("default", "good")).is_some());
        let first = reports.lock()[0].clone();
        assert!(first.starts_with("default/bad cannot be read"), "{first}");
    }
}

/// K. The delay between lists that fail never grows.
#[limited::test(start_paused = true)]
async fn lists_that_fail_are_asked_ever_more_seldom() {
    let world = World::new().await;
    for sort in ["list", "stream"] {
        world.wire.answer_all(sort, 500, "InternalError");
    }
    let _running = run(source(&world), options());
    sleep(Duration::from_secs(600)).await;
    let asked = world.wire.count("list");
    assert!((10..30).contains(&asked), "{asked} lists in ten minutes");
}

/// L. An owner is not recognised once its kind has moved on to another version.
#[limited::test(start_paused = true)]
async fn owner_is_found_by_group_and_kind_whatever_its_version() {
    let world = World::new().await;
    world.create("child").await;
    let owned = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "example.com/v1alpha1", "kind": "Parent", "name": "p", "uid": "u", "controller": true,
    }]}});
    world
        .maps
        .patch("child", &PatchParams::default(), &Patch::Merge(owned))
        .await
        .expect("it is patched");
    let running = run(source(&world), options());
    let reader = running.informer.reader();
    let owners = |object: &Object| {
        let owners = object.owners().into_iter().filter(|owner| owner.controller);
        owners
            .map(|owner| format!("{}/{}/{}", owner.group(), owner.kind, owner.name))
            .collect()
    };
    reader
        .add_index("owner", Index::of_metadata(owners))
        .expect("the name is free");
    limit(running.informer.synced()).await.expect("it syncs");
    assert_eq!(
        reader.keys_by_index("owner", "example.com/Parent/p"),
        Ok(vec![Key::new("default", "child")])
    );
}

/// Of several tasks that wait for a store only the last is woken.
#[limited::test(start_paused = true)]
async fn every_task_that_waits_for_the_first_state_is_woken() {
    let world = World::new().await;
    let informer: SharedInformer<ConfigMap> = SharedInformer::new(source(&world), options());
    let mut waiters = JoinSet::new();
    for _ in 0..20 {
        let informer = informer.clone();
        waiters.spawn(async move { limit(informer.synced()).await });
    }
    tokio::task::yield_now().await;
    let running = start(informer);
    while let Some(woken) = limit(waiters.join_next()).await {
        woken.expect("no panic").expect("it syncs");
    }
    assert!(running.informer.has_synced());
}

/// What an informer of strict ConfigMaps tells of one that is changed to something unreadable and then deleted.
async fn deletions_of_unreadable(shape: Shape) -> Vec<String> {
    let world = World::new().await;
    world.create("a").await;
    world.update("a", "1").await;
    let scope = Scope::all().namespace("default");
    let source = ListWatch::typed::<Strict>(world.wire.client(), scope);
    let informer: SharedInformer<Strict> = SharedInformer::new(source, options().shape(shape));
    let deletions: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = deletions.clone();
    let handler = move |event: Event<Strict>| {
        let Event::Deleted { last, observed } = event else {
            return;
        };
        let digit = last.value().and_then(|value| value.data.n);
        sink.lock()
            .push(format!("{} {digit:?} observed: {observed}", last.key()));
    };
    informer.add_handler(handler).expect("it runs");
    let mut tasks = JoinSet::new();
    let running = informer.clone();
    tasks.spawn(async move { running.run(CancellationToken::new()).await });
    limit(informer.synced()).await.expect("it syncs");
    let reader = informer.reader();
    assert!(reader.contains(&Key::new("default", "a")));
    world.update("a", "x").await;
    world.delete("a").await;
    until("the store has no ghost", async || reader.is_empty()).await;
    until("the handler hears of the deletion", async || {
        !deletions.lock().is_empty()
    })
    .await;
    deletions.lock().clone()
}

#[limited::test(start_paused = true)]
async fn deletion_of_an_object_that_can_no_longer_be_read_is_reported() {
    let refuse = |value: &mut serde_json::Value| {
        if value["data"]["n"] == "x" {
            Err("not this one".to_owned())
        } else {
            Ok(())
        }
    };
    let panic = |value: &mut serde_json::Value| {
        assert!(value["data"]["n"] != "x", "a transform may panic");
        Ok(())
    };
    for shape in [
        Shape::default().keep(Keep::Checked),
        Shape::default().keep(Keep::Decoded),
        Shape::default().transform(refuse),
        Shape::default().transform(panic),
    ] {
        let deletions = deletions_of_unreadable(shape).await;
        assert_eq!(deletions, ["default/a Some(One) observed: false"]);
    }
}
