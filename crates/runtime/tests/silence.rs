//! A server that accepts requests and never answers, at every place where the runtime calls one: it goes on, or ends in time
//! with a cause that names the place. And a server that is busy and says for how long.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::client::RequestPolicy;
use kubewright_runtime::manager::ManagerError;
use kubewright_runtime::{
    Client, Context, Controller, Error, EventKind, Key, LeaseOptions, Manager, Outcome, from_fn,
};
use kubewright_server::Server;
use kubewright_testing::{Break, Call, Fault, Verb, Wire, limit};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const SILENT: [Fault; 3] = [Fault::Silence, Fault::SilentAnswer, Fault::Stall];

async fn wire() -> (Server, Wire) {
    let server = limit(Server::builder().start()).await.expect("a server");
    let wire = Wire::new(server.service());
    (server, wire)
}

fn config(name: &str) -> ConfigMap {
    let mut config = ConfigMap::default();
    config.metadata.name = Some(name.to_owned());
    config.metadata.namespace = Some("default".to_owned());
    config
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

/// Nothing but this verb suffers.
fn only(verb: Verb, fault: Fault) -> impl Fn(&Call) -> Fault + Send + Sync + 'static {
    move |call| {
        if call.verb == verb {
            fault.clone()
        } else {
            Fault::None
        }
    }
}

#[limited::test(start_paused = true)]
async fn read_that_is_never_answered_ends_with_its_name() {
    let (_server, wire) = wire().await;
    let client = Client::new(wire.client());
    limit(client.create(&config("a"))).await.expect("created");
    for fault in SILENT {
        wire.plan(only(Verb::Get, fault));
        let start = Instant::now();
        let answer = limit(client.live().get::<ConfigMap>(&key("a"))).await;
        let error = answer.expect_err("nobody answers");
        assert!(error.is_timeout());
        assert_eq!(
            error.to_string(),
            "cannot get configmaps default/a: no answer within 30s"
        );
        assert!(start.elapsed() <= Duration::from_secs(31));
    }
}

#[limited::test(start_paused = true)]
async fn read_that_is_never_answered_ends_in_the_time_that_was_set() {
    let (_server, wire) = wire().await;
    let policy = RequestPolicy::new().read_timeout(Duration::from_secs(5));
    let client = Client::builder(wire.client()).requests(policy).build();
    wire.plan(only(Verb::Get, Fault::Silence));
    let start = Instant::now();
    let answer = limit(client.live().get::<ConfigMap>(&key("a"))).await;
    let error = answer.expect_err("nobody answers").to_string();
    assert_eq!(
        error,
        "cannot get configmaps default/a: no answer within 5s"
    );
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[limited::test(start_paused = true)]
async fn limits_of_a_manager_are_those_of_its_reads_writes_and_informers() {
    let (_server, wire) = wire().await;
    let policy = RequestPolicy::new().read_timeout(Duration::from_secs(5));
    let policy = policy.write_timeout(Duration::from_secs(7));
    let manager = Manager::new(wire.client()).requests(policy.silence(Duration::from_secs(3)));
    let client = manager.client();
    wire.plan(|call| match call.verb {
        Verb::Get | Verb::Create => Fault::Silence,
        Verb::Watch if call.number == 1 => Fault::Silence,
        _ => Fault::None,
    });
    let start = Instant::now();
    let answer = limit(client.live().get::<ConfigMap>(&key("a"))).await;
    assert!(answer.expect_err("nobody answers").is_timeout());
    assert_eq!(start.elapsed().as_secs(), 5);
    let answer = limit(client.create(&config("a"))).await;
    assert!(answer.expect_err("nobody answers").is_timeout());
    assert_eq!(start.elapsed().as_secs(), 5 + 7);
    let start = Instant::now();
    let read = limit(client.get::<ConfigMap>(&key("b"))).await;
    assert!(read.expect("the second watch is answered").is_none());
    let took = start.elapsed();
    assert!(
        took >= Duration::from_secs(3) && took < Duration::from_secs(30),
        "{took:?}"
    );
}

#[limited::test(start_paused = true)]
async fn write_that_is_never_answered_ends_with_its_name_and_in_the_time_that_was_set() {
    let (_server, wire) = wire().await;
    let policy = RequestPolicy::new().write_timeout(Duration::from_secs(7));
    let client = Client::builder(wire.client()).requests(policy).build();
    for (name, fault) in ["a", "b", "c"].into_iter().zip(SILENT) {
        wire.plan(only(Verb::Create, fault));
        let start = Instant::now();
        let answer = limit(client.create(&config(name))).await;
        assert_eq!(
            answer.expect_err("nobody answers").to_string(),
            format!("cannot create configmaps default/{name}: no answer within 7s")
        );
        assert!(start.elapsed() <= Duration::from_secs(8));
    }
}

#[limited::test(start_paused = true)]
async fn busy_server_is_asked_again_when_it_says_and_not_beyond_the_limit() {
    let (_server, wire) = wire().await;
    let client = Client::new(wire.client());
    let busy = Fault::Refuse {
        code: 429,
        reason: "TooManyRequests",
    };
    let twice = busy.clone();
    wire.plan(move |call| match call.number {
        1 | 2 if call.verb == Verb::Create => twice.clone(),
        _ => Fault::None,
    });
    let start = Instant::now();
    limit(client.create(&config("a"))).await.expect("created");
    assert_eq!(start.elapsed().as_secs(), 2, "one second for each refusal");
    wire.plan(only(Verb::Create, busy));
    let impatient = RequestPolicy::new().write_timeout(Duration::from_millis(3_500));
    let client = Client::builder(wire.client()).requests(impatient).build();
    let refused = limit(client.create(&config("b"))).await;
    let error = refused.expect_err("it is busy for ever");
    assert_eq!(error.code(), Some(429), "the server's own answer: {error}");
    assert_eq!(wire.count(Verb::Create), 3 + 4);
}

#[limited::test(start_paused = true)]
async fn list_that_stops_at_or_in_a_page_is_read_again() {
    for fault in SILENT {
        let (_server, wire) = wire().await;
        let user = Client::new(wire.client());
        limit(user.create(&config("a"))).await.expect("created");
        let stalls = fault.clone();
        wire.plan(move |call| match call.verb {
            // No stream of the initial state, so that it is listed.
            Verb::Watch if call.query.contains("sendInitialEvents") => Fault::Refuse {
                code: 400,
                reason: "BadRequest",
            },
            Verb::List if call.number <= 2 => stalls.clone(),
            _ => Fault::None,
        });
        let client = Client::new(wire.client());
        let start = Instant::now();
        let read = limit(client.get::<ConfigMap>(&key("a"))).await;
        let read = read.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert!(read.is_some(), "{fault:?}");
        assert!(
            start.elapsed() < Duration::from_secs(70),
            "{:?}",
            start.elapsed()
        );
        assert_eq!(wire.count(Verb::List), 3, "{fault:?}");
    }
}

#[limited::test(start_paused = true)]
async fn watch_that_is_never_opened_is_opened_again() {
    for fault in SILENT {
        let (_server, wire) = wire().await;
        let user = Client::new(wire.client());
        limit(user.create(&config("a"))).await.expect("created");
        let silent = fault.clone();
        wire.plan(move |call| match call.verb {
            Verb::Watch if call.number <= 2 => silent.clone(),
            _ => Fault::None,
        });
        let client = Client::new(wire.client());
        let read = limit(client.get::<ConfigMap>(&key("a"))).await;
        assert!(read.expect("it is read").is_some(), "{fault:?}");
    }
}

#[limited::test(start_paused = true)]
async fn watch_that_falls_silent_is_noticed_within_its_time() {
    let (server, wire) = wire().await;
    let client = Client::new(wire.client());
    let none = limit(client.get::<ConfigMap>(&key("a"))).await;
    assert!(none.expect("it is read").is_none());
    wire.break_watches(Break::Silence);
    tokio::task::yield_now().await;
    let other = Client::new(kube::Client::new(server.service(), "default"));
    limit(other.create(&config("a"))).await.expect("created");
    let start = Instant::now();
    let appears = kubewright_testing::within(Duration::from_secs(700), async || {
        let read = limit(client.get::<ConfigMap>(&key("a"))).await;
        read.expect("it is read")
    });
    assert!(appears.await.is_some(), "{:?}", wire.calls());
    assert!(start.elapsed() > Duration::from_secs(60), "it was silent");
}

/// A manager with a controller that does this to each object.
fn manager<F>(
    wire: &Wire,
    reconcile: impl Fn(Arc<ConfigMap>, Context) -> F + Send + Sync + 'static,
) -> Manager
where
    F: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    let controller = Controller::of::<ConfigMap>("touch")
        .scope(kubewright_runtime::Scope::all().namespace("default"))
        .reconciler(from_fn(reconcile));
    Manager::new(wire.client()).controller(controller)
}

#[limited::test(start_paused = true)]
async fn lease_that_cannot_be_renewed_ends_the_manager_at_the_deadline() {
    for fault in SILENT {
        let (_server, wire) = wire().await;
        let lease = LeaseOptions::new("default", "lease", "me");
        let manager = manager(&wire, |_, _| async { Ok(Outcome::done()) }).leader_election(lease);
        let run = tokio::spawn(manager.run_until(CancellationToken::new()));
        let leads = || wire.count(Verb::Update) > 0;
        kubewright_testing::until("a renewal", async || leads().then_some(())).await;
        let silent = fault.clone();
        wire.plan(move |call| {
            if call.path.contains("/leases") {
                silent.clone()
            } else {
                Fault::None
            }
        });
        let start = Instant::now();
        let ended = limit(run).await.expect("no panic");
        assert!(
            matches!(ended, Err(ManagerError::LeadershipLost)),
            "{ended:?}"
        );
        assert!(
            start.elapsed() < Duration::from_secs(15),
            "before another may lead: {:?}",
            start.elapsed()
        );
    }
}

#[limited::test(start_paused = true)]
async fn events_that_are_never_answered_hold_up_neither_reconciles_nor_the_end() {
    for fault in SILENT {
        let (_server, wire) = wire().await;
        let (sender, mut heard) = mpsc::channel(16);
        let manager = manager(&wire, move |config, cx| {
            cx.event(&*config, EventKind::Normal, "Touched", "it was touched");
            // The test may be over.
            let _ = sender.try_send(());
            async { Ok(Outcome::done()) }
        });
        let client = manager.client();
        wire.plan(move |call| {
            if call.path.contains("/events") {
                fault.clone()
            } else {
                Fault::None
            }
        });
        let stop = CancellationToken::new();
        let run = tokio::spawn(manager.run_until(stop.clone()));
        for name in ["a", "b"] {
            limit(client.create(&config(name))).await.expect("created");
            limit(heard.recv()).await.expect("it is reconciled");
        }
        let start = Instant::now();
        stop.cancel();
        limit(run).await.expect("no panic").expect("it ends well");
        assert!(
            start.elapsed() <= Duration::from_secs(30),
            "{:?}",
            start.elapsed()
        );
    }
}

#[limited::test(start_paused = true)]
async fn reconcile_that_never_ends_is_dropped_after_five_minutes_and_tried_again() {
    let (_server, wire) = wire().await;
    let (sender, mut heard) = mpsc::channel(16);
    let manager = manager(&wire, move |_, cx| {
        // The test may be over.
        let _ = sender.try_send((cx.attempt(), Instant::now()));
        std::future::pending()
    });
    let client = manager.client();
    limit(client.create(&config("a"))).await.expect("created");
    let run = tokio::spawn(manager.run_until(CancellationToken::new()));
    let (first, at) = limit(heard.recv()).await.expect("it runs");
    let (second, again) = limit(heard.recv()).await.expect("it runs again");
    assert_eq!((first, second), (0, 1));
    assert_eq!((again - at).as_secs(), 300);
    run.abort();
}
