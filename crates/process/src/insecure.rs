//! TLS without asking who the other side is: a kubelet probes over HTTPS and skips the verification of certificates.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What is spoken over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP of the first version, which servers assume.
    Http,
    /// gRPC, whose servers refuse clients that do not ask for HTTP/2.
    Grpc,
}

static HTTP: LazyLock<Option<TlsConnector>> = LazyLock::new(|| connector(&[]));
static GRPC: LazyLock<Option<TlsConnector>> = LazyLock::new(|| connector(&[b"h2"]));

fn connector(protocols: &[&[u8]]) -> Option<TlsConnector> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .ok()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Some(TlsConnector::from(Arc::new(config)))
}

/// Speaks TLS over a connection.
///
/// # Errors
/// When the other side does not.
pub(crate) async fn connect(
    stream: TcpStream,
    host: IpAddr,
    protocol: Protocol,
) -> std::io::Result<TlsStream<TcpStream>> {
    let connector = match protocol {
        Protocol::Http => HTTP.as_ref(),
        Protocol::Grpc => GRPC.as_ref(),
    };
    let connector = connector.ok_or_else(|| std::io::Error::other("TLS is not there"))?;
    connector.connect(ServerName::from(host), stream).await
}

/// Takes any certificate, and checks that the other side has its key.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
