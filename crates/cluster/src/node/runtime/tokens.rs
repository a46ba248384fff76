//! Tokens of service accounts for projected volumes: requested from the API server, bound to their pod, kept until they are old.
//!
//! Mirrors `pkg/kubelet/token`: a token is replaced when four fifths of its life are over, or after a day. One that cannot be
//! replaced stays in use for as long as it is valid.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount, ServiceAccountTokenProjection};
use kube::Resource as _;
use kube::api::{PostParams, Request};
use kubewright_runtime::Environment;
use parking_lot::Mutex;

use crate::identity::Acting;
use crate::node::runtime::MountError;

/// How long a token is good when a volume does not say.
const USUAL_LIFE: i64 = 3600;
/// How old a token becomes at most.
const OLDEST: Duration = Duration::from_secs(24 * 3600);

/// The tokens of one pod. Clones share them.
#[derive(Clone)]
pub(crate) struct Tokens {
    kubelet: Acting,
    environment: Environment,
    kept: Arc<Mutex<BTreeMap<TokenKey, Kept>>>,
}

/// What tells two tokens of a pod apart: audience and seconds of life.
pub(crate) type TokenKey = (String, i64);
/// Tokens by what they are for.
pub(crate) type Minted = BTreeMap<TokenKey, Bytes>;

#[derive(Clone)]
struct Kept {
    token: Bytes,
    /// It is replaced then.
    renew: Timestamp,
    /// It is good until then.
    expires: Timestamp,
}

impl Tokens {
    pub(crate) fn new(kubelet: Acting, environment: Environment) -> Self {
        Self {
            kubelet,
            environment,
            kept: Arc::default(),
        }
    }

    /// The tokens that the volumes of a pod have.
    ///
    /// # Errors
    /// That the API server does not issue one; the text is the kubelet's.
    pub(crate) async fn of_pod(&self, pod: &Pod) -> Result<Minted, MountError> {
        let mut minted = Minted::new();
        for (volume, projection) in projections(pod) {
            let wanted = key(projection);
            let token = self.token(pod, &wanted).await;
            let token = token.map_err(|error| {
                MountError::new(volume, format!("failed to fetch token: {error}"))
            })?;
            minted.insert(wanted, token);
        }
        Ok(minted)
    }

    async fn token(&self, pod: &Pod, wanted: &TokenKey) -> Result<Bytes, kube::Error> {
        let now = self.environment.now();
        let kept = self.kept.lock().get(wanted).cloned();
        if let Some(kept) = &kept
            && now < kept.renew
        {
            return Ok(kept.token.clone());
        }
        match self.request(pod, wanted, now).await {
            Ok(fresh) => {
                let token = fresh.token.clone();
                self.kept.lock().insert(wanted.clone(), fresh);
                Ok(token)
            }
            Err(error) => match kept {
                Some(kept) if now < kept.expires => {
                    tracing::warn!(%error, "a token could not be replaced; the one before is still valid");
                    Ok(kept.token)
                }
                _ => Err(error),
            },
        }
    }

    async fn request(
        &self,
        pod: &Pod,
        (audience, seconds): &TokenKey,
        now: Timestamp,
    ) -> Result<Kept, kube::Error> {
        let spec = pod.spec.as_ref();
        let account = spec.and_then(|spec| spec.service_account_name.as_deref());
        let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
        let audiences = Some(audience.clone()).filter(|audience| !audience.is_empty());
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: audiences.map(|audience| vec![audience]),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: pod.metadata.name.clone(),
                    uid: pod.metadata.uid.clone(),
                }),
                expiration_seconds: Some(*seconds),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let name = account.filter(|name| !name.is_empty()).unwrap_or("default");
        let body = serde_json::to_vec(&request).map_err(kube::Error::SerdeError)?;
        let path = ServiceAccount::url_path(&(), Some(namespace));
        let params = PostParams::default();
        let request = Request::new(path).create_subresource("token", name, &params, body);
        let answer: TokenRequest = self.kubelet.send(request).await?;
        let status = answer.status.unwrap_or_default();
        let expires = status.expiration_timestamp.map_or(now, |time| time.0);
        let life = Duration::try_from(expires.duration_since(now)).unwrap_or_default();
        Ok(Kept {
            token: status.token.unwrap_or_default().into(),
            renew: now + (life * 4 / 5).min(OLDEST),
            expires,
        })
    }
}

/// What a projection asks for.
pub(crate) fn key(projection: &ServiceAccountTokenProjection) -> TokenKey {
    (
        projection.audience.clone().unwrap_or_default(),
        projection.expiration_seconds.unwrap_or(USUAL_LIFE),
    )
}

/// The tokens that volumes of a pod name, with the names of the volumes.
fn projections(pod: &Pod) -> impl Iterator<Item = (&str, &ServiceAccountTokenProjection)> {
    let spec = pod.spec.iter();
    let volumes = spec.flat_map(|spec| spec.volumes.iter().flatten());
    volumes.flat_map(|volume| {
        let projected = volume.projected.iter();
        let sources = projected.flat_map(|projected| projected.sources.iter().flatten());
        sources.filter_map(|source| {
            Some((volume.name.as_str(), source.service_account_token.as_ref()?))
        })
    })
}
