//! How certificates are kept in a Secret.
//!
//! `certificates.json` is what replicas agree on. `tls.crt`, `tls.key` and `ca.crt` say the same to everybody else: whoever
//! scrapes metrics trusts `ca.crt`.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::time::timeout;

use super::options::{CertificateError, CertificateOptions, REQUEST};
use super::rotation::Stored;

const STATE: &str = "certificates.json";
/// What others read, in the order in which it is filled.
const DERIVED: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// What a Secret has; nothing if it has none, or something that is not ours to read.
pub(super) fn stored(secret: &Secret) -> Option<Stored> {
    let state = secret.data.as_ref()?.get(STATE)?;
    match serde_json::from_slice(&state.0) {
        Ok(stored) => Some(stored),
        Err(error) => {
            // The text of the error may quote the key.
            let (line, column) = (error.line(), error.column());
            tracing::warn!(
                line,
                column,
                "{STATE} cannot be read; certificates are made anew"
            );
            None
        }
    }
}

/// The Secret with these certificates, and with whatever else it had.
///
/// # Errors
/// When they cannot be written as JSON.
fn with(mut secret: Secret, stored: &Stored) -> Result<Secret, serde_json::Error> {
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let data: &mut BTreeMap<String, ByteString> = secret.data.get_or_insert_default();
    let served = &stored.served;
    let bundle = stored.bundle();
    for (key, text) in DERIVED
        .into_iter()
        .zip([&served.certificate, &served.key, &bundle])
    {
        data.insert(key.to_owned(), bytes(text));
    }
    data.insert(STATE.to_owned(), ByteString(serde_json::to_vec(stored)?));
    Ok(secret)
}

/// The one Secret, on the server.
pub(super) struct Keeper {
    api: Api<Secret>,
    field_manager: String,
    namespace: String,
    name: String,
}

/// Who wrote the Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Mine,
    /// Another replica was faster.
    Other,
}

impl Keeper {
    pub(super) fn new(kube: kube::Client, options: &CertificateOptions) -> Self {
        Self {
            api: Api::namespaced(kube, &options.namespace),
            field_manager: options.field_manager.clone(),
            namespace: options.namespace.clone(),
            name: options.secret.clone(),
        }
    }

    /// Reads the Secret. If it does not exist, returns an empty one of that name.
    pub(super) async fn read(&self) -> Result<Secret, CertificateError> {
        let found = timeout(REQUEST, self.api.get_opt(&self.name)).await;
        let found = found.map_err(|_| CertificateError::Silent)?;
        let found = found.map_err(|source| self.wrong("read", source))?;
        Ok(found.unwrap_or_else(|| Secret {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            ..Secret::default()
        }))
    }

    /// Stores what comes next, unless another replica has stored something since the Secret was read.
    pub(super) async fn write(
        &self,
        secret: Secret,
        next: &Stored,
    ) -> Result<Written, CertificateError> {
        let is_new = secret.metadata.resource_version.is_none();
        let secret = with(secret, next);
        let secret = secret.map_err(|error| CertificateError::Issue(error.to_string()))?;
        let params = PostParams {
            field_manager: Some(self.field_manager.clone()),
            ..PostParams::default()
        };
        let sent = async {
            if is_new {
                self.api.create(&params, &secret).await
            } else {
                self.api.replace(&self.name, &params, &secret).await
            }
        };
        let sent = timeout(REQUEST, sent).await;
        match sent.map_err(|_| CertificateError::Silent)? {
            Ok(_) => Ok(Written::Mine),
            Err(error) if has_code(&error, 409) => Ok(Written::Other),
            Err(error) if is_new && has_code(&error, 403) => Err(CertificateError::Missing {
                secret: format!("{}/{}", self.namespace, self.name),
            }),
            Err(source) => Err(self.wrong("written", source)),
        }
    }

    fn wrong(&self, action: &'static str, source: kube::Error) -> CertificateError {
        CertificateError::Secret {
            secret: format!("{}/{}", self.namespace, self.name),
            action,
            source: Box::new(source),
        }
    }
}

/// Whether the API server answered with this code.
pub(super) fn has_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}
