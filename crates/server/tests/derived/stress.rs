//! Everything at once: writes of all kinds that others follow from, forks, snapshots, webhooks that write back. Now and
//! then all pause, and what is in force has to be what the objects come to.
//!
//! `KUBEWRIGHT_STRESS=60` runs for so many seconds instead of a few.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kubewright_server::{Authorization, Environment, Server};
use serde_json::{Value, json};
use tokio::sync::RwLock;
use tokio::time::{Instant, timeout};

use crate::client::{create, get, send};
use crate::hooks::Webhook;
use crate::objects::{
    DEFINITIONS, RBAC, SERVICES, VALIDATING, config_map, custom, custom_object, definition,
    eventually, named, post, service,
};

/// The longest that one request may take: a deadlock takes longer.
const WATCHDOG: Duration = Duration::from_secs(30);
const LIMIT: u64 = 5;
const MAPS: &str = "/api/v1/namespaces/limited/configmaps";

struct Stress {
    server: Server,
    random: Environment,
    end: Instant,
    requests: AtomicU64,
    /// Read by all who write, written by the one who compares.
    pause: RwLock<()>,
}

impl Stress {
    /// Sends a request; whatever the answer is, there is one in time.
    async fn send(&self, method: &str, path: &str, body: Value) -> u16 {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        self.requests.fetch_add(1, Ordering::Relaxed);
        let answer = timeout(WATCHDOG, send(&self.server, method, path, kind, &body)).await;
        let what = format!("timed out after 30 s waiting for {method} {path}");
        answer.expect(&what).0
    }

    fn below(&self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// Services of all types, that change their types and ports.
    async fn services(&self) {
        let name = format!("s{}", self.below(20));
        let path = format!("{SERVICES}/{name}");
        let kind = ["ClusterIP", "NodePort", "LoadBalancer"][self.below(3) as usize];
        let port = 30_000 + self.below(30);
        match self.below(4) {
            0 => {
                let spec = json!({"type": kind, "ports": [{"port": 80}]});
                self.send("POST", SERVICES, service(&name, spec)).await;
            }
            1 => {
                let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
                self.send("POST", SERVICES, service(&name, spec)).await;
            }
            2 => {
                let change = json!({"spec": {"type": kind, "ports": [{"port": 80}]}});
                self.send("PATCH", &path, change).await;
            }
            _ => {
                self.send("DELETE", &path, Value::Null).await;
            }
        }
    }

    /// Roles, bindings, and an aggregated role that is made of the roles.
    async fn roles(&self) {
        let name = format!("r{}", self.below(5));
        let roles = format!("{RBAC}/clusterroles");
        let verb = ["get", "list", "watch"][self.below(3) as usize];
        let rules = json!([{"apiGroups": [""], "resources": [name], "verbs": [verb]}]);
        let labels = json!({"part": "true"});
        match self.below(4) {
            0 => {
                let mut role = named("rbac.authorization.k8s.io/v1", "ClusterRole", &name);
                role["metadata"]["labels"] = labels;
                role["rules"] = rules;
                self.send("POST", &roles, role).await;
            }
            1 => {
                let change = json!({"rules": rules});
                self.send("PATCH", &format!("{roles}/{name}"), change).await;
            }
            2 => {
                self.send("DELETE", &format!("{roles}/{name}"), Value::Null)
                    .await;
            }
            _ => {
                let group = "rbac.authorization.k8s.io";
                let mut binding =
                    named("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", &name);
                binding["roleRef"] =
                    json!({"apiGroup": group, "kind": "ClusterRole", "name": name});
                binding["subjects"] = json!([{"apiGroup": group, "kind": "User", "name": name}]);
                let bindings = format!("{RBAC}/clusterrolebindings");
                if self.send("POST", &bindings, binding).await == 409 {
                    self.send("DELETE", &format!("{bindings}/{name}"), Value::Null)
                        .await;
                }
            }
        }
    }

    /// Definitions that come, go and store another version, and objects of them.
    async fn definitions(&self) {
        let plural = ["apples", "pears"][self.below(2) as usize];
        let version = ["v1", "v2"][self.below(2) as usize];
        let path = format!("{DEFINITIONS}/{plural}.example.com");
        match self.below(8) {
            0 => {
                self.send("POST", DEFINITIONS, definition(plural, version))
                    .await;
            }
            1 => {
                let change = json!({"spec": definition(plural, version)["spec"]});
                self.send("PATCH", &path, change).await;
            }
            2 => {
                self.send("DELETE", &path, Value::Null).await;
            }
            n => {
                let name = format!("o{}", self.below(10));
                let object = custom_object(version, plural, &name);
                let objects = custom(version, plural);
                if self.send("POST", &objects, object).await == 409 && n > 5 {
                    self.send("DELETE", &format!("{objects}/{name}"), Value::Null)
                        .await;
                }
            }
        }
    }

    /// Objects under a quota, and the quota.
    async fn quotas(&self) {
        let name = format!("m{}", self.below(2 * LIMIT));
        match self.below(10) {
            0 => {
                let change = json!({"metadata": {"labels": {"a": format!("{}", self.below(9))}}});
                let path = "/api/v1/namespaces/limited/resourcequotas/q";
                self.send("PATCH", path, change).await;
            }
            1..4 => {
                self.send("DELETE", &format!("{MAPS}/{name}"), Value::Null)
                    .await;
            }
            _ => {
                self.send("POST", MAPS, config_map(&name)).await;
            }
        }
    }

    /// Webhook configurations that come and go.
    async fn webhooks(&self, client_config: &Value) {
        let name = format!("h{}", self.below(3));
        let hook = json!({"clientConfig": client_config, "failurePolicy": "Ignore"});
        let configuration =
            crate::hooks::configuration("ValidatingWebhookConfiguration", &name, hook);
        if self.send("POST", VALIDATING, configuration).await == 409 {
            self.send("DELETE", &format!("{VALIDATING}/{name}"), Value::Null)
                .await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    /// A copy at any moment is whole.
    async fn forks(&self) {
        let fork = match self.below(2) {
            0 => self.server.fork(Environment::system()).await,
            _ => {
                self.server
                    .snapshot()
                    .await
                    .server(Environment::system())
                    .await
            }
        };
        settled(&fork, "in a fork").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    /// Nobody writes, and everything is what it should be.
    async fn compare(&self) {
        let _all = self.pause.write().await;
        settled(&self.server, "after a pause").await;
        let (_, maps) = get(&self.server, MAPS).await;
        let used = maps["items"].as_array().map_or(0, Vec::len);
        assert!(
            used as u64 <= LIMIT,
            "{used} objects under a quota of {LIMIT}"
        );
        for plural in ["apples", "pears"] {
            let (code, _) = get(&self.server, &format!("{DEFINITIONS}/{plural}.example.com")).await;
            let served = get(&self.server, &custom("v1", plural)).await.0;
            assert_eq!(served, code, "{plural}");
            if code == 404 {
                create(&self.server, DEFINITIONS, definition(plural, "v1")).await;
                let (_, list) = get(&self.server, &custom("v1", plural)).await;
                assert_eq!(
                    list["items"],
                    json!([]),
                    "objects came back with their kind"
                );
            }
        }
    }
}

/// Waits until the server has done what follows from the last writes; then nothing may differ.
async fn settled(server: &Server, when: &str) {
    eventually(
        &format!("everything to be what the objects come to, {when}"),
        || async {
            let differences = server.differences();
            let (_, roles) = get(server, &format!("{RBAC}/clusterroles")).await;
            let (_, definitions) = get(server, DEFINITIONS).await;
            let unfinished = unfinished(&roles, &definitions);
            let (used, claimed) = (cluster_ips(server).await, ip_addresses(server).await);
            let seen = format!(
                "{unfinished:?} {used:?} {claimed:?} {}",
                differences.join("\n")
            );
            (differences.is_empty() && unfinished.is_none() && used == claimed)
                .then_some(())
                .ok_or(seen)
        },
    )
    .await;
}

/// The addresses that Services have, with their namespaces and names.
async fn cluster_ips(server: &Server) -> BTreeSet<(String, String)> {
    let (_, services) = get(server, "/api/v1/services").await;
    let services = services["items"].as_array().expect("a list").iter();
    let has_address = |service: &&Value| {
        let address = service["spec"]["clusterIP"].as_str().unwrap_or("None");
        address != "None" && !address.is_empty()
    };
    let pairs = services.filter(has_address).map(|service| {
        let meta = &service["metadata"];
        let address = service["spec"]["clusterIP"].as_str().unwrap_or("");
        (
            address.to_owned(),
            format!("{} {}", meta["namespace"], meta["name"]),
        )
    });
    pairs.collect()
}

/// The addresses that IPAddresses stand for, with the Services that they refer to.
async fn ip_addresses(server: &Server) -> BTreeSet<(String, String)> {
    let (_, addresses) = get(server, "/apis/networking.k8s.io/v1/ipaddresses").await;
    let addresses = addresses["items"].as_array().expect("a list").iter();
    let pairs = addresses.map(|address| {
        let (name, parent) = (&address["metadata"]["name"], &address["spec"]["parentRef"]);
        (
            name.as_str().unwrap_or("").to_owned(),
            format!("{} {}", parent["namespace"], parent["name"]),
        )
    });
    pairs.collect()
}

/// What the server has yet to write.
fn unfinished(roles: &Value, definitions: &Value) -> Option<String> {
    let items = |list: &Value| list["items"].as_array().cloned().unwrap_or_default();
    for definition in items(definitions) {
        let established = definition["status"]
            .to_string()
            .contains("InitialNamesAccepted");
        if !established || !definition["metadata"]["deletionTimestamp"].is_null() {
            return Some(definition["metadata"]["name"].to_string());
        }
    }
    let parts: Vec<Value> = items(roles);
    let of = |name: &str| parts.iter().find(|role| role["metadata"]["name"] == name);
    let sum = of("sum")?;
    let mut expected: Vec<String> = Vec::new();
    for role in parts
        .iter()
        .filter(|role| role["metadata"]["labels"]["part"] == "true")
    {
        expected.extend(
            role["rules"]
                .as_array()
                .into_iter()
                .flatten()
                .map(Value::to_string),
        );
    }
    let rules = sum["rules"].as_array().into_iter().flatten();
    let rules: Vec<String> = rules.map(Value::to_string).collect();
    (rules != expected).then(|| format!("sum is {rules:?}, not {expected:?}"))
}

async fn start() -> Server {
    let server = Server::builder().authorization(Authorization::Rbac);
    let server = server.start().await.expect("starts");
    create(
        &server,
        "/api/v1/namespaces",
        named("v1", "Namespace", "limited"),
    )
    .await;
    let mut quota = named("v1", "ResourceQuota", "q");
    quota["spec"] = json!({"hard": {"configmaps": LIMIT.to_string()}});
    create(&server, "/api/v1/namespaces/limited/resourcequotas", quota).await;
    // A count of Services makes those who write them wait for each other, and forks wait for them.
    let mut many = named("v1", "ResourceQuota", "many");
    many["spec"] = json!({"hard": {"services": "1000"}});
    create(&server, "/api/v1/namespaces/default/resourcequotas", many).await;
    let mut sum = named("rbac.authorization.k8s.io/v1", "ClusterRole", "sum");
    sum["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"part": "true"}}]});
    create(&server, &format!("{RBAC}/clusterroles"), sum).await;
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everything_at_once_stays_what_the_objects_come_to() {
    let seconds = std::env::var("KUBEWRIGHT_STRESS").ok();
    let seconds = seconds.and_then(|s| s.parse().ok()).unwrap_or(4);
    let stress = Arc::new(Stress {
        server: start().await,
        random: Environment::system(),
        end: Instant::now() + Duration::from_secs(seconds),
        requests: AtomicU64::new(0),
        pause: RwLock::new(()),
    });
    let webhook = writing_webhook(stress.clone()).await;
    let hook = webhook.client_config();
    let mut tasks = tokio::task::JoinSet::new();
    for job in 0..11 {
        let (stress, hook) = (stress.clone(), hook.clone());
        tasks.spawn(async move {
            while Instant::now() < stress.end {
                // A request in memory does not wait for anything by itself.
                tokio::task::yield_now().await;
                let _writing = stress.pause.read().await;
                match job {
                    0 | 1 => stress.services().await,
                    2 | 3 => stress.roles().await,
                    4..7 => stress.definitions().await,
                    7..9 => stress.quotas().await,
                    9 => stress.webhooks(&hook).await,
                    _ => stress.forks().await,
                }
            }
        });
    }
    let comparer = stress.clone();
    tasks.spawn(async move {
        while Instant::now() < comparer.end {
            tokio::time::sleep(Duration::from_millis(500)).await;
            comparer.compare().await;
        }
    });
    while let Some(done) = tasks.join_next().await {
        done.expect("no job fails");
    }
    stress.compare().await;
    let requests = stress.requests.load(Ordering::Relaxed);
    println!("{requests} requests in {seconds} s");
    assert!(
        requests > 100 * seconds,
        "{requests} requests are not a stress"
    );
}

/// A webhook that writes objects that others follow from before it answers.
async fn writing_webhook(stress: Arc<Stress>) -> Webhook {
    let runtime = tokio::runtime::Handle::current();
    Webhook::admission(move |_| {
        let stress = stress.clone();
        let write = async move {
            let name = format!("hook{}", stress.below(3));
            let spec = json!({"ports": [{"port": 80}]});
            if post(&stress.server, SERVICES, &service(&name, spec))
                .await
                .0
                == 409
            {
                stress
                    .send("DELETE", &format!("{SERVICES}/{name}"), Value::Null)
                    .await;
            }
        };
        tokio::task::block_in_place(|| runtime.block_on(write));
        json!({"allowed": true})
    })
    .await
}
