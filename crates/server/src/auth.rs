//! Who is calling: client certificates, bearer tokens, and what may be asked without either.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::ConstantTimeEq;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::http::head::Head;
use crate::http::path::Target;
use crate::status::ApiError;

/// The user of requests without credentials.
pub(crate) const ANONYMOUS: &str = "system:anonymous";
/// The group of everybody who is known.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody who is not.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";

/// A user as certificates and tokens name them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// Unique name, the common name of a certificate.
    pub name: String,
    /// Groups, the organisations of a certificate.
    pub groups: Vec<String>,
    /// Identifier that is never used again; empty for users who have none.
    pub uid: String,
    /// What else is known of the user, such as the pod that a token was made for.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user by name and groups.
    pub fn new<G: Into<String>>(
        name: impl Into<String>,
        groups: impl IntoIterator<Item = G>,
    ) -> Self {
        Self {
            name: name.into(),
            groups: groups.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// The administrator: a member of `system:masters`.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin", ["system:masters"])
    }

    fn anonymous() -> Self {
        Self::new(ANONYMOUS, [UNAUTHENTICATED])
    }

    /// The user as a member of the group that everybody known is in.
    pub(crate) fn authenticated(mut self) -> Self {
        let known = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
        if self.name != ANONYMOUS && !self.groups.iter().any(known) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// Whether nobody knows who this is.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }

    /// The user that a client certificate names. The certificate has been verified by TLS.
    pub(crate) fn of_certificate(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let subject = certificate.subject();
        let name = subject.iter_common_name().next()?.as_str().ok()?;
        let groups = subject.iter_organization().filter_map(|o| o.as_str().ok());
        Some(Self::new(name, groups).authenticated())
    }
}

/// How a request reached the server.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// From inside the process, as this user.
    Trusted(User),
    /// From a component of the cluster in this process: as the [`User`] in the extensions of the request, or this one.
    Component(User),
    /// Over a socket, with the user of the connection's client certificate if there is one.
    Peer(Option<User>),
}

/// Bearer tokens and their users. Never printed.
#[derive(Clone, Default)]
pub struct Tokens(HashMap<String, User>);

impl Tokens {
    /// Adds a token; the user joins `system:authenticated`.
    pub fn insert(&mut self, token: impl Into<String>, user: User) {
        self.0.insert(token.into(), user.authenticated());
    }

    /// The user of a token. Compares in time that depends on the lengths alone, so that a token cannot be guessed byte by
    /// byte.
    pub(crate) fn find(&self, token: &str) -> Option<&User> {
        self.0
            .iter()
            .find(|(known, _)| known.as_bytes().ct_eq(token.as_bytes()).into())
            .map(|(_, user)| user)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

/// Finds out who is calling. Health and version are open to everybody, nothing else is. Tokens that nobody was given
/// are shown to `service_account`.
pub(crate) fn authenticate(
    tokens: &Tokens,
    service_account: impl FnOnce(&str) -> Option<User>,
    caller: &Caller,
    head: &Head,
    target: &Target,
) -> Result<User, ApiError> {
    match caller {
        Caller::Trusted(user) | Caller::Peer(Some(user)) => Ok(user.clone()),
        Caller::Component(user) => {
            let named = head.extensions.get::<User>().cloned();
            Ok(named.map_or_else(|| user.clone(), User::authenticated))
        }
        Caller::Peer(None) => match bearer(&head.headers) {
            Some(token) => tokens
                .find(token)
                .cloned()
                .or_else(|| service_account(token))
                .ok_or_else(ApiError::unauthorized),
            None if matches!(target, Target::Health(_) | Target::Version) => Ok(User::anonymous()),
            None => Err(ApiError::unauthorized()),
        },
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, Request};

    fn ask(
        caller: Caller,
        authorization: Option<&'static str>,
        target: Target,
    ) -> Result<String, u16> {
        let mut tokens = Tokens::default();
        tokens.insert("secret", User::new("bob", ["team"]));
        let service_account = |token: &str| (token == "signed").then(|| User::new("sa", [""; 0]));
        let (mut parts, ()) = Request::new(()).into_parts();
        if let Some(value) = authorization {
            let value = HeaderValue::from_static(value);
            parts.headers.insert(AUTHORIZATION, value);
        }
        // Whoever is not a component of the cluster cannot name another user this way.
        parts.extensions.insert(User::new("named", ["team"]));
        authenticate(
            &tokens,
            service_account,
            &caller,
            &Head::new(parts),
            &target,
        )
        .map(|u| u.name)
        .map_err(|e| e.code().as_u16())
    }

    #[test]
    fn certificates_come_before_tokens_and_nothing_is_anonymous_but_health() {
        let nobody = || Caller::Peer(None);
        let certificate = || Caller::Peer(Some(User::new("cert", [""; 0])));
        let trusted = Caller::Trusted(User::new("trusted", [""; 0]));
        let component = Caller::Component(User::new("component", [""; 0]));
        for (caller, authorization, target, expected) in [
            (
                certificate(),
                Some("Bearer bad"),
                Target::Groups,
                Ok("cert"),
            ),
            (trusted, None, Target::Groups, Ok("trusted")),
            (component, None, Target::Groups, Ok("named")),
            (nobody(), Some("Bearer secret"), Target::Groups, Ok("bob")),
            (nobody(), Some("bearer signed"), Target::Groups, Ok("sa")),
            (nobody(), Some("Bearer bad"), Target::Version, Err(401)),
            (nobody(), None, Target::Groups, Err(401)),
            (nobody(), None, Target::Version, Ok(ANONYMOUS)),
        ] {
            assert_eq!(
                ask(caller, authorization, target),
                expected.map(str::to_owned)
            );
        }
    }

    #[test]
    fn everybody_known_is_in_one_group() {
        let groups = |user: User| user.authenticated().groups;
        assert_eq!(groups(User::new("bob", ["a"])), ["a", AUTHENTICATED]);
        assert_eq!(groups(User::new("bob", [AUTHENTICATED])), [AUTHENTICATED]);
        assert_eq!(groups(User::anonymous()), [UNAUTHENTICATED]);
    }
}
