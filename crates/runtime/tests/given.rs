//! What a manager is given: state for its reconcilers, a recorder, pages; and the metrics that it serves.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kubewright_runtime::events::{EventApi, RecorderOptions};
use kubewright_runtime::manager::Task;
use kubewright_runtime::serving::Listener;
use kubewright_runtime::{
    CancellationToken, Client, Context, Controller, Error, EventKind, Manager, Outcome, Query,
    Reconciler, from_fn,
};
use kubewright_server::Server;
use kubewright_testing::{limit, until};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A client of another system, as reconcilers are given one.
struct Prefix(&'static str);

/// Not given to any manager.
struct Missing;

struct Greeter;

impl Reconciler<ConfigMap> for Greeter {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Error> {
        let greeted = cx.metrics().counter("greeted_total", "Greetings.", &[])?;
        greeted.with([]).increment();
        let message = format!("{} {}", cx.state::<Prefix>()?.0, cx.key());
        cx.event(&config, EventKind::Normal, "Greeted", message);
        cx.state::<Missing>()?;
        Ok(Outcome::done())
    }
}

struct World {
    _server: Server,
    user: Client,
    stop: CancellationToken,
    running: JoinHandle<Result<(), kubewright_runtime::manager::ManagerError>>,
}

async fn start(adjust: impl FnOnce(Manager) -> Manager) -> (World, Vec<String>) {
    let server = limit(Server::builder().start()).await.expect("a server");
    let client = || kube::Client::new(server.service(), "default");
    let controller = Controller::of::<ConfigMap>("greeter").reconciler(Greeter);
    let handle = controller.handle();
    let manager = adjust(Manager::new(client()).state(Prefix("hello")));
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.controller(controller).run_until(stop.clone()));
    let user = Client::new(client());
    let mut config = ConfigMap::default();
    config.metadata.name = Some("a".to_owned());
    config.metadata.namespace = Some("default".to_owned());
    limit(user.create(&config)).await.expect("created");
    let ended = until("it has run", async || {
        let history = handle.history().list();
        let ended: Vec<String> = history.iter().map(|run| run.ended.to_string()).collect();
        (!ended.is_empty()).then_some(ended)
    })
    .await;
    let world = World {
        _server: server,
        user,
        stop,
        running,
    };
    (world, ended)
}

impl World {
    async fn end(self) {
        self.stop.cancel();
        let ended = limit(self.running).await.expect("no panic");
        ended.expect("it ends well");
    }
}

#[limited::test]
async fn reconcilers_get_the_state_of_their_manager_and_learn_what_is_missing() {
    let (world, ended) = start(|manager| manager).await;
    let [ended] = &ended[..] else {
        panic!("a missing state is terminal: {ended:?}")
    };
    assert!(
        ended.contains("no state of type") && ended.contains("::Missing"),
        "{ended}"
    );
    let message = until("the event is there", async || {
        let events = limit(world.user.live().list::<Event>(Query::all())).await;
        events.expect("an answer").pop()?.message
    })
    .await;
    assert_eq!(message, "hello default/a");
    world.end().await;
}

#[limited::test]
async fn events_are_recorded_as_the_options_say() {
    let options = RecorderOptions::new("greeters").instance("pod-1");
    let (world, _) = start(|manager| manager.name("other").recorder(options)).await;
    let event = until("the event is there", async || {
        let events = limit(world.user.live().list::<Event>(Query::all())).await;
        events.expect("an answer").pop()
    })
    .await;
    assert_eq!(event.reporting_component.as_deref(), Some("greeters"));
    assert_eq!(event.reporting_instance.as_deref(), Some("pod-1"));
    world.end().await;
}

#[limited::test]
async fn events_are_written_to_the_api_that_was_chosen() {
    for (api, in_series) in [(EventApi::Core, false), (EventApi::Events, true)] {
        let options = RecorderOptions::new("greeters").api(api);
        let (world, _) = start(|manager| manager.recorder(options)).await;
        let event = until("the event is there", async || {
            let events = limit(world.user.live().list::<Event>(Query::all())).await;
            events.expect("an answer").pop()
        })
        .await;
        // Those of events.k8s.io have a time of their own, and none of the counts of core.
        let seen = (event.event_time.is_some(), event.first_timestamp.is_none());
        assert_eq!(seen, (in_series, in_series), "{api:?}: {event:?}");
        world.end().await;
    }
}

async fn get(address: std::net::SocketAddr, path: &str) -> String {
    let stream = tokio::net::TcpStream::connect(address);
    let mut stream = limit(stream).await.expect("somebody listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    limit(stream.write_all(request.as_bytes()))
        .await
        .expect("sent");
    let mut answer = String::new();
    limit(stream.read_to_string(&mut answer))
        .await
        .expect("answered");
    answer
}

#[limited::test]
async fn metrics_have_informers_and_own_counters_and_pages_beside_them() {
    let listener = limit(Listener::bind("127.0.0.1:0")).await.expect("bound");
    let listener = listener.expect("an address");
    let address = listener.address().expect("an address");
    let with = |manager: Manager| {
        let manager = manager.page("/debug/weather", || json!({"sunny": true}));
        manager.serve_metrics_on(listener, None)
    };
    let (world, _) = start(with).await;
    let metrics = get(address, "/metrics").await;
    for line in ["greeted_total 1", "informer_objects"] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    let page = get(address, "/debug/weather").await;
    assert!(
        page.starts_with("HTTP/1.1 200") && page.ends_with(r#"{"sunny":true}"#),
        "{page}"
    );
    world.end().await;
}

#[limited::test]
async fn recorder_outside_of_reconciles_has_its_own_name_and_is_flushed_at_the_end() {
    let server = limit(Server::builder().start()).await.expect("a server");
    let client = || kube::Client::new(server.service(), "default");
    let user = Client::new(client());
    let mut config = ConfigMap::default();
    config.metadata.name = Some("a".to_owned());
    config.metadata.namespace = Some("default".to_owned());
    let config = limit(user.create(&config)).await.expect("created");

    let manager = Manager::new(client());
    let recorder = manager.recorder_for("janitor");
    recorder.about(&config, EventKind::Normal, "Found", "before it runs");
    let parting = recorder.clone();
    let janitor = Task::new("janitor", move |stop| async move {
        stop.cancelled().await;
        parting.about(&config, EventKind::Normal, "Left", "at the end");
        Ok(())
    });
    let manager = manager.name("operator").runnable(janitor);
    let (elected, stop) = (manager.elected(), CancellationToken::new());
    let running = tokio::spawn(manager.run_until(stop.clone()));
    limit(elected).await;
    stop.cancel();
    let ended = limit(running).await.expect("no panic");
    ended.expect("it ends well");

    let events = limit(user.live().list::<Event>(Query::all())).await;
    let seen = |event: Event| (event.reason, event.reporting_component);
    let mut seen: Vec<_> = events.expect("listed").into_iter().map(seen).collect();
    seen.sort();
    let by_janitor = |reason: &str| (Some(reason.to_owned()), Some("janitor".to_owned()));
    assert_eq!(seen, [by_janitor("Found"), by_janitor("Left")]);
    assert_eq!(recorder.dropped(), 0);
}

#[limited::test(start_paused = true)]
async fn task_of_a_reconcile_ends_when_the_manager_cannot_wait_any_longer() {
    let server = limit(Server::builder().start()).await.expect("a server");
    let client = || kube::Client::new(server.service(), "default");
    let (sender, mut heard) = mpsc::channel(16);
    let reconciler = from_fn(move |_: Arc<ConfigMap>, cx: Context| {
        // One that a reconcile cancels is nobody else's.
        cx.cancellation().cancel();
        let (token, sender) = (cx.cancellation(), sender.clone());
        let _ = sender.try_send("begun");
        tokio::spawn(async move {
            token.cancelled().await;
            let _ = sender.try_send("ended");
        });
        std::future::pending::<Result<Outcome, Error>>()
    });
    let controller = Controller::of::<ConfigMap>("endless").reconciler(reconciler);
    let manager = Manager::new(client()).shutdown_timeout(Duration::from_secs(8));
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.controller(controller).run_until(stop.clone()));
    let mut config = ConfigMap::default();
    config.metadata.name = Some("a".to_owned());
    config.metadata.namespace = Some("default".to_owned());
    let created = limit(Client::new(client()).create(&config)).await;
    created.expect("created");
    assert_eq!(limit(heard.recv()).await, Some("begun"));
    stop.cancel();
    // A reconcile may finish in three quarters of the shutdown.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(heard.try_recv().is_err(), "it may go on");
    assert_eq!(limit(heard.recv()).await, Some("ended"));
    let ended = limit(running).await.expect("no panic");
    ended.expect_err("the reconcile is late");
}

#[limited::test]
async fn clients_of_a_manager_have_its_state_in_every_cluster() {
    let server = limit(Server::builder().start()).await.expect("a server");
    let kube = || kube::Client::new(server.service(), "default");
    let manager = Manager::new(kube()).state(Prefix("hello"));
    let here = manager.client();
    assert_eq!(here.state::<Prefix>().expect("it is given").0, "hello");
    let missing = here.state::<Missing>().err().expect("it is not given");
    assert!(missing.is_terminal(), "{missing:?}");

    let here = manager.cluster("edge", Client::new(kube())).client();
    let edge = here.cluster("edge").expect("it is known");
    for client in [
        &edge,
        &edge.home(),
        &here.dry_run(),
        &here.with_kube(kube()),
    ] {
        assert_eq!(client.state::<Prefix>().expect("it is given").0, "hello");
    }
    assert!(Client::new(kube()).state::<Prefix>().is_err());
}
