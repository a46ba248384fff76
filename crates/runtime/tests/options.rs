//! Options of controllers, managers and clients, each seen at work.

#[path = "options/clients.rs"]
mod clients;
#[path = "options/dynamic.rs"]
mod dynamic;
#[path = "options/live.rs"]
mod live;
#[path = "options/serving.rs"]
mod serving;
#[path = "options/warnings.rs"]
mod warnings;
#[path = "options/watches.rs"]
mod watches;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, ServiceAccount};
use kube::api::Patch;
use kubewright_runtime::controller::{Leadership, WarmUp};
use kubewright_runtime::lease::OnStop;
use kubewright_runtime::serving::{AccessGuard, Listener};
use kubewright_runtime::{
    Client, Context, Controller, Error, EventKind, Key, LeaseOptions, Manager, Outcome, Query,
    Scope, from_fn,
};
use kubewright_server::{Server, Tokens, User};
use kubewright_testing::{Verb, Wire, limit};
use kubewright_workqueue::RateLimiter;
use kubewright_workqueue::limiter::Retry;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
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

fn deployment(name: &str) -> Deployment {
    let deployment = json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    });
    serde_json::from_value(deployment).expect("a deployment")
}

fn here() -> Scope {
    Scope::all().namespace("default")
}

fn lease(who: &str) -> LeaseOptions {
    LeaseOptions::new("default", "lease", who)
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
        let ended = limit(self.task).await.expect("no panic");
        ended.expect("the manager ends well");
    }
}

/// Another process that leads, and does nothing with it.
async fn leader(kube: kube::Client) -> Running {
    let leader = Manager::new(kube).leader_election(lease("leader"));
    let elected = leader.elected();
    let running = run(leader);
    limit(elected).await;
    running
}

/// Tells what it is called at each reconcile.
fn telling(
    name: &'static str,
    sender: &mpsc::Sender<&'static str>,
) -> impl kubewright_runtime::Reconciler<ConfigMap> + use<> {
    let sender = sender.clone();
    from_fn(move |_: Arc<ConfigMap>, _: Context| {
        // The test may be over.
        let _ = sender.try_send(name);
        async { Ok(Outcome::done()) }
    })
}

#[limited::test(start_paused = true)]
async fn controller_that_needs_no_leadership_runs_on_a_standby() {
    let (_server, kube) = server().await;
    let leader = leader(kube.clone()).await;
    let (sender, mut heard) = mpsc::channel(16);
    let everywhere = Controller::of::<ConfigMap>("everywhere")
        .scope(here())
        .leadership(Leadership::NotNeeded)
        .reconciler(telling("everywhere", &sender));
    let once = Controller::of::<ConfigMap>("once")
        .scope(here())
        .leadership(Leadership::Required)
        .reconciler(telling("once", &sender));
    let standby = Manager::new(kube)
        .leader_election(lease("standby"))
        .controller(everywhere)
        .controller(once);
    let client = standby.client();
    let standby = run(standby);
    limit(client.create(&config("a"))).await.expect("created");
    assert_eq!(limit(heard.recv()).await, Some("everywhere"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(heard.try_recv().is_err(), "the other one waits");
    leader.end().await;
    assert_eq!(limit(heard.recv()).await, Some("once"));
    standby.end().await;
}

#[limited::test(start_paused = true)]
async fn standby_warms_up_before_or_on_leadership() {
    for warm_up in [WarmUp::BeforeLeadership, WarmUp::OnLeadership] {
        let (server, kube) = server().await;
        let leader = leader(kube).await;
        let wire = Wire::new(server.service());
        let (sender, mut heard) = mpsc::channel(16);
        let controller = Controller::of::<ConfigMap>("warm")
            .scope(here())
            .warm_up(warm_up)
            .reconciler(telling("warm", &sender));
        let handle = controller.handle();
        let standby = Manager::new(wire.client())
            .leader_election(lease("standby"))
            .controller(controller);
        let client = standby.client();
        let standby = run(standby);
        limit(client.create(&config("a"))).await.expect("created");
        tokio::time::sleep(Duration::from_secs(60)).await;
        let warm = warm_up == WarmUp::BeforeLeadership;
        assert_eq!(handle.is_warm(), warm, "{warm_up:?}");
        assert_eq!(wire.count(Verb::Watch) > 0, warm, "{warm_up:?}");
        assert!(heard.try_recv().is_err(), "nothing runs on a standby");
        leader.end().await;
        assert_eq!(limit(heard.recv()).await, Some("warm"), "{warm_up:?}");
        standby.end().await;
    }
}

#[limited::test(start_paused = true)]
async fn lease_is_kept_at_the_end_where_that_is_asked_for() {
    for (on_stop, holder) in [(OnStop::Keep, Some("me")), (OnStop::Release, None)] {
        let (_server, kube) = server().await;
        let client = Client::new(kube.clone());
        let manager = Manager::new(kube).leader_election(lease("me").on_stop(on_stop));
        let elected = manager.elected();
        let running = run(manager);
        limit(elected).await;
        running.end().await;
        let key = Key::new("default", "lease");
        let left = limit(client.live().get::<Lease>(&key)).await;
        let left = left.expect("it is read").expect("it is there");
        let left = left.spec.and_then(|spec| spec.holder_identity);
        let left = left.filter(|identity| !identity.is_empty());
        assert_eq!(left.as_deref(), holder, "{on_stop:?}");
    }
}

#[limited::test(start_paused = true)]
async fn lease_has_the_labels_that_were_asked_for() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    let manager = Manager::new(kube).leader_election(lease("me").label("team", "red"));
    let elected = manager.elected();
    let running = run(manager);
    limit(elected).await;
    let found = limit(client.live().get::<Lease>(&Key::new("default", "lease"))).await;
    let found = found.expect("it is read").expect("it is there");
    let labels = BTreeMap::from([("team".to_owned(), "red".to_owned())]);
    assert_eq!(found.metadata.labels, Some(labels));
    running.end().await;
}

/// Every retry waits for seven seconds.
struct Seven;

impl RateLimiter<Key> for Seven {
    fn delay(&mut self, _: &Retry<'_, Key>) -> Duration {
        Duration::from_secs(7)
    }
}

#[limited::test(start_paused = true)]
async fn rate_limiter_says_how_long_a_failed_key_waits() {
    let (_server, kube) = server().await;
    let (sender, mut heard) = mpsc::channel(16);
    let fails = from_fn(move |_: Arc<ConfigMap>, _| {
        // The test may be over.
        let _ = sender.try_send(Instant::now());
        async { Err(Error::msg("not yet")) }
    });
    let controller = Controller::of::<ConfigMap>("seven")
        .scope(here())
        .rate_limiter(Seven)
        .reconciler(fails);
    let manager = Manager::new(kube);
    let client = manager.client();
    let running = run(manager.controller(controller));
    limit(client.create(&config("a"))).await.expect("created");
    let first = limit(heard.recv()).await.expect("it runs");
    let second = limit(heard.recv()).await.expect("it runs again");
    assert_eq!((second - first).as_secs(), 7);
    running.end().await;
}

#[limited::test(start_paused = true)]
async fn as_many_reconciles_run_at_once_as_there_are_workers() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    for name in ["a", "b", "c", "d", "e"] {
        limit(client.create(&config(name))).await.expect("created");
    }
    let (at_once, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (sender, mut heard) = mpsc::channel(16);
    let counted = most.clone();
    let slow = from_fn(move |_: Arc<ConfigMap>, _| {
        let (at_once, most, sender) = (at_once.clone(), most.clone(), sender.clone());
        async move {
            let now = at_once.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(5)).await;
            at_once.fetch_sub(1, Ordering::SeqCst);
            // The test may be over.
            let _ = sender.try_send(());
            Ok(Outcome::done())
        }
    });
    let controller = Controller::of::<ConfigMap>("three")
        .scope(here())
        .workers(3)
        .reconciler(slow);
    let running = run(Manager::new(kube).controller(controller));
    for _ in 0..5 {
        limit(heard.recv()).await.expect("all run");
    }
    assert_eq!(counted.load(Ordering::SeqCst), 3);
    running.end().await;
}

async fn get(address: std::net::SocketAddr, path: &str, token: &str) -> String {
    let stream = limit(tokio::net::TcpStream::connect(address)).await;
    let mut stream = stream.expect("somebody listens");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    let sent = limit(stream.write_all(request.as_bytes())).await;
    sent.expect("it is sent");
    let mut answer = String::new();
    let read = limit(stream.read_to_string(&mut answer)).await;
    read.expect("it is text");
    answer
}

#[limited::test]
async fn metrics_are_for_those_that_the_guard_lets_pass() {
    let mut tokens = Tokens::default();
    tokens.insert("good", User::new("reader", ["readers"]));
    let server = limit(Server::builder().tokens(tokens).start()).await;
    let server = server.expect("a server");
    let kube = kube::Client::new(server.service(), "default");
    let bound = limit(Listener::bind("127.0.0.1:0")).await;
    let listener = bound.expect("it is free").expect("it is served");
    let address = listener.address().expect("it is bound");
    let guard = AccessGuard::new(kube.clone());
    let (sender, mut heard) = mpsc::channel(16);
    let controller = Controller::of::<ConfigMap>("seen")
        .scope(here())
        .reconciler(telling("seen", &sender));
    let manager = Manager::new(kube)
        .serve_metrics_on(listener, Some(guard))
        .controller(controller);
    let client = manager.client();
    let running = run(manager);
    limit(client.create(&config("a"))).await.expect("created");
    limit(heard.recv()).await.expect("it runs");
    let refused = get(address, "/metrics", "bad").await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let served = get(address, "/metrics", "good").await;
    assert!(served.starts_with("HTTP/1.1 200"), "{served}");
    let line = r#"workqueue_adds_total{name="seen"}"#;
    assert!(served.contains(line), "{served}");
    running.end().await;
}

/// Who manages fields of an object.
fn managers(meta: &kube::core::ObjectMeta) -> Vec<String> {
    let fields = meta.managed_fields.iter().flatten();
    let mut managers: Vec<String> = fields.filter_map(|field| field.manager.clone()).collect();
    managers.dedup();
    managers
}

#[limited::test(start_paused = true)]
async fn everything_is_written_under_the_name_of_the_operator() {
    let (_server, kube) = server().await;
    let user = Client::new(kube.clone()).field_owner("somebody");
    let writes = from_fn(move |config: Arc<ConfigMap>, cx: Context| async move {
        cx.event(&*config, EventKind::Normal, "Seen", "it was seen");
        let mut applied = ConfigMap::default();
        applied.metadata.name = Some("applied".to_owned());
        applied.metadata.namespace = Some("default".to_owned());
        applied.immutable = Some(false);
        cx.client().apply(&applied).await?;
        let mark = |config: &mut ConfigMap| config.immutable = Some(false);
        cx.client().modify(&*config, mark).await?;
        Ok(Outcome::done())
    });
    let controller = Controller::of::<ConfigMap>("writes")
        .scope(here())
        .reconciler(writes);
    let manager = Manager::new(kube)
        .name("guestbook-operator")
        .leader_election(lease("me"))
        .controller(controller);
    let mut theirs = config("a");
    theirs.data = Some(BTreeMap::from([("a".to_owned(), "1".to_owned())]));
    limit(user.create(&theirs)).await.expect("created");
    let running = run(manager);
    let written = async || {
        let events = user.live().list::<Event>(Query::all()).await;
        let event = events.expect("they are read").into_iter().next()?;
        let key = |name| Key::new("default", name);
        let get = async |name| {
            user.live()
                .get::<ConfigMap>(&key(name))
                .await
                .expect("read")
        };
        let (a, applied) = (get("a").await?, get("applied").await?);
        let lease = user.live().get::<Lease>(&key("lease")).await;
        let lease = lease.expect("it is read")?;
        a.immutable?;
        Some([a.metadata, applied.metadata, lease.metadata, event.metadata])
    };
    let written = kubewright_testing::until("all is written", written).await;
    for meta in written {
        let managers = managers(&meta);
        assert!(
            managers.contains(&"guestbook-operator".to_owned()),
            "{:?}: {managers:?}",
            meta.name
        );
    }
    running.end().await;
}

#[limited::test]
async fn subresources_are_read_and_written_by_name() {
    let (_server, kube) = server().await;
    let client = Client::new(kube).field_owner("scaler");
    let deployments = client.of::<Deployment>();
    let made = limit(client.create(&deployment("d")))
        .await
        .expect("created");
    assert_eq!(managers(&made.metadata), ["scaler"]);
    let key = Key::new("default", "d");

    let mut scale: Value = limit(deployments.get_subresource(&key, "scale"))
        .await
        .expect("read");
    scale["spec"]["replicas"] = 3.into();
    let scaled = limit(deployments.update_subresource(&key, "scale", &scale)).await;
    assert_eq!(scaled.expect("scaled")["spec"]["replicas"], 3);

    let patch = Patch::Merge(json!({"status": {"replicas": 3}}));
    let patched = limit(deployments.patch_subresource(&key, "status", &patch)).await;
    let patched = patched.expect("patched");
    assert_eq!(
        patched.status.as_ref().and_then(|status| status.replicas),
        Some(3)
    );

    let ready = |d: &mut Deployment| d.status.get_or_insert_default().ready_replicas = Some(2);
    let modified = limit(client.modify_status(&patched, ready))
        .await
        .expect("changed");
    assert_eq!(
        modified
            .into_object()
            .status
            .and_then(|status| status.ready_replicas),
        Some(2)
    );

    let applied = json!({"metadata": {"name": "d", "namespace": "default"},
        "spec": {"selector": {}, "template": {}}, "status": {"availableReplicas": 1}});
    let applied: Deployment = serde_json::from_value(applied).expect("a deployment");
    let applied = limit(deployments.apply_status(&applied))
        .await
        .expect("applied");
    assert_eq!(
        applied.status.and_then(|status| status.available_replicas),
        Some(1)
    );

    let account = json!({"metadata": {"name": "s", "namespace": "default"}});
    let account: ServiceAccount = serde_json::from_value(account).expect("an account");
    limit(client.create(&account)).await.expect("created");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "metadata": {}, "spec": {"audiences": []}});
    let accounts = client.of::<ServiceAccount>();
    let key = Key::new("default", "s");
    let token = limit(accounts.create_subresource::<Value>(&key, "token", &request)).await;
    let token = token.expect("a token");
    assert!(
        token["status"]["token"]
            .as_str()
            .is_some_and(|token| !token.is_empty())
    );
}
