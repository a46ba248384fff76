//! What controllers, clients and managers can do, one fact a test.

use kubewright_testing::{limit, until};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, Selector};
use kubewright_runtime::cause::Trigger;
use kubewright_runtime::client::{ClientError, Ownership};
use kubewright_runtime::serving::Listener;
use kubewright_runtime::watch::{Channel, OwnedBy, OwnerScope};
use kubewright_runtime::{
    Change, Client, Context, Controller, Delete, Error, EventKind, Index, Key, Manager, Outcome,
    Predicate, Query, Reconciler, Scope, Watch, from_fn, set_owner_reference,
};
use kubewright_server::Server;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

async fn server() -> (Server, kube::Client) {
    let server = Server::builder().start().await.expect("a server starts");
    let client = kube::Client::new(server.service(), "default");
    (server, client)
}

fn from<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("it is such an object")
}

fn config(name: &str) -> ConfigMap {
    from(json!({"metadata": {"name": name, "namespace": "default"}, "data": {"a": "1"}}))
}

fn here() -> Scope {
    Scope::all().namespace("default")
}

/// A manager that runs until it is asked to end.
struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<(), kubewright_runtime::manager::ManagerError>>,
}

fn run(manager: Manager) -> Running {
    let stop = CancellationToken::new();
    let task = tokio::spawn(manager.run_until(stop.clone()));
    Running { stop, task }
}

impl Running {
    async fn end(self) {
        self.stop.cancel();
        let ended = limit(self.task).await.expect("the manager does not panic");
        ended.expect("the manager ends well");
    }
}

/// Tells the key of each reconcile.
struct Tell(mpsc::Sender<String>);

impl Tell {
    fn new() -> (Self, mpsc::Receiver<String>) {
        let (sender, receiver) = mpsc::channel(1024);
        (Self(sender), receiver)
    }
}

impl<K: Send + Sync + 'static> Reconciler<K> for Tell {
    async fn reconcile(&self, _: Arc<K>, cx: &Context) -> Result<Outcome, Error> {
        // The test may be over.
        let _ = self.0.try_send(cx.key().as_str().to_owned());
        Ok(Outcome::done())
    }

    async fn gone(&self, key: &Key, _: &Context) -> Result<Outcome, Error> {
        let _ = self.0.try_send(format!("{} gone", key.as_str()));
        Ok(Outcome::done())
    }
}

#[limited::test]
async fn any_owner_is_found_by_group_and_kind_where_that_is_asked_for() {
    let (_server, kube) = server().await;
    let (tell, mut reported) = Tell::new();
    let builder = Controller::of::<ConfigMap>("owners").scope(here());
    let any = builder.owned::<Secret>(OwnedBy::Anyone);
    let managed = builder.owned::<Deployment>(OwnedBy::Controller);
    let manager = Manager::new(kube);
    let client = manager.client();
    let owner = client
        .create(&config("owner"))
        .await
        .expect("it is created");
    let running = run(manager.controller(builder.watches(any).watches(managed).reconciler(tell)));
    assert_eq!(
        limit(reported.recv()).await.as_deref(),
        Some("default/owner")
    );
    let mut secret: Secret = from(json!({"metadata": {"name": "s", "namespace": "default"}}));
    set_owner_reference(&owner, &mut secret, Default::default()).expect("it can be owned");
    // The version in a reference is the one of its time, and decides nothing.
    if let Some(owners) = &mut secret.metadata.owner_references {
        owners[0].api_version = "v1".to_owned();
    }
    client.create(&secret).await.expect("it is created");
    assert_eq!(
        limit(reported.recv()).await.as_deref(),
        Some("default/owner")
    );
    running.end().await;
}

#[limited::test]
async fn predicate_keeps_changes_away_that_do_not_matter() {
    let (_server, kube) = server().await;
    let (tell, mut reported) = Tell::new();
    let controller = Controller::of::<Deployment>("generation")
        .when(Predicate::generation_changed())
        .reconciler(tell);
    let manager = Manager::new(kube);
    let client = manager.client();
    let running = run(manager.controller(controller));
    let wanted: Deployment = from(json!({
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    }));
    let made = client.create(&wanted).await.expect("it is created");
    assert_eq!(limit(reported.recv()).await.as_deref(), Some("default/d"));
    let status = |d: &mut Deployment| d.status.get_or_insert_default().replicas = Some(1);
    let made = client
        .modify_status(&made, status)
        .await
        .expect("it is changed");
    let scale = |d: &mut Deployment| d.spec.replicas = Some(5);
    client.modify(&made, scale).await.expect("it is changed");
    client
        .delete(&made, Delete::background())
        .await
        .expect("it is deleted");
    assert_eq!(
        limit(reported.recv()).await.as_deref(),
        Some("default/d"),
        "the change of its specification"
    );
    assert_eq!(
        limit(reported.recv()).await.as_deref(),
        Some("default/d gone"),
        "and no other"
    );
    running.end().await;
}

#[limited::test]
async fn channel_and_mapper_lead_to_keys_of_their_choice() {
    let (_server, kube) = server().await;
    let (tell, mut reported) = Tell::new();
    let (sender, channel) = Channel::new();
    let mapped = Watch::of::<Secret>().map(|secret, client| {
        // A mapper may look into the cache.
        let known = client.reader::<Secret>().len();
        vec![Key::new(
            "default",
            &format!(
                "{}-{known}",
                secret.metadata.name.as_deref().unwrap_or_default()
            ),
        )]
    });
    let controller = Controller::of::<ConfigMap>("sources")
        .scope(here())
        .watches(channel)
        .watches(mapped)
        .reconciler(tell);
    let manager = Manager::new(kube);
    let client = manager.client();
    let running = run(manager.controller(controller));
    let sent = limit(sender.send(Key::new("default", "sent"))).await;
    sent.expect("it runs");
    assert_eq!(
        limit(reported.recv()).await.as_deref(),
        Some("default/sent gone")
    );
    client
        .create(&from::<Secret>(
            json!({"metadata": {"name": "s", "namespace": "default"}}),
        ))
        .await
        .expect("it is created");
    assert_eq!(
        limit(reported.recv()).await.as_deref(),
        Some("default/s-1 gone")
    );
    running.end().await;
}

fn widgets() -> (CustomResourceDefinition, ApiResource) {
    let definition = from(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    }));
    let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
    (definition, ApiResource::from_gvk(&kind))
}

#[limited::test(start_paused = true)]
async fn optional_kind_is_picked_up_when_it_appears() {
    let (_server, kube) = server().await;
    let (definition, resource) = widgets();
    let (tell, mut reported) = Tell::new();
    let optional = Watch::metadata(&resource).optional();
    let controller = Controller::of::<ConfigMap>("optional")
        .scope(here())
        .watches(optional)
        .reconciler(tell);
    let manager = Manager::new(kube);
    let client = manager.client();
    let running = run(manager.controller(controller));
    client.create(&config("a")).await.expect("it is created");
    assert_eq!(
        limit(reported.recv()).await.as_deref(),
        Some("default/a"),
        "the controller runs without the kind"
    );
    client.create(&definition).await.expect("it is created");
    let mut widget = DynamicObject::new("w", &resource);
    widget.metadata.namespace = Some("default".to_owned());
    client
        .dynamic(&resource)
        .create(&widget)
        .await
        .expect("it is created");
    assert_eq!(
        limit(reported.recv()).await.as_deref(),
        Some("default/w gone")
    );
    running.end().await;
}

#[limited::test]
async fn controller_of_a_resource_without_a_type() {
    let (_server, kube) = server().await;
    let (definition, resource) = widgets();
    let (tell, mut reported) = Tell::new();
    let manager = Manager::new(kube);
    let client = manager.client();
    client.create(&definition).await.expect("it is created");
    let controller =
        Controller::dynamic("widgets", &resource, OwnerScope::Namespaced).reconciler(tell);
    let running = run(manager.controller(controller));
    let mut widget = DynamicObject::new("w", &resource).data(json!({"spec": {"size": 1}}));
    widget.metadata.namespace = Some("default".to_owned());
    let widgets = client.dynamic(&resource);
    widgets.create(&widget).await.expect("it is created");
    assert_eq!(limit(reported.recv()).await.as_deref(), Some("default/w"));
    let read = widgets
        .get(&Key::new("default", "w"))
        .await
        .expect("it is read")
        .expect("it is there");
    assert_eq!(read.data["spec"]["size"], 1);
    let seen = client
        .metadata(&resource)
        .list(Query::all())
        .await
        .expect("they are read");
    assert_eq!(seen.len(), 1);
    running.end().await;
}

#[limited::test]
async fn part_that_fails_stops_the_manager_with_its_cause() {
    let (_server, kube) = server().await;
    let manager = Manager::new(kube)
        .controller(Controller::of::<ConfigMap>("fine").reconciler(Tell::new().0))
        .runnable(|_: CancellationToken| async { Err(Error::msg("the disk is full")) });
    let ended = limit(manager.run_until(CancellationToken::new())).await;
    let error = ended.expect_err("it fails");
    assert_eq!(error.to_string(), "a runnable failed: the disk is full");
}

#[limited::test(start_paused = true)]
async fn stop_lets_reconciles_finish_and_takes_no_more_keys() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    for name in ["a", "b"] {
        client.create(&config(name)).await.expect("it is created");
    }
    let (begun, mut heard) = mpsc::channel(1024);
    let slow = from_fn(move |_: Arc<ConfigMap>, cx: Context| {
        let begun = begun.clone();
        async move {
            let _ = begun.try_send("begun".to_owned());
            tokio::time::sleep(Duration::from_secs(20)).await;
            let _ = begun.try_send(format!("finished {}", cx.key().as_str()));
            Ok(Outcome::done())
        }
    });
    let controller = Controller::of::<ConfigMap>("slow")
        .scope(here())
        .reconciler(slow);
    let running = run(Manager::new(kube).controller(controller));
    assert_eq!(limit(heard.recv()).await.as_deref(), Some("begun"));
    running.end().await;
    assert!(
        limit(heard.recv())
            .await
            .is_some_and(|line| line.starts_with("finished"))
    );
    assert_eq!(
        limit(heard.recv()).await,
        None,
        "the other key is left to the next start"
    );
}

#[limited::test(start_paused = true)]
async fn reconcile_that_does_not_finish_is_cut_off_and_named() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    client.create(&config("a")).await.expect("it is created");
    let (begun, mut heard) = mpsc::channel(1024);
    let stuck = from_fn(move |_: Arc<ConfigMap>, _: Context| {
        let _ = begun.try_send(());
        std::future::pending::<Result<Outcome, Error>>()
    });
    let controller = Controller::of::<ConfigMap>("stuck")
        .scope(here())
        .reconciler(stuck);
    let manager = Manager::new(kube)
        .shutdown_timeout(Duration::from_secs(3))
        .controller(controller);
    let running = run(manager);
    limit(heard.recv()).await;
    running.stop.cancel();
    let error = limit(running.task)
        .await
        .expect("no panic")
        .expect_err("it is late");
    assert_eq!(error.to_string(), "controller stuck did not end within 3s");
}

#[limited::test(start_paused = true)]
async fn reconcile_that_takes_too_long_is_an_error() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    client.create(&config("a")).await.expect("it is created");
    let (begun, mut heard) = mpsc::channel(1024);
    let slow = from_fn(move |_: Arc<ConfigMap>, cx: Context| {
        let _ = begun.try_send(cx.attempt());
        std::future::pending::<Result<Outcome, Error>>()
    });
    let controller = Controller::of::<ConfigMap>("slow")
        .scope(here())
        .timeout(Duration::from_secs(2))
        .reconciler(slow);
    let manager = Manager::new(kube)
        .shutdown_timeout(Duration::from_secs(3))
        .controller(controller);
    let metrics = manager.metrics().clone();
    let running = run(manager);
    while limit(heard.recv()).await != Some(2) {}
    running.stop.cancel();
    limit(running.task)
        .await
        .expect("no panic")
        .expect("the timeout ends it");
    let line = r#"controller_runtime_reconcile_timeouts_total{controller="slow"} "#;
    assert!(metrics.render().contains(line));
}

#[limited::test]
async fn loop_of_own_writes_is_counted_and_has_its_cause() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    client.create(&config("a")).await.expect("it is created");
    let (notes, mut heard) = mpsc::channel(1024);
    let restless = from_fn(move |config: Arc<ConfigMap>, cx: Context| {
        let notes = notes.clone();
        async move {
            let id = cx.reconcile_id();
            let count = |c: &mut ConfigMap| {
                c.data
                    .get_or_insert_default()
                    .insert("a".to_owned(), format!("run {id}"));
            };
            cx.client().modify(&*config, count).await?;
            let _ = notes.try_send(cx.causes().to_vec());
            Ok(Outcome::done())
        }
    });
    let controller = Controller::of::<ConfigMap>("restless")
        .scope(here())
        .reconciler(restless);
    let manager = Manager::new(kube).controller(controller);
    let metrics = manager.metrics().clone();
    let running = run(manager);
    let mut causes = Vec::new();
    for _ in 0..30 {
        causes = limit(heard.recv()).await.expect("it goes on and on");
    }
    let fields = vec!["data.a".to_owned()];
    assert_eq!(
        causes.last().map(|cause| &cause.trigger),
        Some(&Trigger::Updated { fields })
    );
    running.end().await;
    let text = metrics.render();
    assert!(text.contains("kubewright_hot_loops_total{"), "{text}");
}

#[limited::test]
async fn client_writes_only_what_is_different() {
    let (server, kube) = server().await;
    let client = Client::new(kube);
    let key = Key::new("default", "d");
    let wanted = |d: &mut Deployment| {
        let spec = &mut d.spec;
        spec.selector.match_labels = Some(BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        spec.template = from(
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
        );
        if let Some(pod) = &mut spec.template.spec {
            pod.restart_policy = Some("Always".to_owned());
        }
    };
    let narrow = |d: &mut Deployment| d.spec.replicas = Some(2);
    let written = client
        .create_or_patch(&key, wanted)
        .await
        .expect("it is created");
    assert_eq!(written.change, Change::Created);
    let written = client
        .create_or_patch(&key, narrow)
        .await
        .expect("it is changed");
    assert_eq!(written.change, Change::Updated);
    let before = server.revision();
    let written = client
        .create_or_patch(&key, narrow)
        .await
        .expect("it is the same");
    assert_eq!(written.change, Change::Unchanged);
    let both = client
        .create_or_patch::<Deployment>(&key, |d| {
            narrow(d);
            d.status.get_or_insert_default().replicas = Some(2);
        })
        .await
        .expect("its status is changed");
    assert_eq!(both.change, Change::Updated);
    let status = both.into_object().status;
    assert_eq!(status.and_then(|status| status.replicas), Some(2));
    assert_eq!(server.revision(), before + 1, "one write, of the status");
    client
        .dry_run()
        .modify(
            &*client
                .get::<Deployment>(&key)
                .await
                .expect("read")
                .expect("there"),
            |d| d.spec.replicas = Some(9),
        )
        .await
        .expect("it would work");
    assert_eq!(server.revision(), before + 1, "a dry run keeps nothing");
}

#[limited::test]
async fn deletion_needs_the_very_object_and_the_very_version_where_asked() {
    let (_server, kube) = server().await;
    let client = Client::new(kube);
    let first = client.create(&config("a")).await.expect("it is created");
    let newer = client
        .modify(&first, |c| c.immutable = Some(false))
        .await
        .expect("it is changed");
    let stale = client
        .delete(&first, Delete::background().unchanged())
        .await;
    assert!(stale.expect_err("it changed since").is_conflict());
    client
        .delete(&newer, Delete::background().unchanged())
        .await
        .expect("it is deleted");
    client
        .create(&config("a"))
        .await
        .expect("it is created anew");
    let other = client.delete(&first, Delete::background()).await;
    assert!(other.expect_err("it is another one").is_conflict());
    let again = client.create(&config("a")).await;
    assert!(again.expect_err("it is there").is_already_exists());
    client
        .of::<ConfigMap>()
        .delete_all(Query::all().namespace("default"), Delete::background())
        .await
        .expect("all go");
    assert!(
        client
            .get::<ConfigMap>(&Key::new("default", "a"))
            .await
            .expect("read")
            .is_none()
    );
}

#[limited::test]
async fn queries_that_a_server_cannot_answer_are_refused_and_delete_nothing() {
    let (_server, kube) = server().await;
    let client = Client::new(kube);
    for name in ["a", "b"] {
        client.create(&config(name)).await.expect("it is created");
    }
    let maps = client.of::<ConfigMap>();
    let here = || Query::all().namespace("default");
    let check = |result: Result<(), ClientError>, problem: &str| {
        let text = result.expect_err("it is refused").to_string();
        assert!(text.contains(problem), "{text}");
    };
    let limited = maps.delete_all(here().limit(1), Delete::background());
    check(limited.await, "up to a limit");
    let indexed = maps.delete_all(here().index("i", "v"), Delete::background());
    check(indexed.await, "by index");
    let everywhere = maps.delete_all(Query::all(), Delete::background());
    check(everywhere.await, "one namespace at a time");
    let live = maps.list_live(here().index("i", "v")).await;
    check(live.map(|_| ()), "live by index");
    let left = maps.list_live(here()).await.expect("they are read");
    assert_eq!(left.len(), 2);
    // Only the server knows of a dynamic kind whether it lives in namespaces.
    let resource = ApiResource::erase::<ConfigMap>(&());
    let dynamic = client.dynamic(&resource);
    let refused = dynamic.delete_all(Query::all(), Delete::background()).await;
    assert_eq!(refused.expect_err("no such route").code(), Some(405));
}

#[limited::test]
async fn lists_select_by_namespace_labels_index_and_number() {
    let (_server, kube) = server().await;
    let client = Client::new(kube);
    let by_value =
        Index::of(|c: &ConfigMap| c.data.iter().flat_map(|d| d.values().cloned()).collect());
    client
        .add_index("value", by_value)
        .expect("the name is free");
    for (name, team, value) in [("a", "red", "1"), ("b", "blue", "1"), ("c", "red", "2")] {
        let made = json!({"metadata": {"name": name, "namespace": "default", "labels": {"team": team}}, "data": {"v": value}});
        client
            .create(&from::<ConfigMap>(made))
            .await
            .expect("it is created");
    }
    let red = || Selector::from_iter([("team", "red")]);
    for (query, expected) in [
        (Query::all().namespace("default"), vec!["a", "b", "c"]),
        (
            Query::all().namespace("default").labels(red()),
            vec!["a", "c"],
        ),
        (Query::all().index("value", "1"), vec!["a", "b"]),
        (
            Query::all()
                .index("value", "1")
                .namespace("default")
                .labels(red()),
            vec!["a"],
        ),
        (
            Query::all().index("value", "1").namespace("kube-system"),
            vec![],
        ),
        (Query::all().namespace("default").limit(1), vec!["a"]),
    ] {
        let shown = format!("{query:?}");
        let found = client
            .list::<ConfigMap>(query)
            .await
            .expect("they are read");
        let names: Vec<_> = found
            .iter()
            .map(|c| c.metadata.name.clone().unwrap_or_default())
            .collect();
        assert_eq!(names, expected, "{shown}");
    }
    let unknown = client
        .list::<ConfigMap>(Query::all().index("colour", "x"))
        .await;
    assert_eq!(
        unknown.expect_err("there is no such index").to_string(),
        "configmaps cannot be queried like that"
    );
}

#[limited::test]
async fn apply_owns_its_fields_and_respects_others_where_asked() {
    let (_server, kube) = server().await;
    let client = Client::new(kube);
    let (one, two) = (client.field_owner("one"), client.field_owner("two"));
    one.apply(&config("a")).await.expect("it is applied");
    let mut other = config("a");
    other.data = Some(BTreeMap::from([("a".to_owned(), "2".to_owned())]));
    let polite = two.with(|write| write.ownership = Ownership::Respect);
    assert!(
        polite
            .apply(&other)
            .await
            .expect_err("it is another's")
            .is_conflict()
    );
    let taken = two.apply(&other).await.expect("it is taken");
    assert_eq!(taken.data, other.data);
}

async fn get(address: std::net::SocketAddr, path: &str) -> String {
    let connected = limit(tokio::net::TcpStream::connect(address)).await;
    let mut stream = connected.expect("somebody listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it is sent");
    let mut answer = String::new();
    let read = limit(stream.read_to_string(&mut answer)).await;
    read.expect("it is text");
    answer
}

#[limited::test]
async fn manager_serves_its_numbers_and_the_causes_of_its_reconciles() {
    let (_server, kube) = server().await;
    let (tell, mut reported) = Tell::new();
    let controller = Controller::of::<ConfigMap>("seen")
        .scope(here())
        .reconciler(tell);
    let listener = Listener::bind("127.0.0.1:0")
        .await
        .expect("it is free")
        .expect("it is served");
    let address = listener.address().expect("it is bound");
    let manager = Manager::new(kube)
        .serve_metrics_on(listener, None)
        .controller(controller);
    let client = manager.client();
    let running = run(manager);
    client.create(&config("a")).await.expect("it is created");
    limit(reported.recv()).await;
    let causes = until("the cause of a reconcile", async || {
        let causes = get(address, "/debug/causes").await;
        causes.contains("default/a").then_some(causes)
    });
    let causes = causes.await;
    assert!(
        causes.contains(r#""trigger":"added""#) || causes.contains(r#""trigger":"initial""#),
        "{causes}"
    );
    let metrics = get(address, "/metrics").await;
    let line = r#"workqueue_adds_total{name="seen"}"#;
    assert!(metrics.contains(line), "{metrics}");
    running.end().await;
}

#[limited::test]
async fn events_of_a_reconcile_arrive_and_are_counted() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    client.create(&config("a")).await.expect("it is created");
    let (notes, mut heard) = mpsc::channel(1024);
    let talks = from_fn(move |config: Arc<ConfigMap>, cx: Context| {
        cx.event(
            &*config,
            EventKind::Normal,
            "Synced",
            "it is as it should be",
        );
        let done = cx.reconcile_id() >= 3;
        let _ = notes.try_send(());
        async move {
            Ok(if done {
                Outcome::done()
            } else {
                Outcome::requeue()
            })
        }
    });
    let controller = Controller::of::<ConfigMap>("talks")
        .scope(here())
        .reconciler(talks);
    let running = run(Manager::new(kube).name("talker").controller(controller));
    for _ in 0..3 {
        limit(heard.recv()).await;
    }
    running.end().await;
    let events = client
        .live()
        .list::<Event>(Query::all().namespace("default"))
        .await
        .expect("they are read");
    let [event] = events.as_slice() else {
        panic!("one event, counted: {events:#?}")
    };
    assert_eq!(
        (event.count, event.reason.as_deref()),
        (Some(3), Some("Synced"))
    );
    let source = event
        .source
        .as_ref()
        .and_then(|source| source.component.as_deref());
    assert_eq!(source, Some("talker"));
}
