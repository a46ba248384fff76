//! Several clusters in one manager: two API servers in the process, `here` the manager's own, `edge` a further one.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Secret};
use kube::core::ApiResource;
use kubewright_cache::source::BoxFuture;
use kubewright_cache::{Factory, Reporter};
use kubewright_runtime::controller::{Builder, Primary};
use kubewright_runtime::environment::VirtualClock;
use kubewright_runtime::gate::{self, Gate, Point, Verdict};
use kubewright_runtime::manager::ManagerError;
use kubewright_runtime::sharding::Caches;
use kubewright_runtime::{
    Cleanup, Client, ClientError, Context, Controller, Delete, Environment, Error, EventKind,
    Index, Key, LeaseOptions, Manager, Outcome, Query, Reconciler, Scope, ShardingOptions, Watch,
    from_fn,
};
use kubewright_server::Server;
use kubewright_testing::{Break, Fault, Verb, Wire, limit};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// The longest that anything takes here.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster, and somebody who looks at it past all caches.
struct Cluster {
    server: Server,
    wire: Wire,
    user: Client,
}

impl Cluster {
    async fn start() -> Self {
        let server = limit(Server::builder().start()).await.expect("a server");
        let wire = Wire::new(server.service());
        let user = Client::new(kube::Client::new(server.service(), "default"));
        Self { server, wire, user }
    }

    async fn create(&self, config: &ConfigMap) {
        let created = limit(self.user.create(config)).await;
        created.expect("it is created");
    }

    async fn config(&self, name: &str) -> Option<ConfigMap> {
        let found = limit(self.user.live().get(&Key::new("default", name))).await;
        found.expect("the server answers")
    }

    /// The value of a ConfigMap; empty if that is missing.
    async fn value(&self, name: &str) -> String {
        value(self.config(name).await.as_ref()).to_owned()
    }

    async fn set(&self, name: &str, value: &str) {
        let patch = serde_json::json!({"data": {"value": value}});
        let key = Key::new("default", name);
        let objects = self.user.of::<ConfigMap>();
        let patch = kube::api::Patch::Merge(patch);
        limit(objects.patch_with(&key, &patch)).await.expect("set");
    }

    /// The reasons of all events.
    async fn events(&self) -> Vec<String> {
        let query = Query::all().namespace("default");
        let events: Vec<Event> = limit(self.user.live().list(query)).await.expect("events");
        let reasons = events.into_iter().filter_map(|event| event.reason);
        reasons.collect()
    }
}

/// A manager that runs.
struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
}

impl Running {
    fn start(manager: Manager) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(manager.run_until(stop.clone()));
        Self { stop, task }
    }

    async fn stop(self) {
        self.stop.cancel();
        let ended = limit(self.task).await.expect("no panic");
        ended.expect("it ends well");
    }
}

fn config(name: &str, value: &str) -> ConfigMap {
    let mut config = ConfigMap::default();
    config.metadata.name = Some(name.to_owned());
    config.metadata.namespace = Some("default".to_owned());
    write(&mut config, value);
    config
}

fn write(config: &mut ConfigMap, value: &str) {
    let data = config.data.get_or_insert_default();
    data.insert("value".to_owned(), value.to_owned());
}

fn value(config: Option<&ConfigMap>) -> &str {
    let data = config.and_then(|config| config.data.as_ref());
    data.and_then(|data| data.get("value"))
        .map_or("", String::as_str)
}

fn namespace() -> Scope {
    Scope::all().namespace("default")
}

fn lease() -> LeaseOptions {
    LeaseOptions::new("default", "operator", "me")
}

/// Waits until something looks as it should.
async fn until<T: Debug>(what: &str, mut look: impl AsyncFnMut() -> T, good: impl Fn(&T) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = look().await;
        if good(&found) {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "timed out after {PATIENCE:?} waiting until {what}; last seen: {found:?}"
        );
        sleep(Duration::from_millis(20)).await;
    }
}

type Description = Builder<Primary<ConfigMap>>;

/// A controller that sends each key.
fn observer(
    name: &str,
    refine: impl FnOnce(Description) -> Description,
) -> (Controller, mpsc::Receiver<String>) {
    let (sender, heard) = mpsc::channel(1024);
    let reconciler = from_fn(move |_: Arc<ConfigMap>, cx: Context| {
        // The test may be over.
        let _ = sender.try_send(cx.key().as_str().to_owned());
        async { Ok(Outcome::done()) }
    });
    let description = Controller::of::<ConfigMap>(name).scope(namespace());
    (refine(description).reconciler(reconciler), heard)
}

/// Copies a ConfigMap to the edge, and notes here what was copied.
async fn copy(config: Arc<ConfigMap>, cx: Context) -> Result<Outcome, Error> {
    let edge = cx.client().cluster("edge")?;
    let wanted = value(Some(&config)).to_owned();
    edge.create_or_update::<ConfigMap>(cx.key(), |copy| write(copy, &wanted))
        .await?;
    let note = |config: &mut ConfigMap| {
        let annotations = config.metadata.annotations.get_or_insert_default();
        annotations.insert("copied".to_owned(), wanted.clone());
    };
    edge.home().modify(&*config, note).await?;
    Ok(Outcome::done())
}

fn annotation<'a>(config: Option<&'a ConfigMap>, name: &str) -> &'a str {
    let annotations = config.and_then(|config| config.metadata.annotations.as_ref());
    let annotation = annotations.and_then(|all| all.get(name));
    annotation.map_or("", String::as_str)
}

#[limited::test(flavor = "multi_thread", worker_threads = 4)]
async fn controller_watches_another_cluster_and_writes_to_both() {
    let (here, edge) = (Cluster::start().await, Cluster::start().await);
    let controller = Controller::of::<ConfigMap>("copies")
        .scope(namespace())
        .watches(Watch::of::<ConfigMap>().scope(namespace()).cluster("edge"))
        .reconciler(from_fn(copy));
    let history = controller.handle().history().clone();
    let manager = Manager::new(here.wire.client())
        .name("copier")
        .cluster("edge", Client::new(edge.wire.client()))
        .controller(controller);
    let metrics = manager.metrics().clone();
    let running = Running::start(manager);
    here.create(&config("web", "1")).await;
    let at_edge = async || edge.value("web").await;
    until("the copy is at the edge", at_edge, |value| value == "1").await;
    let noted = async || annotation(here.config("web").await.as_ref(), "copied").to_owned();
    until("the copy is noted here", noted, |value| value == "1").await;

    edge.set("web", "changed by somebody").await;
    until("the copy is restored", at_edge, |value| value == "1").await;
    here.set("web", "2").await;
    until("the change is copied", at_edge, |value| value == "2").await;
    until("the change is noted", noted, |value| value == "2").await;

    let copy = edge.config("web").await.expect("it is there");
    let fields = copy.metadata.managed_fields.iter().flatten();
    let managers: Vec<_> = fields.filter_map(|it| it.manager.as_deref()).collect();
    assert!(managers.contains(&"copier"), "{managers:?}");
    assert_eq!(annotation(Some(&copy), "copied"), "");
    let runs: Vec<String> = history.list().iter().map(ToString::to_string).collect();
    let has = |text: &str| runs.iter().any(|run| run.contains(text));
    assert!(
        has("ConfigMap default/web of cluster edge updated (data.value)"),
        "{runs:#?}"
    );
    assert!(
        has("wrote create configmaps default/web of cluster edge, patch configmaps default/web"),
        "{runs:#?}"
    );
    let text = metrics.render();
    assert_eq!(text.matches("# TYPE informer_objects ").count(), 1);
    let series = |labels: &str| {
        let start = format!("informer_objects{{name=\"/api/v1/configmaps\"{labels}}} ");
        text.lines().filter(|line| line.starts_with(&start)).count()
    };
    assert_eq!((series(""), series(",cluster=\"edge\"")), (1, 1), "{text}");
    running.stop().await;
}

/// Writes to the edge and reads it back, many times in one reconcile.
struct ReadBack {
    stale: Arc<Mutex<Vec<String>>>,
    checked: Arc<AtomicU64>,
}

impl ReadBack {
    fn check(&self, what: &str, written: u64, read: Option<&ConfigMap>) {
        self.checked.fetch_add(1, Ordering::Relaxed);
        let seen: u64 = value(read).parse().unwrap_or_default();
        if seen < written {
            let line = format!("{what}: wrote {written}, read {seen}");
            self.stale.lock().push(line);
        }
    }
}

impl Reconciler<ConfigMap> for ReadBack {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Error> {
        let first: u64 = value(Some(&config)).parse().unwrap_or_default();
        let (here, edge) = (cx.client(), cx.client().cluster("edge")?);
        let key = cx.key().sibling(&format!("{}-copy", cx.key().name()));
        for step in first + 1..first + 6 {
            let written = step.to_string();
            for (place, client) in [("edge", &edge), ("here", here)] {
                client
                    .create_or_update::<ConfigMap>(&key, |copy| write(copy, &written))
                    .await?;
                let read = client.get::<ConfigMap>(&key).await?;
                self.check(place, step, read.as_deref());
                let all = client.list::<ConfigMap>(Query::all()).await?;
                let read = all.iter().find(|it| Key::of(&***it) == key);
                self.check(place, step, read.map(|it| &**it));
            }
        }
        let read = edge
            .get::<ConfigMap>(&key)
            .await?
            .ok_or_else(|| Error::msg("it was made"))?;
        edge.delete(&read, Delete::background()).await?;
        let read = edge.get::<ConfigMap>(&key).await?;
        if read.is_some() {
            self.stale.lock().push("edge: it was deleted".to_owned());
        }
        Ok(Outcome::done())
    }
}

#[limited::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_of_each_cluster_never_show_a_state_older_than_the_own_write() {
    const KEYS: usize = 8;
    let (here, edge) = (Cluster::start().await, Cluster::start().await);
    // Versions here are far ahead of those at the edge: what was written to one must not be waited for at the other.
    here.create(&config("ahead", "")).await;
    for step in 0..200 {
        here.set("ahead", &step.to_string()).await;
    }
    let late = AtomicU64::new(0);
    edge.wire.delay_watches(move || {
        let turn = late.fetch_add(1, Ordering::Relaxed);
        Duration::from_millis(turn * 7919 % 60)
    });
    let (stale, checked) = (Arc::default(), Arc::<AtomicU64>::default());
    let controller = Controller::of::<ConfigMap>("reads-back")
        .scope(namespace().labels("of=test"))
        .workers(4)
        .reconciler(ReadBack {
            stale: Arc::clone(&stale),
            checked: checked.clone(),
        });
    let history = controller.handle().history().clone();
    let manager = Manager::new(here.wire.client())
        .cluster("edge", Client::new(edge.wire.client()))
        .controller(controller);
    let running = Running::start(manager);
    for number in 0..KEYS {
        let mut config = config(&format!("key-{number}"), "0");
        let label = ("of".to_owned(), "test".to_owned());
        config.metadata.labels = Some(BTreeMap::from([label]));
        here.create(&config).await;
    }
    let runs = async || {
        let runs = history.list();
        let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
        (runs.len(), stale.lock().clone(), runs)
    };
    until("all have run", runs, |(count, ..)| *count >= KEYS).await;
    running.stop().await;
    let stale = stale.lock().clone();
    assert_eq!(stale, [] as [String; 0]);
    assert_eq!(checked.load(Ordering::Relaxed), KEYS as u64 * 5 * 4);
    for run in history.list() {
        assert_eq!(run.ended, "done", "{run}");
    }
}

/// Holds objects of the edge with a finalizer, reports on them there, and keeps a summary at home.
struct Held;

impl Reconciler<ConfigMap> for Held {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Error> {
        assert_eq!(cx.client().cluster_name(), Some("edge"));
        let home = cx.client().home();
        assert_eq!(home.cluster_name(), None);
        let wanted = home.get::<Secret>(cx.key()).await?;
        let state = if wanted.is_some() { "secret" } else { "plain" };
        cx.event(&config, EventKind::Normal, "Held", state);
        home.create_or_update::<ConfigMap>(&cx.key().sibling("summary"), |it| write(it, state))
            .await?;
        Ok(Outcome::done())
    }

    async fn cleanup(&self, _: Arc<ConfigMap>, cx: &Context) -> Result<Cleanup<Outcome>, Error> {
        let home = cx.client().home();
        home.create_or_update::<ConfigMap>(&cx.key().sibling("summary"), |it| write(it, "gone"))
            .await?;
        Ok(Cleanup::Done)
    }
}

#[limited::test(flavor = "multi_thread", worker_threads = 4)]
async fn controller_of_another_cluster_has_its_objects_finalizers_and_events_there() {
    let (here, edge) = (Cluster::start().await, Cluster::start().await);
    // An object of the same name that is none of the controller's business.
    here.create(&config("web", "untouched")).await;
    let before = here.config("web").await.expect("it is there");
    let controller = Controller::of::<ConfigMap>("holds")
        .cluster("edge")
        .scope(namespace())
        .watches(Watch::of::<Secret>().scope(namespace()).home())
        .finalizer("example.com/held")
        .reconciler(Held);
    let manager = Manager::new(here.wire.client())
        .cluster("edge", Client::new(edge.wire.client()))
        .controller(controller);
    let running = Running::start(manager);
    edge.create(&config("web", "1")).await;
    let summary = async || here.value("summary").await;
    until("it is reconciled", summary, |value| value == "plain").await;
    let events = async || edge.events().await;
    until("the event is there", events, |all| all == &["Held"]).await;
    let held = edge.config("web").await.expect("it is there");
    assert_eq!(
        held.metadata.finalizers,
        Some(vec!["example.com/held".to_owned()])
    );

    let mut secret = Secret::default();
    secret.metadata.name = Some("web".to_owned());
    secret.metadata.namespace = Some("default".to_owned());
    limit(here.user.create(&secret)).await.expect("created");
    until("the watch at home leads to it", summary, |value| {
        value == "secret"
    })
    .await;

    let deleted = edge.user.delete(&held, Delete::background());
    limit(deleted).await.expect("deleted");
    let at_edge = async || edge.config("web").await;
    until("it is gone", at_edge, Option::is_none).await;
    assert_eq!(here.value("summary").await, "gone");
    assert_eq!(here.config("web").await, Some(before));
    assert_eq!(here.events().await, [] as [String; 0]);
    running.stop().await;
}

#[limited::test(start_paused = true)]
async fn mapper_of_another_clusters_objects_reads_the_cache_of_the_controller() {
    let (here, edge) = (Cluster::start().await, Cluster::start().await);
    here.create(&config("web", "password")).await;
    let refers = Index::of(|config: &ConfigMap| vec![value(Some(config)).to_owned()]);
    let secrets = Watch::of::<Secret>().scope(namespace()).cluster("edge");
    let secrets = secrets.map_by_index::<ConfigMap>("refers", |it| vec![Key::of(it).name().into()]);
    let (controller, mut heard) =
        observer("refers", |it| it.index("refers", refers).watches(secrets));
    let manager = Manager::new(here.wire.client())
        .cluster("edge", Client::new(edge.wire.client()))
        .controller(controller);
    let running = Running::start(manager);
    assert_eq!(limit(heard.recv()).await.as_deref(), Some("default/web"));
    let mut secret = Secret::default();
    secret.metadata.name = Some("password".to_owned());
    secret.metadata.namespace = Some("default".to_owned());
    limit(edge.user.create(&secret)).await.expect("created");
    assert_eq!(limit(heard.recv()).await.as_deref(), Some("default/web"));
    running.stop().await;
}

#[limited::test(start_paused = true)]
async fn write_to_another_cluster_is_refused_once_the_lease_has_run_out() {
    let (here, edge) = (Cluster::start().await, Cluster::start().await);
    here.create(&config("web", "1")).await;
    let (sender, mut clients) = mpsc::channel(16);
    let reconciler = from_fn(move |_: Arc<ConfigMap>, cx: Context| {
        // The test may be over.
        let _ = sender.try_send(cx.client().cluster("edge"));
        async { Ok(Outcome::done()) }
    });
    let controller = Controller::of::<ConfigMap>("leads")
        .scope(namespace())
        .reconciler(reconciler);
    let manager = Manager::new(here.wire.client())
        .leader_election(lease())
        .cluster("edge", Client::new(edge.wire.client()))
        .controller(controller);
    let running = Running::start(manager);
    let client = limit(clients.recv()).await.expect("it is reconciled");
    let client = client.expect("the cluster is known");
    let written = limit(client.create(&config("led", "1"))).await;
    written.expect("it leads, and writes");

    // The edge answers all the time: nothing but the lease keeps a write from it.
    here.wire.plan(|_| Fault::Silence);
    let ended = limit(running.task).await.expect("no panic");
    assert!(
        matches!(ended, Err(ManagerError::LeadershipLost)),
        "{ended:?}"
    );
    let mark = edge.wire.passed();
    let refused = limit(client.create(&config("late", "1"))).await;
    assert!(
        matches!(refused, Err(ClientError::LeaseLost { .. })),
        "{refused:?}"
    );
    let refused = limit(client.home().create(&config("late", "1"))).await;
    assert!(
        matches!(refused, Err(ClientError::LeaseLost { .. })),
        "{refused:?}"
    );
    let calls = edge.wire.exchanges_since(mark);
    let writes = calls.iter().filter(|call| call.call.verb == Verb::Create);
    assert_eq!(writes.count(), 0, "{calls:?}");
    assert_eq!(edge.config("late").await, None);
}

#[limited::test(start_paused = true)]
async fn informer_of_another_cluster_that_panics_ends_the_manager_with_both_names() {
    let (here, edge) = (Cluster::start().await, Cluster::start().await);
    let (controller, mut heard) = observer("watches", |it| it.cluster("edge"));
    let reporter = Reporter::new(|report| panic!("nobody wants to hear of {report}"));
    let factory = Factory::new(edge.wire.client()).reporter(reporter);
    let client = Client::builder(edge.wire.client()).factory(factory).build();
    let manager = Manager::new(here.wire.client())
        .cluster("edge", client)
        .controller(controller);
    let running = Running::start(manager);
    edge.create(&config("web", "1")).await;
    limit(heard.recv()).await.expect("it is reconciled");
    edge.wire.plan(|call| match call.verb {
        Verb::Watch | Verb::List => Fault::Refuse {
            code: 403,
            reason: "Forbidden",
        },
        _ => Fault::None,
    });
    edge.wire.break_watches(Break::Reset);
    let ended = limit(running.task).await.expect("no panic");
    let text = ended.expect_err("it fails").to_string();
    let start = "informers of edge failed: the informer of /api/v1/configmaps panicked: nobody wants to hear of";
    assert!(text.starts_with(start), "{text}");
}

/// What a manager says when it runs.
async fn failure(manager: Manager) -> String {
    let run = manager.run_until(CancellationToken::new());
    limit(run).await.expect_err("it fails").to_string()
}

#[limited::test(start_paused = true)]
async fn name_that_is_unknown_taken_or_empty_is_an_error_at_the_start() {
    let (here, edge) = (Cluster::start().await, Cluster::start().await);
    let client = || Client::new(edge.wire.client());
    let manager = || {
        Manager::new(here.wire.client())
            .cluster("edge", client())
            .cluster("lab", client())
    };
    let unknown =
        r#"no cluster is called "egde"; the further clusters of the manager are: edge, lab"#;

    let (there, _) = observer("there", |it| it.cluster("egde"));
    let error = failure(manager().controller(there)).await;
    assert_eq!(error, format!("controller there failed: {unknown}"));

    let watch = Watch::of::<ConfigMap>().cluster("egde");
    let (watching, _) = observer("watching", |it| it.watches(watch));
    let start = Instant::now();
    let error = failure(manager().controller(watching)).await;
    let expected = format!(
        "controller watching failed: controller watching: configmaps of cluster egde did not start: \
         configmaps of cluster egde: {unknown}"
    );
    assert_eq!(error, expected);
    assert!(start.elapsed() < Duration::from_secs(1), "at once");

    let error = failure(manager().cluster("lab", client())).await;
    assert_eq!(error, r#"two clusters are called "lab""#);
    let error = failure(manager().cluster("", client())).await;
    assert_eq!(
        error,
        "a further cluster needs a name, and one was given an empty one"
    );
    assert_eq!(here.wire.count(Verb::Create), 0, "no lease was asked for");

    let alone = client().cluster("edge").expect_err("it has no manager");
    assert_eq!(
        alone.to_string(),
        r#"no cluster is called "edge"; the further clusters of the manager are: none"#
    );
}

#[limited::test(start_paused = true)]
async fn managers_over_one_client_may_have_different_clusters() {
    let (here, edge) = (Cluster::start().await, Cluster::start().await);
    edge.create(&config("web", "edge")).await;
    here.create(&config("web", "here")).await;
    let client = Client::new(here.wire.client());
    let several = Manager::over(client.clone()).cluster("edge", Client::new(edge.wire.client()));
    let alone = Manager::over(several.client());
    assert!(alone.client().cluster("edge").is_err());
    assert!(client.cluster("edge").is_err());

    // A client of its own is for the cluster that it was given for, on the way there and back.
    let refusing = Wire::new(here.server.service());
    refusing.plan(|_| Fault::Refuse {
        code: 403,
        reason: "Forbidden",
    });
    let own = several.client().with_kube(refusing.client());
    let key = Key::new("default", "web");
    let far = own.cluster("edge").expect("it is known");
    let found = limit(far.live().get::<ConfigMap>(&key)).await;
    assert_eq!(value(found.expect("it is allowed").as_ref()), "edge");
    let back = limit(far.home().live().get::<ConfigMap>(&key)).await;
    assert!(back.expect_err("it is refused").is_forbidden());
    let found = limit(several.client().live().get::<ConfigMap>(&key)).await;
    assert_eq!(value(found.expect("it is allowed").as_ref()), "here");
}

/// Sends which reconcile reads what from a cache.
struct Reads(mpsc::Sender<String>);

impl Gate for Reads {
    fn pass<'a>(&'a self, point: Point<'a>) -> BoxFuture<'a, Verdict> {
        if let (Point::CachedRead { resource, .. }, Some(id)) = (point, gate::reconcile()) {
            // The test may be over.
            let _ = self.0.try_send(format!("{} {resource}", id.controller));
        }
        Box::pin(async { Verdict::Go })
    }
}

#[limited::test(start_paused = true)]
async fn gate_of_the_manager_sees_the_reads_of_all_clusters() {
    let (here, edge) = (Cluster::start().await, Cluster::start().await);
    edge.create(&config("web", "1")).await;
    let reconciler = from_fn(|_: Arc<ConfigMap>, cx: Context| async move {
        cx.client().get::<Secret>(cx.key()).await?;
        cx.client().home().get::<ConfigMap>(cx.key()).await?;
        Ok(Outcome::done())
    });
    let controller = Controller::of::<ConfigMap>("reads")
        .cluster("edge")
        .scope(namespace())
        .reconciler(reconciler);
    let (sender, mut reads) = mpsc::channel(1024);
    let manager = Manager::new(here.wire.client())
        .gate(Arc::new(Reads(sender)))
        .cluster("edge", Client::new(edge.wire.client()))
        .controller(controller);
    let running = Running::start(manager);
    assert_eq!(limit(reads.recv()).await.as_deref(), Some("reads secrets"));
    assert_eq!(
        limit(reads.recv()).await.as_deref(),
        Some("reads configmaps")
    );
    running.stop().await;
}

#[limited::test(start_paused = true)]
async fn cluster_that_does_not_answer_holds_up_those_who_need_it_alone() {
    let (here, edge) = (Cluster::start().await, Cluster::start().await);
    here.create(&config("web", "1")).await;
    edge.create(&config("far", "1")).await;
    edge.wire.plan(|_| Fault::Silence);
    let watch = Watch::of::<ConfigMap>().scope(namespace()).cluster("edge");
    let (alone, mut heard_alone) = observer("alone", |it| it);
    let (both, mut heard_both) = observer("both", |it| it.watches(watch.optional()));
    let patient = |it: Description| it.cluster("edge").sync_timeout(Duration::MAX);
    let (there, mut heard_there) = observer("there", patient);
    let manager =
        || Manager::new(here.wire.client()).cluster("edge", Client::new(edge.wire.client()));
    let several = manager()
        .controller(alone)
        .controller(both)
        .controller(there);
    let start = Instant::now();
    let running = Running::start(several);
    for heard in [&mut heard_alone, &mut heard_both] {
        assert_eq!(limit(heard.recv()).await.as_deref(), Some("default/web"));
    }
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    sleep(Duration::from_secs(3_600)).await;
    assert!(!running.task.is_finished(), "it waits for the edge");
    assert!(heard_there.try_recv().is_err());
    edge.wire.heal();
    assert_eq!(
        limit(heard_there.recv()).await.as_deref(),
        Some("default/far")
    );
    edge.create(&config("web", "1")).await;
    let heard = limit(heard_both.recv()).await;
    assert_eq!(heard.as_deref(), Some("default/web"), "the watch came back");
    running.stop().await;

    // Who waits no longer than by default ends the manager, and says for what it waited.
    edge.wire.plan(|_| Fault::Silence);
    let (there, _) = observer("there", |it| it.cluster("edge"));
    let error = failure(manager().controller(there)).await;
    assert_eq!(
        error,
        "controller there failed: controller there: no first state of configmaps within 120s"
    );
}

#[limited::test(start_paused = true)]
async fn events_of_one_cluster_do_not_wait_for_another_that_does_not_answer() {
    let (here, edge) = (Cluster::start().await, Cluster::start().await);
    let tell = || {
        from_fn(|config: Arc<ConfigMap>, cx: Context| async move {
            cx.event(&config, EventKind::Normal, "Seen", "it is there");
            Ok(Outcome::done())
        })
    };
    let near = Controller::of::<ConfigMap>("near").scope(namespace());
    let far = Controller::of::<ConfigMap>("far").scope(namespace());
    let manager = Manager::new(here.wire.client())
        .cluster("edge", Client::new(edge.wire.client()))
        .controller(near.reconciler(tell()))
        .controller(far.cluster("edge").reconciler(tell()));
    edge.wire.plan(|call| match call.verb {
        Verb::Create => Fault::Silence,
        _ => Fault::None,
    });
    let running = Running::start(manager);
    edge.create(&config("web", "1")).await;
    until(
        "the edge is asked to write an event",
        async || edge.wire.count(Verb::Create),
        |count| *count > 0,
    )
    .await;
    let start = Instant::now();
    here.create(&config("web", "1")).await;
    let events = async || here.events().await;
    until("the event is here", events, |all| all == &["Seen"]).await;
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    edge.wire.heal();
    let events = async || edge.events().await;
    until("the event is at the edge", events, |all| all == &["Seen"]).await;
    running.stop().await;
}

#[limited::test(start_paused = true)]
async fn shutdown_stops_the_informers_of_all_clusters_that_nobody_else_uses() {
    let (here, edge) = (Cluster::start().await, Cluster::start().await);
    let (near, far) = (
        Client::new(here.wire.client()),
        Client::new(edge.wire.client()),
    );
    let watch = Watch::of::<ConfigMap>().scope(namespace()).cluster("edge");
    let (both, mut heard) = observer("both", |it| it.watches(watch));
    let manager = Manager::over(near.clone())
        .cluster("edge", far.clone())
        .controller(both);
    let (other, mut heard_other) = observer("other", |it| it);
    let other = Manager::over(far.clone()).controller(other);
    let (running, other) = (Running::start(manager), Running::start(other));
    here.create(&config("a", "1")).await;
    assert_eq!(limit(heard.recv()).await.as_deref(), Some("default/a"));
    let informers = [&near, &far].map(|client| client.of::<ConfigMap>().informer());
    let stopped = || informers.each_ref().map(|informers| informers.is_stopped());
    assert_eq!(stopped(), [false, false]);
    running.stop().await;
    assert_eq!(stopped(), [true, false]);
    // The other manager goes on with the informers that both had.
    edge.create(&config("b", "1")).await;
    assert_eq!(
        limit(heard_other.recv()).await.as_deref(),
        Some("default/b")
    );
    other.stop().await;
    assert_eq!(stopped(), [true, true]);
    let open = [&here, &edge].map(|cluster| cluster.wire.count(Verb::Watch));
    sleep(Duration::from_secs(3_600)).await;
    let later = [&here, &edge].map(|cluster| cluster.wire.count(Verb::Watch));
    assert_eq!(open, later, "nobody watches any more");
}

#[limited::test(start_paused = true)]
async fn objects_of_another_cluster_are_shared_by_leases_of_the_managers_own() {
    let (here, edge) = (Cluster::start().await, Cluster::start().await);
    for number in 0..20 {
        edge.create(&config(&format!("key-{number}"), "")).await;
    }
    let clock = VirtualClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let environment = Environment::seeded(clock, 1);
    let mut replicas = Vec::new();
    for name in ["a", "b"] {
        let (controller, heard) = observer("shared", |it| it.cluster("edge"));
        let options = ShardingOptions::new("default", "operator", name).caches(Caches::OwnShards);
        let (near, far) = (
            Client::new(here.wire.client()),
            Client::new(edge.wire.client()),
        );
        let manager = Manager::over(near.clone())
            .environment(environment.clone())
            .cluster("edge", far.clone())
            .sharded(options)
            .controller(controller);
        let running = Running::start(manager);
        let resource = ApiResource::erase::<ConfigMap>(&());
        until(
            "the manager runs",
            async || far.factory().is_selected(&resource),
            |is_selected| *is_selected,
        )
        .await;
        assert!(!near.factory().is_selected(&resource));
        replicas.push((running, heard, far));
    }
    // Each cache settles on a share, and together they have everything once.
    let shares = async || {
        let mut all = Vec::new();
        for (_, _, far) in &replicas {
            let reader = far.reader::<ConfigMap>();
            let keys = reader.snapshot();
            let keys = keys.iter().map(|entry| entry.key().clone());
            all.push(
                keys.filter(|key| key.namespace() == Some("default"))
                    .count(),
            );
        }
        all
    };
    until("each has a share", shares, |all| {
        all.iter().sum::<usize>() == 20 && all.iter().all(|share| *share > 0)
    })
    .await;
    let mut heard = 0;
    for (_, keys, _) in &mut replicas {
        while keys.try_recv().is_ok() {
            heard += 1;
        }
    }
    assert!(heard >= 20, "{heard}");
    let leases = |cluster: &Cluster| {
        let client = cluster.user.clone();
        let query = Query::all().namespace("default");
        async move { limit(client.live().list::<Lease>(query)).await }
    };
    assert_eq!(leases(&here).await.expect("listed").len(), 2);
    assert_eq!(leases(&edge).await.expect("listed").len(), 0);
    for (running, ..) in replicas {
        running.stop().await;
    }
}
