//! What is asked over a wire, and what may go wrong with it.

use std::time::Duration;

use http::{Method, Uri};

/// A call, as it passes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The number of calls of this verb so far, this one included.
    pub number: u64,
    /// What is asked for.
    pub verb: Verb,
    /// The path.
    pub path: String,
    /// The query, empty if there is none.
    pub query: String,
}

/// What a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// One object, or a document.
    Get,
    /// A collection.
    List,
    /// Changes.
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

/// What happens to a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing.
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
    fn verbs_are_told_from_paths() {
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
