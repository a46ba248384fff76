//! What certificates are for, how long they live, and why there may be none.

use std::time::Duration;

use super::inject::TrustTarget;
use crate::identity::program_name;
use crate::serving::TlsError;

/// How long one request may take.
pub(super) const REQUEST: Duration = Duration::from_secs(10);

/// Which certificates, for whom, and where they are kept.
#[derive(Debug, Clone)]
#[must_use]
#[non_exhaustive]
pub struct CertificateOptions {
    /// The namespace of the Secret and of the Services.
    pub namespace: String,
    /// The Secret. The manifests of an operator have it, empty; nothing else needs permission to create it.
    pub secret: String,
    /// The Services that lead to this operator: the names that the certificate is valid for.
    pub services: Vec<String>,
    /// The objects that have to trust it.
    pub targets: Vec<TrustTarget>,
    /// How long a certificate is valid. It is replaced after two thirds of that.
    pub lifetime: Duration,
    /// How long everybody is given to notice a change: replicas look ten times as often.
    pub settle: Duration,
    /// How long [`Certificates::prepare`](super::Certificates::prepare) tries to get a first certificate.
    pub patience: Duration,
    /// The field manager of the Secret and of what is changed in `targets`. By default the program's name.
    pub field_manager: String,
}

impl CertificateOptions {
    /// Certificates for three months, kept in this Secret, for no Service yet.
    pub fn new(namespace: &str, secret: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            services: Vec::new(),
            targets: Vec::new(),
            lifetime: Duration::from_secs(90 * 24 * 60 * 60),
            settle: Duration::from_secs(5 * 60),
            patience: Duration::from_secs(60),
            field_manager: program_name().to_owned(),
        }
    }

    /// Adds a Service of the namespace that the certificate is valid for.
    pub fn service(mut self, name: &str) -> Self {
        self.services.push(name.to_owned());
        self
    }

    /// Adds an object that has to trust the certificate.
    pub fn target(mut self, target: TrustTarget) -> Self {
        self.targets.push(target);
        self
    }

    /// Sets the field manager of everything that is written: the operator's name.
    pub fn field_manager(mut self, name: &str) -> Self {
        self.field_manager = name.to_owned();
        self
    }

    /// Sets how long a certificate is valid, and how long everybody is given to notice a change.
    ///
    /// # Errors
    /// When a certificate would not live long enough to be replaced in time.
    pub fn times(mut self, lifetime: Duration, settle: Duration) -> Result<Self, CertificateError> {
        if settle.is_zero() || lifetime / 12 < settle {
            return Err(CertificateError::Times { lifetime, settle });
        }
        (self.lifetime, self.settle) = (lifetime, settle);
        Ok(self)
    }

    /// The names by which Services are reached inside a cluster, the shortest that API servers use first.
    pub(super) fn names(&self) -> Vec<String> {
        let namespace = &self.namespace;
        let of = |service: &String| {
            let short = format!("{service}.{namespace}.svc");
            let long = format!("{short}.cluster.local");
            [short, long]
        };
        self.services.iter().flat_map(of).collect()
    }
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// The times do not fit together.
    #[error(
        "a lifetime of {lifetime:?} is too short: it has to be at least twelve times the {settle:?} that everybody is \
         given to notice a change"
    )]
    Times {
        /// How long a certificate would be valid.
        lifetime: Duration,
        /// How long everybody would be given to notice a change.
        settle: Duration,
    },
    /// A certificate could not be made.
    #[error("a certificate could not be made: {0}")]
    Issue(String),
    /// What is stored cannot be served.
    #[error("the certificate in the Secret cannot be served")]
    Serve(#[source] TlsError),
    /// The Secret could not be read or written.
    #[error("the Secret {secret} could not be {action}")]
    Secret {
        /// Its namespace and name.
        secret: String,
        /// What was done to it.
        action: &'static str,
        /// Why not.
        #[source]
        source: Box<kube::Error>,
    },
    /// The Secret does not exist, and may not be created.
    #[error(
        "the Secret {secret} does not exist and this operator may not create it; it is part of what `kubewright deploy` and \
         dist/install.yaml apply"
    )]
    Missing {
        /// Its namespace and name.
        secret: String,
    },
    /// The API server did not answer.
    #[error("the API server did not answer within {REQUEST:?}")]
    Silent,
}
