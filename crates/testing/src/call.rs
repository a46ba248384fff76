//! What is asked over a wire, and what may go wrong with it.

use std::fmt;
use std::time::Duration;

use http::{Method, Uri};

use crate::access::Access;

/// A call, as it passes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The number of calls of this verb so far, this one included.
    pub number: u64,
    /// What is asked for.
    pub verb: Verb,
    /// The path of the request, without the query.
    pub path: String,
    /// The query, empty if the request has none.
    pub query: String,
    /// What roles have to allow for it; nothing for documents such as discovery.
    pub access: Option<Access>,
}

/// A call and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchange {
    /// The call as the client sent it.
    pub call: Call,
    /// What the test did to it.
    pub fault: Fault,
    /// The HTTP code of the answer; nothing before it arrives.
    pub code: Option<u16>,
    /// The server's message when it refused.
    pub message: Option<String>,
}

impl Exchange {
    /// Whether the server was asked to change something, and not only to try it.
    pub fn is_write(&self) -> bool {
        let writes = self.call.access.as_ref().is_some_and(Access::is_write);
        writes && self.fault.arrives() && !self.call.query.contains("dryRun=All")
    }

    /// Whether it is about a lease, as elections renew them.
    pub fn is_lease(&self) -> bool {
        let access = self.call.access.as_ref();
        access.is_some_and(|it| it.group == "coordination.k8s.io" && it.resource == "leases")
    }

    /// What the server refused because no role allows it. Other refusals with code 403, such as those of quotas, are not
    /// about roles.
    pub fn denied(&self) -> Option<&Access> {
        let message = self.message.as_deref().unwrap_or_default();
        let by_roles = message.contains(" cannot ") && message.contains(" resource ");
        let denied = self.code == Some(403) && by_roles && self.fault.arrives();
        self.call.access.as_ref().filter(|_| denied)
    }

    /// What roles have to allow for this exchange. A watch that begins with a list is a list for servers that do not stream
    /// lists, and a patch that made its object has created it.
    pub fn accesses(&self) -> Vec<Access> {
        let Some(access) = &self.call.access else {
            return Vec::new();
        };
        let streams = self.call.query.contains("sendInitialEvents=true");
        let more = match access.verb {
            "watch" if streams => Some("list"),
            "patch" if self.code == Some(201) => Some("create"),
            _ => None,
        };
        let more = more.map(|verb| access.with_verb(verb));
        std::iter::once(access.clone()).chain(more).collect()
    }
}

/// What a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// One object, or a document.
    Get,
    /// Read a collection of objects.
    List,
    /// Follow the changes of a collection.
    Watch,
    /// A new object, or a call of a subresource.
    Create,
    /// A new state of an object.
    Update,
    /// A change of an object.
    Patch,
    /// The end of an object.
    Delete,
}

/// `create secrets default/web: 403 secrets is forbidden`.
impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.call.access {
            Some(access) => write!(f, "{access}")?,
            None => write!(f, "{:?} {}", self.call.verb, self.call.path)?,
        }
        if self.fault != Fault::None {
            write!(f, " (fault: {:?})", self.fault)?;
        }
        match (self.code, &self.message) {
            (Some(code), Some(message)) => write!(f, ": {code} {message}"),
            (Some(code), None) => write!(f, ": {code}"),
            (None, _) => write!(f, ": not answered"),
        }
    }
}

/// What happens to a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Fault {
    /// The call reaches the server, and the answer the client.
    #[default]
    None,
    /// The server answers this instead.
    Refuse {
        /// The HTTP code.
        code: u16,
        /// The reason, as `Conflict`.
        reason: &'static str,
    },
    /// It never arrives: the connection breaks.
    LoseRequest,
    /// The server does it, and the answer never arrives.
    LoseAnswer,
    /// It takes this long, and then happens.
    Delay(Duration),
    /// The request is accepted and nothing ever comes back, as on a half-open connection. The server does not see it.
    Silence,
    /// The server does it, and nothing ever comes back.
    SilentAnswer,
    /// The server answers with the head and the first half of the first part of the body, and then nothing ever comes:
    /// a page of a list that stops in the middle, a watch that stops in its first event.
    Stall,
}

impl Fault {
    /// Whether the server gets to see the call.
    pub fn arrives(&self) -> bool {
        !matches!(
            self,
            Self::Refuse { .. } | Self::LoseRequest | Self::Silence
        )
    }
}

impl Verb {
    pub(crate) fn of(method: &Method, uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        match method.as_str() {
            "POST" => Self::Create,
            "PUT" => Self::Update,
            "PATCH" => Self::Patch,
            "DELETE" => Self::Delete,
            _ if query
                .split('&')
                .any(|part| part == "watch=true" || part == "watch=1") =>
            {
                Self::Watch
            }
            _ if is_collection(uri.path()) => Self::List,
            _ => Self::Get,
        }
    }

    /// Whether it may change something.
    pub fn is_write(self) -> bool {
        matches!(
            self,
            Self::Create | Self::Update | Self::Patch | Self::Delete
        )
    }
}

/// Whether a path names a collection: `/api/v1/pods`, `/apis/apps/v1/namespaces/n/deployments`.
fn is_collection(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let rest = match parts.first() {
        Some(&"api") => parts.get(2..),
        Some(&"apis") => parts.get(3..),
        _ => None,
    };
    matches!(rest, Some([_] | ["namespaces", _, _]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_distinguished_from_paths() {
        for (method, uri, verb) in [
            ("GET", "/api/v1/pods", Verb::List),
            ("GET", "/api/v1/namespaces", Verb::List),
            ("GET", "/api/v1/namespaces/n", Verb::Get),
            ("GET", "/api/v1/namespaces/n/pods?limit=5", Verb::List),
            ("GET", "/api/v1/namespaces/n/pods/p", Verb::Get),
            ("GET", "/apis/apps/v1/deployments?watch=true", Verb::Watch),
            ("GET", "/apis/apps/v1/namespaces/n/deployments", Verb::List),
            ("GET", "/apis/apps/v1", Verb::Get),
            ("POST", "/api/v1/namespaces/n/pods", Verb::Create),
            ("PATCH", "/api/v1/namespaces/n/pods/p", Verb::Patch),
        ] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let uri: Uri = uri.parse().expect("a path");
            assert_eq!(Verb::of(&method, &uri), verb, "{method} {uri}");
        }
    }
}
