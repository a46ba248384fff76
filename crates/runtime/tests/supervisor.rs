//! Parts of a manager that panic, end or hang: each is named, and the manager ends in time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright_cache::source::BoxFuture;
use kubewright_cache::{Factory, Reporter};
use kubewright_runtime::environment::Clock;
use kubewright_runtime::manager::{ManagerError, Task};
use kubewright_runtime::watch::{EventQueue, Running, Source, SourceError};
use kubewright_runtime::{
    Client, Context, Controller, Environment, Error, Event, Key, LeaseOptions, Manager, Metrics,
    Outcome, Predicate, Requests, Scope, Watch, from_fn,
};
use kubewright_server::Server;
use kubewright_testing::{Fault, Verb, Wire, limit, until};
use kubewright_workqueue::RateLimiter;
use kubewright_workqueue::limiter::Retry;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

async fn server() -> (Server, kube::Client) {
    let server = limit(Server::builder().start()).await.expect("a server");
    let client = kube::Client::new(server.service(), "default");
    (server, client)
}

fn config(name: &str) -> ConfigMap {
    let mut config = ConfigMap::default();
    config.metadata.name = Some(name.to_owned());
    config.metadata.namespace = Some("default".to_owned());
    config
}

fn here() -> Scope {
    Scope::all().namespace("default")
}

/// A controller that tells of each key.
fn telling(name: &str) -> (Controller, mpsc::Receiver<String>) {
    let (sender, heard) = mpsc::channel(1024);
    let reconciler = from_fn(move |_: Arc<ConfigMap>, cx: Context| {
        // The test may be over.
        let _ = sender.try_send(cx.key().as_str().to_owned());
        async { Ok(Outcome::done()) }
    });
    let controller = Controller::of::<ConfigMap>(name)
        .scope(here())
        .reconciler(reconciler);
    (controller, heard)
}

/// Runs a manager until it fails, and gives what it says and how long the end took.
async fn failure(manager: Manager) -> String {
    let run = manager.run_until(CancellationToken::new());
    limit(run).await.expect_err("it fails").to_string()
}

#[limited::test(start_paused = true)]
async fn runnable_that_panics_is_named_and_holds_nobody_up() {
    let (_server, kube) = server().await;
    let manager = Manager::new(kube)
        .controller(telling("fine").0)
        .runnable(Task::new("the importer", |_| async {
            panic!("no such bucket")
        }));
    let manager = limit(manager.serve_probes("127.0.0.1:0")).await;
    let start = Instant::now();
    let error = failure(manager.expect("a port is free")).await;
    assert_eq!(error, "the importer panicked: no such bucket");
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
}

#[limited::test(start_paused = true)]
async fn runnable_that_ends_by_itself_is_a_failure_unless_it_may() {
    let (_server, kube) = server().await;
    let (controller, mut heard) = telling("goes-on");
    let client = Client::new(kube.clone());
    let once = Task::new("the migration", |_| async { Ok(()) }).once();
    let stop = CancellationToken::new();
    let run = tokio::spawn(
        Manager::new(kube.clone())
            .controller(controller)
            .runnable(once)
            .run_until(stop.clone()),
    );
    limit(client.create(&config("a"))).await.expect("created");
    assert_eq!(limit(heard.recv()).await.as_deref(), Some("default/a"));
    stop.cancel();
    limit(run).await.expect("no panic").expect("it ends well");

    let ends = Task::new("the poller", |_| async { Ok(()) });
    let error = failure(Manager::new(kube).runnable(ends)).await;
    assert_eq!(error, "the poller ended although nobody asked it to stop");
}

/// A limiter that panics when something is retried.
struct Careless;

impl RateLimiter<Key> for Careless {
    fn delay(&mut self, _: &Retry<'_, Key>) -> Duration {
        panic!("divided by zero")
    }
}

#[limited::test(start_paused = true)]
async fn rate_limiter_that_panics_costs_its_delay_and_not_the_key() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    limit(client.create(&config("a"))).await.expect("created");
    let (sender, mut heard) = mpsc::channel(16);
    let fails = from_fn(move |_: Arc<ConfigMap>, cx: Context| {
        // The test may be over.
        let _ = sender.try_send(cx.attempt());
        async { Err(Error::msg("try again")) }
    });
    let controller = Controller::of::<ConfigMap>("careless")
        .scope(here())
        .rate_limiter(Careless)
        .reconciler(fails);
    let stop = CancellationToken::new();
    let run = tokio::spawn(
        Manager::new(kube)
            .controller(controller)
            .run_until(stop.clone()),
    );
    for attempt in 0..5 {
        assert_eq!(limit(heard.recv()).await, Some(attempt));
    }
    stop.cancel();
    limit(run).await.expect("no panic").expect("it ends well");
}

/// A clock without hands.
struct Broken;

impl Clock for Broken {
    fn now(&self) -> Timestamp {
        panic!("no time")
    }
}

#[limited::test]
async fn worker_that_panics_ends_the_manager_and_says_whose_fault_it_was() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    limit(client.create(&config("a"))).await.expect("created");
    let manager = Manager::new(kube)
        .environment(Environment::seeded(Broken, 1))
        .controller(telling("timeless").0);
    let error = failure(manager).await;
    assert_eq!(
        error,
        "controller timeless failed: controller timeless: a worker panicked: the clock of the environment panicked: no time"
    );
}

/// A source that does not survive its start.
struct Fragile;

impl Source for Fragile {
    fn start(
        self: Box<Self>,
        _: Client,
        _: Requests,
    ) -> BoxFuture<'static, Result<Running, SourceError>> {
        Box::pin(async { panic!("no such queue") })
    }

    fn describe(&self) -> String {
        "messages".to_owned()
    }
}

#[limited::test(start_paused = true)]
async fn source_that_panics_at_its_start_is_named_at_once() {
    let (_server, kube) = server().await;
    let reconciler = from_fn(|_: Arc<ConfigMap>, _| async { Ok(Outcome::done()) });
    let controller = Controller::of::<ConfigMap>("listens")
        .watches(Fragile)
        .reconciler(reconciler);
    let start = Instant::now();
    let error = failure(Manager::new(kube).controller(controller)).await;
    assert_eq!(
        error,
        "controller listens failed: controller listens: the source messages panicked: no such queue"
    );
    assert!(start.elapsed() < Duration::from_secs(1), "not after 120 s");
}

#[limited::test(start_paused = true)]
async fn informer_that_panics_ends_the_manager_with_its_resource() {
    let (server, _) = server().await;
    let wire = Wire::new(server.service());
    let (controller, mut heard) = telling("watches");
    let reporter = Reporter::new(|report| panic!("nobody wants to hear of {report}"));
    let factory = Factory::new(wire.client()).reporter(reporter);
    let client = Client::builder(wire.client()).factory(factory).build();
    let manager = Manager::over(client.clone()).controller(controller);
    let run = tokio::spawn(manager.run_until(CancellationToken::new()));
    limit(client.create(&config("a"))).await.expect("created");
    limit(heard.recv()).await.expect("it is reconciled");
    wire.plan(|call| match call.verb {
        Verb::Watch | Verb::List => Fault::Refuse {
            code: 403,
            reason: "Forbidden",
        },
        _ => Fault::None,
    });
    wire.break_watches(kubewright_testing::Break::Reset);
    let ended = limit(run).await.expect("no panic").expect_err("it fails");
    let text = ended.to_string();
    assert!(
        text.starts_with(
            "informers failed: the informer of /api/v1/configmaps panicked: nobody wants to hear of"
        ),
        "{text}"
    );
}

#[limited::test(start_paused = true)]
async fn managers_over_one_client_leave_each_others_informers_alone() {
    let (_server, kube) = server().await;
    let client = Client::new(kube);
    let (first, mut heard_first) = telling("first");
    let (second, mut heard_second) = telling("second");
    let (stop_first, stop_second) = (CancellationToken::new(), CancellationToken::new());
    let first = Manager::over(client.clone()).controller(first);
    let second = Manager::over(client.clone()).controller(second);
    let first = tokio::spawn(first.run_until(stop_first.clone()));
    let second = tokio::spawn(second.run_until(stop_second.clone()));
    limit(client.create(&config("a"))).await.expect("created");
    assert_eq!(
        limit(heard_first.recv()).await.as_deref(),
        Some("default/a")
    );
    assert_eq!(
        limit(heard_second.recv()).await.as_deref(),
        Some("default/a")
    );
    stop_first.cancel();
    limit(first).await.expect("no panic").expect("it ends well");
    limit(client.create(&config("b"))).await.expect("created");
    assert_eq!(
        limit(heard_second.recv()).await.as_deref(),
        Some("default/b")
    );
    stop_second.cancel();
    limit(second)
        .await
        .expect("no panic")
        .expect("it ends well");
    let gone = limit(client.get::<ConfigMap>(&Key::new("default", "a"))).await;
    let stopped = gone.is_err() || client.factory().is_empty();
    assert!(stopped, "the last one stopped the informers: {gone:?}");
}

#[limited::test(start_paused = true)]
async fn shutdown_has_one_deadline_for_all_of_it() {
    let (server, _) = server().await;
    let wire = Wire::new(server.service());
    let deaf = |_: CancellationToken| std::future::pending::<Result<(), Error>>();
    let lease = LeaseOptions::new("default", "lease", "me");
    let manager = Manager::new(wire.client())
        .leader_election(lease)
        .runnable(Task::new("deaf", deaf));
    let elected = manager.elected();
    let stop = CancellationToken::new();
    let run = tokio::spawn(manager.run_until(stop.clone()));
    limit(elected).await;
    wire.plan(|_| Fault::Silence);
    stop.cancel();
    let start = Instant::now();
    let ended = limit(run).await.expect("no panic");
    let error = ended.expect_err("one is late, or the lease is lost");
    assert!(
        start.elapsed() <= Duration::from_secs(30),
        "{:?}",
        start.elapsed()
    );
    // Without an answer the lease is lost before the shutdown is over.
    assert!(matches!(error, ManagerError::LeadershipLost), "{error}");
}

/// The work ends in time, and then the server does not answer any more.
#[limited::test(start_paused = true)]
async fn lease_that_cannot_be_released_has_no_time_beyond_the_shutdown() {
    let (server, _) = server().await;
    let wire = Wire::new(server.service());
    let line = wire.clone();
    let slow = |stop: CancellationToken| async move {
        stop.cancelled().await;
        tokio::time::sleep(Duration::from_secs(22)).await;
        line.plan(|_| Fault::Silence);
        Ok(())
    };
    let manager = Manager::new(wire.client())
        .leader_election(LeaseOptions::new("default", "lease", "me"))
        .runnable(Task::new("slow", slow));
    let elected = manager.elected();
    let stop = CancellationToken::new();
    let run = tokio::spawn(manager.run_until(stop.clone()));
    limit(elected).await;
    stop.cancel();
    let start = Instant::now();
    let ended = limit(run).await.expect("no panic");
    let took = start.elapsed();
    assert!(took > Duration::from_secs(22), "{took:?}: {ended:?}");
    assert!(took <= Duration::from_secs(30), "{took:?}: {ended:?}");
}

#[limited::test(start_paused = true)]
async fn elected_completes_at_once_without_an_election_and_else_when_it_is_won() {
    let (_server, kube) = server().await;
    let alone = Manager::new(kube.clone());
    let elected = alone.elected();
    let run = tokio::spawn(alone.run_until(CancellationToken::new()));
    limit(elected).await;
    run.abort();

    let lease = |who: &str| LeaseOptions::new("default", "lease", who);
    let leader = Manager::new(kube.clone()).leader_election(lease("leader"));
    let (leads, stop) = (leader.elected(), CancellationToken::new());
    let leader = tokio::spawn(leader.run_until(stop.clone()));
    limit(leads).await;
    let standby = Manager::new(kube).leader_election(lease("standby"));
    let elected = standby.elected();
    let standby = tokio::spawn(standby.run_until(CancellationToken::new()));
    let elected = tokio::spawn(elected);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!elected.is_finished(), "somebody else leads");
    stop.cancel();
    limit(leader)
        .await
        .expect("no panic")
        .expect("it ends well");
    limit(elected).await.expect("no panic");
    standby.abort();
}

fn no_zone<T>() -> T {
    panic!("no zone")
}

/// Watches of Secrets whose functions panic, by what they are.
fn careless_watches() -> [(&'static str, Watch<Secret>); 3] {
    let map = |_: &Secret, _: &Client| no_zone::<Vec<Key>>();
    let handle = |_: &Event<Secret>, queue: &EventQueue<'_>| queue.add(no_zone());
    [
        ("mapper", Watch::of::<Secret>().map(map)),
        (
            "predicate",
            Watch::of::<Secret>().when(Predicate::new(|_| no_zone())),
        ),
        ("handler", Watch::of::<Secret>().handler(handle)),
    ]
}

/// A panic of these would lose the event, and its owner would not be reconciled until something else happens.
#[limited::test(start_paused = true)]
async fn function_of_a_watch_that_panics_ends_the_manager_with_controller_and_watch() {
    for (what, watch) in careless_watches() {
        let (_server, kube) = server().await;
        let reconciler = from_fn(|_: Arc<ConfigMap>, _| async { Ok(Outcome::done()) });
        let controller = Controller::of::<ConfigMap>("zones")
            .watches(watch)
            .reconciler(reconciler);
        let handle = controller.handle();
        let metrics = Metrics::new();
        let manager = Manager::new(kube.clone()).with_metrics(metrics.clone());
        let run = tokio::spawn(failure(manager.controller(controller)));
        until("it runs", async || handle.is_warm().then_some(())).await;
        let mut secret = Secret::default();
        secret.metadata.name = Some("a".to_owned());
        secret.metadata.namespace = Some("default".to_owned());
        let created = limit(Client::new(kube).create(&secret)).await;
        created.expect("created");
        let error = limit(run).await.expect("no panic");
        assert_eq!(
            error,
            "controller zones failed: controller zones: the watch of secrets panicked while it handled default/a: no zone",
            "{what}"
        );
        let counted = "kubewright_handler_panics_total{controller=\"zones\"} 1";
        assert!(metrics.render().contains(counted), "{what}");
    }
}

/// What was there before counts as well, while the controller waits for its first state or for leadership.
#[limited::test(start_paused = true)]
async fn event_filter_that_panics_over_the_first_state_ends_the_manager() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    limit(client.create(&config("a"))).await.expect("created");
    let leader =
        Manager::new(kube.clone()).leader_election(LeaseOptions::new("default", "lease", "other"));
    let (elected, stop) = (leader.elected(), CancellationToken::new());
    let leader = tokio::spawn(leader.run_until(stop.clone()));
    limit(elected).await;
    let reconciler = from_fn(|_: Arc<ConfigMap>, _| async { Ok(Outcome::done()) });
    let controller = Controller::of::<ConfigMap>("filters")
        .scope(here())
        .event_filter(|_| no_zone())
        .reconciler(reconciler);
    let standby = Manager::new(kube)
        .leader_election(LeaseOptions::new("default", "lease", "me"))
        .controller(controller);
    assert_eq!(
        failure(standby).await,
        "controller filters failed: controller filters: the watch of configmaps panicked while it handled default/a: no zone"
    );
    stop.cancel();
    let ended = limit(leader).await.expect("no panic");
    ended.expect("it ends well");
}

/// The whole shutdown has half a minute; a part that is known to be quick need not have all of it.
#[limited::test(start_paused = true)]
async fn task_that_is_late_by_its_own_deadline_is_dropped_and_named() {
    let (_server, kube) = server().await;
    let (controller, _heard) = telling("fine");
    let deaf = |_: CancellationToken| std::future::pending::<Result<(), Error>>();
    let slow = |stop: CancellationToken| async move {
        stop.cancelled().await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(())
    };
    let manager = Manager::new(kube)
        .controller(controller)
        .runnable(Task::new("the poller", deaf).stop_within(Duration::from_secs(2)))
        .runnable(Task::new("the importer", slow).stop_within(Duration::from_secs(10)));
    let (elected, stop) = (manager.elected(), CancellationToken::new());
    let run = tokio::spawn(manager.run_until(stop.clone()));
    limit(elected).await;
    // Before it is asked to stop, no time counts.
    tokio::time::sleep(Duration::from_secs(60)).await;
    stop.cancel();
    let start = Instant::now();
    let ended = limit(run).await.expect("no panic");
    let error = ended.expect_err("one is late").to_string();
    assert_eq!(error, "the poller did not stop in time");
    assert_eq!(start.elapsed().as_secs(), 5, "the other one had its time");
}
