//! What a request asks for, derived once: authorization, dispatch and the audit log borrow the same value.
//!
//! Mirrors `RequestInfoFactory.NewRequestInfo` of k8s.io/apiserver. A verb that one of them derived for itself could
//! be another one, and what is authorized would not be what is done.

mod part;
mod warnings;

use http::Method;
use kubewright_schema::catalog::Verb;

use crate::http::head::Head;
use crate::http::path::{self, ResourcePath, Target};
use crate::http::query::Query;

pub(crate) use part::Part;
pub(crate) use warnings::Warnings;

/// A request, taken apart.
pub(crate) struct RequestInfo<'a> {
    pub(crate) method: &'a Method,
    /// The path as it was sent.
    pub(crate) path: &'a str,
    pub(crate) target: Target,
    pub(crate) query: Query,
    /// What is to be done to objects; none for paths that name no objects and for methods that mean nothing to them.
    pub(crate) verb: Option<Verb>,
}

impl<'a> RequestInfo<'a> {
    /// The request with this head, whose query was read before.
    pub(crate) fn new(head: &'a Head, query: Query) -> Self {
        let path = head.uri.path();
        Self::of(&head.method, path, path::parse(path), query)
    }

    /// A request with this method and path.
    pub(crate) fn of(method: &'a Method, path: &'a str, target: Target, query: Query) -> Self {
        let verb = match &target {
            Target::Resource(resource) => verb(method, resource, &query),
            _ => None,
        };
        Self {
            method,
            path,
            target,
            query,
            verb,
        }
    }

    /// Whether the request only reads, as far as its method says.
    pub(crate) fn reads(&self) -> bool {
        is_read(self.method)
    }
}

/// The verb of a request for objects. Below `watch/` it is always `watch`, whatever the method; dispatch refuses all
/// methods there but reads.
fn verb(method: &Method, path: &ResourcePath, query: &Query) -> Option<Verb> {
    let collection = path.name.is_none();
    Some(match method.as_str() {
        _ if path.watch => Verb::Watch,
        "GET" | "HEAD" if collection && query.flag("watch") => Verb::Watch,
        "GET" | "HEAD" if collection => Verb::List,
        "GET" | "HEAD" => Verb::Get,
        "POST" => Verb::Create,
        "PUT" => Verb::Update,
        "PATCH" => Verb::Patch,
        "DELETE" if collection => Verb::DeleteCollection,
        "DELETE" => Verb::Delete,
        _ => return None,
    })
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
