//! The certificate of a listener: one that was given, or one made now that nobody trusts but that hides what is said.

use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A certificate could not be made.
    #[error("the certificate could not be made: {0}")]
    Make(String),
    /// What was given is no certificate, no key, or they do not fit.
    #[error("the certificate or key cannot be used: {0}")]
    Unusable(String),
}

/// A certificate and its key, ready to serve.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    leaf: CertificateDer<'static>,
}

impl Tls {
    /// A new certificate for these names or addresses, signed by itself.
    ///
    /// # Errors
    /// When a name cannot be in a certificate.
    pub fn self_signed(names: &[&str]) -> Result<Self, TlsError> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let made = rcgen::generate_simple_self_signed(names)
            .map_err(|error| TlsError::Make(error.to_string()))?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Self::of(vec![made.cert.der().clone()], key.into())
    }

    /// A chain of certificates, the server's own first, and its key, in PEM.
    ///
    /// # Errors
    /// When the texts are not these, or do not fit together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.map_err(|error| TlsError::Unusable(error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| TlsError::Unusable(error.to_string()))?;
        Self::of(chain, key)
    }

    /// The server's own certificate, as clients see it.
    pub fn certificate(&self) -> &[u8] {
        &self.leaf
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.clone())
    }

    fn of(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, TlsError> {
        let unusable = |error: rustls::Error| TlsError::Unusable(error.to_string());
        let none = || TlsError::Unusable("there is no certificate".into());
        let leaf = chain.first().ok_or_else(none)?.clone();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let config = Arc::new(config);
        Ok(Self { config, leaf })
    }
}

impl fmt::Debug for Tls {
    /// Says nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
