//! The certificate of a listener: one that was given, one in files that somebody renews, or one made now that nobody
//! trusts but that encrypts the traffic.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

/// How long files are taken to be what they were when they were last read; controller-runtime's interval.
const FRESH: Duration = Duration::from_secs(10);
/// Characters in a line of PEM.
const PEM_LINE: usize = 64;
/// Largest file that is read: a long chain is a tenth of it.
const LARGEST: u64 = 1 << 20;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A certificate could not be made.
    #[error("the certificate could not be made: {0}")]
    Make(String),
    /// The certificate or the key cannot be parsed, or they do not belong together.
    #[error("the certificate or key cannot be used: {0}")]
    Unusable(String),
    /// A file could not be read.
    #[error("{} cannot be read", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

/// A certificate and its key, ready to serve. Clones share them.
#[derive(Clone)]
pub struct Tls {
    current: Arc<Mutex<Current>>,
    files: Option<Arc<Files>>,
}

/// What is served now.
struct Current {
    config: Arc<ServerConfig>,
    leaf: CertificateDer<'static>,
    /// What the files had in them; empty without files.
    read: Contents,
    looked: Instant,
}

struct Files {
    certificates: PathBuf,
    key: PathBuf,
}

#[derive(Default, PartialEq, Eq)]
struct Contents {
    certificates: Vec<u8>,
    key: Vec<u8>,
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

    /// As [`from_pem`](Tls::from_pem), from files that are read again when they change: at the next connection after ten
    /// seconds. Files that cannot be used are logged, and the certificate from before is served on.
    ///
    /// # Errors
    /// When they cannot be used now.
    pub async fn from_files(
        certificates: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, TlsError> {
        let files = Files {
            certificates: certificates.into(),
            key: key.into(),
        };
        let read = files.read().await?;
        let tls = Self::from_pem(&read.certificates, &read.key)?;
        tls.current.lock().read = read;
        Ok(Self {
            files: Some(Arc::new(files)),
            ..tls
        })
    }

    /// Serves another certificate from the next connection on; those that are open go on as they are.
    ///
    /// # Errors
    /// When the texts are not a chain of certificates and its key. Then what was served before is served on.
    pub fn replace(&self, certificates: &[u8], key: &[u8]) -> Result<(), TlsError> {
        self.adopt(&Self::from_pem(certificates, key)?);
        Ok(())
    }

    /// Serves what another value serves.
    fn adopt(&self, other: &Self) {
        let (config, leaf) = {
            let other = other.current.lock();
            (other.config.clone(), other.leaf.clone())
        };
        let mut current = self.current.lock();
        (current.config, current.leaf) = (config, leaf);
    }

    /// The server's own certificate, as clients see it.
    pub fn certificate(&self) -> Vec<u8> {
        self.current.lock().leaf.to_vec()
    }

    /// Returns the certificate in PEM, the form in which clients are configured to trust it.
    pub fn certificate_pem(&self) -> String {
        let encoded = base64::engine::general_purpose::STANDARD.encode(self.certificate());
        let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
        let mut rest = encoded.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(PEM_LINE));
            pem.extend([line, "\n"]);
            rest = after;
        }
        pem + "-----END CERTIFICATE-----\n"
    }

    /// For one connection: with the certificate of the moment.
    pub(super) async fn acceptor(&self) -> TlsAcceptor {
        if let Some(files) = &self.files
            && self.is_due()
        {
            self.refresh(files).await;
        }
        TlsAcceptor::from(self.current.lock().config.clone())
    }

    /// Whether the files are to be looked at, by whoever asks first.
    fn is_due(&self) -> bool {
        let mut current = self.current.lock();
        let due = current.looked.elapsed() >= FRESH;
        if due {
            current.looked = Instant::now();
        }
        due
    }

    async fn refresh(&self, files: &Files) {
        let changed = async {
            let read = files.read().await?;
            if read == self.current.lock().read {
                return Ok(None);
            }
            let other = Self::from_pem(&read.certificates, &read.key)?;
            Ok::<_, TlsError>(Some((other, read)))
        };
        match changed.await {
            Ok(None) => {}
            Ok(Some((other, read))) => {
                self.adopt(&other);
                self.current.lock().read = read;
                tracing::info!(certificate = %files.certificates.display(), "certificate renewed");
            }
            Err(error) => {
                tracing::warn!(%error, "the renewed certificate cannot be used; the old one is served on");
            }
        }
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
        let current = Current {
            config: Arc::new(config),
            leaf,
            read: Contents::default(),
            looked: Instant::now(),
        };
        Ok(Self {
            current: Arc::new(Mutex::new(current)),
            files: None,
        })
    }
}

impl Files {
    async fn read(&self) -> Result<Contents, TlsError> {
        Ok(Contents {
            certificates: read(&self.certificates).await?,
            key: read(&self.key).await?,
        })
    }
}

async fn read(path: &PathBuf) -> Result<Vec<u8>, TlsError> {
    let failed = |source| TlsError::Read {
        path: path.clone(),
        source,
    };
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    let mut bytes = Vec::new();
    let mut limited = file.take(LARGEST);
    limited.read_to_end(&mut bytes).await.map_err(failed)?;
    Ok(bytes)
}

impl fmt::Debug for Tls {
    /// Says nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
