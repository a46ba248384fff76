//! Who is calling: client certificates, bearer tokens, and what may be asked without either.

use std::collections::HashMap;
use std::fmt;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::http::path::Target;
use crate::status::ApiError;

/// The name of whoever does not say who they are.
const ANONYMOUS: &str = "system:anonymous";

/// A user as certificates and tokens name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Unique name, the common name of a certificate.
    pub name: String,
    /// Groups, the organisations of a certificate.
    pub groups: Vec<String>,
}

impl User {
    /// The administrator: a member of `system:masters`.
    pub fn admin() -> Self {
        Self {
            name: "kubernetes-admin".into(),
            groups: vec!["system:masters".into()],
        }
    }

    fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.into(),
            groups: vec!["system:unauthenticated".into()],
        }
    }

    /// Whether nobody knows who this is.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }

    /// The user that a client certificate names. The certificate has been verified by TLS.
    pub(crate) fn of_certificate(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let subject = certificate.subject();
        let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
        let groups = subject
            .iter_organization()
            .filter_map(|o| o.as_str().ok().map(str::to_owned))
            .collect();
        Some(Self { name, groups })
    }
}

/// How a request reached the server.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// From inside the process, as this user.
    Trusted(User),
    /// Over a socket, with the user of the connection's client certificate if there is one.
    Peer(Option<User>),
}

/// Bearer tokens and their users. Never printed.
#[derive(Clone, Default)]
pub struct Tokens(HashMap<String, User>);

impl Tokens {
    /// Adds a token.
    pub fn insert(&mut self, token: impl Into<String>, user: User) {
        self.0.insert(token.into(), user);
    }

    fn find(&self, token: &str) -> Option<&User> {
        self.0
            .iter()
            .find(|(known, _)| constant_time_equal(known, token))
            .map(|(_, user)| user)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

/// Finds out who is calling. Health and version are open to everybody, nothing else is.
pub(crate) fn authenticate(
    tokens: &Tokens,
    caller: &Caller,
    headers: &HeaderMap,
    target: &Target,
) -> Result<User, ApiError> {
    let user = match caller {
        Caller::Trusted(user) | Caller::Peer(Some(user)) => user.clone(),
        Caller::Peer(None) => match bearer(headers) {
            Some(token) => tokens
                .find(token)
                .cloned()
                .ok_or_else(ApiError::unauthorized)?,
            None if matches!(target, Target::Health(_) | Target::Version) => User::anonymous(),
            None => return Err(ApiError::unauthorized()),
        },
    };
    if headers
        .keys()
        .any(|name| name.as_str().starts_with("impersonate-"))
    {
        let about = crate::status::About {
            group: "",
            resource: "users",
        };
        return Err(ApiError::forbidden(
            about,
            "",
            "impersonation is not available on this server",
        ));
    }
    Ok(user)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Compares in time that depends on the lengths alone, so that a token cannot be guessed byte by byte.
fn constant_time_equal(a: &str, b: &str) -> bool {
    a.len() == b.len()
        && a.bytes()
            .zip(b.bytes())
            .fold(0, |acc, (x, y)| acc | (x ^ y))
            == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn ask(
        caller: Caller,
        authorization: Option<&'static str>,
        target: Target,
    ) -> Result<String, u16> {
        let mut tokens = Tokens::default();
        tokens.insert(
            "secret",
            User {
                name: "bob".into(),
                groups: vec![],
            },
        );
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
        }
        authenticate(&tokens, &caller, &headers, &target)
            .map(|u| u.name)
            .map_err(|e| e.code().as_u16())
    }

    #[test]
    fn certificates_come_before_tokens_and_nothing_is_anonymous_but_health() {
        let bob = || User {
            name: "cert".into(),
            groups: vec![],
        };
        assert_eq!(
            ask(
                Caller::Peer(Some(bob())),
                Some("Bearer bad"),
                Target::Groups
            ),
            Ok("cert".into())
        );
        assert_eq!(
            ask(Caller::Peer(None), Some("Bearer secret"), Target::Groups),
            Ok("bob".into())
        );
        assert_eq!(
            ask(Caller::Peer(None), Some("Bearer bad"), Target::Version),
            Err(401)
        );
        assert_eq!(ask(Caller::Peer(None), None, Target::Groups), Err(401));
        assert_eq!(
            ask(Caller::Peer(None), None, Target::Version),
            Ok("system:anonymous".into())
        );
    }
}
