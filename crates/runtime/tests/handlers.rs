//! Requests end to end: event handlers with access to the queue, controllers without objects of their own, filters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::cause::Trigger;
use kubewright_runtime::controller::WarmUp;
use kubewright_runtime::manager::ManagerError;
use kubewright_runtime::watch::{Channel, EventQueue};
use kubewright_runtime::{
    Add, Client, Context, Controller, Error, Event, Index, Key, Manager, ObjectEvent, Outcome,
    Priority, Request, Scope, Watch, from_fn,
};
use kubewright_server::Server;
use kubewright_testing::limit;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

async fn server() -> (Server, kube::Client) {
    let server = Server::builder().start().await.expect("a server starts");
    let client = kube::Client::new(server.service(), "default");
    (server, client)
}

fn config(name: &str, zone: &str) -> ConfigMap {
    let mut config = ConfigMap::default();
    config.metadata.name = Some(name.to_owned());
    config.metadata.namespace = Some("default".to_owned());
    config.data = Some(BTreeMap::from([("zone".to_owned(), zone.to_owned())]));
    config
}

fn zone(config: &ConfigMap) -> Option<String> {
    config.data.as_ref()?.get("zone").cloned()
}

/// A manager that stops at the end of a test.
struct Running(CancellationToken);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn run(manager: Manager) -> Running {
    let stop = CancellationToken::new();
    tokio::spawn(manager.run_until(stop.clone()));
    Running(stop)
}

async fn next<T>(from: &mut mpsc::Receiver<T>) -> T {
    let next = timeout(Duration::from_secs(120), from.recv()).await;
    next.expect("nothing was reconciled within 120 s")
        .expect("the controller lives")
}

/// Everything that is reconciled within this time.
async fn all_within(from: &mut mpsc::Receiver<String>, time: Duration) -> Vec<String> {
    let mut all = Vec::new();
    while let Ok(Some(next)) = timeout(time, from.recv()).await {
        all.push(next);
    }
    all
}

fn in_default() -> Scope {
    Scope::all().namespace("default")
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Zone(String);

impl Request for Zone {
    fn key(&self) -> Key {
        Key::cluster(&self.0)
    }
}

#[limited::test(start_paused = true)]
async fn controller_without_objects_reconciles_what_its_watches_ask_for() {
    let (_server, kube) = server().await;
    let user = Client::new(kube.clone());
    for (name, zone) in [("a", "east"), ("b", "east"), ("c", "west")] {
        user.create(&config(name, zone))
            .await
            .expect("it is created");
    }
    let (sender, mut heard) = mpsc::channel(64);
    let (by_hand, channel) = Channel::new();
    let zones = Watch::of::<ConfigMap>()
        .scope(in_default())
        .map(|config, _| zone(config).map(Zone).into_iter().collect());
    let controller = Controller::for_requests("zones")
        .watches(zones)
        .watches(channel)
        .reconciler(move |zone: Zone, cx: Context| {
            let sender = sender.clone();
            async move {
                assert_eq!(cx.key().as_str(), zone.0);
                let causes = cx.causes().len();
                let _ = sender.send((zone.0, causes)).await;
                Ok(Outcome::done())
            }
        });
    let handle = controller.handle();
    let _running = run(Manager::new(kube).controller(controller));
    let mut first = [next(&mut heard).await, next(&mut heard).await];
    first.sort();
    // Two objects lead to one request, and one reconcile with two causes.
    assert_eq!(first, [("east".to_owned(), 2), ("west".to_owned(), 1)]);

    let west = config("c", "west");
    let north = BTreeMap::from([("zone".to_owned(), "north".to_owned())]);
    let moved = user.modify(&west, |config| config.data = Some(north)).await;
    moved.expect("it is written");
    let mut both = [next(&mut heard).await.0, next(&mut heard).await.0];
    both.sort();
    assert_eq!(both, ["north", "west"], "the zone before hears of it too");

    by_hand
        .send(Zone("south".to_owned()))
        .await
        .expect("it runs");
    assert_eq!(next(&mut heard).await.0, "south");
    handle.reconcile(Zone("moon".to_owned()));
    assert_eq!(next(&mut heard).await.0, "moon");
}

#[limited::test(start_paused = true)]
async fn handler_sees_the_event_and_delays_what_it_adds() {
    let (_server, kube) = server().await;
    let user = Client::new(kube.clone());
    let (sender, mut heard) = mpsc::channel(64);
    let delay = Duration::from_secs(60);
    let watch = Watch::of::<ConfigMap>().scope(in_default()).handler(
        move |event: &Event<ConfigMap>, queue: &EventQueue<'_>| {
            let key = event.object().key().clone();
            match event {
                Event::Deleted { .. } => queue.add(key),
                Event::Updated { .. } => queue.add_rate_limited(key),
                _ => queue.add_after(key, delay),
            }
        },
    );
    let controller = Controller::for_requests("delays")
        .watches(watch)
        .reconciler(move |key: Key, cx: Context| {
            let sender = sender.clone();
            async move {
                let triggers = cx.causes().iter().map(|cause| cause.trigger.clone());
                let _ = sender
                    .send((
                        key,
                        triggers.collect::<Vec<_>>(),
                        cx.attempt(),
                        Instant::now(),
                    ))
                    .await;
                Ok(Outcome::done())
            }
        });
    let handle = controller.handle();
    let _running = run(Manager::new(kube).controller(controller));
    while !handle.is_warm() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let object = user.create(&config("a", "x")).await.expect("it is created");
    let created = Instant::now();
    let (key, triggers, _, at) = next(&mut heard).await;
    assert_eq!(
        (key.as_str(), &triggers[..]),
        ("default/a", &[Trigger::Added][..])
    );
    assert!(at - created >= delay, "{:?}", at - created);

    let changed = user.modify(&object, |config| config.data = None).await;
    changed.expect("it is written");
    let (_, triggers, attempt, _) = next(&mut heard).await;
    let fields = vec!["data".to_owned()];
    assert_eq!(
        (&triggers[..], attempt),
        (&[Trigger::Updated { fields }][..], 1)
    );
}

#[limited::test(start_paused = true)]
async fn event_filter_holds_for_every_watch() {
    let (_server, kube) = server().await;
    let user = Client::new(kube.clone());
    let (sender, mut heard) = mpsc::channel(64);
    for name in ["kept", "dropped"] {
        user.create(&config(name, "x"))
            .await
            .expect("it is created");
    }
    let other = Watch::of::<ConfigMap>()
        .scope(in_default())
        .map(|config: &ConfigMap, _| {
            let name = config.metadata.name.clone().unwrap_or_default();
            vec![Key::new("default", &format!("other-{name}"))]
        });
    let reconciler = {
        let sender = sender.clone();
        from_fn(move |_: Arc<ConfigMap>, cx: Context| {
            let _ = sender.try_send(cx.key().to_string());
            async { Ok(Outcome::done()) }
        })
    };
    let requests = {
        let filter = |event: &ObjectEvent<'_>| event.object().key().name() == "kept";
        Controller::for_requests("requests")
            .watches(other)
            .event_filter(filter)
            .reconciler(move |key: Key, _cx: Context| {
                let _ = sender.try_send(key.to_string());
                async { Ok(Outcome::done()) }
            })
    };
    let objects = Controller::of::<ConfigMap>("objects")
        .scope(in_default())
        .event_filter(|event| event.object().key().name() == "kept")
        .reconciler(reconciler);
    let _running = run(Manager::new(kube).controller(objects).controller(requests));
    let mut all = all_within(&mut heard, Duration::from_secs(5)).await;
    all.sort();
    assert_eq!(all, ["default/kept", "default/other-kept"]);
}

#[limited::test(start_paused = true)]
async fn outcome_decides_how_urgent_the_next_run_is() {
    let (_server, kube) = server().await;
    let (sender, mut heard) = mpsc::channel(64);
    let controller = Controller::for_requests("order").reconciler(move |key: Key, cx: Context| {
        let sender = sender.clone();
        async move {
            if cx
                .causes()
                .iter()
                .any(|cause| cause.trigger == Trigger::Requeue)
            {
                let _ = sender.send(key.to_string()).await;
                return Ok(Outcome::done());
            }
            let priority = Priority(if key.name() == "urgent" { 7 } else { -7 });
            // All are due at once, while the worker is busy with the last one.
            if key.name() == "last" {
                tokio::time::sleep(Duration::from_secs(20)).await;
                return Ok(Outcome::done());
            }
            Ok(Outcome::requeue_after(Duration::from_secs(10)).priority(priority))
        }
    });
    let handle = controller.handle();
    let requests = handle.requests();
    requests.add(Key::cluster("patient"));
    requests.add(Key::cluster("urgent"));
    requests.add_with(Key::cluster("last"), Add::now().priority(Priority::LOW));
    let _running = run(Manager::new(kube).controller(controller));
    assert_eq!(next(&mut heard).await, "urgent");
    assert_eq!(next(&mut heard).await, "patient");
}

#[limited::test(start_paused = true)]
async fn causes_tell_a_retry_from_a_requeue() {
    let (_server, kube) = server().await;
    let (sender, mut heard) = mpsc::channel(64);
    let controller = Controller::for_requests("causes").reconciler(move |_: Key, cx: Context| {
        let sender = sender.clone();
        async move {
            let causes = cx.causes().iter().map(|cause| cause.trigger.clone());
            let causes: Vec<Trigger> = causes.collect();
            let _ = sender.send(causes).await;
            match cx.reconcile_id() {
                2 => Err(Error::msg("no")),
                3 => Ok(Outcome::done()),
                _ => Ok(Outcome::requeue_after(Duration::from_secs(60))),
            }
        }
    });
    let handle = controller.handle();
    let requests = handle.requests();
    let key = Key::cluster("a");
    requests.add(key.clone());
    let _running = run(Manager::new(kube).controller(controller));
    assert_eq!(next(&mut heard).await, [Trigger::Asked]);
    // The first run asked for one in a minute, which is not what happens now.
    requests.add(key.clone());
    assert_eq!(next(&mut heard).await, [Trigger::Asked]);
    assert_eq!(next(&mut heard).await, [Trigger::Retry]);
    requests.add(key);
    assert_eq!(next(&mut heard).await, [Trigger::Asked]);
    assert_eq!(next(&mut heard).await, [Trigger::Requeue]);
}

fn by_zone() -> Index<ConfigMap> {
    Index::of(|config: &ConfigMap| zone(config).into_iter().collect())
}

/// A controller that an index of this name leads to.
fn mapped_by(name: &str, index: &str, heard: mpsc::Sender<String>) -> Controller {
    let watch = Watch::of::<ConfigMap>().scope(in_default());
    let watch = watch.map_by_index::<ConfigMap>(index, |it| zone(it).into_iter().collect());
    let reconcile = move |key: Key, _: Context| {
        let heard = heard.clone();
        async move {
            // The test may be over.
            let _ = heard.send(key.to_string()).await;
            Ok(Outcome::done())
        }
    };
    let controller = Controller::for_requests(name).watches(watch);
    controller.reconciler(reconcile)
}

#[limited::test(start_paused = true)]
async fn watch_that_maps_by_an_unknown_index_ends_the_manager_with_the_names_that_there_are() {
    let (_server, kube) = server().await;
    let indexed = from_fn(|_: Arc<ConfigMap>, _| async { Ok(Outcome::done()) });
    let indexed = Controller::of::<ConfigMap>("indexed")
        .index("by-zone", by_zone())
        .reconciler(indexed);
    let (sender, _heard) = mpsc::channel(1);
    let manager = Manager::new(kube)
        .controller(mapped_by("mistyped", "by-zoen", sender))
        .controller(indexed);
    let run = manager.run_until(CancellationToken::new());
    let ended = timeout(Duration::from_secs(60), run).await;
    let error = ended.expect("the manager ends").expect_err("it fails");
    let report = Error::from(error).report();
    for part in [
        "controller mistyped",
        "configmaps are mapped by the index \"by-zoen\" of configmaps, which was not added",
        "the indexes of configmaps are: namespace, by-zone",
    ] {
        assert!(report.contains(part), "{report}");
    }
}

#[limited::test(start_paused = true)]
async fn watch_maps_by_an_index_of_a_controller_that_starts_later() {
    let (_server, kube) = server().await;
    let user = Client::new(kube.clone());
    user.create(&config("a", "east")).await.expect("created");
    let (sender, mut heard) = mpsc::channel(64);
    let indexed = from_fn(|_: Arc<ConfigMap>, _| async { Ok(Outcome::done()) });
    let indexed = Controller::of::<ConfigMap>("indexed")
        .warm_up(WarmUp::OnLeadership)
        .index("by-zone", by_zone())
        .reconciler(indexed);
    let manager = Manager::new(kube)
        .controller(mapped_by("mapped", "by-zone", sender))
        .controller(indexed);
    let _running = run(manager);
    assert_eq!(next(&mut heard).await, "default/a");
}

#[limited::test(start_paused = true)]
async fn manager_refuses_two_controllers_of_one_name() {
    let (_server, kube) = server().await;
    let named = || {
        Controller::for_requests("same")
            .reconciler(|_: Key, _: Context| async { Ok(Outcome::done()) })
    };
    let manager = Manager::new(kube).controller(named()).controller(named());
    let ended = limit(manager.run_until(CancellationToken::new())).await;
    assert!(
        matches!(&ended, Err(ManagerError::SameName { name }) if name == "same"),
        "{ended:?}"
    );
}
