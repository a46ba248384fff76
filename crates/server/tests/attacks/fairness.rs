//! Users who want everything for themselves: others are served as if they were not there.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubewright_server::{ApiService, RequestLimits, Server, Tokens, User};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep, timeout};
use tokio_rustls::client::TlsStream;

use crate::call::{self, Answer, Ask, Frames, MERGE};
use crate::host::{CONFIG_MAPS, config_map, padding};
use crate::socket::{Identity, Site, Wire};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const FLOW_SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const SCHEMA_HEADER: &str = "x-kubernetes-pf-flowschema-uid";
const LEVEL_HEADER: &str = "x-kubernetes-pf-prioritylevel-uid";

/// What an attack may add to what requests take without it: 50 ms. Without optimisation, and with other tests and builds on
/// the same processors, everything takes many times as long.
const DELAY: Duration = if cfg!(debug_assertions) {
    Duration::from_millis(1_000)
} else {
    Duration::from_millis(50)
};
/// Longest wait for anything that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

fn account(name: &str) -> User {
    let groups = ["system:serviceaccounts", "system:serviceaccounts:team"];
    User::new(format!("system:serviceaccount:team:{name}"), groups)
}

/// A server, somebody who attacks it, and those who must not notice.
struct Stage {
    server: Server,
    admin: ApiService,
    node: ApiService,
    attacker: ApiService,
}

impl Stage {
    async fn start() -> Self {
        Self::with(RequestLimits::default()).await
    }

    async fn with(limits: RequestLimits) -> Self {
        let server = Server::builder().request_limits(limits).start().await;
        let server = server.expect("starts");
        let node = User::new("system:node:n1", ["system:nodes"]);
        let stage = Self {
            admin: server.service(),
            node: server.service_as(node),
            attacker: server.service_as(account("attacker")),
            server,
        };
        let lease = json!({"metadata": {"name": "n1"}, "spec": {"holderIdentity": "n1"}});
        stage.must(Ask::post(LEASES, lease)).await;
        stage
            .must(Ask::post(CONFIG_MAPS, config_map("victim")))
            .await;
        stage
    }

    async fn must(&self, ask: Ask) -> Value {
        let answer = ask.send(&self.admin).await;
        assert!(
            answer.code < 300,
            "{} {}: {}",
            ask.method,
            ask.path,
            answer.text()
        );
        answer.json()
    }

    /// The 99th percentile of what an administrator and a node wait for reads and writes, each on a task of its own.
    async fn p99(&self, rounds: usize) -> Duration {
        let mut taken = Vec::new();
        for round in 0..rounds {
            let data = json!({"data": {"round": round.to_string()}});
            let spec = json!({"spec": {"leaseDurationSeconds": 1 + round}});
            let asks = [
                (
                    &self.admin,
                    Ask::patch(format!("{CONFIG_MAPS}/victim"), MERGE, data),
                ),
                (&self.admin, Ask::get(format!("{CONFIG_MAPS}/victim"))),
                (&self.node, Ask::patch(format!("{LEASES}/n1"), MERGE, spec)),
                (&self.node, Ask::get("/api/v1/nodes?limit=1")),
            ];
            for (service, ask) in asks {
                let service = service.clone();
                let timed = tokio::spawn(async move {
                    let started = Instant::now();
                    let answer = ask.send(&service).await;
                    assert_eq!(
                        answer.code,
                        200,
                        "{} {}: {}",
                        ask.method,
                        ask.path,
                        answer.text()
                    );
                    started.elapsed()
                });
                let spawned = Instant::now();
                timed.await.expect("answered");
                taken.push(spawned.elapsed());
            }
        }
        taken.sort();
        taken[taken.len() * 99 / 100]
    }

    /// Checks that an attack delays nobody by more than [`DELAY`].
    async fn is_calm_under<T>(&self, name: &str, attack: impl Future<Output = T>) {
        let before = self.p99(50).await;
        let attack = attack.await;
        let during = self.p99(50).await;
        println!("{name}: p99 {before:?} before, {during:?} during the attack");
        assert!(
            during < before * 3 + DELAY,
            "{name}: {before:?} before, {during:?} during the attack"
        );
        drop(attack);
    }
}

/// Sends a request over and over, so many at a time, until dropped. Whoever is turned away comes back when asked to.
fn flood(service: &ApiService, at_once: usize, ask: &Ask) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for _ in 0..at_once {
        let (service, ask) = (service.clone(), ask.clone());
        tasks.spawn(async move {
            loop {
                if ask.send(&service).await.code == 429 {
                    sleep(Duration::from_secs(1)).await;
                }
            }
        });
    }
    tasks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_bodies_that_never_come_delay_nobody() {
    let stage = Stage::start().await;
    let attack = async {
        let mut tasks = JoinSet::new();
        for _ in 0..1_000 {
            let service = stage.attacker.clone();
            tasks.spawn(async move {
                let body = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
                let request = Ask::post(REVIEWS, "").request(body);
                Answer::read(call::send(&service, request).await).await
            });
        }
        sleep(Duration::from_millis(200)).await;
        tasks
    };
    stage.is_calm_under("bodies that never come", attack).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_that_wait_for_a_webhook_delay_nobody() {
    let stage = Stage::start().await;
    // Whoever connects is never answered, as by a program in a debugger.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = silent.local_addr().expect("an address").port();
    stage.must(Ask::post(
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        json!({
            "metadata": {"name": "silent"},
            "webhooks": [{
                "name": "silent.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "timeoutSeconds": 30, "clientConfig": {"url": format!("https://127.0.0.1:{port}/")},
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}],
            }],
        }),
    ))
    .await;
    let attack = async {
        let create = Ask::post(SECRETS, json!({"metadata": {"generateName": "s-"}}));
        let tasks = flood(&stage.attacker, 400, &create);
        sleep(Duration::from_millis(500)).await;
        tasks
    };
    stage
        .is_calm_under("a webhook that never answers", attack)
        .await;
    let other = stage.server.service_as(account("other"));
    let create = Ask::post(CONFIG_MAPS, config_map("unrelated"));
    let answer = timeout(PATIENCE, create.send(&other))
        .await
        .expect("in time");
    assert_eq!(
        answer.code,
        201,
        "other users are served: {}",
        answer.text()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_the_future_delay_nobody() {
    let stage = Stage::start().await;
    let attack = async {
        let future = "resourceVersion=999999999999&resourceVersionMatch=NotOlderThan";
        let list = Ask::get(format!("{CONFIG_MAPS}?{future}"));
        let tasks = flood(&stage.attacker, 1_000, &list);
        sleep(Duration::from_millis(300)).await;
        tasks
    };
    stage.is_calm_under("reads of the future", attack).await;
    let other = stage.server.service_as(account("other"));
    let answer = timeout(PATIENCE, Ask::get(CONFIG_MAPS).send(&other)).await;
    assert_eq!(answer.expect("in time").code, 200, "other users are served");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_watches_of_one_user_delay_nobody() {
    let stage = Stage::start().await;
    let attack = async {
        let mut tasks = JoinSet::new();
        let path = format!(
            "{CONFIG_MAPS}?watch=1&resourceVersion={}",
            stage.server.revision()
        );
        for _ in 0..10_000 {
            let mut frames = Frames::open(&stage.attacker, &path).await;
            tasks.spawn(async move { while frames.next_bytes().await.is_some() {} });
        }
        tasks
    };
    stage.is_calm_under("ten thousand watches", attack).await;
}

/// So many config maps of a few hundred bytes each.
async fn fill(admin: &ApiService, count: usize) {
    for i in 0..count {
        let mut object = config_map(&format!("c{i}"));
        object["data"]["a"] = json!(padding(200));
        let answer = Ask::post(CONFIG_MAPS, object).send(admin).await;
        assert_eq!(answer.code, 201, "{}", answer.text());
    }
}

/// The 99th percentile and the longest of so many health checks on this connection.
async fn health_checks(wire: &mut Wire, checks: usize) -> (Duration, Duration) {
    let mut taken = Vec::new();
    for _ in 0..checks {
        let started = Instant::now();
        let answer = wire.get("/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        taken.push(started.elapsed());
        sleep(Duration::from_millis(10)).await;
    }
    taken.sort();
    (taken[checks * 99 / 100], taken[checks - 1])
}

/// Lists over and over, so many at a time on one connection. Counts those that were answered.
async fn list_at_once(stream: TlsStream<TcpStream>, at_once: usize, listed: Arc<AtomicUsize>) {
    let connected = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (sender, connection) = connected.expect("HTTP/2");
    tokio::spawn(connection);
    let mut tasks = JoinSet::new();
    for _ in 0..at_once {
        let (mut sender, listed) = (sender.clone(), listed.clone());
        tasks.spawn(async move {
            loop {
                let list = Ask::get(format!("https://x{CONFIG_MAPS}"));
                let list = list.header("authorization", "Bearer attacker");
                let list = list.request(http_body_util::Empty::<Bytes>::new());
                let answer = sender.send_request(list).await.expect("an answer");
                let code = answer.status();
                let mut body = answer.into_body();
                while let Some(frame) = body.frame().await {
                    frame.expect("a frame");
                }
                match code.as_u16() {
                    429 => sleep(Duration::from_secs(1)).await,
                    _ => drop(listed.fetch_add(1, Ordering::Relaxed)),
                }
            }
        });
    }
    tasks.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_lists_on_one_connection_delay_no_health_check() {
    let mut tokens = Tokens::default();
    tokens.insert("attacker", account("attacker"));
    let server = Server::builder().tokens(tokens).start().await;
    let site = Site::of(server.expect("starts")).await;
    // A list takes as long without optimisation as one of ten times as many objects with it.
    let objects = if cfg!(debug_assertions) {
        10_000
    } else {
        30_000
    };
    fill(&site.server.service(), objects).await;
    let mut wire = site.connect(&Identity::Nobody, "http/1.1").await;
    let (before, _) = health_checks(&mut wire, 20).await;
    // The client has threads of its own: it is not to delay what is measured.
    let mut clients = tokio::runtime::Builder::new_multi_thread();
    let clients = clients.worker_threads(1).enable_all().build();
    let clients = clients.expect("a runtime");
    let listed = Arc::new(AtomicUsize::new(0));
    let stream = site.connect(&Identity::Nobody, "h2").await.into_stream();
    clients.spawn(list_at_once(stream, 1_000, listed.clone()));
    // From the first moment: what all thousand lists take before the first of them is sent is the longest delay there is,
    // and it concerns few checks.
    let (mut during, mut slowest) = health_checks(&mut wire, 200).await;
    let end = Instant::now() + PATIENCE;
    while listed.load(Ordering::Relaxed) == 0 {
        assert!(Instant::now() < end, "no list was answered");
        let (more, longest) = health_checks(&mut wire, 20).await;
        (during, slowest) = (during.max(more), slowest.max(longest));
    }
    let listed = listed.load(Ordering::Relaxed);
    clients.shutdown_background();
    println!(
        "/readyz: p99 {before:?} before, {during:?} (slowest {slowest:?}) during {listed} lists of {objects} objects"
    );
    assert!(
        slowest < before * 3 + DELAY,
        "{before:?} before, {slowest:?} during the lists"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_gets_a_share_beside_one_who_wants_everything() {
    let mut limits = RequestLimits::default();
    (limits.reads, limits.writes) = (40, 20);
    let stage = Stage::with(limits).await;
    fill(&stage.admin, 1_000).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut users = JoinSet::new();
    let mut counts = Vec::new();
    for (name, at_once) in [("elephant", 200), ("mouse", 8)] {
        let count = Arc::new(AtomicUsize::new(0));
        counts.push(count.clone());
        for _ in 0..at_once {
            let service = stage.server.service_as(account(name));
            let (stop, count) = (stop.clone(), count.clone());
            users.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let answer = Ask::get(CONFIG_MAPS).send(&service).await;
                    assert_eq!(answer.code, 200, "{}", answer.text());
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    }
    sleep(Duration::from_secs(3)).await;
    let served: Vec<usize> = counts
        .iter()
        .map(|count| count.load(Ordering::Relaxed))
        .collect();
    stop.store(true, Ordering::Relaxed);
    let all = timeout(PATIENCE, users.join_all()).await;
    all.expect("everybody is served in the end");
    println!("lists served: {served:?} (elephant with 200 at once, mouse with 8)");
    assert!(
        served[1] * 3 >= served[0],
        "half is the mouse's: {served:?}"
    );
}

/// A priority level with one seat that refuses what it cannot run, and a schema that sends a user there.
async fn one_seat_for_bob(stage: &Stage) -> (Value, Value) {
    let level = json!({
        "metadata": {"name": "one-seat"},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        }},
    });
    let everything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true});
    let schema = json!({
        "metadata": {"name": "bob"},
        "spec": {
            "priorityLevelConfiguration": {"name": "one-seat"}, "matchingPrecedence": 1000,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{"subjects": [{"kind": "User", "user": {"name": "bob"}}], "resourceRules": [everything]}],
        },
    });
    (
        stage.must(Ask::post(LEVELS, level)).await,
        stage.must(Ask::post(FLOW_SCHEMAS, schema)).await,
    )
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().expect("a uid")
}

/// Asks until the answer names this schema, which is a moment after the schema was written.
async fn named_by(service: &ApiService, schema: &Value) -> Answer {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = Ask::get(format!("{CONFIG_MAPS}/victim"))
            .send(service)
            .await;
        if answer.header(SCHEMA_HEADER) == uid(schema) {
            return answer;
        }
        assert!(Instant::now() < end, "last seen: {:?}", answer.headers);
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn stored_schemas_and_levels_are_obeyed_and_named() {
    let stage = Stage::start().await;
    fill(&stage.admin, 400).await;
    let bob = stage.server.service_as(User::new("bob", ["people"]));
    let default = stage
        .must(Ask::get(format!("{FLOW_SCHEMAS}/global-default")))
        .await;
    named_by(&bob, &default).await;
    let (level, schema) = one_seat_for_bob(&stage).await;
    let answer = named_by(&bob, &schema).await;
    assert_eq!(
        (answer.code, answer.header(LEVEL_HEADER)),
        (200, uid(&level))
    );
    // A list that has not been read keeps its seat.
    let list = Ask::get(CONFIG_MAPS).open(&bob).await;
    let refused = Ask::get(CONFIG_MAPS).send(&bob).await;
    assert_eq!(
        (refused.code, refused.reason().as_str()),
        (429, "TooManyRequests")
    );
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.header(SCHEMA_HEADER), uid(&schema));
    assert_eq!(
        Ask::get("/readyz").send(&bob).await.code,
        200,
        "health is exempt"
    );
    drop(list);
    assert_eq!(Ask::get(CONFIG_MAPS).send(&bob).await.code, 200);
    stage.must(Ask::delete(format!("{FLOW_SCHEMAS}/bob"))).await;
    named_by(&bob, &default).await;
    let metrics = Ask::get("/metrics").send(&stage.admin).await.text();
    let rejected = r#"apiserver_flowcontrol_rejected_requests_total{priority_level="one-seat",reason="concurrency-limit"} 1"#;
    assert!(metrics.contains(rejected), "{metrics}");
}

#[tokio::test]
async fn mandatory_objects_come_back() {
    let stage = Stage::start().await;
    let before = stage.must(Ask::get(format!("{FLOW_SCHEMAS}/exempt"))).await;
    stage
        .must(Ask::delete(format!("{FLOW_SCHEMAS}/exempt")))
        .await;
    let end = Instant::now() + PATIENCE;
    let after = loop {
        let answer = Ask::get(format!("{FLOW_SCHEMAS}/exempt"))
            .send(&stage.admin)
            .await;
        if answer.code == 200 {
            break answer.json();
        }
        assert!(Instant::now() < end, "last seen: {}", answer.text());
        sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(after["spec"], before["spec"]);
}

#[tokio::test]
async fn unread_answers_of_a_user_are_bounded() {
    let mut limits = RequestLimits::default();
    limits.bytes_per_user = 1 << 20;
    let stage = Stage::with(limits).await;
    fill(&stage.admin, 500).await;
    let list = Ask::get(CONFIG_MAPS);
    let (mut unread, mut bytes) = (Vec::new(), 0);
    loop {
        let answer = list.open(&stage.attacker).await;
        if answer.status() == 429 {
            break;
        }
        let size = http_body::Body::size_hint(answer.body()).exact();
        bytes += size.expect("a list has a size");
        unread.push(answer);
        assert!(
            bytes < 8 << 20,
            "{} answers of {bytes} bytes are unread",
            unread.len()
        );
    }
    assert!(unread.len() > 1, "some are fine");
    let other = stage.server.service_as(account("other"));
    assert_eq!(
        list.send(&other).await.code,
        200,
        "others are not concerned"
    );
    assert_eq!(list.send(&stage.admin).await.code, 200);
    unread.pop();
    assert_eq!(
        list.send(&stage.attacker).await.code,
        200,
        "one that is gone makes room"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_reads_loses_its_seat_and_is_cut_off() {
    let stage = Stage::start().await;
    fill(&stage.admin, 400).await;
    let bob = stage.server.service_as(User::new("bob", ["people"]));
    let (_, schema) = one_seat_for_bob(&stage).await;
    named_by(&bob, &schema).await;
    let list = Ask::get(CONFIG_MAPS).open(&bob).await;
    assert_eq!(Ask::get(CONFIG_MAPS).send(&bob).await.code, 429);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        Ask::get(CONFIG_MAPS).send(&bob).await.code,
        200,
        "the seat was taken from it"
    );
    let mut slow = Ask::get(CONFIG_MAPS).open(&bob).await.into_body();
    for _ in 0..2 {
        sleep(Duration::from_secs(20)).await;
        let frame = slow.frame().await.expect("there is more");
        assert!(frame.is_ok(), "one who reads is not cut off");
    }
    let mut unread = list.into_body();
    assert!(unread.frame().await.is_none(), "the one who did not is");
}
