//! Connections of a client that may hang up at any moment.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubewright_server::Endpoint;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// One write that a client sends.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) body: String,
}

/// Connects as the administrator.
async fn connect(endpoint: &Endpoint, protocol: &str) -> TlsStream<TcpStream> {
    let field = |name: &str| {
        let mut lines = endpoint.kubeconfig().as_str().lines();
        let line = lines.find(|line| line.trim().starts_with(name));
        let value = line.and_then(|line| line.split(": ").nth(1));
        STANDARD.decode(value.expect("the field")).expect("base64")
    };
    let certificate = |name: &str| CertificateDer::from_pem_slice(&field(name)).expect("PEM");
    let mut roots = RootCertStore::empty();
    let authority = certificate("certificate-authority-data");
    roots.add(authority).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::from_pem_slice(&field("client-key-data")).expect("a key");
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate("client-certificate-data")], key)
        .expect("a pair");
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(endpoint.address())
        .await
        .expect("connects");
    let name = ServerName::from(endpoint.address().ip());
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.expect("a handshake")
}

/// Sends a request over HTTP/1.1 and closes the connection after a while.
pub(crate) async fn close_http1(endpoint: &Endpoint, write: &Write, after: Duration) {
    let mut stream = connect(endpoint, "http/1.1").await;
    let Write { method, path, body } = write;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .expect("written");
    stream.flush().await.expect("written");
    tokio::time::sleep(after).await;
}

/// A connection of HTTP/2 on which single requests are reset.
pub(crate) struct Http2(http2::SendRequest<Full<Bytes>>);

impl Http2 {
    pub(crate) async fn connect(endpoint: &Endpoint) -> Self {
        let stream = connect(endpoint, "h2").await;
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = handshake.expect("a handshake");
        tokio::spawn(connection);
        Self(sender)
    }

    /// Sends a request and resets its stream after a while.
    pub(crate) async fn reset(&mut self, write: &Write, after: Duration) {
        let request = http::Request::builder()
            .method(write.method)
            .uri(format!("https://localhost{}", write.path))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(write.body.clone())))
            .expect("a request");
        let answer = self.0.send_request(request);
        // Dropping the answer resets the stream.
        let _ = tokio::time::timeout(after, answer).await;
    }
}
