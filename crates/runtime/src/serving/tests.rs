//! Facts about what is served, over sockets.

use kubewright_testing::limit;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use kubewright_server::{Authorization, Server, Tokens, User};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::*;
use crate::metrics::Metrics;

struct Serving {
    address: SocketAddr,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Serving {
    async fn start(handler: impl Handler, tls: Option<Tls>) -> Self {
        let listener = Listener::bind("127.0.0.1:0").await.expect("binds");
        let mut listener = listener.expect("it is not off");
        if let Some(tls) = tls {
            listener = listener.tls(tls);
        }
        let address = listener.address().expect("it is bound");
        let cancel = CancellationToken::new();
        let task = tokio::spawn(listener.serve(handler, cancel.clone()));
        Self {
            address,
            cancel,
            task,
        }
    }

    async fn connect(&self) -> TcpStream {
        limit(TcpStream::connect(self.address))
            .await
            .expect("connects")
    }

    async fn get(&self, path: &str) -> String {
        exchange(limit(self.connect()).await, &request(path, "")).await
    }

    async fn get_as(&self, path: &str, token: &str) -> String {
        let header = format!("Authorization: Bearer {token}\r\n");
        exchange(limit(self.connect()).await, &request(path, &header)).await
    }

    async fn stop(self) {
        self.cancel.cancel();
        limit(self.task).await.expect("it ends");
    }
}

fn request(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{headers}\r\n")
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> String {
    let sent = stream.write_all(request.as_bytes()).await;
    sent.expect("sent");
    let mut answer = Vec::new();
    // A refused client may see a reset instead of an end.
    let _ = limit(stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

fn checked(probes: &Probes, path: &str, query: &str) -> (u16, String) {
    let response = probes.answer(path, query);
    let status = response.status().as_u16();
    (
        status,
        String::from_utf8_lossy(response.body()).into_owned(),
    )
}

#[test]
fn probes_answer_as_controller_runtime_does() {
    let probes = Probes::new();
    probes.readiness("cache", || Ok(()));
    probes.readiness("webhook", || Err("not listening".into()));
    let failed = "[+]cache ok\n[-]webhook failed: reason withheld\nhealthz check failed\n";
    let verbose = "[+]cache ok\n[+]webhook excluded: ok\nhealthz check passed\n";
    let unknown = "[+]cache ok\n[+]webhook excluded: ok\n\
                   warn: some health checks cannot be excluded: no matches for \"x\"\n\
                   healthz check passed\n";
    let cases = [
        ("/healthz", "", 200, "ok"),
        (
            "/healthz",
            "verbose",
            200,
            "[+]ping ok\nhealthz check passed\n",
        ),
        ("/healthz/ping", "", 200, "ok"),
        ("/readyz", "", 500, failed),
        ("/readyz/", "verbose=1", 500, failed),
        ("/readyz", "exclude=webhook", 200, "ok"),
        ("/readyz", "exclude=webhook&verbose", 200, verbose),
        ("/readyz", "exclude=webhook&exclude=x&verbose", 200, unknown),
        ("/readyz/cache", "", 200, "ok"),
        (
            "/readyz/webhook",
            "",
            500,
            "internal server error: not listening\n",
        ),
        ("/readyz/none", "", 404, "404 page not found\n"),
        ("/readyzz", "", 404, "404 page not found\n"),
        ("/", "", 404, "404 page not found\n"),
    ];
    for (path, query, status, text) in cases {
        let expected = (status, text.to_owned());
        assert_eq!(checked(&probes, path, query), expected, "{path}?{query}");
    }
}

#[limited::test]
async fn probes_and_metrics_are_served_in_plain() {
    let probes = Serving::start(Probes::new(), None).await;
    let answer = probes.get("/readyz?verbose").await;
    assert_eq!(
        (status(&answer), body(&answer)),
        ("200", "[+]ping ok\nhealthz check passed\n")
    );
    limit(probes.stop()).await;

    let metrics = Metrics::new();
    metrics.leader("op").set(1.0);
    let server = MetricsServer::new(metrics).json("/debug/causes", || json!({"causes": []}));
    let server = Serving::start(server, None).await;
    let answer = server.get("/metrics").await;
    assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8"));
    assert!(body(&answer).ends_with("leader_election_master_status{name=\"op\"} 1\n"));
    assert_eq!(body(&server.get("/debug/causes").await), "{\"causes\":[]}");
    assert_eq!(status(&server.get("/other").await), "404");
    limit(server.stop()).await;
}

#[limited::test]
async fn answer_that_panics_costs_no_more_than_itself() {
    let broken = || -> serde_json::Value { panic!("there is no page") };
    let server = MetricsServer::new(Metrics::new()).json("/debug/broken", broken);
    let server = Serving::start(server, None).await;
    let answer = server.get("/debug/broken").await;
    assert_eq!(
        (status(&answer), body(&answer)),
        ("500", "the answer panicked\n")
    );
    assert_eq!(status(&server.get("/metrics").await), "200");
    limit(server.stop()).await;
}

#[limited::test]
async fn what_is_not_a_small_get_is_refused() {
    let server = Serving::start(Probes::new(), None).await;
    let post =
        "POST /healthz HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let answer = exchange(limit(server.connect()).await, post).await;
    assert_eq!(status(&answer), "405");
    let long = format!("X: {}\r\n", "y".repeat(200_000));
    let answer = exchange(limit(server.connect()).await, &request("/healthz", &long)).await;
    assert_eq!(status(&answer), "431");
    let answer = exchange(limit(server.connect()).await, "no HTTP at all\r\n\r\n").await;
    assert_eq!(status(&answer), "400");
    assert_eq!(status(&server.get("/healthz").await), "200", "others go on");
}

#[limited::test]
async fn addresses_that_mean_nothing_are_off_or_refused() {
    for off in ["", "0"] {
        assert!(Listener::bind(off).await.expect("fine").is_none());
    }
    for wrong in ["nonsense", "127.0.0.1:99999", ":x"] {
        assert!(Listener::bind(wrong).await.is_err(), "{wrong}");
    }
}

#[limited::test]
async fn certificate_is_made_when_none_is_given() {
    let tls = Tls::self_signed(&["localhost"]).expect("made");
    let connector = connector(tls.certificate());
    let server = Serving::start(Probes::new(), Some(tls)).await;
    let stream = connector
        .connect(localhost(), limit(server.connect()).await)
        .await;
    let answer = exchange(stream.expect("shakes hands"), &request("/healthz", "")).await;
    assert_eq!((status(&answer), body(&answer)), ("200", "ok"));
    assert!(Tls::from_pem(b"", b"").is_err());
}

/// A certificate and its key, written to files; the certificate as clients see it.
fn write_certificate(folder: &Path) -> Vec<u8> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    let made = made.expect("it is made");
    std::fs::write(folder.join("tls.crt"), made.cert.pem()).expect("it is written");
    let key = made.signing_key.serialize_pem();
    std::fs::write(folder.join("tls.key"), key).expect("it is written");
    made.cert.der().to_vec()
}

/// The certificate that the next client is shown.
async fn shown(tls: &Tls) -> Vec<u8> {
    let acceptor = tls.acceptor().await;
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (served, connected) = tokio::join!(
        acceptor.accept(far),
        connector(tls.certificate()).connect(localhost(), near),
    );
    served.expect("shakes hands");
    let connected = connected.expect("shakes hands");
    let seen = connected.get_ref().1.peer_certificates();
    seen.expect("it is shown")[0].to_vec()
}

/// A client that trusts this certificate alone.
fn connector(certificate: Vec<u8>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from(certificate);
    roots.add(certificate).expect("it is one");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("there are some")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(client))
}

fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").expect("is a name")
}

#[limited::test(start_paused = true)]
async fn certificate_in_files_is_read_again_when_they_change() {
    let folder = tempfile::tempdir().expect("a directory");
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let first = write_certificate(folder.path());
    let tls = Tls::from_files(&certificate, &key).await.expect("usable");
    assert_eq!(limit(shown(&tls)).await, first);

    let second = write_certificate(folder.path());
    assert_eq!(
        limit(shown(&tls)).await,
        first,
        "it is not looked at every time"
    );
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(limit(shown(&tls)).await, second);

    std::fs::write(&key, "no key").expect("it is written");
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(
        limit(shown(&tls)).await,
        second,
        "half of a renewal is not served"
    );
    std::fs::remove_file(&certificate).expect("it is removed");
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(limit(shown(&tls)).await, second);
    assert!(Tls::from_files(&certificate, &key).await.is_err());

    let third = write_certificate(folder.path());
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(limit(shown(&tls)).await, third);
}

#[limited::test]
async fn metrics_are_for_those_who_may_read_them() {
    let mut tokens = Tokens::default();
    tokens.insert("good", User::new("reader", ["system:authenticated"]));
    tokens.insert("other", User::new("nobody", ["system:authenticated"]));
    let server = Server::builder()
        .tokens(tokens)
        .authorization(Authorization::Rbac)
        .start()
        .await
        .expect("starts");
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let service = server.service().map_request(move |request: Request<Body>| {
        counter.fetch_add(1, Ordering::Relaxed);
        request
    });
    let client = Client::new(service, "default");
    allow(&client, "reader", "/metrics").await;
    let guard = AccessGuard::new(client);
    let metrics = Serving::start(MetricsServer::new(Metrics::new()).guard(guard), None).await;
    let nobody = metrics.get("/metrics").await;
    assert_eq!((status(&nobody), body(&nobody)), ("401", "Unauthorized\n"));
    assert_eq!(status(&metrics.get_as("/metrics", "bad").await), "401");
    let denied = metrics.get_as("/metrics", "other").await;
    let expected = "Authorization denied for user nobody\n";
    assert_eq!((status(&denied), body(&denied)), ("403", expected));
    assert_eq!(status(&metrics.get_as("/metrics", "good").await), "200");
    assert_eq!(status(&metrics.get_as("/debug", "good").await), "403");
    let before = asked.load(Ordering::Relaxed);
    assert_eq!(status(&metrics.get_as("/metrics", "good").await), "200");
    assert_eq!(status(&metrics.get_as("/metrics", "bad").await), "401");
    assert_eq!(status(&metrics.get_as("/metrics", "other").await), "403");
    let after = asked.load(Ordering::Relaxed);
    assert_eq!(after, before, "what is known is not asked again");
}

async fn allow(client: &Client, user: &str, path: &str) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "reads"},
        "rules": [{"nonResourceURLs": [path], "verbs": ["get"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "reads"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let request = http::Request::post(format!("/apis/rbac.authorization.k8s.io/v1/{plural}"))
            .header("Content-Type", "application/json")
            .body(object.to_string().into_bytes());
        let created = client
            .request::<serde_json::Value>(request.expect("is one"))
            .await;
        created.expect("created");
    }
}
