//! Handlers that come and go, early and late, fast and slow.

use kubewright_testing::limit;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::source::StreamingList;
use kubewright_cache::{
    AlreadyRan, Callbacks, Filtered, HandlerOptions, Index, Key, ListWatch, Scope, SharedInformer,
    Stopped, SyncError,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::running::{options, run, source, start};
use crate::story::Story;
use crate::wire::{Break, World, stored, until};

#[limited::test(start_paused = true)]
async fn fifty_handlers_cost_one_request() {
    let world = World::new().await;
    world.create("a").await;
    let running = run(source(&world), options());
    let mut stories = Vec::new();
    for _ in 0..25 {
        let (story, record) = Story::new();
        running.informer.add_handler(story).expect("it runs");
        stories.push(record);
    }
    limit(running.informer.synced()).await.expect("it syncs");
    for _ in 0..25 {
        let (story, record) = Story::new();
        running.informer.add_handler(story).expect("it runs");
        stories.push(record);
    }
    world.create("b").await;
    let truth = limit(world.truth()).await;
    until("all heard", async || {
        stories.iter().all(|record| record.lock().led_to(&truth))
    })
    .await;
    assert_eq!(world.wire.asked(), ["stream"]);
}

#[limited::test(start_paused = true)]
async fn fifty_handlers_cost_one_list_and_one_watch_where_there_are_no_streams() {
    let world = World::new().await;
    world.create("a").await;
    let running = run(
        source(&world).with_streaming_list(StreamingList::No),
        options(),
    );
    let mut stories = Vec::new();
    for _ in 0..50 {
        let (story, record) = Story::new();
        running.informer.add_handler(story).expect("it runs");
        stories.push(record);
    }
    limit(running.informer.synced()).await.expect("it syncs");
    world.update("a", "1").await;
    let truth = limit(world.truth()).await;
    until("all heard", async || {
        stories.iter().all(|record| record.lock().led_to(&truth))
    })
    .await;
    assert_eq!(world.wire.asked(), ["list", "watch"]);
}

#[limited::test(start_paused = true)]
async fn late_handler_hears_the_present_state_first() {
    let world = World::new().await;
    world.create("a").await;
    let running = run(source(&world), options());
    limit(running.informer.synced()).await.expect("it syncs");
    let (story, record) = Story::new();
    let registration = running.informer.add_handler(story).expect("it runs");
    assert!(!registration.has_synced());
    limit(registration.synced()).await.expect("it syncs");
    world.create("b").await;
    world.update("a", "1").await;
    world.delete("a").await;
    until("the deletion", async || {
        record
            .lock()
            .events
            .last()
            .is_some_and(|e| e == "deleted a")
    })
    .await;
    assert_eq!(
        record.lock().about(&["a", "b"]),
        ["initial a", "added b", "updated a", "deleted a"]
    );
}

#[limited::test(start_paused = true)]
async fn removed_handler_hears_no_more_and_others_go_on() {
    let world = World::new().await;
    let running = run(source(&world), options());
    let ((one, left), (two, stayed)) = (Story::new(), Story::new());
    let one = running.informer.add_handler(one).expect("it runs");
    running.informer.add_handler(two).expect("it runs");
    limit(one.synced()).await.expect("it syncs");
    one.remove();
    one.remove();
    limit(one.ended()).await;
    world.create("a").await;
    until("the other hears", async || {
        !stayed.lock().about(&["a"]).is_empty()
    })
    .await;
    assert!(left.lock().about(&["a"]).is_empty());
}

#[limited::test(start_paused = true)]
async fn slow_handler_delays_only_itself_and_misses_no_final_state() {
    let world = World::new().await;
    let running = run(source(&world), options());
    let (slow, crawled) = Story::slow(Duration::from_secs(60));
    let (fast, ran) = Story::new();
    let few = HandlerOptions::default().backlog(2);
    running
        .informer
        .add_handler_with(slow, few)
        .expect("it runs");
    running.informer.add_handler(fast).expect("it runs");
    limit(running.informer.synced()).await.expect("it syncs");
    let start = tokio::time::Instant::now();
    world.create("a").await;
    world.create("b").await;
    for n in 1..=40 {
        world.update("a", &n.to_string()).await;
    }
    world.delete("b").await;
    let truth = limit(world.truth()).await;
    until("the fast one", async || ran.lock().led_to(&truth)).await;
    assert!(start.elapsed() < Duration::from_secs(60));
    until("the slow one", async || crawled.lock().led_to(&truth)).await;
    assert_eq!(ran.lock().about(&["a"]).len(), 41);
    assert!(crawled.lock().about(&["a"]).len() < 10);
}

#[limited::test(start_paused = true)]
async fn each_handler_resyncs_in_its_own_time_and_nobody_asks_the_server() {
    let world = World::new().await;
    world.create("a").await;
    let running = run(source(&world), options());
    let ((often, busy), (seldom, calm), (never, still)) =
        (Story::new(), Story::new(), Story::new());
    let every = |seconds| HandlerOptions::default().resync(Duration::from_secs(seconds));
    running
        .informer
        .add_handler_with(often, every(10))
        .expect("it runs");
    running
        .informer
        .add_handler_with(seldom, every(40))
        .expect("it runs");
    running.informer.add_handler(never).expect("it runs");
    limit(running.informer.synced()).await.expect("it syncs");
    let objects = limit(world.truth()).await.len();
    tokio::time::sleep(Duration::from_secs(85)).await;
    assert_eq!(busy.lock().resyncs, 8 * objects);
    assert_eq!(calm.lock().resyncs, 2 * objects);
    assert_eq!(still.lock().resyncs, 0);
    assert_eq!(world.wire.asked(), ["stream"]);
}

#[limited::test(start_paused = true)]
async fn callbacks_get_decoded_values() {
    let world = World::new().await;
    let (sender, mut record) = tokio::sync::mpsc::channel(64);
    let (added, updated) = (sender.clone(), sender.clone());
    let value = |map: &ConfigMap| {
        map.data
            .as_ref()
            .and_then(|d| d.get("n"))
            .cloned()
            .unwrap_or_default()
    };
    let callbacks = Callbacks::default()
        .added(move |map: std::sync::Arc<ConfigMap>| {
            added.try_send(format!("+{}", value(&map))).expect("room")
        })
        .updated(move |old, new| {
            updated
                .try_send(format!("{}>{}", value(&old), value(&new)))
                .expect("room")
        })
        .deleted(move |map| sender.try_send(format!("-{}", value(&map))).expect("room"));
    let running = run(source(&world), options());
    let chosen = Filtered::new(
        |object: &kubewright_cache::Cached<ConfigMap>| object.key().name() == "a",
        callbacks,
    );
    running.informer.add_handler(chosen).expect("it runs");
    limit(running.informer.synced()).await.expect("it syncs");
    world.create("a").await;
    world.update("a", "7").await;
    world.delete("a").await;
    for expected in ["+0", "0>7", "-7"] {
        assert_eq!(limit(record.recv()).await.as_deref(), Some(expected));
    }
}

#[limited::test(start_paused = true)]
async fn stopped_informer_takes_no_handler_and_does_not_run_again() {
    let world = World::new().await;
    let mut running = run(source(&world), options());
    let (story, _) = Story::new();
    let registration = running.informer.add_handler(story).expect("it runs");
    limit(running.informer.synced()).await.expect("it syncs");
    running.cancel.cancel();
    limit(running.tasks.join_next())
        .await
        .expect("a task")
        .expect("no panic");
    limit(registration.ended()).await;
    assert!(running.informer.is_stopped());
    assert_eq!(
        running
            .informer
            .add_handler(Story::new().0)
            .expect_err("stopped"),
        Stopped
    );
    assert_eq!(
        limit(running.informer.run(CancellationToken::new())).await,
        Err(AlreadyRan)
    );
    registration.remove();
}

#[limited::test(start_paused = true)]
async fn handler_that_is_removed_before_it_began_has_ended() {
    let world = World::new().await;
    let informer: SharedInformer<ConfigMap> = SharedInformer::new(source(&world), options());
    let (story, record) = Story::new();
    let registration = informer.add_handler(story).expect("it can still run");
    registration.remove();
    limit(registration.ended()).await;
    assert_eq!(limit(registration.synced()).await, Err(Stopped));
    let running = start(informer);
    limit(running.informer.synced()).await.expect("it syncs");
    assert!(record.lock().events.is_empty());
}

#[limited::test(start_paused = true)]
async fn waiting_for_an_informer_that_stops_ends() {
    let world = World::new().await;
    world.wire.answer_all("stream", 429, "TooManyRequests");
    let running = run(source(&world), options());
    let waiting = running.informer.clone();
    let mut waiters = JoinSet::new();
    for _ in 0..3 {
        let waiting = waiting.clone();
        waiters.spawn(async move { limit(waiting.synced()).await });
    }
    until("it has asked", async || !world.wire.asked().is_empty()).await;
    running.cancel.cancel();
    while let Some(ended) = limit(waiters.join_next()).await {
        assert!(matches!(ended.expect("no panic"), Err(SyncError::Stopped)));
    }
}

#[limited::test(start_paused = true)]
async fn index_is_right_after_every_change_and_when_added_late() {
    let world = World::new().await;
    world.create("a").await;
    world.create("b").await;
    let running = run(source(&world), options());
    let reader = running.informer.reader();
    reader
        .add_index("app", Index::by_label("app"))
        .expect("the name is free");
    limit(running.informer.synced()).await.expect("it syncs");
    let key = |name| vec![Key::new("default", name)];
    assert_eq!(reader.keys_by_index("app", "a"), Ok(key("a")));
    world.delete("a").await;
    world.create("c").await;
    let truth = limit(world.truth()).await;
    until("the store is right", async || stored(&reader) == truth).await;
    let value = |map: &ConfigMap| map.data.iter().flatten().map(|(_, v)| v.clone()).collect();
    reader
        .add_index("value", Index::of(value))
        .expect("the name is free");
    assert_eq!(reader.keys_by_index("app", "a"), Ok(vec![]));
    assert_eq!(reader.keys_by_index("app", "c"), Ok(key("c")));
    assert_eq!(
        reader.keys_by_index("value", "0").map(|keys| keys.len()),
        Ok(2)
    );
}

#[limited::test(start_paused = true)]
async fn statistics_say_what_is_held_and_what_was_done() {
    let world = World::new().await;
    world.create("a").await;
    let chosen = Scope::all().namespace("default").labels("app");
    let source = ListWatch::typed::<ConfigMap>(world.wire.client(), chosen)
        .with_streaming_list(StreamingList::No);
    let running = run(source, options().page_size(1));
    let (story, record) = Story::new();
    running.informer.add_handler(story).expect("it runs");
    let (slow, _) = Story::slow(Duration::from_secs(60));
    running.informer.add_handler(slow).expect("it runs");
    limit(running.informer.synced()).await.expect("it syncs");
    world.create("b").await;
    world.update("a", "1").await;
    let truth = limit(world.truth()).await;
    until("the handler agrees", async || record.lock().led_to(&truth)).await;
    world.wire.break_watches(Break::Garbage);
    world.create("c").await;
    let truth = limit(world.truth()).await;
    until("it has listed again", async || record.lock().led_to(&truth)).await;

    let stats = running.informer.stats();
    let path = "/api/v1/namespaces/default/configmaps?labelSelector=app";
    assert_eq!((stats.name.as_str(), stats.objects), (path, 3));
    let bytes = running.informer.reader().snapshot();
    let bytes: usize = bytes.iter().map(|object| object.heap_size()).sum();
    assert_eq!(stats.bytes, bytes);
    assert_eq!(
        stats.resource_version,
        running.informer.reader().resource_version()
    );
    assert!(stats.synced);
    assert_eq!((stats.lists, stats.streams, stats.watches), (2, 0, 2));
    assert_eq!((stats.relists, stats.events, stats.failures), (1, 2, 1));
    // The slow one has heard of `a`, and has still to hear that it changed, and of `b` and `c`.
    assert_eq!((stats.queued, stats.backlogs), (0, vec![0, 3]));
}

#[limited::test(start_paused = true)]
async fn whoever_waits_for_progress_is_woken_when_the_store_moves() {
    let world = World::new().await;
    let running = run(source(&world), options());
    limit(running.informer.synced()).await.expect("it syncs");
    let reader = running.informer.reader();
    let waiters = [running.informer.advanced(), running.informer.advanced()];
    world.create("a").await;
    limit(futures::future::join_all(waiters)).await;
    assert!(reader.contains(&Key::new("default", "a")));
}

/// Writers, readers and handlers that come and go, on several threads.
#[limited::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_come_and_go_while_everything_changes() {
    let world = std::sync::Arc::new(World::new().await);
    let running = run(source(&world), options());
    let mut tasks = JoinSet::new();
    for task in 0..4 {
        let world = world.clone();
        tasks.spawn(async move {
            let name = format!("map-{task}");
            for n in 1..=25 {
                world.create(&name).await;
                world.update(&name, &n.to_string()).await;
                if n < 25 {
                    world.delete(&name).await;
                }
            }
        });
    }
    for _ in 0..4 {
        let informer = running.informer.clone();
        let world = world.clone();
        tasks.spawn(async move {
            for _ in 0..20 {
                let (story, record) = Story::new();
                let registration = informer.add_handler(story).expect("it runs");
                limit(registration.synced()).await.expect("it syncs");
                limit(world.truth()).await;
                registration.remove();
                limit(registration.ended()).await;
                let heard = record.lock().events.len();
                limit(world.truth()).await;
                assert_eq!(
                    record.lock().events.len(),
                    heard,
                    "a removed handler hears nothing"
                );
            }
        });
    }
    let (story, record) = Story::new();
    running.informer.add_handler(story).expect("it runs");
    while let Some(ended) = limit(tasks.join_next()).await {
        ended.expect("no panic");
    }
    let truth = limit(world.truth()).await;
    until("the handler agrees", async || record.lock().led_to(&truth)).await;
    assert_eq!(stored(&running.informer.reader()), truth);
    assert_eq!(world.wire.asked(), ["stream"]);
}
