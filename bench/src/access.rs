//! Where a server is and how to get in, from a kubeconfig or from the parts of one.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

use crate::connection::Protocol;

/// Where a server is and how to get in.
#[derive(Debug, Clone)]
pub struct Access {
    pub(crate) address: SocketAddr,
    pub(crate) authorization: Option<HeaderValue>,
    tls: ClientConfig,
}

/// A certificate chain and its key, as PEM.
struct Identity {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Access {
    /// Reads a kubeconfig with one cluster at an IP address and one user with a certificate.
    ///
    /// # Errors
    /// When the file cannot be read or is of another shape.
    pub fn of_kubeconfig(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("reading the kubeconfig {}", path.display()))?;
        let config: Value = serde_saphyr::from_str(&text).context("the kubeconfig is not YAML")?;
        let cluster = &config["clusters"][0]["cluster"];
        let user = &config["users"][0]["user"];
        let identity = Identity {
            certificate: decode(&user["client-certificate-data"])?,
            key: decode(&user["client-key-data"])?,
        };
        let authority = decode(&cluster["certificate-authority-data"])?;
        Ok(Self {
            address: address(cluster["server"].as_str().unwrap_or_default())?,
            authorization: None,
            tls: tls(&authority, Some(identity))?,
        })
    }

    /// As [`Access::of_kubeconfig`], but as whoever this bearer token belongs to.
    ///
    /// # Errors
    /// When the file cannot be read or is of another shape, or the token cannot be sent.
    pub fn of_kubeconfig_with_token(path: &Path, token: &str) -> Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("reading the kubeconfig {}", path.display()))?;
        let config: Value = serde_saphyr::from_str(&text).context("the kubeconfig is not YAML")?;
        let cluster = &config["clusters"][0]["cluster"];
        let authority = decode(&cluster["certificate-authority-data"])?;
        let address = address(cluster["server"].as_str().unwrap_or_default())?;
        Self::with_token(address, &String::from_utf8(authority)?, token)
    }

    /// For a server whose certificate is signed by this authority (PEM) and that accepts this bearer token.
    ///
    /// # Errors
    /// When the authority is not a certificate or the token cannot be sent.
    pub fn with_token(address: SocketAddr, authority: &str, token: &str) -> Result<Self> {
        let mut authorization = HeaderValue::from_str(&format!("Bearer {token}"))?;
        authorization.set_sensitive(true);
        Ok(Self {
            address,
            authorization: Some(authorization),
            tls: tls(authority.as_bytes(), None)?,
        })
    }

    /// How to speak TLS when this protocol is wanted.
    pub(crate) fn tls(&self, protocol: Protocol) -> Arc<ClientConfig> {
        let mut tls = self.tls.clone();
        tls.alpn_protocols = vec![protocol.alpn().to_vec()];
        Arc::new(tls)
    }
}

fn address(server: &str) -> Result<SocketAddr> {
    let host = server.strip_prefix("https://").unwrap_or(server);
    host.trim_end_matches('/')
        .parse()
        .with_context(|| format!("the server {server:?} is not https://<ip>:<port>"))
}

fn decode(value: &Value) -> Result<Vec<u8>> {
    let Some(text) = value.as_str() else {
        bail!("the kubeconfig does not carry its certificates");
    };
    STANDARD
        .decode(text)
        .context("the kubeconfig's certificates are not Base64")
}

fn tls(authority: &[u8], identity: Option<Identity>) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority) {
        roots.add(certificate.context("the authority is not a certificate")?)?;
    }
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let Some(identity) = identity else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = CertificateDer::pem_slice_iter(&identity.certificate)
        .collect::<Result<Vec<_>, _>>()
        .context("the client certificate is no PEM")?;
    let key = PrivateKeyDer::from_pem_slice(&identity.key).context("the client key is no PEM")?;
    Ok(builder.with_client_auth_cert(chain, key)?)
}
