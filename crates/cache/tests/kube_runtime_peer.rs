//! The stories of `kube_rs_defects.rs` repeated with kube-runtime 5.0.0: each test passes while the defect is there.
//!
//! A test that fails here is good news: kube-runtime has fixed something, and `docs/parity-kube-runtime.md` is out of date.

mod support;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::Api;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_runtime::controller::{Action, Config};
use kube_runtime::reflector::{self, ObjectRef};
use kube_runtime::watcher::{self, Event};
use kube_runtime::{Controller, WatchStreamExt};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use support::strict::Strict;
use support::wire::{Break, World, late_ones, until};

const LONG: Duration = Duration::from_secs(3600);

fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

fn maps(world: &World) -> Api<ConfigMap> {
    Api::namespaced(world.wire.client(), "default")
}

/// Follows ConfigMaps in the background and notes the name of everything that the stream says, deletions included.
fn follow(world: &World, config: watcher::Config) -> (JoinSet<()>, Arc<Mutex<Vec<String>>>) {
    let names: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = names.clone();
    let touched = watcher::watcher(maps(world), config)
        .default_backoff()
        .touched_objects();
    let mut tasks = JoinSet::new();
    tasks.spawn(touched.for_each(move |touch| {
        heard.lock().extend(touch.map(|map| map.name_any()).ok());
        std::future::ready(())
    }));
    (tasks, names)
}

/// Runs a controller in the background and notes the names it reconciles.
fn reconcile(controller: Controller<ConfigMap>) -> (JoinSet<()>, Arc<Mutex<Vec<String>>>) {
    let done: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = done.clone();
    let reconciler = move |map: Arc<ConfigMap>, _: Arc<()>| {
        note.lock().push(map.name_any());
        async { Ok::<_, Infallible>(Action::await_change()) }
    };
    let mut tasks = JoinSet::new();
    let policy = |_: Arc<ConfigMap>, _: &Infallible, _: Arc<()>| Action::await_change();
    let results = controller.run(reconciler, policy, Arc::new(()));
    tasks.spawn(results.for_each(|_| std::future::ready(())));
    (tasks, done)
}

/// A.
#[limited::test(start_paused = true)]
async fn kube_runtime_stands_still_after_an_object_that_is_gone_before_it_is_reported() {
    let (store, writer) = reflector::store_shared::<ConfigMap>(8);
    let subscriber = writer.subscribe().expect("it is shared");
    let heard = Arc::new(Mutex::new(0));
    let count = heard.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(subscriber.for_each(move |_| {
        *count.lock() += 1;
        std::future::ready(())
    }));
    let first = [Event::Apply(map("a")), Event::Delete(map("a"))];
    let rest = (0..40).map(|n| Event::Apply(map(&format!("b{n}"))));
    let events: Vec<watcher::Result<_>> = first.into_iter().chain(rest).map(Ok).collect();
    let root = stream::iter(events).reflect_shared(writer);
    let ended = timeout(LONG, root.for_each(|_| std::future::ready(()))).await;
    assert!(ended.is_err(), "the root stream ends");
    assert_eq!(*heard.lock(), 0);
    assert!(store.len() < 40);
}

/// B.
#[limited::test(start_paused = true)]
async fn kube_runtime_slows_every_watch_down_when_one_is_forbidden() {
    let alone = late(|controller, _| controller).await;
    let with_child = late(|controller, world| {
        let secrets: Api<Secret> = Api::namespaced(world.wire.client(), "default");
        let path = "/api/v1/namespaces/default/secrets";
        world.wire.answer_all(path, 403, "Forbidden");
        controller.owns(secrets, watcher::Config::default())
    })
    .await;
    assert_eq!(alone, 0);
    assert!(with_child > 50, "{with_child} of 100 are late");
}

/// How many of a hundred objects are not reconciled within a tenth of a second.
async fn late(more: impl FnOnce(Controller<ConfigMap>, &World) -> Controller<ConfigMap>) -> usize {
    let world = World::new().await;
    let controller = Controller::new(maps(&world), watcher::Config::default());
    let (_tasks, done) = reconcile(more(controller, &world));
    sleep(Duration::from_secs(5)).await;
    late_ones(&world, |name| done.lock().iter().any(|done| done == name)).await
}

/// C.
#[limited::test(start_paused = true)]
async fn kube_runtime_opens_hundreds_of_watches_that_end_at_once() {
    let world = World::new().await;
    world.wire.short_watches();
    let (_tasks, _) = follow(&world, watcher::Config::default());
    sleep(Duration::from_secs(3)).await;
    let asked = world.wire.count("watch");
    assert!(asked > 300, "{asked} watches in three seconds");
}

/// D.
#[limited::test(start_paused = true)]
async fn kube_runtime_asks_for_an_expired_version_for_ever() {
    let world = World::new().await;
    world.wire.answer_all("watch", 410, "Expired");
    let (_tasks, _) = follow(&world, watcher::Config::default());
    sleep(LONG).await;
    assert_eq!(world.wire.count("list"), 1);
    assert!(world.wire.count("watch") > 50);
    let mut versions: Vec<String> = world.wire.queries().split_off(1);
    versions.dedup();
    assert_eq!(versions.len(), 1, "{versions:?}");
}

/// E.
#[limited::test(start_paused = true)]
async fn kube_runtime_drops_the_semantic_of_a_list_in_pages() {
    let world = World::new().await;
    let (_tasks, _) = follow(&world, watcher::Config::default().any_semantic());
    until("it watches", async || world.wire.count("watch") == 1).await;
    assert!(!world.wire.queries()[0].contains("resourceVersion"));
}

/// F.
#[limited::test(start_paused = true)]
async fn kube_runtime_streams_a_stale_state_and_never_falls_back_to_a_list() {
    let world = World::new().await;
    world.wire.answer_all("stream", 422, "Invalid");
    let (_tasks, names) = follow(&world, watcher::Config::default().streaming_lists());
    sleep(LONG).await;
    assert_eq!(world.wire.count("list"), 0);
    assert!(world.wire.queries()[0].contains("resourceVersion=0"));
    assert!(names.lock().is_empty());
}

/// G.
#[limited::test(start_paused = true)]
async fn kube_runtime_never_tells_of_deletions_across_a_relist() {
    let world = World::new().await;
    world.create("a").await;
    world.create("b").await;
    let (_tasks, names) = follow(&world, watcher::Config::default());
    until("it watches", async || world.wire.count("watch") == 1).await;
    world.wire.answer_all("watch", 429, "TooManyRequests");
    world.wire.break_watches(Break::Reset);
    world.delete("a").await;
    world.expire().await;
    world.wire.heal();
    until("it lists again", async || world.wire.count("list") == 2).await;
    world.create("c").await;
    let heard = async || names.lock().contains(&"c".to_owned());
    until("it goes on", heard).await;
    let count = |name: &str| names.lock().iter().filter(|it| *it == name).count();
    assert_eq!((count("a"), count("b")), (1, 2));
}

/// H.
#[limited::test(start_paused = true)]
async fn kube_runtime_ends_a_controller_whose_reconciler_panics() {
    let world = World::new().await;
    let reconciler = |map: Arc<ConfigMap>, _: Arc<()>| async move {
        if map.name_any() == "bad" {
            panic!("on purpose");
        }
        Ok::<_, Infallible>(Action::await_change())
    };
    let policy = |_: Arc<ConfigMap>, _: &Infallible, _: Arc<()>| Action::await_change();
    let controller = Controller::new(maps(&world), watcher::Config::default());
    let results = controller.run(reconciler, policy, Arc::new(()));
    let mut tasks = JoinSet::new();
    tasks.spawn(results.for_each(|_| std::future::ready(())));
    world.create("bad").await;
    let ended = timeout(LONG, tasks.join_next()).await.expect("it ends");
    assert!(ended.expect("a task").expect_err("it panics").is_panic());
}

/// I. The order is that of a hash with a random seed: a hundred keys do not come out sorted by accident.
#[limited::test(start_paused = true)]
async fn kube_runtime_reconciles_in_a_random_order() {
    let world = World::new().await;
    for n in 0..100 {
        world.create(&format!("a{n:03}")).await;
    }
    let controller = Controller::new(maps(&world), watcher::Config::default());
    let one = Config::default().concurrency(1);
    let (_tasks, done) = reconcile(controller.with_config(one));
    until("all are done", async || done.lock().len() >= 100).await;
    assert!(!done.lock().is_sorted());
}

/// J.
#[limited::test(start_paused = true)]
async fn kube_runtime_has_nothing_while_one_object_does_not_decode() {
    let world = World::new().await;
    world.create("bad").await;
    world.update("bad", "x").await;
    world.create("good").await;
    let api: Api<Strict> = Api::namespaced(world.wire.client(), "default");
    let (store, writer) = reflector::store::<Strict>();
    let objects = watcher::watcher(api, watcher::Config::default())
        .default_backoff()
        .reflect(writer);
    let mut tasks = JoinSet::new();
    tasks.spawn(objects.for_each(|_| std::future::ready(())));
    assert!(timeout(LONG, store.wait_until_ready()).await.is_err());
    assert!(store.is_empty());
}

/// K.
#[limited::test(start_paused = true)]
async fn kube_runtime_asks_for_lists_that_fail_every_second_or_so() {
    let world = World::new().await;
    world.wire.answer_all("list", 500, "InternalError");
    let (_tasks, _) = follow(&world, watcher::Config::default());
    sleep(Duration::from_secs(600)).await;
    let asked = world.wire.count("list");
    assert!(asked > 300, "{asked} lists in ten minutes");
}

/// L.
#[test]
fn kube_runtime_does_not_recognise_an_owner_of_another_version() {
    let owner = |version: &str| OwnerReference {
        api_version: format!("example.com/{version}"),
        kind: "Parent".to_owned(),
        name: "p".to_owned(),
        uid: "u".to_owned(),
        ..OwnerReference::default()
    };
    let kind = GroupVersionKind::gvk("example.com", "v1", "Parent");
    let found = |version: &str| {
        let resource = ApiResource::from_gvk(&kind);
        ObjectRef::<DynamicObject>::from_owner_ref(Some("default"), &owner(version), resource)
    };
    assert!(found("v1").is_some());
    assert!(found("v1alpha1").is_none());
}

/// The lost wake-up.
#[limited::test(start_paused = true)]
async fn kube_runtime_wakes_only_the_last_of_those_who_wait_for_a_store() {
    let (store, mut writer) = reflector::store::<ConfigMap>();
    let mut waiters = JoinSet::new();
    for _ in 0..2 {
        let store = store.clone();
        waiters.spawn(async move { store.wait_until_ready().await });
    }
    tokio::task::yield_now().await;
    for event in [Event::Init, Event::InitDone] {
        writer.apply_watcher_event(&event);
    }
    sleep(LONG).await;
    assert!(waiters.try_join_next().is_some());
    assert!(waiters.try_join_next().is_none());
}
