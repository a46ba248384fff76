//! The aggregation layer: another server answers for a group and version, by an APIService with a Service.

#[path = "client/mod.rs"]
mod client;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kubewright_server::{Authorization, Server, Services, User};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use client::{create, delete, get, send};

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const GAUGES: &str = "/apis/gauges.example.com/v1/namespaces/default/gauges";
/// Longest wait for anything that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that knows gauges, and writes down what it is asked by whom.
struct Extension {
    address: SocketAddr,
    bundle: String,
    asked: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Extension {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Extension {
    /// Listens for those alone who have a certificate of this authority.
    async fn start(client_authority: &str) -> Self {
        let names = ["gauges.system.svc".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(client_authority.as_bytes());
        roots.add(authority.expect("PEM")).expect("an authority");
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .expect("a verifier");
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a configuration");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let tls = TlsAcceptor::from(Arc::new(tls));
        Self {
            address,
            bundle: base64::engine::general_purpose::STANDARD.encode(made.cert.pem()),
            task: tokio::spawn(listen(listener, tls, asked.clone())),
            asked,
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("not poisoned").clone()
    }
}

async fn listen(listener: TcpListener, tls: TlsAcceptor, asked: Arc<Mutex<Vec<String>>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, asked) = (tls.clone(), asked.clone());
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let service = service_fn(move |request: Request<Incoming>| {
                let line = describe(&request);
                asked.lock().expect("not poisoned").push(line);
                async move { Ok::<_, Infallible>(answer(&request)) }
            });
            let io = TokioIo::new(stream);
            let _ = http1::Builder::new().serve_connection(io, service).await;
        });
    }
}

fn describe(request: &Request<Incoming>) -> String {
    let all = |name: &str| {
        let values = request.headers().get_all(name).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        values.collect::<Vec<_>>().join(",")
    };
    let (user, groups) = (all("x-remote-user"), all("x-remote-group"));
    let (method, uri, secret) = (request.method(), request.uri(), all("authorization"));
    format!("{method} {uri} by {user} of {groups}{secret}")
}

type Pieces =
    std::pin::Pin<Box<dyn futures::Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>;

fn answer(request: &Request<Incoming>) -> Response<StreamBody<Pieces>> {
    let gauge =
        json!({"apiVersion": "gauges.example.com/v1", "kind": "Gauge", "metadata": {"name": "g"}});
    let piece = |value: &Value| Ok(Frame::data(Bytes::from(format!("{value}\n"))));
    let first = |value: Value| stream::iter([piece(&value)]);
    let query = request.uri().query().unwrap_or("");
    let pieces: Pieces = match request.uri().path() {
        "/apis/gauges.example.com/v1" => Box::pin(first(json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "gauges.example.com/v1",
            "resources": [{"name": "gauges", "singularName": "gauge", "namespaced": true, "kind": "Gauge", "verbs": ["get", "list", "watch"]}],
        }))),
        // A watch that never ends.
        GAUGES if query.contains("watch") => {
            let event = first(json!({"type": "ADDED", "object": gauge}));
            Box::pin(futures::StreamExt::chain(event, stream::pending()))
        }
        _ => Box::pin(first(json!({"kind": "GaugeList", "items": [gauge]}))),
    };
    let response = Response::builder().header("content-type", "application/json");
    response.body(StreamBody::new(pieces)).expect("a response")
}

async fn start() -> (Server, Extension, kubewright_server::Endpoint) {
    let services = Services::default();
    let builder = Server::builder().authorization(Authorization::Rbac);
    let server = builder.services(services.clone()).start().await;
    let server = server.expect("starts");
    let endpoint = server.listen("127.0.0.1:0".parse().expect("an address"));
    let endpoint = endpoint.await.expect("listens");
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let (_, trust) = get(&server, path).await;
    assert_eq!(
        trust["data"]["requestheader-username-headers"],
        r#"["X-Remote-User"]"#
    );
    let authority = trust["data"]["requestheader-client-ca-file"].as_str();
    let extension = Extension::start(authority.expect("an authority")).await;
    services.insert("system", "gauges", 443, extension.address);
    (server, extension, endpoint)
}

fn api_service(group: &str, service: &str, bundle: &str) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": format!("v1.{group}")},
        "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15, "caBundle": bundle,
            "service": {"namespace": "system", "name": service, "port": 443},
        },
    })
}

/// Waits for the condition of an APIService.
async fn available(server: &Server, name: &str, status: &str) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let (_, found) = get(server, &format!("{API_SERVICES}/{name}")).await;
        let condition = found["status"]["conditions"][0].clone();
        if condition["type"] == "Available" && condition["status"] == status {
            return condition;
        }
        assert!(Instant::now() < end, "{name} is {found:#}");
        sleep(Duration::from_millis(20)).await;
    }
}

async fn get_as(
    server: &Server,
    user: User,
    path: &str,
) -> (u16, Response<kubewright_server::ResponseBody>) {
    let request = Request::builder().uri(format!("https://localhost{path}"));
    let request = request.header("x-remote-user", "system:admin");
    let request = request.body(http_body_util::Empty::<Bytes>::new());
    let answer = server.service_as(user).oneshot(request.expect("a request"));
    let answer = answer.await.expect("an answer");
    (answer.status().as_u16(), answer)
}

#[tokio::test]
async fn requests_are_passed_on_with_their_callers_identity() {
    let (server, extension, _endpoint) = start().await;
    let spec = api_service("gauges.example.com", "gauges", &extension.bundle);
    create(&server, API_SERVICES, spec).await;
    let condition = available(&server, "v1.gauges.example.com", "True").await;
    assert_eq!(condition["reason"], "Passed");

    // Discovery lists it with everything else.
    let (_, groups) = get(&server, "/apis").await;
    assert!(groups.to_string().contains("gauges.example.com"));
    let (_, group) = get(&server, "/apis/gauges.example.com").await;
    assert_eq!(group["preferredVersion"]["version"], "v1", "{group}");

    // Roles are those of this server.
    let bob = || User::new("bob", ["team"]);
    assert_eq!(get_as(&server, bob(), GAUGES).await.0, 403);
    let rules = json!([{"apiGroups": ["gauges.example.com"], "resources": ["gauges"], "verbs": ["list", "watch"]}]);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    create(&server, &format!("{rbac}/clusterroles"), json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "gauges"}, "rules": rules,
    })).await;
    create(&server, &format!("{rbac}/clusterrolebindings"), json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "gauges"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gauges"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
    })).await;
    let (code, answer) = get_as(&server, bob(), &format!("{GAUGES}?limit=5")).await;
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    assert_eq!(code, 200);
    assert!(String::from_utf8_lossy(&body).contains("GaugeList"));
    let last = extension.asked().pop().expect("it was asked");
    assert_eq!(
        last,
        format!("GET {GAUGES}?limit=5 by bob of team,system:authenticated")
    );

    // An event of a watch arrives though the watch goes on.
    let (_, watch) = get_as(&server, bob(), &format!("{GAUGES}?watch=true")).await;
    let mut body = watch.into_body();
    let event = timeout(PATIENCE, body.frame()).await.expect("in time");
    let event = event
        .and_then(Result::ok)
        .and_then(|frame| frame.into_data().ok());
    assert!(String::from_utf8_lossy(&event.expect("an event")).contains("ADDED"));

    delete(&server, &format!("{API_SERVICES}/v1.gauges.example.com")).await;
    assert_eq!(get(&server, GAUGES).await.0, 404);
    assert_eq!(server.differences(), Vec::<String>::new());
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_unavailable() {
    let (server, _extension, _endpoint) = start().await;
    create(
        &server,
        API_SERVICES,
        api_service("none.example.com", "none", ""),
    )
    .await;
    let condition = available(&server, "v1.none.example.com", "False").await;
    assert_eq!(condition["reason"], "FailedDiscoveryCheck");
    let message = condition["message"].as_str().unwrap_or_default();
    assert!(message.contains("service \"none\" not found"), "{message}");
    let (code, answer) = get(&server, "/apis/none.example.com/v1/things").await;
    assert_eq!(code, 503, "{answer}");
    let (_, groups) = get(&server, "/apis").await;
    assert!(!groups.to_string().contains("none.example.com"));
}

#[tokio::test]
async fn an_api_service_is_named_by_its_version_and_group() {
    let server = Server::builder().start().await.expect("starts");
    let mut misnamed = api_service("gauges.example.com", "gauges", "");
    misnamed["metadata"]["name"] = json!("gauges");
    let (code, answer) = send(&server, "POST", API_SERVICES, "application/json", &misnamed).await;
    assert_eq!(code, 422, "{answer:#}");
    assert_eq!(answer["details"]["causes"][0]["field"], "metadata.name");
    assert_eq!(get(&server, "/apis/gauges.example.com/v1").await.0, 404);
    create(
        &server,
        API_SERVICES,
        api_service("gauges.example.com", "gauges", ""),
    )
    .await;
    assert_eq!(get(&server, "/apis/gauges.example.com/v1").await.0, 503);
    let path = format!("{API_SERVICES}/v1.gauges.example.com");
    assert_eq!(delete(&server, &path).await.0, 200);
    assert_eq!(get(&server, "/apis/gauges.example.com/v1").await.0, 404);
    assert_eq!(server.differences(), [""; 0]);
}
