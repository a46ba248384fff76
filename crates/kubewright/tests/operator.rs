//! A whole operator: this program starts itself as one, against a server on a socket, and looks at it from outside.
//!
//! It has no test harness, because an operator's command line is its own.

use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kubewright::manifests::webhook::{Address, configurations, service};
use kubewright::prelude::*;
use kubewright::runtime::{CacheOptions, CachePolicy};
use kubewright_server::{Endpoint, Server, Tokens, User};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

/// Set where this program is to be the operator.
const AS_OPERATOR: &str = "KUBEWRIGHT_TEST_OPERATOR";
const PATIENCE: Duration = Duration::from_secs(60);
/// The name of an object whose reconcile blocks a thread for ever.
const BLOCKS: &str = "blocks";

/// The flags of this operator.
#[derive(clap::Args)]
struct Flags {
    /// What objects are marked with
    #[arg(long, default_value = "yes")]
    mark: String,
}

struct Marker;

impl Reconciler<ConfigMap> for Marker {
    async fn reconcile(&self, object: Arc<ConfigMap>, cx: &Context) -> Result<Outcome> {
        if cx.key().name() == BLOCKS {
            tracing::info!(what = BLOCKS, address = "", "a thread is blocked");
            // As by a system call that never returns.
            let blocked = tokio::task::spawn_blocking(|| {
                loop {
                    std::thread::park();
                }
            });
            blocked.await?;
        }
        let text = cx.state::<Flags>()?.mark.clone();
        let mark = |object: &mut ConfigMap| {
            let labels = object.metadata.labels.get_or_insert_default();
            labels.insert("seen".to_owned(), text.clone());
        };
        cx.client().modify(&*object, mark).await?;
        Ok(Outcome::done())
    }
}

#[kubewright::rbac(groups = "", resources = "configmaps", verbs = "patch;update")]
#[kubewright::controller]
fn marker() -> Controller {
    Controller::of::<ConfigMap>("marker").reconciler(Marker)
}

/// Gives every Secret a label.
#[kubewright::webhook(
    mutating,
    name = "msecret.my.domain",
    path = "/mutate-v1-secret",
    groups = "",
    versions = "v1",
    resources = "secrets",
    verbs = "create"
)]
fn set_defaults(secret: &mut Secret) {
    let labels = secret.metadata.labels.get_or_insert_default();
    labels
        .entry("team".to_owned())
        .or_insert_with(|| "none".to_owned());
}

#[kubewright::webhook(
    validating,
    name = "vsecret.my.domain",
    path = "/validate-v1-secret",
    groups = "",
    versions = "v1",
    resources = "secrets",
    verbs = "create"
)]
fn validate(secret: &Secret, _: Option<&Secret>) -> std::result::Result<(), String> {
    if secret.data.is_some() {
        Ok(())
    } else {
        Err("an empty secret is none".to_owned())
    }
}

fn main() -> kubewright::Result {
    if std::env::var_os(AS_OPERATOR).is_some() {
        // What a program says of its cache leaves the namespaces of its flags as they are.
        let cache = CacheOptions::new().policy(CachePolicy::of::<Secret>().metadata());
        let operator = kubewright::operator!().domain("my.domain");
        let operator = operator.manager(|manager| manager.cache(cache));
        return operator.arguments::<Flags>().run();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        check(
            "an operator tells what is registered without a cluster",
            inventory(),
        )
        .await;
        check(
            "a wrong command line is refused and help is offered",
            command_line(),
        )
        .await;
        check("an operator without a cluster says so", without_cluster()).await;
        check(
            "an operator runs, answers, leads and stops",
            operator_runs_answers_leads_and_stops(),
        )
        .await;
        check(
            "replicas of an operator share its objects",
            replicas_share_objects(),
        )
        .await;
        check(
            "caches of replicas hold their own shares where that is asked for",
            caches_hold_their_shares(),
        )
        .await;
        check(
            "an operator whose thread is blocked ends at the second signal",
            blocked_thread_does_not_keep_the_operator(),
        )
        .await;
        check(
            "an operator of one namespace leaves others alone",
            one_namespace(),
        )
        .await;
        check(
            "an operator answers what the server asks its webhooks",
            webhooks(),
        )
        .await;
        Ok(())
    })
}

async fn check(fact: &str, test: impl Future<Output = ()>) {
    timeout(PATIENCE, test)
        .await
        .unwrap_or_else(|_| panic!("{fact}: it takes too long"));
    println!("test {fact} ... ok");
}

fn operator(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(arguments)
        .env(AS_OPERATOR, "1")
        .kill_on_drop(true);
    for name in [
        "KUBECONFIG",
        "KUBERNETES_SERVICE_HOST",
        "WATCH_NAMESPACE",
        "HOME",
    ] {
        command.env_remove(name);
    }
    command
}

async fn output(arguments: &[&str]) -> Output {
    operator(arguments).output().await.expect("it runs")
}

async fn inventory() {
    let output = output(&["inventory"]).await;
    assert!(output.status.success());
    let inventory: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!(inventory["controllers"], serde_json::json!(["marker"]));
    assert_eq!(inventory["definitions"], serde_json::json!([]));
    let resources = inventory["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .map(|rule| &rule["resources"][0]);
    assert_eq!(
        resources.filter(|name| *name == "configmaps").count(),
        2,
        "declared and inferred"
    );
}

async fn command_line() {
    let wrong = output(&["--metrics-bind-adress=0"]).await;
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("--metrics-bind-adress"));
    let help = output(&["--help"]).await;
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    for flag in [
        "--leader-elect",
        "--shard",
        "--shard-caches",
        "--health-probe-bind-address",
        "--metrics-secure",
        "--namespace",
        "--log-level",
        "Options of this operator",
        "--mark",
        "What objects are marked with",
    ] {
        assert!(help.contains(flag), "{help}");
    }
    assert!(!help.contains("inventory"), "{help}");
    let both = output(&["--leader-elect", "--shard"]).await;
    assert_eq!(both.status.code(), Some(2), "one leads or all share");
    let alone = output(&["--shard-caches"]).await;
    assert_eq!(alone.status.code(), Some(2), "nothing is shared");
}

async fn without_cluster() {
    let output = output(&[
        "--kubeconfig=/no/such/file",
        "--health-probe-bind-address=0",
    ])
    .await;
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("/no/such/file"), "{text}");
    let home = tempfile::tempdir().expect("a directory");
    let mut unnamed = operator(&["--health-probe-bind-address=0"]);
    let output = unnamed.env("HOME", home.path()).output().await;
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("start one with `kubewright up`"), "{text}");
}

/// A server on a socket, its kubeconfig, and a client of the administrator.
async fn cluster(directory: &Path) -> ((Server, Endpoint), kube::Client) {
    let mut tokens = Tokens::default();
    tokens.insert("scraper", User::new("scraper", ["monitoring"]));
    let server = Server::builder()
        .tokens(tokens)
        .start()
        .await
        .expect("a server starts");
    let endpoint = server
        .listen("127.0.0.1:0".parse().expect("an address"))
        .await
        .expect("it listens");
    endpoint
        .write_kubeconfig(&directory.join("kubeconfig"))
        .expect("it is written");
    let admin = kube::Client::new(server.service(), "default");
    ((server, endpoint), admin)
}

/// An operator with the lines of its log.
struct Running {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
}

impl Running {
    fn start(directory: &Path, arguments: &[&str]) -> Self {
        let kubeconfig = format!("--kubeconfig={}", directory.join("kubeconfig").display());
        let mut command =
            operator(&[&[kubeconfig.as_str(), "--log-format=json"], arguments].concat());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let log = child.stderr.take().expect("a pipe");
        let log = BufReader::new(log).lines();
        Self { child, log }
    }

    /// Where something is served, as the log says.
    async fn address(&mut self, what: &str) -> String {
        loop {
            let line = self.log.next_line().await.expect("a log").expect("a line");
            let line: Value =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("a line of JSON: {line}"));
            if line["fields"]["what"] == what {
                return line["fields"]["address"]
                    .as_str()
                    .expect("an address")
                    .to_owned();
            }
        }
    }

    async fn signal(&self) {
        let id = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(sent.expect("a signal").success());
    }

    async fn stop(mut self) {
        self.signal().await;
        // What it says on the way has to go somewhere.
        while self.log.next_line().await.is_ok_and(|line| line.is_some()) {}
        assert!(self.child.wait().await.expect("it ends").success());
    }
}

async fn until<T>(look: impl AsyncFn() -> Option<T>) -> T {
    loop {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A client of an address, with or without a token, that takes any certificate.
fn reader(url: &str, token: Option<&str>) -> kube::Client {
    let mut config = kube::Config::new(url.parse().expect("an address"));
    config.accept_invalid_certs = true;
    config.auth_info.token = token.map(|token| token.to_owned().into());
    kube::Client::try_from(config).expect("a client")
}

async fn read(client: &kube::Client, path: &str) -> std::result::Result<String, kube::Error> {
    let request = http::Request::get(path)
        .body(Vec::new())
        .expect("a request");
    client.request_text(request).await
}

async fn operator_runs_answers_leads_and_stops() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_server, admin) = cluster(directory.path()).await;
    let mut running = Running::start(
        directory.path(),
        &[
            "--leader-elect",
            "--mark=blue",
            "--metrics-bind-address=127.0.0.1:0",
            "--health-probe-bind-address=127.0.0.1:0",
        ],
    );
    let probes = reader(&format!("http://{}", running.address("probes").await), None);
    let metrics = format!("https://{}", running.address("metrics").await);
    until(async || read(&probes, "/readyz").await.ok()).await;

    let stranger = read(&reader(&metrics, None), "/metrics")
        .await
        .expect_err("a refusal");
    assert!(stranger.to_string().contains("Unauthorized"), "{stranger}");
    let text = read(&reader(&metrics, Some("scraper")), "/metrics")
        .await
        .expect("metrics");
    assert!(text.contains("marker"), "{text}");
    assert!(text.contains("rest_client_requests_total"), "{text}");

    let leases: Api<Lease> = Api::namespaced(admin.clone(), "default");
    let leases = leases
        .list(&ListParams::default())
        .await
        .expect("leases")
        .items;
    let names: Vec<_> = leases
        .iter()
        .filter_map(|lease| lease.metadata.name.as_deref())
        .collect();
    assert_eq!(
        names,
        [kubewright::operator!().domain("my.domain").lease_name()]
    );

    let configs: Api<ConfigMap> = Api::namespaced(admin, "default");
    make(&configs, "one").await;
    let mark = until(async || mark(&configs, "one").await).await;
    assert_eq!(mark, "blue", "as its own flag says");
    running.stop().await;
}

async fn replicas_share_objects() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_server, admin) = cluster(directory.path()).await;
    let arguments = ["--shard", "--health-probe-bind-address=0"];
    let [one, other] = [(), ()].map(|()| Running::start(directory.path(), &arguments));
    let leases: Api<Lease> = Api::namespaced(admin.clone(), "default");
    until(async || {
        let leases = leases.list(&ListParams::default()).await;
        let shares: Vec<usize> = leases.expect("leases").iter().map(share).collect();
        (shares.len() == 2 && shares.iter().all(|share| *share == 32)).then_some(())
    })
    .await;
    let configs: Api<ConfigMap> = Api::namespaced(admin, "default");
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        make(&configs, name).await;
    }
    for name in names {
        until(async || seen(&configs, name).await.then_some(())).await;
    }
    one.stop().await;
    make(&configs, "later").await;
    until(async || seen(&configs, "later").await.then_some(())).await;
    other.stop().await;
}

async fn caches_hold_their_shares() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_server, admin) = cluster(directory.path()).await;
    let configs: Api<ConfigMap> = Api::namespaced(admin, "default");
    for number in 0..30 {
        make(&configs, &format!("config-{number}")).await;
    }
    let arguments = [
        "--shard",
        "--shard-caches",
        "--namespace=default",
        "--metrics-bind-address=127.0.0.1:0",
        "--metrics-secure=false",
        "--health-probe-bind-address=0",
    ];
    let mut replicas = [(), ()].map(|()| Running::start(directory.path(), &arguments));
    let mut metrics = Vec::new();
    for replica in &mut replicas {
        let address = replica.address("metrics").await;
        metrics.push(reader(&format!("http://{address}"), None));
    }
    until(async || {
        let mut held = Vec::new();
        for replica in &metrics {
            let text = read(replica, "/metrics").await.ok()?;
            let lines = text
                .lines()
                .filter(|line| line.starts_with("informer_objects{"));
            let count = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
            held.push(count.sum::<usize>());
        }
        let all = configs
            .list(&ListParams::default())
            .await
            .expect("they are read")
            .items
            .len();
        (held.iter().sum::<usize>() == all && held.iter().all(|count| *count > 0)).then_some(())
    })
    .await;
    for replica in replicas {
        replica.stop().await;
    }
}

/// How many shards a replica may be working on, as its lease says.
fn share(lease: &Lease) -> usize {
    let annotations = lease.metadata.annotations.as_ref();
    let shards = annotations.and_then(|all| all.get("kubewright.dev/shards"));
    shards.map_or(0, |shards| shards.split(',').count())
}

/// Neither the manager nor the runtime waits for a thread that cannot be ended.
async fn blocked_thread_does_not_keep_the_operator() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_server, admin) = cluster(directory.path()).await;
    let mut running = Running::start(directory.path(), &["--health-probe-bind-address=0"]);
    make(&Api::namespaced(admin, "default"), BLOCKS).await;
    running.address(BLOCKS).await;
    running.signal().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let finishing = running.child.try_wait().expect("it is ours");
    assert!(finishing.is_none(), "it lets the reconcile finish");
    running.signal().await;
    let second = tokio::time::Instant::now();
    // What it says on the way has to go somewhere.
    while running
        .log
        .next_line()
        .await
        .is_ok_and(|line| line.is_some())
    {}
    let status = running.child.wait().await.expect("it ends");
    assert_eq!(status.code(), Some(1), "{status}");
    let took = second.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
}

async fn one_namespace() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_server, admin) = cluster(directory.path()).await;
    let (near, far): (Api<ConfigMap>, Api<ConfigMap>) = (
        Api::namespaced(admin.clone(), "default"),
        Api::namespaced(admin, "kube-system"),
    );
    make(&far, "far").await;
    let running = Running::start(
        directory.path(),
        &["--namespace=default", "--health-probe-bind-address=0"],
    );
    make(&near, "near").await;
    until(async || seen(&near, "near").await.then_some(())).await;
    assert!(
        !seen(&far, "far").await,
        "it was there before, and was not looked at"
    );
    running.stop().await;
}

/// What its inventory says is configured with the address and certificate of this run, and the server asks.
async fn webhooks() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_server, admin) = cluster(directory.path()).await;
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let write = |name: &str, text: String| std::fs::write(directory.path().join(name), text);
    write("tls.crt", made.cert.pem()).expect("it is written");
    write("tls.key", made.signing_key.serialize_pem()).expect("it is written");
    let mut running = Running::start(
        directory.path(),
        &[
            "--health-probe-bind-address=0",
            "--webhook-bind-address=127.0.0.1:0",
            &format!("--webhook-cert-path={}", directory.path().display()),
        ],
    );
    let address = running.address("webhooks").await;
    let address = Address::new(address.parse().expect("an address"), &made.cert.pem());
    let inventory = kubewright::registered::inventory();
    for mut object in configurations(&inventory.webhooks, &service()).to_json() {
        address.lead(&mut object);
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let types = object.types.clone().expect("it says its kind");
        let kind = GroupVersionKind::try_from(&types).expect("a kind");
        let api = Api::<DynamicObject>::all_with(admin.clone(), &ApiResource::from_gvk(&kind));
        let created = api.create(&PostParams::default(), &object).await;
        created.expect("it is configured");
    }

    let secrets: Api<Secret> = Api::namespaced(admin, "default");
    let mut secret = Secret::default();
    secret.metadata.name = Some("one".to_owned());
    let refused = secrets.create(&PostParams::default(), &secret).await;
    let refused = refused.expect_err("it is empty").to_string();
    assert!(refused.contains("an empty secret is none"), "{refused}");
    secret.data = Some([("a".to_owned(), ByteString(b"b".to_vec()))].into());
    let stored = secrets
        .create(&PostParams::default(), &secret)
        .await
        .expect("it is stored");
    let labels = stored.metadata.labels.unwrap_or_default();
    assert_eq!(labels.get("team").map(String::as_str), Some("none"));
    running.stop().await;
}

async fn make(configs: &Api<ConfigMap>, name: &str) {
    let mut config = ConfigMap::default();
    config.metadata.name = Some(name.to_owned());
    configs
        .create(&PostParams::default(), &config)
        .await
        .expect("it is created");
}

async fn seen(configs: &Api<ConfigMap>, name: &str) -> bool {
    mark(configs, name).await.is_some()
}

async fn mark(configs: &Api<ConfigMap>, name: &str) -> Option<String> {
    let config = configs.get(name).await.expect("it is there");
    config.metadata.labels.unwrap_or_default().remove("seen")
}
