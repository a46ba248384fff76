//! Clients that hang up during a write: what is stored, what is in force and what a restart makes of it are the same.
//!
//! `KUBEWRIGHT_HANGUPS=1000` sends so many writes of each kind in each way instead of a few.

use std::path::Path;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http_body_util::Full;
use kubewright_server::{Authorization, Endpoint, Environment, Server};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::client::{create, get};
use crate::connect::{Http2, Write, close_http1};
use crate::objects::{
    DEFINITIONS, RBAC, VALIDATING, config_map, custom, custom_object, definition, eventually,
    named, post, service,
};

/// A kind of write, and what has to be the same as what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    BindingCreated,
    BindingDeleted,
    Service,
    DefinitionCreated,
    DefinitionDeleted,
    Webhook,
    Quota,
}

const KINDS: [Kind; 7] = [
    Kind::BindingCreated,
    Kind::BindingDeleted,
    Kind::Service,
    Kind::DefinitionCreated,
    Kind::DefinitionDeleted,
    Kind::Webhook,
    Kind::Quota,
];

/// How a client hangs up.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// At a moment when the server waits: for the disk, however slow it is.
    Dropped,
    Http1Closed,
    Http2Reset,
}

fn count() -> usize {
    let count = std::env::var("KUBEWRIGHT_HANGUPS").ok();
    count.and_then(|count| count.parse().ok()).unwrap_or(25)
}

fn binding(name: &str) -> Value {
    let mut binding = named("rbac.authorization.k8s.io/v1", "RoleBinding", name);
    let group = "rbac.authorization.k8s.io";
    binding["roleRef"] = json!({"apiGroup": group, "kind": "ClusterRole", "name": "view"});
    binding["subjects"] = json!([{"apiGroup": group, "kind": "User", "name": name}]);
    binding
}

/// A webhook that cannot be reached, for config maps with a label.
fn webhook(name: &str) -> Value {
    let rules = json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]);
    let hook = json!({
        "clientConfig": {"url": "https://127.0.0.1:1/"}, "failurePolicy": "Fail", "rules": rules,
        "objectSelector": {"matchLabels": {"hook": name}},
    });
    crate::hooks::configuration("ValidatingWebhookConfiguration", name, hook)
}

/// Every second one has a node port: there are not enough for thousands of Services.
fn service_spec(name: &str) -> Value {
    let is_even = name.ends_with(['0', '2', '4', '6', '8']);
    let service_type = if is_even { "NodePort" } else { "ClusterIP" };
    json!({"type": service_type, "ports": [{"port": 80}]})
}

fn quota() -> Value {
    let mut quota = named("v1", "ResourceQuota", "q");
    quota["spec"] = json!({"hard": {"configmaps": "0"}});
    quota
}

impl Kind {
    fn name(self, way: Way, i: usize) -> String {
        format!("{self:?}-{way:?}-{i}").to_lowercase()
    }

    /// The plural of a definition of that name.
    fn plural(name: &str) -> String {
        format!("{}s", name.replace('-', ""))
    }

    /// Where the object is.
    fn path(self, name: &str) -> String {
        match self {
            Kind::BindingCreated | Kind::BindingDeleted => {
                format!("{RBAC}/namespaces/default/rolebindings/{name}")
            }
            Kind::Service => format!("/api/v1/namespaces/default/services/{name}"),
            Kind::DefinitionCreated | Kind::DefinitionDeleted => {
                format!("{DEFINITIONS}/{}.example.com", Kind::plural(name))
            }
            Kind::Webhook => format!("{VALIDATING}/{name}"),
            Kind::Quota => format!("/api/v1/namespaces/{name}/resourcequotas/q"),
        }
    }

    fn object(self, name: &str) -> Value {
        match self {
            Kind::BindingCreated | Kind::BindingDeleted => binding(name),
            Kind::Service => service(name, service_spec(name)),
            Kind::DefinitionCreated | Kind::DefinitionDeleted => {
                definition(&Kind::plural(name), "v1")
            }
            Kind::Webhook => webhook(name),
            Kind::Quota => quota(),
        }
    }

    /// Makes what the write needs, and the write.
    async fn write(self, server: &Server, name: &str) -> Write {
        let path = self.path(name);
        let collection = path
            .rsplit_once('/')
            .map_or("", |(collection, _)| collection);
        if self == Kind::Quota {
            create(server, "/api/v1/namespaces", named("v1", "Namespace", name)).await;
        }
        let deletes = matches!(self, Kind::BindingDeleted | Kind::DefinitionDeleted);
        if deletes {
            create(server, collection, self.object(name)).await;
        }
        if self == Kind::DefinitionDeleted {
            let plural = Kind::plural(name);
            let objects = custom("v1", &plural);
            until_served(server, &objects).await;
            for i in 0..5 {
                let object = custom_object("v1", &plural, &format!("o{i}"));
                create(server, &objects, object).await;
            }
        }
        Write {
            method: if deletes { "DELETE" } else { "POST" },
            path: if deletes {
                path.clone()
            } else {
                collection.to_owned()
            },
            body: if deletes {
                String::new()
            } else {
                self.object(name).to_string()
            },
        }
    }

    /// What differs between what is stored and what is in force, if anything.
    async fn difference(self, server: &Server, name: &str) -> Result<(), String> {
        let (code, stored) = get(server, &self.path(name)).await;
        let is_stored = code == 200;
        let in_force = match self {
            Kind::BindingCreated | Kind::BindingDeleted => may_read(server, name).await,
            Kind::Service => return Ok(()),
            Kind::DefinitionCreated | Kind::DefinitionDeleted => {
                let plural = Kind::plural(name);
                if is_stored && !stored["metadata"]["deletionTimestamp"].is_null() {
                    return Err(format!("{plural} is still being deleted"));
                }
                if is_stored
                    && !stored["status"]
                        .to_string()
                        .contains("InitialNamesAccepted")
                {
                    return Err(format!("{plural} is not established"));
                }
                get(server, &custom("v1", &plural)).await.0 == 200
            }
            Kind::Webhook => {
                let mut map = config_map("x");
                map["metadata"]["labels"] = json!({"hook": name});
                dry_run(server, "default", &map).await == 500
            }
            Kind::Quota => dry_run(server, name, &config_map("x")).await == 403,
        };
        let same = is_stored == in_force;
        same.then_some(())
            .ok_or_else(|| format!("{name}: stored {is_stored}, in force {in_force}"))
    }
}

/// Waits until objects of a definition are served. Behind many other definitions that takes a while.
async fn until_served(server: &Server, path: &str) {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let (code, answer) = get(server, path).await;
        if code == 200 {
            return;
        }
        assert!(Instant::now() < end, "{path} is not served: {answer:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn may_read(server: &Server, user: &str) -> bool {
    let mut review =
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"});
    let attributes = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    review["spec"] = json!({"user": user, "resourceAttributes": attributes});
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    create(server, path, review).await["status"]["allowed"] == true
}

async fn dry_run(server: &Server, namespace: &str, map: &Value) -> u16 {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
    post(server, &path, map).await.0
}

/// Polls a request a few times and drops it.
async fn drop_after(server: &Server, write: &Write, polls: u64) {
    let request = http::Request::builder()
        .method(write.method)
        .uri(format!("https://localhost{}", write.path))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(write.body.clone())))
        .expect("a request");
    let mut answer = Box::pin(server.service().oneshot(request));
    let mut left = polls;
    std::future::poll_fn(|cx| {
        left -= 1;
        match answer.poll_unpin(cx) {
            Poll::Pending if left > 0 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    })
    .await;
}

async fn hang_up(server: &Server, endpoint: &Endpoint, way: Way, kind: Kind) {
    let mut http2 = Http2::connect(endpoint).await;
    let random = Environment::system();
    for i in 0..count() {
        let write = kind.write(server, &kind.name(way, i)).await;
        let after = Duration::from_micros(random.below(4_000));
        match way {
            Way::Dropped => drop_after(server, &write, 1 + random.below(3)).await,
            Way::Http1Closed => close_http1(endpoint, &write, after).await,
            Way::Http2Reset => http2.reset(&write, after).await,
        }
    }
}

async fn check(server: &Server, way: Way) {
    for kind in KINDS {
        for i in 0..count() {
            let name = kind.name(way, i);
            let what = format!("{name} to be in force as it is stored");
            eventually(&what, || kind.difference(server, &name)).await;
        }
    }
    let differences = || async {
        let differences = server.differences();
        differences
            .is_empty()
            .then_some(())
            .ok_or(differences.join("\n"))
    };
    eventually("everything to be what the objects come to", differences).await;
}

/// No address and no port is given out twice, to Services there are and to as many new ones.
async fn check_addresses(server: &Server) {
    for i in 0..count() {
        let name = format!("later-{i}");
        let services = "/api/v1/namespaces/default/services";
        create(server, services, service(&name, service_spec(&name))).await;
    }
    let (_, list) = get(server, "/api/v1/services").await;
    let services = list["items"].as_array().cloned().unwrap_or_default();
    for field in ["/spec/clusterIP", "/spec/ports/0/nodePort"] {
        let values = services.iter().filter_map(|s| s.pointer(field));
        let mut values: Vec<String> = values.map(Value::to_string).collect();
        let all = values.len();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), all, "some {field} was given out twice");
    }
}

async fn start(directory: Option<&Path>) -> Server {
    let builder = Server::builder().authorization(Authorization::Rbac);
    let builder = match directory {
        Some(directory) => builder.data_dir(directory),
        None => builder,
    };
    builder.start().await.expect("starts")
}

async fn run(directory: Option<&Path>) {
    let server = start(directory).await;
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = server.listen(address).await.expect("listens");
    let ways = [Way::Dropped, Way::Http1Closed, Way::Http2Reset];
    for way in ways {
        for kind in KINDS {
            hang_up(&server, &endpoint, way, kind).await;
        }
        check(&server, way).await;
    }
    check_addresses(&server).await;
    drop((endpoint, server));
    if directory.is_some() {
        let again = start(directory).await;
        for way in ways {
            check(&again, way).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hanging_up_leaves_nothing_half_done_on_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    run(Some(directory.path())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hanging_up_leaves_nothing_half_done_in_memory() {
    run(None).await;
}
