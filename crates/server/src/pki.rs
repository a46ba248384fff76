//! Keys and certificates: a certificate authority, the server's certificate, the administrator's.
//!
//! Made at start and kept in memory, or kept in a directory so that a kubeconfig outlives a restart.

mod certificates;
mod front_proxy;
mod sec1;
mod signing;

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;

use crate::auth::User;
use crate::private_file::write_private;

pub use certificates::Certificates;
use certificates::Serving;
pub(crate) use front_proxy::FrontProxy;
pub use signing::{CertificateRequest, CertificateRequestError, CertificateSigner};

/// Names under which the server is known besides those it listens on.
const NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// How long a client's certificate is good.
const CLIENT_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How far behind the clock of whoever looks at a certificate may be.
const CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

/// Why keys or certificates could not be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    /// A certificate could not be made.
    #[error("making the {what} failed")]
    Make {
        /// Which one.
        what: &'static str,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// A key file could not be read or written.
    #[error("{path} could not be read or written")]
    File {
        /// Which one.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A key is not of the kind that is needed.
    #[error("the {what} cannot be used: it is not a P-256 key")]
    Unusable {
        /// Which one.
        what: &'static str,
    },
    /// The TLS library refused the certificates.
    #[error("TLS could not be set up: {0}")]
    Tls(String),
}

/// A certificate authority and the two certificates that a server needs.
pub(crate) struct Pki {
    authority: String,
    server: Pair,
    admin: Pair,
}

/// A certificate authority that lasts: its certificates are trusted by whoever trusts it. The key is never printed.
pub(crate) struct Authority(Pair);

/// A certificate and its key, both PEM.
struct Pair {
    certificate: String,
    key: String,
}

impl std::fmt::Debug for Authority {
    /// Says nothing of the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    /// Makes one.
    pub(crate) fn generate() -> Result<Self, PkiError> {
        Self::of(KeyPair::generate().map_err(making("certificate authority's key"))?)
    }

    /// Reads the authority whose key is kept in `directory`, or makes it if it is missing.
    pub(crate) fn load_or_generate(directory: &Path) -> Result<Self, PkiError> {
        let path = directory.join("authority.key");
        let file_error = |source| PkiError::File {
            path: path.display().to_string(),
            source,
        };
        let key = match fs::read_to_string(&path) {
            Ok(pem) => KeyPair::from_pem(&pem)
                .map_err(making("certificate authority from its key file"))?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let key = KeyPair::generate().map_err(making("certificate authority's key"))?;
                write_private(&path, &key.serialize_pem()).map_err(file_error)?;
                key
            }
            Err(e) => return Err(file_error(e)),
        };
        Self::of(key)
    }

    fn of(key: KeyPair) -> Result<Self, PkiError> {
        let certificate = authority_params()
            .self_signed(&key)
            .map_err(making("certificate authority"))?;
        Ok(Self(Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }))
    }

    /// The certificate, PEM.
    pub(crate) fn certificate(&self) -> &str {
        &self.0.certificate
    }
}

impl Pki {
    /// Makes a server's certificate, which names these addresses besides loopback, and the administrator's.
    pub(crate) fn issue(authority: &Authority, addresses: &[IpAddr]) -> Result<Self, PkiError> {
        let key =
            KeyPair::from_pem(&authority.0.key).map_err(making("certificate authority's key"))?;
        let issuer = Issuer::new(authority_params(), key);
        Ok(Self {
            authority: authority.0.certificate.clone(),
            server: server(&issuer, addresses)?,
            admin: client(&issuer, &User::admin())?,
        })
    }

    /// The administrator's certificate, PEM.
    pub(crate) fn admin_certificate(&self) -> &str {
        &self.admin.certificate
    }

    /// The administrator's key, PEM.
    pub(crate) fn admin_key(&self) -> &str {
        &self.admin.key
    }

    /// The authority that clients find the server's certificate good by, PEM.
    pub(crate) fn shown_authority<'a>(&'a self, certificates: &'a Certificates) -> &'a str {
        certificates
            .given()
            .map_or(&self.authority, |given| &given.chain)
    }

    /// The server's certificate followed by its authority, and its key.
    pub(crate) fn into_serving(self) -> (String, String) {
        (self.server.certificate + &self.authority, self.server.key)
    }

    /// TLS as the server speaks it: 1.2 and newer, HTTP/2 and HTTP/1.1, client certificates welcome.
    ///
    /// # Errors
    /// When the TLS library refuses what was made here or given.
    pub(crate) fn server_config(
        &self,
        certificates: &Certificates,
    ) -> Result<Arc<ServerConfig>, PkiError> {
        let tls = |e: &dyn std::fmt::Display| PkiError::Tls(e.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        let own = [certificate(&self.authority)?];
        for authority in own.into_iter().chain(certificates.authorities()?) {
            roots.add(authority).map_err(|e| tls(&e))?;
        }
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .allow_unauthenticated()
                .build()
                .map_err(|e| tls(&e))?;
        let serving = certificates.given().cloned().unwrap_or_else(|| Serving {
            chain: self.server.certificate.clone(),
            key: self.server.key.clone(),
        });
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| tls(&e))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(serving.chain()?, serving.key()?)
            .map_err(|e| tls(&e))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl std::fmt::Debug for Pki {
    /// Says nothing of the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pki")
    }
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished_name("kubewright-ca", &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}

fn server(issuer: &Issuer<'_, KeyPair>, addresses: &[IpAddr]) -> Result<Pair, PkiError> {
    let mut names: Vec<String> = NAMES.iter().map(|n| (*n).to_owned()).collect();
    names.extend(["127.0.0.1".to_owned(), "::1".to_owned()]);
    names.extend(
        addresses
            .iter()
            .filter(|a| !a.is_unspecified())
            .map(ToString::to_string),
    );
    names.sort();
    names.dedup();
    let mut params = CertificateParams::new(names).map_err(making("server's certificate"))?;
    params.distinguished_name = distinguished_name("kube-apiserver", &[]);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    signed(params, issuer, "server's certificate")
}

/// A client's certificate, which ends after a year as kubeadm's do, so that a kubeconfig that leaks is not good for ever.
///
/// The year is counted by the system's clock, because that is what the TLS library goes by.
fn client(issuer: &Issuer<'_, KeyPair>, user: &User) -> Result<Pair, PkiError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished_name(&user.name, &user.groups);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = rcgen::date_time_ymd(1970, 1, 1) + now.unwrap_or_default();
    params.not_before = now - CLOCK_SKEW;
    params.not_after = now + CLIENT_LIFETIME;
    let what = "client certificate";
    let key = KeyPair::generate().map_err(making(what))?;
    let certificate = params.signed_by(&key, issuer).map_err(making(what))?.pem();
    Ok(Pair {
        certificate,
        key: sec1::pem(&key).ok_or(PkiError::Unusable { what })?,
    })
}

fn signed(
    params: CertificateParams,
    issuer: &Issuer<'_, KeyPair>,
    what: &'static str,
) -> Result<Pair, PkiError> {
    let key = KeyPair::generate().map_err(making(what))?;
    let certificate = params.signed_by(&key, issuer).map_err(making(what))?.pem();
    Ok(Pair {
        certificate,
        key: key.serialize_pem(),
    })
}

fn distinguished_name(common_name: &str, organizations: &[String]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    for organization in organizations {
        name.push(DnType::OrganizationName, organization.as_str());
    }
    name.push(DnType::CommonName, common_name);
    name
}

fn certificate(pem: &str) -> Result<CertificateDer<'static>, PkiError> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|e| PkiError::Tls(e.to_string()))
}

fn making(what: &'static str) -> impl Fn(rcgen::Error) -> PkiError {
    move |source| PkiError::Make { what, source }
}
