//! What the cache holds, and what reads, watches and controllers make of it.

#[path = "cache/absent.rs"]
mod absent;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::core::{ApiResource, GroupVersionKind, ObjectMeta};
use kubewright_runtime::client::Registrations;
use kubewright_runtime::{
    CacheOptions, CachePolicy, Client, ClientError, Context, Controller, Delete, Error, Event,
    Index, Key, Manager, Outcome, Query, Reconciler, Scope, Watch,
};
use kubewright_server::Server;
use kubewright_testing::{Verb, Wire, limit, until, within};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

struct Setup {
    _server: Server,
    wire: Wire,
    /// A client of its own, for what others do.
    other: Client,
}

async fn setup() -> Setup {
    let server = Server::builder().start().await.expect("a server starts");
    let wire = Wire::new(server.service());
    let other = Client::new(kube::Client::new(server.service(), "default"));
    for name in ["team-a", "team-b"] {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        other.create(&namespace).await.expect("it is created");
    }
    Setup {
        _server: server,
        wire,
        other,
    }
}

impl Setup {
    fn client(&self, cache: CacheOptions) -> Client {
        Client::builder(self.wire.client()).cache(cache).build()
    }

    /// How often the wire was asked to get an object.
    fn gets(&self) -> u64 {
        self.wire.count(Verb::Get)
    }
}

fn config(namespace: &str, name: &str, label: Option<&str>) -> ConfigMap {
    let labels = label.map(|value| BTreeMap::from([("app".to_owned(), value.to_owned())]));
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels,
            annotations: Some([("note".to_owned(), "mine".to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: Some([("n".to_owned(), "1".to_owned())].into()),
        ..ConfigMap::default()
    }
}

fn names(objects: &[Arc<ConfigMap>]) -> Vec<String> {
    let name = |object: &Arc<ConfigMap>| {
        let meta = &object.metadata;
        let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref());
        format!(
            "{}/{}",
            namespace.unwrap_or_default(),
            name.unwrap_or_default()
        )
    };
    let mut names: Vec<String> = objects.iter().map(name).collect();
    names.sort();
    names
}

/// Sends a line for each reconcile.
#[derive(Clone)]
struct Tell(mpsc::Sender<String>);

impl<K: Send + Sync + 'static> Reconciler<K> for Tell {
    async fn reconcile(&self, _: Arc<K>, cx: &Context) -> Result<Outcome, Error> {
        let _ = self.0.send(cx.key().as_str().to_owned()).await;
        Ok(Outcome::done())
    }

    async fn gone(&self, key: &Key, _: &Context) -> Result<Outcome, Error> {
        let _ = self.0.send(format!("{} gone", key.as_str())).await;
        Ok(Outcome::done())
    }
}

fn tell() -> (Tell, mpsc::Receiver<String>) {
    let (sender, receiver) = mpsc::channel(64);
    (Tell(sender), receiver)
}

#[limited::test(start_paused = true)]
async fn several_namespaces_are_one_cache_and_others_are_out_of_scope() {
    let setup = setup().await;
    let client = setup.client(CacheOptions::new().namespaces(["team-a", "team-b"]));
    for namespace in ["team-a", "team-b", "default"] {
        let created = setup.other.create(&config(namespace, "c", None)).await;
        created.expect("it is created");
    }
    let all = limit(client.list::<ConfigMap>(Query::all())).await;
    assert_eq!(names(&all.expect("read")), ["team-a/c", "team-b/c"]);
    let one = client.list::<ConfigMap>(Query::all().namespace("team-b"));
    assert_eq!(names(&limit(one).await.expect("read")), ["team-b/c"]);
    let found = limit(client.get::<ConfigMap>(&Key::new("team-a", "c"))).await;
    assert!(found.expect("read").is_some());
    let absent = limit(client.get::<ConfigMap>(&Key::new("team-a", "d"))).await;
    assert!(absent.expect("read").is_none());

    let outside = limit(client.get::<ConfigMap>(&Key::new("default", "c"))).await;
    let error = outside.expect_err("the cache cannot know");
    assert!(matches!(error, ClientError::OutOfScope { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "the cache of configmaps holds the namespaces team-a, team-b, and not default/c"
    );
    let outside = client.list::<ConfigMap>(Query::all().namespace("default"));
    assert!(limit(outside).await.is_err_and(|e| e.is_out_of_scope()));
    // Kinds that live in no namespace are whole.
    let namespaces = limit(client.list::<Namespace>(Query::all())).await;
    assert!(namespaces.expect("read").len() >= 3);
}

#[limited::test(start_paused = true)]
async fn controller_and_handlers_hear_of_all_cached_namespaces() {
    let setup = setup().await;
    let client = setup.client(CacheOptions::new().namespaces(["team-a", "team-b"]));
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = heard.clone();
    let informers = client.of::<ConfigMap>().informer();
    let handler = move |event: Event<ConfigMap>| sink.lock().push(event.object().key().to_string());
    let registrations: Registrations = informers.add_handler(handler).expect("it runs");
    limit(registrations.synced()).await.expect("it syncs");
    let (tell, mut reported) = tell();
    let controller = Controller::of::<ConfigMap>("both").reconciler(tell);
    let stop = CancellationToken::new();
    let manager = Manager::over(client).controller(controller);
    let running = tokio::spawn(manager.run_until(stop.clone()));
    for namespace in ["team-a", "default", "team-b"] {
        let created = setup.other.create(&config(namespace, "c", None)).await;
        created.expect("it is created");
    }
    let mut keys = Vec::new();
    while keys.len() < 2 {
        keys.extend(limit(reported.recv()).await);
    }
    keys.sort();
    assert_eq!(keys, ["team-a/c", "team-b/c"]);
    until("the handler hears of both", async || {
        (heard.lock().len() == 2).then_some(())
    })
    .await;
    stop.cancel();
    limit(running).await.expect("no panic").expect("it ends");
}

#[limited::test(start_paused = true)]
async fn scope_is_a_part_of_the_shared_cache_and_leaving_it_is_not_being_gone() {
    let setup = setup().await;
    let manager = Manager::new(setup.wire.client());
    let client = manager.client();
    let (tell, mut reported) = tell();
    let to_all = Watch::of::<Secret>().map(|_, _| {
        let keys = ["x", "c", "outside"];
        let here = keys[..2].iter().map(|name| Key::new("default", name));
        here.chain([Key::new("team-a", keys[2])]).collect()
    });
    let controller = Controller::of::<ConfigMap>("scoped")
        .scope(Scope::all().namespace("default").labels("app=web"))
        .watches(to_all)
        .reconciler(tell);
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.controller(controller).run_until(stop.clone()));
    let other = &setup.other;
    let made = other.create(&config("default", "c", Some("db"))).await;
    let made = made.expect("it is created");
    let label = |object: &ConfigMap, value: &'static str| {
        let object = object.clone();
        async move {
            let change = |c: &mut ConfigMap| {
                let labels = c.metadata.labels.get_or_insert_default();
                labels.insert("app".to_owned(), value.to_owned());
            };
            let labelled = other.modify(&object, change).await;
            labelled.expect("it is labelled").into_object()
        }
    };
    let entered = label(&made, "web").await;
    assert_eq!(limit(reported.recv()).await.as_deref(), Some("default/c"));
    let left = label(&entered, "db").await;
    let heard = within(Duration::from_secs(5), async || reported.try_recv().ok()).await;
    assert_eq!(heard, None, "it exists: it is neither reconciled nor gone");

    // Of the keys of another watch only those are gone that could be here.
    let mut secret = Secret::default();
    secret.metadata.name = Some("s".to_owned());
    secret.metadata.namespace = Some("default".to_owned());
    other.create(&secret).await.expect("it is created");
    assert_eq!(
        limit(reported.recv()).await.as_deref(),
        Some("default/x gone")
    );
    let heard = within(Duration::from_secs(5), async || reported.try_recv().ok()).await;
    assert_eq!(heard, None, "default/c exists, team-a/outside is not ours");

    let entered = label(&left, "web").await;
    assert_eq!(limit(reported.recv()).await.as_deref(), Some("default/c"));
    let deleted = other.delete(&entered, Delete::background()).await;
    deleted.expect("it is deleted");
    assert_eq!(
        limit(reported.recv()).await.as_deref(),
        Some("default/c gone")
    );
    let watches = setup.wire.calls();
    let watches = watches
        .iter()
        .filter(|(call, _)| call.verb == Verb::Watch && call.path.ends_with("/configmaps"));
    assert_eq!(watches.count(), 1, "controller and client share one watch");
    assert!(
        limit(client.get::<ConfigMap>(&Key::new("team-a", "c")))
            .await
            .is_ok()
    );
    stop.cancel();
    limit(running).await.expect("no panic").expect("it ends");
}

#[limited::test(start_paused = true)]
async fn write_outside_of_the_scope_of_a_controller_does_not_hold_it_up() {
    let selective = CachePolicy::of::<ConfigMap>().labels([("app", "web")]);
    for cache in [
        CacheOptions::new(),
        CacheOptions::new().policy(selective.clone()),
    ] {
        let setup = setup().await;
        let controller = Controller::of::<ConfigMap>("labelled")
            .scope(Scope::all().namespace("default").labels("app=web"))
            .reconciler(tell().0);
        let handle = controller.handle();
        let manager = Manager::over(setup.client(cache)).controller(controller);
        let client = manager.client();
        let stop = CancellationToken::new();
        let running = tokio::spawn(manager.run_until(stop.clone()));
        until("the controller has its first state", async || {
            handle.is_warm().then_some(())
        })
        .await;
        // It has no such label, so it is not in the controller's part of the cache and never will be.
        let created = limit(client.create(&config("default", "outside", Some("db")))).await;
        created.expect("it is created");
        let start = tokio::time::Instant::now();
        handle.reconcile(Key::new("default", "outside"));
        let ran = until("its key has been worked on", async || {
            handle.history().list().pop()
        });
        assert_eq!(ran.await.ended, "done");
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "{:?}",
            start.elapsed()
        );
        stop.cancel();
        limit(running).await.expect("no panic").expect("it ends");
    }
}

/// How a manager ends whose cache and controller do not fit together.
async fn refusal(cache: CacheOptions, controller: Controller) -> String {
    let setup = setup().await;
    let manager = Manager::new(setup.wire.client()).cache(cache);
    let running = manager
        .controller(controller)
        .run_until(CancellationToken::new());
    limit(running).await.expect_err("it is refused").to_string()
}

#[limited::test(start_paused = true)]
async fn scope_that_is_wider_than_the_cache_is_an_error_at_start() {
    let cache = || CacheOptions::new().namespaces(["team-a"]);
    let here = Scope::all().namespace("default");
    let controller = Controller::of::<ConfigMap>("wide").scope(here.clone());
    let error = refusal(cache(), controller.reconciler(tell().0)).await;
    let expected = "the cache of configmaps holds the namespaces team-a, and not default";
    assert!(error.contains(expected), "{error}");
    let watch = Watch::of::<Secret>().scope(here);
    let controller = Controller::of::<ConfigMap>("wide").watches(watch);
    let error = refusal(cache(), controller.reconciler(tell().0)).await;
    assert!(error.contains("the cache of secrets holds"), "{error}");
    let metadata = CacheOptions::new().policy(CachePolicy::of::<ConfigMap>().metadata());
    let controller = Controller::of::<ConfigMap>("partial").reconciler(tell().0);
    let error = refusal(metadata, controller).await;
    assert!(error.contains("only its metadata is cached"), "{error}");
    let unreadable = CachePolicy::of::<ConfigMap>().labels("a in");
    let controller = Controller::of::<ConfigMap>("selector").reconciler(tell().0);
    let error = refusal(CacheOptions::new().policy(unreadable), controller).await;
    assert!(error.contains("is not a label selector"), "{error}");
}

#[limited::test(start_paused = true)]
async fn cache_that_is_described_after_its_use_is_an_error() {
    let setup = setup().await;
    let manager = Manager::new(setup.wire.client());
    manager.client().of::<ConfigMap>();
    let manager = manager.cache(CacheOptions::new().namespaces(["team-a"]));
    let ended = limit(manager.run_until(CancellationToken::new())).await;
    let error = ended.expect_err("it is too late").to_string();
    assert!(error.contains("before the client is used"), "{error}");
}

#[limited::test(start_paused = true)]
async fn options_of_a_manager_keep_the_namespaces_that_the_cache_was_limited_to() {
    let setup = setup().await;
    for namespace in ["team-a", "team-b", "default"] {
        let created = setup.other.create(&config(namespace, "c", None)).await;
        created.expect("it is created");
    }
    let limited = || {
        let both = CacheOptions::new().namespaces(["team-a", "team-b"]);
        Manager::over(setup.client(both))
    };
    let listed = async |manager: Manager| {
        let listed = manager.client().list::<ConfigMap>(Query::all()).await;
        names(&listed.expect("read"))
    };
    let policies = CacheOptions::new().policy(CachePolicy::of::<Secret>().metadata());
    let kept = limit(listed(limited().cache(policies))).await;
    assert_eq!(kept, ["team-a/c", "team-b/c"]);
    let narrower = CacheOptions::new().namespaces(["team-b"]);
    assert_eq!(limit(listed(limited().cache(narrower))).await, ["team-b/c"]);
    for (wider, expected) in [
        (&["team-a", "default"][..], "the namespaces team-a, default"),
        (&[][..], "all namespaces"),
    ] {
        let options = CacheOptions::new().namespaces(wider.iter().copied());
        let running = limited().cache(options).run_until(CancellationToken::new());
        let error = limit(running).await.expect_err("it is refused").to_string();
        assert!(error.contains(expected), "{error}");
        assert!(
            error.contains("limited to the namespaces team-a, team-b"),
            "{error}"
        );
    }
}

#[limited::test(start_paused = true)]
async fn selectors_decide_what_there_is() {
    let setup = setup().await;
    for (name, label) in [("a", Some("web")), ("b", Some("db")), ("c", None)] {
        let created = setup.other.create(&config("default", name, label)).await;
        created.expect("it is created");
    }
    let here = || Query::all().namespace("default");
    let listed = async |policy: CachePolicy| {
        let client = setup.client(CacheOptions::new().policy(policy));
        let listed = limit(client.list::<ConfigMap>(here())).await;
        names(&listed.expect("read"))
    };
    let of = CachePolicy::of::<ConfigMap>;
    assert_eq!(listed(of().labels("app=web")).await, ["default/a"]);
    assert_eq!(listed(of().fields("metadata.name=b")).await, ["default/b"]);
    assert_eq!(listed(of().labels("app")).await, ["default/a", "default/b"]);
}

#[limited::test(start_paused = true)]
async fn kind_that_is_not_cached_is_read_from_the_server() {
    let setup = setup().await;
    let client =
        setup.client(CacheOptions::new().policy(CachePolicy::of::<ConfigMap>().uncached()));
    let created = setup.other.create(&config("default", "a", None)).await;
    created.expect("it is created");
    let key = Key::new("default", "a");
    for count in 1..=3 {
        let read = limit(client.get::<ConfigMap>(&key)).await.expect("read");
        assert!(read.is_some());
        assert_eq!(setup.gets(), count);
    }
    let listed = limit(client.list::<ConfigMap>(Query::all().namespace("default"))).await;
    assert_eq!(names(&listed.expect("read")), ["default/a"]);
    assert!(client.factory().is_empty(), "no informer was started");
}

#[limited::test(start_paused = true)]
async fn kind_of_which_metadata_is_cached_is_not_read_as_a_whole() {
    let setup = setup().await;
    let client =
        setup.client(CacheOptions::new().policy(CachePolicy::of::<ConfigMap>().metadata()));
    let created = setup
        .other
        .create(&config("default", "a", Some("web")))
        .await;
    created.expect("it is created");
    let key = Key::new("default", "a");
    let resource = ApiResource::erase::<ConfigMap>(&());
    let metadata = limit(client.metadata(&resource).get(&key)).await;
    let metadata = metadata.expect("read").expect("it is there");
    assert_eq!(
        metadata.metadata.labels.as_ref().map(BTreeMap::len),
        Some(1)
    );
    for result in [
        limit(client.get::<ConfigMap>(&key)).await.map(|_| ()),
        limit(client.dynamic(&resource).get(&key)).await.map(|_| ()),
    ] {
        let error = result.expect_err("half an object is not one");
        assert!(matches!(error, ClientError::Policy { .. }), "{error}");
    }
    assert_eq!(client.factory().len(), 1);
}

#[limited::test(start_paused = true)]
async fn cache_holds_what_the_transform_makes_of_each_object() {
    let setup = setup().await;
    let policy = CachePolicy::of::<ConfigMap>().transform(|object| {
        object["data"] = json!({"n": "masked"});
        Ok(())
    });
    let client = setup.client(CacheOptions::new().policy(policy));
    let created = setup.other.create(&config("default", "a", None)).await;
    created.expect("it is created");
    let key = Key::new("default", "a");
    let masked = Some(BTreeMap::from([("n".to_owned(), "masked".to_owned())]));
    let cached = limit(client.get::<ConfigMap>(&key)).await.expect("read");
    let cached = cached.expect("it is there");
    assert_eq!(cached.data, masked);
    let live = limit(client.live().get::<ConfigMap>(&key)).await;
    assert_ne!(live.expect("read").expect("it is there").data, masked);
    let replaced = limit(client.update(&*cached)).await;
    let error = replaced.expect_err("what was masked would be lost");
    let expected = "cached without all of their fields";
    assert!(error.to_string().contains(expected), "{error}");
}

#[limited::test(start_paused = true)]
async fn fields_that_the_cache_drops_are_not_removed_on_the_server() {
    let setup = setup().await;
    let policy = CachePolicy::of::<ConfigMap>().without("metadata.annotations");
    let client = setup.client(CacheOptions::new().policy(policy));
    let created = setup.other.create(&config("default", "a", None)).await;
    created.expect("it is created");
    let key = Key::new("default", "a");
    let cached = limit(client.get::<ConfigMap>(&key)).await.expect("read");
    let cached = cached.expect("it is there");
    assert_eq!(cached.metadata.annotations, None);
    let refused = limit(client.update(&*cached)).await;
    let error = refused.expect_err("annotations would be lost").to_string();
    assert!(
        error.contains("cached without metadata.annotations"),
        "{error}"
    );

    let set = |c: &mut ConfigMap| {
        let data = c.data.get_or_insert_default();
        data.insert("n".to_owned(), "2".to_owned());
    };
    let changed = client.create_or_update::<ConfigMap>(&key, set);
    limit(changed).await.expect("it is changed");
    let live: Option<ConfigMap> = limit(client.live().get(&key)).await.expect("read");
    let live = live.expect("it is there");
    assert_eq!(live.data.as_ref().map(|data| data["n"].as_str()), Some("2"));
    let annotations = live.metadata.annotations.clone().unwrap_or_default();
    assert_eq!(annotations["note"], "mine");
    // An object that has them all may be replaced.
    limit(client.update(&live)).await.expect("it is replaced");
}

/// A ConfigMap whose `n` is a digit, to whoever is strict.
#[derive(Debug, Clone, Serialize, Deserialize, kube::Resource)]
#[resource(inherit = ConfigMap)]
struct Strict {
    metadata: ObjectMeta,
    #[serde(default)]
    data: Digits,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Digits {
    n: Option<Digit>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Digit {
    #[serde(rename = "1")]
    One,
}

#[limited::test(start_paused = true)]
async fn object_that_does_not_decode_is_not_absent() {
    let setup = setup().await;
    let client = setup.client(CacheOptions::new());
    let mut bad = config("default", "bad", None);
    bad.data = Some([("n".to_owned(), "x".to_owned())].into());
    setup.other.create(&bad).await.expect("it is created");
    let good = setup.other.create(&config("default", "good", None)).await;
    good.expect("it is created");
    let here = || Query::all().namespace("default");
    let key = Key::new("default", "bad");
    for _ in 0..2 {
        let read = limit(client.get::<Strict>(&key)).await;
        let error = read.expect_err("it exists");
        assert!(error.is_undecodable(), "{error}");
        assert_eq!(error.to_string(), "configmaps default/bad cannot be read");
        let listed = limit(client.list::<Strict>(here())).await;
        assert!(listed.is_err_and(|error| error.is_undecodable()));
        let some = limit(client.of::<Strict>().list_lossy(here())).await;
        assert_eq!(some.expect("read").len(), 1);
        // The same informer, read as other types.
        let read = limit(client.get::<ConfigMap>(&key)).await.expect("read");
        assert!(read.is_some());
        let resource = ApiResource::erase::<ConfigMap>(&());
        let dynamic = limit(client.dynamic(&resource).list(here())).await;
        let dynamic = dynamic.expect("read");
        let bad = dynamic
            .iter()
            .find(|o| o.metadata.name.as_deref() == Some("bad"));
        assert_eq!(bad.map(|o| o.data["data"]["n"].clone()), Some(json!("x")));
    }
    assert_eq!(client.factory().len(), 1);
    let read = limit(client.live().get::<Strict>(&key)).await;
    assert!(matches!(read, Err(ClientError::Call { .. })), "{read:?}");
    let listed = limit(client.live().list::<Strict>(here())).await;
    assert!(
        matches!(listed, Err(ClientError::Call { .. })),
        "{listed:?}"
    );
}

#[limited::test(start_paused = true)]
async fn kind_that_is_not_there_is_an_error_of_cached_reads_and_of_live_lists() {
    let setup = setup().await;
    let client = setup.client(CacheOptions::new());
    let kind = GroupVersionKind::gvk("example.com", "v1", "Nothing");
    let nothings = client.dynamic(&ApiResource::from_gvk(&kind));
    let key = Key::new("default", "a");
    let read = limit(nothings.get(&key)).await;
    assert!(
        matches!(read, Err(ClientError::NotSynced { .. })),
        "{read:?}"
    );
    let read = limit(nothings.get_live(&key)).await;
    assert!(read.expect("read").is_none());
    let listed = limit(nothings.list_live(Query::all())).await;
    assert!(listed.is_err_and(|error| error.is_not_found()));
}

#[limited::test(start_paused = true)]
async fn informer_that_is_removed_stops_when_nobody_uses_it() {
    let setup = setup().await;
    let client = setup.client(CacheOptions::new());
    client
        .add_index("app", Index::<ConfigMap>::by_label("app"))
        .expect("it is free");
    assert!(client.factory().is_empty(), "an index starts no informer");
    let created = setup
        .other
        .create(&config("default", "a", Some("web")))
        .await;
    created.expect("it is created");
    let web = || Query::all().index("app", "web");
    let listed = limit(client.list::<ConfigMap>(web())).await;
    assert_eq!(listed.expect("read").len(), 1);
    let reader = client.reader::<ConfigMap>();
    client.remove_informer::<ConfigMap>();
    assert_eq!(client.factory().len(), 1, "somebody reads it");
    drop(reader);
    assert!(client.factory().is_empty());
    let listed = limit(client.list::<ConfigMap>(web())).await;
    assert_eq!(
        listed.expect("read").len(),
        1,
        "it starts anew, with its index"
    );
}

#[limited::test(start_paused = true)]
async fn index_of_a_controller_is_there_before_it_runs() {
    let setup = setup().await;
    let created = setup
        .other
        .create(&config("default", "a", Some("web")))
        .await;
    created.expect("it is created");
    let (sender, mut reported) = mpsc::channel(64);
    let reconciler = kubewright_runtime::from_fn(move |_: Arc<ConfigMap>, cx: Context| {
        let sender = sender.clone();
        async move {
            let web = Query::all().index("app", "web");
            let found = cx.client().list::<ConfigMap>(web).await?;
            let _ = sender.send(found.len()).await;
            Ok(Outcome::done())
        }
    });
    let controller = Controller::of::<ConfigMap>("indexed")
        .index("app", Index::<ConfigMap>::by_label("app"))
        .scope(Scope::all().namespace("default"))
        .reconciler(reconciler);
    let stop = CancellationToken::new();
    let manager = Manager::new(setup.wire.client()).controller(controller);
    let running = tokio::spawn(manager.run_until(stop.clone()));
    assert_eq!(limit(reported.recv()).await, Some(1));
    stop.cancel();
    limit(running).await.expect("no panic").expect("it ends");
}
