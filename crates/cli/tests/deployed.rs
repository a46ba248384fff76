//! A deployed operator: what `kubewright deploy` applies, run as the Deployment says, under its own service account, with
//! webhooks that the API server reaches through their Service.
//!
//! This program is the operator as well as the test, because an operator's command line is its own. Pods are simulated, so
//! that the processes behind them are started here.

#[path = "deployed/monitoring.rs"]
mod monitoring;
#[path = "deployed/namespaces.rs"]
mod namespaces;
#[path = "deployed/roles.rs"]
mod roles;
mod support;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::config::Kubeconfig;
use kubewright::kube::CustomResource;
use kubewright::prelude::*;
use kubewright::runtime::from_fn;
use kubewright::webhook::Spoke;
use kubewright_cluster::Cluster;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// Set where this program is to be the operator.
const AS_OPERATOR: &str = "KUBEWRIGHT_TEST_OPERATOR";
const PATIENCE: Duration = Duration::from_secs(120);
const NAMESPACE: &str = "library-system";
const SERVICE: &str = "library-webhook-service";
const AUDIT_LOG: &str = "audit.log";

/// The version that is stored.
mod v1 {
    use super::*;

    /// A book.
    #[kubewright::api(conversion = "webhook")]
    #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
    #[kube(group = "shelf.my.domain", version = "v1", kind = "Book", namespaced)]
    #[serde(rename_all = "camelCase")]
    pub(crate) struct BookSpec {
        /// What it is called.
        pub title: String,
        /// How long it is.
        pub pages: Option<i32>,
    }
}

/// Another version, with another name for a field.
mod v2 {
    use super::*;

    /// A book.
    #[kubewright::api(conversion = "webhook")]
    #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
    #[kube(
        group = "shelf.my.domain",
        version = "v2",
        storage = false,
        kind = "Book",
        namespaced
    )]
    #[serde(rename_all = "camelCase")]
    pub(crate) struct BookSpec {
        /// What it is called.
        pub heading: String,
        /// How long it is.
        pub pages: Option<i32>,
    }
}

#[kubewright::webhook(
    mutating,
    name = "mbook.shelf.my.domain",
    path = "/mutate-book",
    groups = "shelf.my.domain",
    versions = "v1",
    resources = "books",
    verbs = "create;update"
)]
fn default(book: &mut v1::Book) {
    book.spec.pages.get_or_insert(10);
}

#[kubewright::webhook(
    validating,
    name = "vbook.shelf.my.domain",
    path = "/validate-book",
    groups = "shelf.my.domain",
    versions = "v1",
    resources = "books",
    verbs = "create;update"
)]
fn validate(book: &v1::Book, _: Option<&v1::Book>) -> std::result::Result<(), String> {
    if book.spec.title.is_empty() {
        return Err("a book has a title".to_owned());
    }
    Ok(())
}

#[kubewright::conversion]
impl Spoke<v1::Book> for v2::Book {
    fn to_hub(self) -> std::result::Result<v1::Book, String> {
        let (title, pages) = (self.spec.heading, self.spec.pages);
        Ok(v1::Book::new("", v1::BookSpec { title, pages }))
    }

    fn from_hub(hub: v1::Book) -> std::result::Result<Self, String> {
        let (heading, pages) = (hub.spec.title, hub.spec.pages);
        Ok(Self::new("", v2::BookSpec { heading, pages }))
    }
}

#[kubewright::controller]
fn book() -> Controller {
    let reconcile = async |book: Arc<v1::Book>, cx: Context| {
        cx.event(&*book, EventKind::Normal, "Read", "it was read");
        Ok(Outcome::done())
    };
    Controller::of::<v1::Book>("book").reconciler(from_fn(reconcile))
}

fn main() -> kubewright::Result {
    if std::env::var_os(AS_OPERATOR).is_some() {
        return kubewright::operator!().domain("my.domain").run();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let fact = "a deployed operator converts, admits and replaces its certificates under load";
        check(fact, story()).await;
        let fact = "an operator of two namespaces works with roles in these alone";
        check(
            fact,
            namespaces::operator_works_with_roles_in_its_namespaces_alone(),
        )
        .await;
        Ok(())
    })
}

async fn check(fact: &str, test: impl Future<Output = ()>) {
    let result = timeout(PATIENCE, test).await;
    result.unwrap_or_else(|_| panic!("{fact}: timed out after {PATIENCE:?}"));
    println!("test {fact} ... ok");
}

async fn story() {
    let place = Place::new().await;
    monitoring::define_monitors(&place).await;
    place
        .kubewright("deploy --image example.com/library:1")
        .await;
    let kubeconfig = place.service_account(NAMESPACE).await;
    let mut replicas = Vec::new();
    for _ in 0..2 {
        replicas.push(place.start(&kubeconfig).await);
    }
    place.lead_to(&replicas[0]);
    for replica in &replicas {
        replica.is_ready().await;
    }
    both_versions_are_written_and_read(&place).await;
    objects_are_validated(&place).await;
    place
        .kubewright("deploy --image example.com/library:1")
        .await;
    both_versions_are_written_and_read(&place).await;
    certificates_are_replaced_under_load(&place, &replicas).await;
    monitoring::metrics_are_read_as_the_monitor_says(&place, &replicas).await;
    roles::each_rule_is_needed(&place, NAMESPACE).await;
    roles::people_may_do_what_their_roles_say(&place).await;
    roles::bundle_has_what_it_needs(&place).await;
    the_other_replica_goes_on_when_one_is_killed(&place, &mut replicas).await;
    place.nothing_is_left(replicas).await;
}

/// A project, a cluster, and what leads to it.
struct Place {
    cluster: Cluster,
    endpoint: kubewright_server::Endpoint,
    folder: tempfile::TempDir,
    kube: kube::Client,
}

/// One replica: a process, and where it listens.
struct Replica {
    child: Child,
    webhooks: String,
    probes: String,
    metrics: String,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let builder = Cluster::builder()
            .authorization(kubewright_server::Authorization::Rbac)
            .audit_log(folder.path().join(AUDIT_LOG));
        let cluster = builder.start().await.expect("a cluster starts");
        let address = "127.0.0.1:0".parse().expect("an address");
        let endpoint = cluster.server().listen(address).await.expect("it listens");
        let kubeconfig = folder.path().join("admin");
        endpoint
            .write_kubeconfig(&kubeconfig)
            .expect("it is written");
        let inventory = Self::program().arg("inventory").output().await;
        let inventory = inventory.expect("it says what it consists of").stdout;
        std::fs::write(folder.path().join("inventory"), inventory).expect("it is written");
        let kube = cluster.client();
        let place = Self {
            cluster,
            endpoint,
            folder,
            kube,
        };
        let project = place.project();
        let words = ["init", "--project-name", "library", "--project", &project];
        support::kubewright(place.folder.path(), &words).works();
        let words = ["edit", "--prometheus=true", "--project", &project];
        support::kubewright(place.folder.path(), &words).works();
        place
    }

    fn audit_log(&self) -> PathBuf {
        self.folder.path().join(AUDIT_LOG)
    }

    async fn send(
        &self,
        method: http::Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        let content_type = match method {
            http::Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("Content-Type", content_type);
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        self.kube
            .request(request.body(body).expect("a request"))
            .await
    }

    async fn try_get(&self, path: &str) -> Result<Value, kube::Error> {
        self.send(http::Method::GET, path, &Value::Null).await
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.try_get(path).await;
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    async fn create(&self, path: &str, object: &Value) -> Value {
        let answer = self.send(http::Method::POST, path, object).await;
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    async fn patch(&self, path: &str, change: &Value) {
        let answer = self.send(http::Method::PATCH, path, change).await;
        answer.unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Waits until something holds.
    async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let end = Instant::now() + Duration::from_secs(15);
        while !holds().await {
            assert!(Instant::now() < end, "timed out waiting: {what}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    fn project(&self) -> String {
        self.folder.path().join("library").display().to_string()
    }

    fn program() -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.env(AS_OPERATOR, "1").kill_on_drop(true);
        for name in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HOME"] {
            command.env_remove(name);
        }
        command
    }

    /// Calls a command about the project on the cluster.
    async fn kubewright(&self, line: &str) -> String {
        let shown = |name: &str| self.folder.path().join(name).display().to_string();
        let (kubeconfig, inventory, project) = (shown("admin"), shown("inventory"), self.project());
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let flags = [
            ("--kubeconfig", kubeconfig),
            ("--inventory", inventory),
            ("--project", project),
        ];
        // Whoever generates files asks no cluster.
        let flags = flags
            .into_iter()
            .skip(usize::from(line.starts_with("generate")));
        for (flag, value) in flags {
            words.extend([flag.to_owned(), value]);
        }
        let folder = self.folder.path().to_path_buf();
        let called = tokio::task::spawn_blocking(move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            support::kubewright(&folder, &words).works()
        });
        called.await.expect("it ends")
    }

    /// A token of a service account.
    async fn token(&self, namespace: &str, account: &str) -> String {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.kube.clone(), namespace);
        let wanted: TokenRequest =
            serde_json::from_value(json!({"metadata": {}, "spec": {"audiences": []}}))
                .expect("a request");
        let token = accounts
            .create_token_request(account, &PostParams::default(), &wanted)
            .await;
        let status = token.expect("a token").status;
        let token = status.and_then(|status| status.token);
        token.expect("it is there")
    }

    /// A kubeconfig with nothing but the token of the manager's service account in a namespace.
    async fn service_account(&self, namespace: &str) -> PathBuf {
        let token = self.token(namespace, "library-controller-manager").await;
        let text = std::fs::read_to_string(self.folder.path().join("admin")).expect("it is there");
        let mut config = serde_json::to_value(Kubeconfig::from_yaml(&text).expect("a kubeconfig"))
            .expect("it is JSON");
        config["users"][0]["user"] = json!({ "token": token });
        config["contexts"][0]["context"]["namespace"] = json!(namespace);
        let path = self.folder.path().join(format!("manager-in-{namespace}"));
        std::fs::write(&path, config.to_string()).expect("it is written");
        path
    }

    /// Starts a replica as the Deployment says.
    async fn start(&self, kubeconfig: &Path) -> Replica {
        let path =
            format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/library-controller-manager");
        let deployment = self.get(&path).await;
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let arguments = container["args"].as_array().expect("there are some");
        let arguments = arguments.iter().filter_map(Value::as_str);
        let arguments: Vec<String> = arguments.map(str::to_owned).collect();
        let variables = container["env"].as_array().into_iter().flatten();
        let variables =
            variables.filter_map(|it| Some((it["name"].as_str()?, it["value"].as_str()?)));
        let mut program = Self::program();
        program.envs(variables);
        self.start_with(program, kubeconfig, &arguments).await
    }

    /// Starts a replica with these arguments, but for addresses of this machine.
    async fn start_with(
        &self,
        mut command: Command,
        kubeconfig: &Path,
        arguments: &[String],
    ) -> Replica {
        command
            .args(
                arguments
                    .iter()
                    .filter(|argument| !argument.contains("-bind-address")),
            )
            .args([
                "--metrics-bind-address=127.0.0.1:0",
                "--health-probe-bind-address=127.0.0.1:0",
                "--webhook-bind-address=127.0.0.1:0",
                "--cert-settle=5s",
                "--log-format=json",
            ])
            .arg(format!("--kubeconfig={}", kubeconfig.display()));
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let log = child.stderr.take().expect("a pipe");
        let (mut webhooks, mut probes, mut metrics) = (None, None, None);
        let mut lines = BufReader::new(log).lines();
        let mut said = Vec::new();
        while webhooks.is_none() || probes.is_none() || metrics.is_none() {
            let line = lines.next_line().await.expect("a log");
            let Some(line) = line else {
                panic!("it ended: {said:#?}");
            };
            let value: Value = serde_json::from_str(&line).unwrap_or_default();
            let address = value["fields"]["address"].as_str().map(str::to_owned);
            match value["fields"]["what"].as_str() {
                Some("webhooks") => webhooks = address,
                Some("probes") => probes = address,
                Some("metrics") => metrics = address,
                _ => {}
            }
            said.push(line);
        }
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                // What goes wrong is to be seen in the output of a test that fails.
                if line.contains("\"WARN\"") || line.contains("\"ERROR\"") {
                    eprintln!("{line}");
                }
            }
        });
        Replica {
            child,
            webhooks: webhooks.expect("it was said"),
            probes: probes.expect("it was said"),
            metrics: metrics.expect("it was said"),
        }
    }

    /// Has the Service lead to a replica.
    fn lead_to(&self, replica: &Replica) {
        let address = replica.webhooks.parse().expect("an address");
        let services = self.cluster.server().services();
        services.insert(NAMESPACE, SERVICE, 443, address);
    }

    fn first(&self) -> Api<v1::Book> {
        Api::namespaced(self.kube.clone(), "default")
    }

    fn second(&self) -> Api<v2::Book> {
        Api::namespaced(self.kube.clone(), "default")
    }

    async fn served_certificate(&self) -> String {
        let secrets: Api<Secret> = Api::namespaced(self.kube.clone(), NAMESPACE);
        let secret = secrets
            .get("library-server-cert")
            .await
            .expect("it is deployed");
        let data = secret.data.unwrap_or_default();
        let certificate = data.get("tls.crt").expect("the manager has filled it");
        String::from_utf8(certificate.0.clone()).expect("PEM")
    }

    /// The authorities that a definition trusts.
    async fn trusted(&self) -> usize {
        let request = http::Request::get(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/books.shelf.my.domain",
        );
        let request = request.body(Vec::new()).expect("a request");
        let definition: Value = self.kube.request(request).await.expect("it is there");
        let bundle = &definition["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"];
        let bundle = base64::engine::general_purpose::STANDARD
            .decode(bundle.as_str().unwrap_or_default())
            .expect("base64");
        let bundle = String::from_utf8(bundle).expect("PEM");
        bundle.matches("BEGIN CERTIFICATE").count()
    }

    async fn nothing_is_left(self, replicas: Vec<Replica>) {
        let said = self.kubewright("undeploy").await;
        assert!(said.contains("Nothing of it is left"), "{said}");
        drop(replicas);
        for path in [
            "/api/v1/namespaces/library-system",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/books.shelf.my.domain",
        ] {
            let request = http::Request::get(path)
                .body(Vec::new())
                .expect("a request");
            let found = self.kube.request::<Value>(request).await;
            assert!(found.is_err(), "{path} is gone");
        }
        for kind in ["mutating", "validating"] {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
            let request = http::Request::get(path)
                .body(Vec::new())
                .expect("a request");
            let found: Value = self.kube.request(request).await.expect("a list");
            assert_eq!(found["items"], json!([]));
        }
        self.endpoint.close().await;
    }
}

impl Replica {
    async fn is_ready(&self) {
        let config = kube::Config::new(
            format!("http://{}", self.probes)
                .parse()
                .expect("an address"),
        );
        let client = kube::Client::try_from(config).expect("a client");
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let request = http::Request::get("/readyz?verbose").body(Vec::new());
            match client.request_text(request.expect("a request")).await {
                Ok(_) => return,
                Err(error) if Instant::now() > end => panic!("it is not ready: {error}"),
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

async fn both_versions_are_written_and_read(place: &Place) {
    let apply = PatchParams::apply("test").force();
    let one = json!({
        "apiVersion": "shelf.my.domain/v1", "kind": "Book", "metadata": {"name": "one"}, "spec": {"title": "Emma"},
    });
    let written = place
        .first()
        .patch("one", &apply, &Patch::Apply(&one))
        .await;
    assert_eq!(
        written.expect("it is stored").spec.pages,
        Some(10),
        "defaulted"
    );
    let read = place.second().get("one").await.expect("it is converted");
    assert_eq!((&*read.spec.heading, read.spec.pages), ("Emma", Some(10)));
    let two = json!({
        "apiVersion": "shelf.my.domain/v2", "kind": "Book", "metadata": {"name": "two"},
        "spec": {"heading": "Persuasion", "pages": 250},
    });
    let written = place
        .second()
        .patch("two", &apply, &Patch::Apply(&two))
        .await;
    written.expect("it is converted and stored");
    let read = place
        .first()
        .list(&ListParams::default())
        .await
        .expect("a list");
    let titles: Vec<&str> = read.items.iter().map(|book| &*book.spec.title).collect();
    assert_eq!(titles, ["Emma", "Persuasion"]);
}

async fn objects_are_validated(place: &Place) {
    let nameless = v2::Book::new("three", v2::BookSpec::default());
    let refused = place
        .second()
        .create(&PostParams::default(), &nameless)
        .await;
    let refused = refused.expect_err("it has no title").to_string();
    assert!(refused.contains("a book has a title"), "{refused}");
}

/// Writes through webhooks and conversions until it is asked to stop. Gives how many writes there were, and what failed.
async fn load(
    place: &Place,
    replicas: &[Replica],
    stop: &AtomicUsize,
    number: usize,
) -> (usize, Vec<String>) {
    let (mut count, mut failed) = (0, Vec::new());
    let name = format!("load-{number}");
    while stop.load(Ordering::Relaxed) == 0 {
        count += 1;
        // Both replicas are asked in turn, as a Service would.
        place.lead_to(&replicas[count % replicas.len()]);
        let book = json!({
            "apiVersion": "shelf.my.domain/v2", "kind": "Book", "metadata": {"name": name},
            "spec": {"heading": "Evelina", "pages": count % 1000 + 1},
        });
        let apply = PatchParams::apply("load").force();
        let books = place.second();
        loop {
            match books.patch(&name, &apply, &Patch::Apply(&book)).await {
                Ok(_) => {}
                // The server ends writes that began under another state of the definition. Clients of Go try again by themselves.
                Err(kube::Error::Api(status)) if is_to_be_repeated(&status) => continue,
                Err(error) => failed.push(error.to_string()),
            }
            break;
        }
        sleep(Duration::from_millis(5)).await;
    }
    (count, failed)
}

fn is_to_be_repeated(status: &kube::core::Status) -> bool {
    let after = status
        .details
        .as_ref()
        .map(|details| details.retry_after_seconds);
    status.code == 503 && after > Some(0) && status.message.contains("definition")
}

async fn certificates_are_replaced_under_load(place: &Place, replicas: &[Replica]) {
    let before = place.served_certificate().await;
    assert_eq!(place.trusted().await, 1);
    let stop = AtomicUsize::new(0);
    let replace = async {
        age(place).await;
        let mut most = 0;
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let (trusted, served) = (place.trusted().await, place.served_certificate().await);
            most = most.max(trusted);
            if served != before && trusted == 1 {
                break;
            }
            assert!(
                Instant::now() < end,
                "{trusted} authorities are trusted still"
            );
            sleep(Duration::from_millis(50)).await;
        }
        // A little longer, with the old authority gone.
        sleep(Duration::from_secs(1)).await;
        stop.store(1, Ordering::Relaxed);
        most
    };
    let (most, one, two) = tokio::join!(
        replace,
        load(place, replicas, &stop, 1),
        load(place, replicas, &stop, 2)
    );
    assert_eq!(most, 2, "both authorities are trusted in between");
    let failed: Vec<String> = one.1.into_iter().chain(two.1).collect();
    let writes = one.0 + two.0;
    assert!(
        failed.is_empty(),
        "{} of {writes} writes failed: {:?}",
        failed.len(),
        failed.first()
    );
    assert!(writes > 20, "{writes} writes are not a load");
    println!(
        "{writes} writes through webhooks and conversion while certificates were replaced, 0 failed"
    );
}

/// Makes the certificate look as old as one that is due to be replaced.
async fn age(place: &Place) {
    let secrets: Api<Secret> = Api::namespaced(place.kube.clone(), NAMESPACE);
    let mut secret = secrets
        .get("library-server-cert")
        .await
        .expect("it is there");
    let data = secret.data.as_mut().expect("it has some");
    let state = data.get_mut("certificates.json").expect("the state");
    let mut value: Value = serde_json::from_slice(&state.0).expect("it is JSON");
    let year = 365 * 24 * 60 * 60;
    let issued = value["served"]["issued"].as_i64().expect("a time");
    value["served"]["issued"] = json!(issued - year);
    state.0 = value.to_string().into_bytes();
    let aged = secrets
        .replace("library-server-cert", &PostParams::default(), &secret)
        .await;
    aged.expect("it is older now");
}

async fn the_other_replica_goes_on_when_one_is_killed(place: &Place, replicas: &mut Vec<Replica>) {
    let mut killed = replicas.remove(0);
    killed.child.kill().await.expect("it is killed");
    place.lead_to(&replicas[0]);
    both_versions_are_written_and_read_after(place).await;
}

async fn both_versions_are_written_and_read_after(place: &Place) {
    let apply = PatchParams::apply("test").force();
    let change = json!({
        "apiVersion": "shelf.my.domain/v2", "kind": "Book", "metadata": {"name": "two"},
        "spec": {"heading": "Sanditon", "pages": 80},
    });
    let written = place
        .second()
        .patch("two", &apply, &Patch::Apply(&change))
        .await;
    written.expect("the other replica answers");
    let read = place.first().get("two").await.expect("it is there");
    assert_eq!(read.spec.title, "Sanditon");
}
