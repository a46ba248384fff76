//! The head of a request, and what follows from it before anything else is known.

use std::sync::Arc;

use http::header::{HOST, USER_AGENT};
use http::request::Parts;
use http::{Extensions, HeaderMap, Method, Uri, Version};

use super::accept::{Accept, Format, Protobuf};
use super::query::Query;

/// A request without its body. Its headers are shared with whoever answers it.
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: Arc<HeaderMap>,
    /// What callers in this process attach to a request.
    pub(crate) extensions: Extensions,
}

impl Head {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            method: parts.method,
            uri: parts.uri,
            headers: Arc::new(parts.headers),
            extensions: parts.extensions,
        }
    }

    /// The format of a refusal. Refusals are written for whoever asked, even when the question could not be read.
    pub(crate) fn error_format(&self, query: &Query) -> Format {
        let accept = Accept::read(&self.headers, query, Protobuf::Objects);
        if accept.is_ok_and(|accept| accept.format == Format::Protobuf) {
            return Format::Protobuf;
        }
        let agent = self.headers.get(USER_AGENT);
        let json_only = HeaderMap::from_iter(agent.map(|agent| (USER_AGENT, agent.clone())));
        Accept::read(&json_only, query, Protobuf::Objects)
            .map_or(Format::Json, |accept| accept.format)
    }
}

/// Whether a request names its host as RFC 9112, section 3.2, asks: an HTTP/1.1 request has exactly one `Host`.
pub(crate) fn names_its_host(parts: &Parts) -> bool {
    let hosts = parts.headers.get_all(HOST).iter().count();
    match parts.version {
        Version::HTTP_11 => hosts == 1,
        _ => hosts <= 1,
    }
}
