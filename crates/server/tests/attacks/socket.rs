//! Raw TLS connections to a server, for attacks on what is below requests.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubewright_server::{Endpoint, ListenLimits, Server};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Longest wait for anything that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that listens on loopback.
pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) endpoint: Endpoint,
}

/// Who a client says it is.
#[derive(Clone)]
pub(crate) enum Identity {
    Nobody,
    Admin,
    /// A certificate and its key, both PEM.
    Certificate(String, String),
}

impl Site {
    pub(crate) async fn start() -> Self {
        Self::with(ListenLimits::default()).await
    }

    pub(crate) async fn with(limits: ListenLimits) -> Self {
        let server = Server::builder().listen_limits(limits).start().await;
        Self::of(server.expect("starts")).await
    }

    pub(crate) async fn of(server: Server) -> Self {
        let address = "127.0.0.1:0".parse().expect("an address");
        let endpoint = server.listen(address).await.expect("listens");
        Self { server, endpoint }
    }

    fn config(&self, identity: &Identity, protocol: &str) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let authority = self.field("certificate-authority-data");
        roots.add(certificate(&authority)).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let pair = match identity {
            Identity::Nobody => None,
            Identity::Admin => {
                let text = self.endpoint.kubeconfig().as_str();
                return self.config(&identity_of(text), protocol);
            }
            Identity::Certificate(certificate, key) => Some((certificate.clone(), key.clone())),
        };
        let mut config = match pair {
            None => builder.with_no_client_auth(),
            Some((pem, key)) => {
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
                builder
                    .with_client_auth_cert(vec![certificate(&pem)], key)
                    .expect("a pair")
            }
        };
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        config
    }

    fn field(&self, name: &str) -> String {
        field(self.endpoint.kubeconfig().as_str(), name)
    }

    /// A connection that is encrypted and says nothing yet.
    pub(crate) async fn connect(&self, identity: &Identity, protocol: &str) -> Wire {
        self.try_connect(identity, protocol)
            .await
            .expect("the handshake succeeds")
    }

    pub(crate) async fn try_connect(
        &self,
        identity: &Identity,
        protocol: &str,
    ) -> std::io::Result<Wire> {
        let stream = self.tcp().await;
        let connector = TlsConnector::from(Arc::new(self.config(identity, protocol)));
        let name = ServerName::from(self.endpoint.address().ip());
        let stream = timeout(PATIENCE, connector.connect(name, stream)).await;
        stream.expect("in time").map(Wire)
    }

    pub(crate) async fn tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(self.endpoint.address()).await;
        stream.expect("the server accepts")
    }

    /// A request of the administrator on a connection of its own is answered.
    pub(crate) async fn serves(&self) {
        let mut wire = self.connect(&Identity::Admin, "http/1.1").await;
        let answer = wire.get("/api/v1/namespaces/default").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains(r#""name":"default""#), "{answer}");
    }
}

/// The client that a kubeconfig is for.
pub(crate) fn identity_of(kubeconfig: &str) -> Identity {
    Identity::Certificate(
        field(kubeconfig, "client-certificate-data"),
        field(kubeconfig, "client-key-data"),
    )
}

/// A field of a kubeconfig, decoded.
fn field(kubeconfig: &str, name: &str) -> String {
    let mut lines = kubeconfig.lines();
    let line = lines.find(|line| line.trim().starts_with(name));
    let value = line.and_then(|line| line.split(": ").nth(1));
    let bytes = STANDARD.decode(value.expect("the field")).expect("base64");
    String::from_utf8(bytes).expect("PEM is text")
}

fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")
}

/// One encrypted connection.
pub(crate) struct Wire(TlsStream<TcpStream>);

impl Wire {
    /// The connection itself, for a client that speaks for itself.
    pub(crate) fn into_stream(self) -> TlsStream<TcpStream> {
        self.0
    }

    /// Writes; a connection that the server has closed is an answer of its own.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        let written = async {
            self.0.write_all(bytes.as_ref()).await?;
            self.0.flush().await
        };
        timeout(PATIENCE, written).await.expect("written in time")
    }

    /// What is there to be read; empty at the end.
    pub(crate) async fn read_some(&mut self) -> Vec<u8> {
        let mut buffer = vec![0; 64 * 1024];
        let read = timeout(PATIENCE, self.0.read(&mut buffer)).await;
        // A connection that is cut is at its end as well.
        let length = read.expect("read in time").unwrap_or(0);
        buffer.truncate(length);
        buffer
    }

    /// Everything until the server closes the connection, which it must.
    pub(crate) async fn read_to_end(&mut self) -> String {
        let mut all = Vec::new();
        loop {
            let some = self.read_some().await;
            if some.is_empty() {
                return String::from_utf8_lossy(&all).into_owned();
            }
            all.extend_from_slice(&some);
        }
    }

    /// Everything until this text has come, or the end.
    pub(crate) async fn read_until(&mut self, text: &str) -> String {
        let mut all = Vec::new();
        loop {
            let some = self.read_some().await;
            let start = all.len().saturating_sub(text.len());
            all.extend_from_slice(&some);
            let seen = String::from_utf8_lossy(&all[start..]).contains(text);
            if some.is_empty() || seen {
                let last = all.len().saturating_sub(4096);
                return String::from_utf8_lossy(&all[last..]).into_owned();
            }
        }
    }

    /// Asks and reads one answer, which has a length; the connection stays open.
    pub(crate) async fn get(&mut self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        self.write(request).await.expect("written");
        self.read_answer().await
    }

    /// Reads one answer that has a length.
    pub(crate) async fn read_answer(&mut self) -> String {
        let mut text = String::new();
        loop {
            let some = self.read_some().await;
            text.push_str(&String::from_utf8_lossy(&some));
            if some.is_empty() || is_whole(&text) {
                return text;
            }
        }
    }

    /// Sends bytes that end the conversation; gives all that was answered.
    pub(crate) async fn last_words(mut self, bytes: impl AsRef<[u8]>) -> String {
        // The server may have closed before all was written, and what it said can still be read.
        let _ = self.write(bytes).await;
        self.read_to_end().await
    }
}

fn is_whole(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        line.to_lowercase()
            .strip_prefix("content-length: ")?
            .parse()
            .ok()
    });
    length.is_some_and(|length: usize| body.len() >= length)
}
