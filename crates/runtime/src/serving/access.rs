//! Asks the API server who a token belongs to and whether its owner may read a path, and remembers the answers for a
//! while, as kube-rbac-proxy and controller-runtime's filter do.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::AUTHORIZATION;
use http::request::Parts;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

/// How long it is remembered whose a token is, or that it is nobody's.
const TOKEN: Duration = Duration::from_secs(60);
/// How long a permission is remembered.
const ALLOWED: Duration = Duration::from_secs(5 * 60);
/// How long a refusal is remembered.
const DENIED: Duration = Duration::from_secs(30);
/// How long the API server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Answers that are remembered, of each sort.
const REMEMBERED: usize = 1_024;

/// Lets those in who may read a path, by the API server's word. Clones share what they remember.
///
/// The operator needs to create `tokenreviews` and `subjectaccessreviews`; readers need `get` on the non-resource URL.
#[derive(Clone)]
pub struct AccessGuard {
    client: Client,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    /// By token.
    users: Remembered<String, Option<UserInfo>>,
    /// By token, verb and path.
    decisions: Remembered<(String, String, String), bool>,
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("Unauthorized")]
    Unauthenticated,
    #[error("Authorization denied for user {0}")]
    Denied(String),
    #[error("Authentication failed")]
    AuthenticationFailed,
    #[error("Authorization for user {0} failed")]
    AuthorizationFailed(String),
}

impl Refusal {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Denied(_) => StatusCode::FORBIDDEN,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl AccessGuard {
    /// A guard that asks with this client.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            memory: Arc::default(),
        }
    }

    pub(super) async fn check(&self, request: &Parts) -> Result<(), Refusal> {
        let token = bearer(request).ok_or(Refusal::Unauthenticated)?;
        let user = self.user(token).await?.ok_or(Refusal::Unauthenticated)?;
        let name = user.username.clone().unwrap_or_default();
        match self.allows(token, user, request).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::Denied(name)),
            Err(()) => Err(Refusal::AuthorizationFailed(name)),
        }
    }

    async fn user(&self, token: &str) -> Result<Option<UserInfo>, Refusal> {
        let token = token.to_owned();
        let known = self.memory.lock().users.get(&token);
        if let Some(user) = known {
            return Ok(user);
        }
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.clone(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let reviewed = self.ask(review).await;
        let reviewed = reviewed.ok_or(Refusal::AuthenticationFailed)?;
        let status = reviewed.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true));
        let mut memory = self.memory.lock();
        memory.users.put(token, user.clone(), TOKEN);
        Ok(user)
    }

    async fn allows(&self, token: &str, user: UserInfo, request: &Parts) -> Result<bool, ()> {
        let verb = request.method.as_str().to_ascii_lowercase();
        let path = request.uri.path().to_owned();
        let key = (token.to_owned(), verb.clone(), path.clone());
        let known = self.memory.lock().decisions.get(&key);
        if let Some(allowed) = known {
            return Ok(allowed);
        }
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                uid: user.uid,
                groups: user.groups,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path),
                    verb: Some(verb),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let status = self.ask(review).await.ok_or(())?.status;
        let allowed = status.is_some_and(|status| status.allowed);
        let lifetime = if allowed { ALLOWED } else { DENIED };
        self.memory.lock().decisions.put(key, allowed, lifetime);
        Ok(allowed)
    }

    async fn ask<K>(&self, review: K) -> Option<K>
    where
        K: kube::Resource<DynamicType = ()>
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Clone
            + fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let params = PostParams::default();
        match timeout(PATIENCE, api.create(&params, &review)).await {
            Ok(Ok(reviewed)) => Some(reviewed),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the API server did not answer a review");
                None
            }
            Err(_) => {
                tracing::warn!("the API server did not answer a review in time");
                None
            }
        }
    }
}

impl fmt::Debug for AccessGuard {
    /// Says nothing of the tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessGuard")
    }
}

fn bearer(request: &Parts) -> Option<&str> {
    let header = request.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    let token = token.trim();
    let sound = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty();
    sound.then_some(token)
}

/// A few answers, each until its time is over.
struct Remembered<K, V>(BTreeMap<K, (V, Instant)>);

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone, V: Clone> Remembered<K, V> {
    fn get(&mut self, key: &K) -> Option<V> {
        let (value, until) = self.0.get(key)?;
        (Instant::now() < *until).then(|| value.clone())
    }

    fn put(&mut self, key: K, value: V, lifetime: Duration) {
        let now = Instant::now();
        if self.0.len() >= REMEMBERED {
            self.0.retain(|_, (_, until)| now < *until);
        }
        if self.0.len() >= REMEMBERED {
            let first = self.0.iter().min_by_key(|(_, (_, until))| *until);
            if let Some(key) = first.map(|(key, _)| key.clone()) {
                self.0.remove(&key);
            }
        }
        self.0.insert(key, (value, now + lifetime));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[limited::test(start_paused = true)]
    async fn answers_are_remembered_for_their_time_and_not_without_bound() {
        let mut remembered = Remembered::default();
        remembered.put(0, 'a', DENIED);
        assert_eq!(remembered.get(&0), Some('a'));
        tokio::time::advance(DENIED).await;
        assert_eq!(remembered.get(&0), None);
        for key in 0..2_000 {
            remembered.put(key, 'b', ALLOWED);
        }
        assert_eq!(remembered.0.len(), REMEMBERED);
        assert_eq!(remembered.get(&1_999), Some('b'));
    }
}
