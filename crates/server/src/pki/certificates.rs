//! Certificates that come from outside: what clients are shown, and whose clients are known.

use std::fmt;
use std::net::IpAddr;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{Authority, Pki, PkiError};

/// What a listener shows and trusts. By default the server makes all of it itself.
///
/// Clients with a certificate of the server's own authority are always known, so that the kubeconfig of an
/// [`Endpoint`](crate::Endpoint) works whatever is given here.
#[derive(Clone, Default)]
#[must_use]
pub struct Certificates {
    serving: Option<Serving>,
    client_authorities: Option<String>,
}

/// A certificate chain, leaf first, and the key of the leaf, both PEM.
#[derive(Clone)]
pub(super) struct Serving {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Certificates {
    /// Shows this chain (PEM, leaf first), whose key (PEM) this is, instead of a certificate made at start.
    pub fn serving(mut self, chain: impl Into<String>, key: impl Into<String>) -> Self {
        self.serving = Some(Serving {
            chain: chain.into(),
            key: key.into(),
        });
        self
    }

    /// Knows clients whose certificate is signed by one of these authorities (PEM): the common name is the user, the
    /// organisations are the groups.
    pub fn client_authorities(mut self, authorities: impl Into<String>) -> Self {
        self.client_authorities = Some(authorities.into());
        self
    }

    /// A chain and a key for these addresses, both PEM, as [`Certificates::serving`] takes them.
    ///
    /// # Errors
    /// When the randomness or the signing fails.
    pub fn generate(addresses: &[IpAddr]) -> Result<(String, String), PkiError> {
        let authority = Authority::generate()?;
        Pki::issue(&authority, addresses).map(Pki::into_serving)
    }

    pub(super) fn given(&self) -> Option<&Serving> {
        self.serving.as_ref()
    }

    /// The authorities of clients, taken apart.
    pub(crate) fn authorities(&self) -> Result<Vec<CertificateDer<'static>>, PkiError> {
        let pem = self.client_authorities.as_deref().unwrap_or_default();
        certificates(pem)
    }
}

impl Serving {
    pub(crate) fn chain(&self) -> Result<Vec<CertificateDer<'static>>, PkiError> {
        certificates(&self.chain)
    }

    pub(crate) fn key(&self) -> Result<PrivateKeyDer<'static>, PkiError> {
        PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|e| PkiError::Tls(e.to_string()))
    }
}

impl fmt::Debug for Certificates {
    /// Says nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("serving", &self.serving.is_some())
            .field("client_authorities", &self.client_authorities.is_some())
            .finish()
    }
}

/// Every certificate of a PEM text.
fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, PkiError> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|e| PkiError::Tls(e.to_string()))
}
