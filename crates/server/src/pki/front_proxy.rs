//! The certificate by which servers that are added to the API know this one, and the authority that signed it.
//!
//! The authority is one of its own, as in Kubernetes: whoever has a certificate of the clients' authority must not be
//! able to say who a caller is.

use std::fmt;
use std::sync::Arc;

use rcgen::{Issuer, KeyPair};
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::{Authority, PkiError, authority_params, client, making};
use crate::auth::User;

/// The common name of the certificate, which other servers are asked to insist on.
pub(crate) const FRONT_PROXY_CLIENT: &str = "front-proxy-client";

/// Who passes requests on to other servers.
#[derive(Clone)]
pub(crate) struct FrontProxy {
    /// The certificate of the authority, PEM.
    pub(crate) authority: String,
    pub(crate) identity: Arc<dyn ResolvesClientCert>,
}

impl FrontProxy {
    /// Makes an authority and the one certificate that it signs.
    pub(crate) fn generate() -> Result<Self, PkiError> {
        let authority = Authority::generate()?;
        let what = "front proxy's certificate";
        let key = KeyPair::from_pem(&authority.0.key).map_err(making(what))?;
        let issuer = Issuer::new(authority_params(), key);
        let user = User::new(FRONT_PROXY_CLIENT, Vec::<String>::new());
        let pair = client(&issuer, &user)?;
        let tls = |e: &dyn fmt::Display| PkiError::Tls(e.to_string());
        let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes());
        let certificate = certificate.map_err(|e| tls(&e))?;
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(|e| tls(&e))?;
        let provider = rustls::crypto::ring::default_provider();
        let certified = CertifiedKey::from_der(vec![certificate], key, &provider);
        let certified = certified.map_err(|e| tls(&e))?;
        Ok(Self {
            authority: authority.0.certificate,
            identity: Arc::new(SingleCertAndKey::from(certified)),
        })
    }
}

impl fmt::Debug for FrontProxy {
    /// Says nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FrontProxy")
    }
}
