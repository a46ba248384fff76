//! No read shows a state older than this manager's own last write, whichever informer it comes from: a controller with a
//! scope, two versions of the resource, whole objects and metadata, each over a watch that is late by a time of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::ApiResource;
use kube::{CustomResource, Resource};
use kubewright_runtime::client::{Consistency, TypedObject};
use kubewright_runtime::environment::VirtualClock;
use kubewright_runtime::{
    CacheOptions, CachePolicy, Client, ClientError, Context, Controller, Delete, Environment,
    Error, Key, Manager, Outcome, Query, Reconciler, Scope,
};
use kubewright_server::Server;
use kubewright_testing::{Wire, limit};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Widget",
    namespaced,
    schema = "disabled"
)]
struct WidgetSpec {
    step: u64,
}

mod v2 {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v2",
        kind = "Widget",
        namespaced,
        schema = "disabled"
    )]
    pub(super) struct WidgetSpec {
        pub(super) step: u64,
    }
}

fn definition() -> CustomResourceDefinition {
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1"), version("v2")]},
    });
    serde_json::from_value(definition).expect("it is a definition")
}

fn widget(key: &Key, step: u64, labels: &[(&str, &str)]) -> Widget {
    let mut widget = Widget::new(key.name(), WidgetSpec { step });
    widget.metadata.namespace = key.namespace().map(str::to_owned);
    let labels = labels
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    widget.metadata.labels = Some(labels.collect());
    widget
}

fn version(object: &impl Resource) -> u64 {
    let version = object.meta().resource_version.as_deref();
    version.and_then(|v| v.parse().ok()).unwrap_or_default()
}

/// What was last written of each object: its version, or that it has to be absent.
#[derive(Default)]
struct Truth {
    written: Mutex<BTreeMap<Key, Option<u64>>>,
    stale: AtomicU64,
    checked: AtomicU64,
}

impl Truth {
    fn of(&self, key: &Key) -> Option<Option<u64>> {
        self.written.lock().get(key).copied()
    }

    /// Judges a read that was begun when the truth was `before`. It says nothing if there was a write meanwhile.
    fn check(&self, key: &Key, before: Option<Option<u64>>, read: Option<u64>) {
        let Some(expected) = before.filter(|_| self.of(key) == before) else {
            return;
        };
        let is_fresh = match (expected, read) {
            (Some(written), Some(read)) => read >= written,
            (None, None) => true,
            _ => false,
        };
        self.checked.fetch_add(1, Ordering::Relaxed);
        self.stale
            .fetch_add(u64::from(!is_fresh), Ordering::Relaxed);
    }
}

/// Reads the key as a type, and all of them.
async fn read<K: TypedObject>(client: &Client, key: &Key, truth: &Truth) {
    let before = truth.of(key);
    let read = shown(client.get::<K>(key).await);
    truth.check(key, before, read.as_deref().map(version));
}

/// What a read shows. An object that the selectors leave out is not shown, and that is an error which says so.
fn shown<T>(read: Result<Option<T>, ClientError>) -> Option<T> {
    match read {
        Err(error) if error.is_out_of_scope() => None,
        read => read.expect("the cache catches up"),
    }
}

struct Look(Arc<Truth>);

impl Reconciler<Widget> for Look {
    async fn reconcile(&self, widget: Arc<Widget>, cx: &Context) -> Result<Outcome, Error> {
        self.0
            .check(cx.key(), self.0.of(cx.key()), Some(version(&*widget)));
        read::<v2::Widget>(cx.client(), cx.key(), &self.0).await;
        read::<Widget>(cx.client(), cx.key(), &self.0).await;
        Ok(Outcome::done())
    }

    async fn gone(&self, key: &Key, _: &Context) -> Result<Outcome, Error> {
        self.0.check(key, self.0.of(key), None);
        Ok(Outcome::done())
    }
}

/// One story: `steps` random writes, each read back in four ways by one who is not the controller. Says how many reads were
/// checked, and how many showed the past.
///
/// `shows` says whether the cache holds objects whose label `cached` has this value.
async fn reads(
    consistency: Consistency,
    cache: CacheOptions,
    shows: fn(&str) -> bool,
    steps: u64,
) -> (u64, u64) {
    let server = Server::builder().start().await.expect("a server starts");
    let wire = Wire::new(server.service());
    let clock = VirtualClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let random = Environment::seeded(clock, 7);
    let late = random.clone();
    wire.delay_watches(move || Duration::from_millis(late.below(4_000)));
    let client = Client::builder(wire.client())
        .consistency(consistency)
        .cache(cache)
        .build();
    client.create(&definition()).await.expect("it is created");
    let truth = Arc::new(Truth::default());
    // The others of the namespace are read by the client, not by the controller.
    let scope = Scope::all().namespace("default").labels("half=a");
    let controller = Controller::of::<Widget>("widgets")
        .scope(scope)
        .workers(4)
        .reconciler(Look(truth.clone()));
    let stop = CancellationToken::new();
    let manager = Manager::over(client.clone()).controller(controller);
    let running = tokio::spawn(manager.run_until(stop.clone()));
    let resource = ApiResource::erase::<Widget>(&());
    for step in 0..steps {
        let name = format!("w{}", random.below(20));
        let key = Key::new("default", &name);
        let half = ["a", "b"][random.below(2) as usize];
        let cached = ["yes", "yes", "no"][random.below(3) as usize];
        let wanted = widget(&key, step, &[("half", half), ("cached", cached)]);
        let live: Option<Widget> = client.live().get(&key).await.expect("the server answers");
        let written = match live {
            Some(live) if random.below(4) == 0 => {
                let deleted = client.delete(&live, Delete::background()).await;
                deleted.expect("it is deleted");
                None
            }
            Some(live) => {
                let mut changed = wanted.clone();
                changed.metadata.resource_version = live.metadata.resource_version;
                Some(client.update(&changed).await.expect("it is updated"))
            }
            None => Some(client.create(&wanted).await.expect("it is created")),
        };
        let visible = written.filter(|_| shows(cached));
        truth
            .written
            .lock()
            .insert(key.clone(), visible.as_ref().map(version));
        read::<Widget>(&client, &key, &truth).await;
        read::<v2::Widget>(&client, &key, &truth).await;
        let before = truth.of(&key);
        let metadata = shown(client.metadata(&resource).get(&key).await);
        truth.check(&key, before, metadata.as_deref().map(version));
        if step % 10 == 0 {
            let here = Query::all().namespace("default");
            let all = client.list::<v2::Widget>(here).await;
            let all = all.expect("the cache catches up");
            let seen = all
                .iter()
                .map(|w| (w.metadata.name.clone(), version(&**w)))
                .collect::<BTreeMap<_, _>>();
            let written = truth.written.lock().clone();
            for (key, before) in written {
                let read = seen.get(&Some(key.name().to_owned())).copied();
                truth.check(&key, Some(before), read);
            }
        }
    }
    stop.cancel();
    limit(running)
        .await
        .expect("no panic")
        .expect("it ends well");
    let (checked, stale) = (&truth.checked, &truth.stale);
    (
        checked.load(Ordering::Relaxed),
        stale.load(Ordering::Relaxed),
    )
}

fn guarded() -> Consistency {
    // A watch that ends and is opened again is late twice; five seconds, the default, would then be too few.
    let wait = Duration::from_secs(60);
    Consistency::ReadYourWrites { wait }
}

#[limited::test(start_paused = true)]
async fn no_read_of_any_informer_shows_the_past_in_ten_thousand_steps() {
    let (checked, stale) = reads(guarded(), CacheOptions::new(), |_| true, 10_000).await;
    assert!(checked > 30_000, "only {checked} reads were checked");
    assert_eq!(stale, 0, "of {checked}");
}

#[limited::test(start_paused = true)]
async fn reads_show_the_past_without_the_guard() {
    let (checked, stale) = reads(Consistency::Eventual, CacheOptions::new(), |_| true, 1_000).await;
    assert!(
        stale > 100,
        "only {stale} stale reads of {checked}: the test would not notice a broken guard"
    );
}

#[limited::test(start_paused = true)]
async fn objects_that_enter_and_leave_the_selectors_of_the_cache_are_read_as_written() {
    let policy = CachePolicy::of::<Widget>()
        .namespaces(["default", "kube-public"])
        .labels("cached=yes");
    let cache = CacheOptions::new().policy(policy);
    let (checked, stale) = reads(guarded(), cache, |label| label == "yes", 3_000).await;
    assert!(checked > 9_000, "only {checked} reads were checked");
    assert_eq!(stale, 0, "of {checked}");
}

/// On several threads a write is noted, shown by two informers and read back at any moment of each other.
#[limited::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_on_many_threads_read_their_own_writes() {
    let server = Server::builder().start().await.expect("a server starts");
    let wire = Wire::new(server.service());
    let clock = VirtualClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let late = Environment::seeded(clock, 11);
    wire.delay_watches(move || Duration::from_micros(late.below(3_000)));
    let client = Client::new(wire.client());
    client.create(&definition()).await.expect("it is created");
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let client = client.clone();
        tasks.spawn(async move {
            let truth = Truth::default();
            let key = Key::new("default", &format!("t{task}"));
            for step in 0..40 {
                let written = match client.live().get::<Widget>(&key).await.expect("read") {
                    Some(live) if step % 7 == 6 => {
                        let deleted = client.delete(&live, Delete::background()).await;
                        deleted.expect("it is deleted");
                        None
                    }
                    Some(mut live) => {
                        live.spec.step = step;
                        Some(client.update(&live).await.expect("it is updated"))
                    }
                    None => {
                        let created = client.create(&widget(&key, step, &[])).await;
                        Some(created.expect("it is created"))
                    }
                };
                let written = written.as_ref().map(version);
                truth.written.lock().insert(key.clone(), written);
                read::<v2::Widget>(&client, &key, &truth).await;
                read::<Widget>(&client, &key, &truth).await;
            }
            truth.stale.load(Ordering::Relaxed)
        });
    }
    let stale = limit(tasks.join_all()).await;
    assert_eq!(stale, [0; 8]);
}
