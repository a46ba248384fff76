//! How an informer begins, goes on under the strangest handlers, and ends.

use kubewright_testing::limit;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::source::{
    BoxFuture, Chunks, Failure, ListRequest, Source, StreamingList, WatchRequest,
};
use kubewright_cache::{
    AlreadyRan, Event, HandlerOptions, Index, Key, Reporter, Shape, SharedInformer, reflector,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::running::{options, run, source, start};
use crate::story::Story;
use crate::wire::{Break, World, stored, until};

#[limited::test(start_paused = true)]
async fn one_watch_is_open_at_a_time_and_none_after_the_end() {
    let world = World::new().await;
    let mut running = run(source(&world), options());
    limit(running.informer.synced()).await.expect("it syncs");
    let (story, record) = Story::new();
    running.informer.add_handler(story).expect("it runs");
    let reader = running.informer.reader();
    for (n, how) in [Break::Close, Break::Reset, Break::Garbage]
        .into_iter()
        .enumerate()
    {
        world.wire.break_watches(how);
        world.create(&format!("a{n}")).await;
        let truth = limit(world.truth()).await;
        until("the store is right", async || stored(&reader) == truth).await;
        assert_eq!(world.wire.open_watches(), 1, "{how:?}");
    }
    running.cancel.cancel();
    let ended = limit(running.tasks.join_next()).await.expect("a task");
    ended.expect("no panic");
    until("the watch is closed", async || {
        world.wire.open_watches() == 0
    })
    .await;
    assert_eq!(Arc::strong_count(&record), 1, "the handler is gone");
}

#[limited::test(start_paused = true)]
async fn informer_that_is_cancelled_before_it_runs_asks_nothing() {
    let world = World::new().await;
    let informer: SharedInformer<ConfigMap> = SharedInformer::new(source(&world), options());
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_eq!(limit(informer.run(cancel)).await, Ok(()));
    assert!(world.wire.asked().is_empty());
}

#[limited::test(flavor = "multi_thread", worker_threads = 4)]
async fn informer_runs_once_however_many_start_it() {
    let world = World::new().await;
    let informer: SharedInformer<ConfigMap> = SharedInformer::new(source(&world), options());
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    for _ in 0..10 {
        let (informer, cancel) = (informer.clone(), cancel.clone());
        tasks.spawn(async move { informer.run(cancel).await });
    }
    limit(informer.synced()).await.expect("it syncs");
    for _ in 0..9 {
        let ended = limit(tasks.join_next()).await.expect("a task");
        assert_eq!(ended.expect("no panic"), Err(AlreadyRan));
    }
    cancel.cancel();
    let ended = limit(tasks.join_next()).await.expect("a task");
    assert_eq!(ended.expect("no panic"), Ok(()));
    assert_eq!(world.wire.asked(), ["stream"]);
}

#[limited::test(start_paused = true)]
async fn transform_is_applied_to_what_is_listed_and_what_is_watched() {
    for streaming in [StreamingList::Try, StreamingList::No] {
        let world = World::new().await;
        world.create("a").await;
        let mark = |object: &mut serde_json::Value| {
            object["data"] = json!({"marked": "yes"});
            Ok(())
        };
        let shape = Shape::default().transform(mark);
        let plain = source(&world).with_streaming_list(streaming);
        let running = run(plain, options().shape(shape));
        let keys: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = keys.clone();
        let handler = move |event: Event<ConfigMap>| {
            let data = event.object().value().and_then(|map| map.data.clone());
            heard
                .lock()
                .extend(data.into_iter().flat_map(|data| data.into_keys()));
        };
        running.informer.add_handler(handler).expect("it runs");
        limit(running.informer.synced()).await.expect("it syncs");
        world.create("b").await;
        world.update("b", "1").await;
        world.delete("b").await;
        until("all events arrive", async || keys.lock().len() == 4).await;
        assert_eq!(*keys.lock(), ["marked"; 4]);
    }
}

#[limited::test(start_paused = true)]
async fn handler_that_comes_late_resyncs_in_its_own_time_but_not_all_the_time() {
    let world = World::new().await;
    world.create("a").await;
    let running = run(source(&world), options());
    limit(running.informer.synced()).await.expect("it syncs");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let objects = limit(world.truth()).await.len();
    let (story, record) = Story::new();
    let often = HandlerOptions::default().resync(Duration::from_millis(1));
    running
        .informer
        .add_handler_with(story, often)
        .expect("it runs");
    tokio::time::sleep(Duration::from_millis(3500)).await;
    assert_eq!(record.lock().resyncs, 3 * objects);
    world.delete("a").await;
    until("it is gone", async || record.lock().events.len() > objects).await;
    let before = record.lock().resyncs;
    tokio::time::sleep(Duration::from_millis(2000)).await;
    assert_eq!(record.lock().resyncs, before + 2 * (objects - 1));
}

#[limited::test(start_paused = true)]
async fn handler_has_synced_when_it_has_heard_everything_and_not_before() {
    let world = World::new().await;
    for name in ["a", "b", "c"] {
        world.create(name).await;
    }
    let running = run(source(&world), options());
    limit(running.informer.synced()).await.expect("it syncs");
    let objects = limit(world.truth()).await.len();
    let (story, record) = Story::slow(Duration::from_secs(10));
    let registration = running.informer.add_handler(story).expect("it runs");
    world.delete("c").await;
    for heard in 1..=objects {
        until("one more", async || record.lock().events.len() == heard).await;
        assert!(!registration.has_synced(), "after {heard} of {objects}");
    }
    limit(registration.synced()).await.expect("it syncs");
    until("it is gone", async || record.lock().events.len() > objects).await;
    assert_eq!(record.lock().about(&["c"]), ["initial c", "deleted c"]);
}

#[limited::test(start_paused = true)]
async fn removal_waits_for_the_event_that_is_being_heard() {
    let world = World::new().await;
    world.create("a").await;
    world.create("b").await;
    let running = run(source(&world), options());
    let (story, record) = Story::slow(Duration::from_secs(10));
    let registration = running.informer.add_handler(story).expect("it runs");
    until("it hears", async || !record.lock().events.is_empty()).await;
    let before = tokio::time::Instant::now();
    registration.remove();
    limit(registration.ended()).await;
    assert!(before.elapsed() > Duration::from_secs(9));
    assert_eq!(record.lock().events.len(), 1);
}

#[limited::test(start_paused = true)]
async fn handler_that_panics_every_time_can_be_removed() {
    let world = World::new().await;
    world.create("a").await;
    let reporter = Reporter::new(|_| {});
    let running = run(source(&world), options().reporter(reporter));
    let handler = |_: Event<ConfigMap>| panic!("on purpose");
    let registration = running.informer.add_handler(handler).expect("it runs");
    limit(registration.synced()).await.expect("it syncs");
    registration.remove();
    limit(registration.ended()).await;
    assert!(!running.informer.is_stopped());
}

#[limited::test(start_paused = true)]
async fn failures_are_reported() {
    let world = World::new().await;
    for sort in ["stream", "list"] {
        world.wire.answer_all(sort, 403, "Forbidden");
    }
    let reports: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = reports.clone();
    let reporter = Reporter::new(move |report| sink.lock().push(report.to_string()));
    let _running = run(source(&world), options().reporter(reporter));
    until("it is reported", async || !reports.lock().is_empty()).await;
    assert_eq!(reports.lock()[0], "not allowed: as planned: Forbidden");
}

/// What an index function or a reporter asks of the informer is answered: they run under no lock.
#[limited::test(start_paused = true)]
async fn index_functions_and_reporters_may_use_the_informer() {
    let world = World::new().await;
    world.create("a").await;
    let known: Arc<Mutex<Option<SharedInformer<ConfigMap>>>> = Arc::default();
    let ask = |known: &Mutex<Option<SharedInformer<ConfigMap>>>| {
        let informer = known.lock().clone().expect("it is made");
        let (story, _) = Story::new();
        informer.add_handler(story).expect("it runs").remove();
        informer.stats().objects
    };
    let (in_index, in_reporter) = (known.clone(), known.clone());
    let reporter = Reporter::new(move |_| {
        ask(&in_reporter);
    });
    let informer = SharedInformer::new(source(&world), options().reporter(reporter));
    *known.lock() = Some(informer.clone());
    let index = Index::of_metadata(move |object| {
        let name = object.key().name();
        assert!(name != "bad", "on purpose");
        vec![format!("{name} came to {}", ask(&in_index))]
    });
    let reader = informer.reader();
    reader.add_index("order", index).expect("the name is free");
    let running = start(informer);
    limit(running.informer.synced()).await.expect("it syncs");
    world.create("bad").await;
    world.create("c").await;
    let truth = limit(world.truth()).await;
    until("the store is right", async || stored(&reader) == truth).await;
    let order = format!("c came to {}", truth.len() - 1);
    assert_eq!(
        reader.keys_by_index("order", &order),
        Ok(vec![Key::new("default", "c")])
    );
    known.lock().take();
}

struct Broken;

impl Source for Broken {
    fn list(&self, _: ListRequest) -> BoxFuture<'_, Result<Box<dyn Chunks>, Failure>> {
        Box::pin(async { panic!("on purpose") })
    }

    fn watch(&self, _: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Chunks>, Failure>> {
        Box::pin(async { panic!("on purpose") })
    }

    fn describe(&self) -> String {
        "broken".to_owned()
    }
}

#[limited::test(start_paused = true)]
async fn panic_of_a_source_is_passed_on_to_whoever_runs_the_informer() {
    let options = reflector::Options::default();
    let informer: SharedInformer<ConfigMap> = SharedInformer::new(Broken, options);
    let mut tasks = JoinSet::new();
    let running = informer.clone();
    tasks.spawn(async move { running.run(CancellationToken::new()).await });
    let ended = limit(tasks.join_next()).await.expect("a task");
    assert!(ended.expect_err("it panics").is_panic());
    assert!(informer.is_stopped());
}
