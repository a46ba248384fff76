//! Connections that were upgraded: whatever a client sends then, the server comes to an end with it and does not panic.

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kubewright_server::{
    AgentError, ContainerTarget, Endpoint, NodeAgents, PodTarget, PodUsage, Server, Streams, Usage,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::requests::Site;
use super::{Read, Verdict, start};

/// A client that has said all it has to say waits no longer than this for the end.
const PATIENCE: Duration = Duration::from_secs(20);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const POD: &str = r#"{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i","ports":[{"containerPort":80}]}]}}"#;
const WEBSOCKET: &str = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n";
const SPDY: &str = "Upgrade: SPDY/3.1\r\n";

/// Panics since the start. Those of the server's tasks do not reach us otherwise.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// What follows a watch over WebSocket.
pub(super) fn watch() -> Read {
    reader(format!("GET {MAPS}?watch=true HTTP/1.1\r\n{WEBSOCKET}"))
}

/// The channels of a command over WebSocket.
pub(super) fn exec() -> Read {
    let protocol = "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n";
    reader(format!(
        "GET {} HTTP/1.1\r\n{WEBSOCKET}{protocol}",
        command()
    ))
}

/// The streams of a command over SPDY.
pub(super) fn spdy_exec() -> Read {
    let protocol = "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n";
    reader(format!("POST {} HTTP/1.1\r\n{SPDY}{protocol}", command()))
}

/// The streams of forwarded ports over SPDY.
pub(super) fn spdy_forward() -> Read {
    let protocol = "X-Stream-Protocol-Version: portforward.k8s.io\r\n";
    reader(format!(
        "POST {PODS}/p/portforward HTTP/1.1\r\n{SPDY}{protocol}"
    ))
}

fn command() -> String {
    format!("{PODS}/p/exec?command=cat&stdin=true&stdout=true&stderr=true")
}

/// Sends each input behind this head of a request, and reads until the server closes.
fn reader(head: String) -> Read {
    let site = Site::of(Server::builder().node_agents(Arc::new(Echo)));
    let made = site.send(Method::POST, PODS, "application/json", POD.as_bytes());
    assert!(
        made.is_some_and(|(status, _)| status.is_success()),
        "a Pod is made"
    );
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = site.runtime.block_on(site.server.listen(address));
    let endpoint = endpoint.expect("the server listens");
    let connector = TlsConnector::from(Arc::new(administrator(&endpoint)));
    let count = Once::new();
    Box::new(move |input| {
        // All of it: a server that is dropped stops.
        let site = &site;
        count.call_once(count_panics);
        let before = PANICS.load(Ordering::SeqCst);
        let said = site.runtime.block_on(async {
            let talk = talk(&endpoint, &connector, &head, input);
            tokio::time::timeout(PATIENCE, talk).await
        });
        let said = said.expect("the server closes a connection whose client has closed it");
        assert_eq!(PANICS.load(Ordering::SeqCst), before, "the server panicked");
        let said = String::from_utf8_lossy(&said);
        let (status, rest) = said.split_once("\r\n\r\n").unwrap_or((&said, ""));
        if status.starts_with("HTTP/1.1 101") {
            Verdict::accepted(start(rest))
        } else {
            Verdict::refused(start(status))
        }
    })
}

/// Counts panics, and leaves them to whoever was there before.
fn count_panics() {
    let other = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        other(info);
    }));
}

/// All that the server says on one connection. That it breaks off is an end as well.
async fn talk(endpoint: &Endpoint, to: &TlsConnector, head: &str, input: &[u8]) -> Vec<u8> {
    let wire = TcpStream::connect(endpoint.address()).await;
    let name = ServerName::from(endpoint.address().ip());
    let wire = to.connect(name, wire.expect("the server accepts")).await;
    let (mut read, mut write) = tokio::io::split(wire.expect("a handshake"));
    let head = format!("{head}Host: x\r\nConnection: Upgrade\r\n\r\n");
    let speak = async {
        let _ = write.write_all(head.as_bytes()).await;
        let _ = write.write_all(input).await;
        let _ = write.shutdown().await;
    };
    let mut said = Vec::new();
    let listen = async {
        let _ = read.read_to_end(&mut said).await;
    };
    tokio::join!(speak, listen);
    said
}

/// A client with the certificate of the kubeconfig.
fn administrator(endpoint: &Endpoint) -> ClientConfig {
    let field = |name: &str| {
        let mut lines = endpoint.kubeconfig().as_str().lines();
        let line = lines.find_map(|line| line.trim().strip_prefix(name));
        let value = line.and_then(|rest| rest.strip_prefix(": "));
        STANDARD.decode(value.expect("the field")).expect("base64")
    };
    let certificate = |name| CertificateDer::from_pem_slice(&field(name)).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(&field("client-key-data")).expect("a key");
    let mut roots = RootCertStore::empty();
    let authority = certificate("certificate-authority-data");
    roots.add(authority).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate("client-certificate-data")], key)
        .expect("a key for its certificate")
}

/// A node whose commands and ports repeat what they read.
struct Echo;

type Answer<T> = BoxFuture<'static, Result<T, AgentError>>;

impl NodeAgents for Echo {
    fn exec(&self, _: ContainerTarget, _: Vec<String>, mut streams: Streams) -> Answer<i32> {
        async move {
            while let Some(bytes) = streams.read().await {
                streams.write(bytes).await;
            }
            Ok(0)
        }
        .boxed()
    }

    fn attach(&self, target: ContainerTarget, _: Streams) -> Answer<Option<i32>> {
        async move { Err(AgentError::NotRunning(target.container)) }.boxed()
    }

    fn port_forward(&self, _: PodTarget, _: u16, stream: DuplexStream) -> Answer<()> {
        async move {
            let (mut read, mut write) = tokio::io::split(stream);
            // An error means that the client has gone.
            let _ = tokio::io::copy(&mut read, &mut write).await;
            Ok(())
        }
        .boxed()
    }

    fn pod_http(&self, _: PodTarget, port: u16, _: Request<Bytes>) -> Answer<Response<Bytes>> {
        async move { Err(AgentError::Refused(port)) }.boxed()
    }

    fn node_http(&self, node: String, _: Request<Bytes>) -> Answer<Response<Bytes>> {
        async move { Err(AgentError::Unreachable(node)) }.boxed()
    }

    fn pod_usage(&self, _: &Value) -> Option<PodUsage> {
        None
    }

    fn node_usage(&self, _: &Value, _: &[Value]) -> Option<Usage> {
        None
    }
}
