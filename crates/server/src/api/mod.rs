//! The verbs of the API, from a parsed request to an answer.
//!
//! Each file is one verb. A verb reads its options, works on a [`Served`](crate::resource::Served) resource and
//! writes through [`write`], where all changes of objects pass.

mod apply;
pub(crate) mod call;
mod create;
mod delete;
mod get;
mod list;
mod options;
mod patch;
mod subresource;
mod token;
mod update;
pub(crate) mod watch;
pub(crate) mod write;

pub(crate) use patch::check_size;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use kubewright_schema::catalog::Verb;

use crate::access::review;
use crate::auth::User;
use crate::core::Core;
use crate::http::accept::Accept;
use crate::http::path::ResourcePath;
use crate::http::query::Query;
use crate::http::respond::{self, Answer};
use crate::registry::Lookup;
use crate::resource::Served;
use crate::status::ApiError;
use call::Call;
use write::Part;

/// Answers a request for objects.
#[allow(
    clippy::too_many_arguments,
    reason = "the parts of one request, each used once"
)]
pub(crate) async fn dispatch(
    core: &Arc<Core>,
    method: &Method,
    headers: &HeaderMap,
    path: ResourcePath,
    query: Query,
    user: User,
    body: Bytes,
    warnings: &mut Vec<String>,
) -> Result<Answer, ApiError> {
    let served = match core.registry.now().find(&path.gv, &path.resource) {
        Lookup::Found(served) => served,
        Lookup::NoResource => return Err(ApiError::no_such_resource()),
        Lookup::NoGroupVersion => return Ok(respond::page_not_found()),
    };
    check_scope(&served, &path)?;
    warnings.extend(
        served
            .custom()
            .and_then(|custom| custom.deprecation.clone()),
    );
    let mut call = Call {
        core: core.clone(),
        accept: Accept::read(headers, &query, served.protobuf())?,
        namespace: path.namespace,
        name: path.name.unwrap_or_default(),
        query,
        headers: headers.clone(),
        user,
        warnings: std::mem::take(warnings),
        served,
    };
    let watches = path.watch || call.query.flag("watch");
    let result = match path.subresource {
        Some(part) => subresource::dispatch(&mut call, method, &part, &body).await,
        None => verb(&mut call, method, watches, &body).await,
    };
    *warnings = call.warnings;
    result
}

async fn verb(
    call: &mut Call,
    method: &Method,
    watches: bool,
    body: &[u8],
) -> Result<Answer, ApiError> {
    let on_object = !call.name.is_empty();
    let verb = match (method.as_str(), on_object) {
        ("GET" | "HEAD", _) if watches => Verb::Watch,
        ("GET" | "HEAD", true) => Verb::Get,
        ("GET" | "HEAD", false) => Verb::List,
        ("POST", false) => Verb::Create,
        ("PUT", true) => Verb::Update,
        ("PATCH", true) => Verb::Patch,
        ("DELETE", true) => Verb::Delete,
        ("DELETE", false) => Verb::DeleteCollection,
        _ => return Err(ApiError::method_not_allowed()),
    };
    // Reads of all namespaces at once are fine; an object is created in one.
    let homeless = call.served.is_namespaced() && call.namespace.is_none();
    let allowed = call.served.resource.verbs.contains(&verb);
    if !allowed || (homeless && !matches!(verb, Verb::List | Verb::Watch)) {
        return Err(ApiError::method_not_allowed());
    }
    match verb {
        Verb::Watch => watch::watch(call).await,
        Verb::Get => get::get(call).await,
        Verb::List => list::list(call).await,
        Verb::Create
            if review::is_review(&call.served.resource.group, &call.served.resource.kind) =>
        {
            review::create(call, body)
        }
        Verb::Create => create::create(call, body).await,
        Verb::Update => update::update(call, body, Part::Whole).await,
        Verb::Patch => patch::patch(call, body, Part::Whole).await,
        Verb::Delete => delete::delete(call, body).await,
        Verb::DeleteCollection => delete::delete_collection(call, body).await,
    }
}

/// Objects are addressed where they live: those of a namespace in it, those of the cluster in none.
fn check_scope(served: &Served, path: &ResourcePath) -> Result<(), ApiError> {
    let fits = match (served.is_namespaced(), &path.namespace) {
        (true, None) => path.name.is_none(),
        (false, Some(_)) => false,
        _ => true,
    };
    if fits {
        Ok(())
    } else {
        Err(ApiError::no_such_resource())
    }
}
