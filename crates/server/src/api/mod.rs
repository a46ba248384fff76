//! The verbs of the API, from a parsed request to an answer.
//!
//! Each file is one verb. A verb reads its options, works on a [`Served`](crate::resource::Served) resource and
//! writes through [`crate::write`], where all changes of objects pass.

mod apply;
pub(crate) mod call;
mod create;
mod delete;
mod get;
mod list;
mod matcher;
mod metrics;
mod options;
mod patch;
mod review;
mod subresource;
mod token;
mod update;
pub(crate) mod watch;

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use kubewright_schema::catalog::Verb;

use crate::auth::User;
use crate::core::Core;
use crate::http::accept::Accept;
use crate::http::path::{ResourcePath, Target};
use crate::http::respond::{self, Answer};
use crate::http::websocket::Stream;
use crate::registry::Lookup;
use crate::request::{Part, RequestInfo, Warnings};
use crate::resource::{Served, is_review};
use crate::status::ApiError;
use call::Call;

/// A request for objects that may be done.
pub(crate) struct ObjectRequest<'a> {
    pub(crate) info: &'a RequestInfo<'a>,
    pub(crate) headers: &'a Arc<HeaderMap>,
    pub(crate) user: User,
    /// Sent along whether the request succeeds or not.
    pub(crate) warnings: Warnings,
}

/// Answers a request for objects.
pub(crate) async fn dispatch(
    core: &Arc<Core>,
    request: ObjectRequest<'_>,
    body: Bytes,
) -> Result<Answer, ApiError> {
    let info = request.info;
    let reads = info.reads();
    let Target::Resource(path) = &info.target else {
        return Ok(respond::page_not_found());
    };
    if path.gv.group == crate::agents::discovery::GROUP
        && let Some(agents) = &core.agents
    {
        return metrics::dispatch(core, agents, info, path, request.headers);
    }
    let served = match core.registry.now().find(&path.gv, &path.resource) {
        Lookup::Found(served) => served,
        Lookup::NoResource => return Err(ApiError::no_such_resource()),
        Lookup::NoGroupVersion => return Ok(respond::page_not_found()),
    };
    check_scope(&served, path)?;
    // Collections and objects are watched below `watch/`; their parts are not there, and nothing is written there.
    if path.watch && path.subresource.is_some() {
        return Err(ApiError::no_such_resource());
    }
    let verb = info.verb.filter(|_| reads || !path.watch);
    let verb = verb.ok_or_else(ApiError::method_not_allowed)?;
    request.warnings.extend(served.deprecation());
    let call = Call {
        core: core.clone(),
        accept: Accept::read(request.headers, &info.query, served.protobuf())?,
        namespace: path.namespace.clone(),
        name: path.name.clone().unwrap_or_default(),
        query: info.query.clone(),
        headers: request.headers.clone(),
        user: request.user,
        warnings: request.warnings,
        served,
    };
    let stream = stream_of(verb, path.subresource.as_deref());
    let result = match &path.subresource {
        Some(part) => subresource::dispatch(&call, verb, part, &body).await,
        None => perform(&call, verb, &body).await,
    };
    let mut answer = result?;
    if !reads {
        core.wait_for_tasks(&call.served).await;
    }
    if let Some(stream) = stream {
        answer.extensions_mut().insert(stream);
    }
    Ok(answer)
}

/// What the answer is a stream of, if it is one that can go over a WebSocket.
fn stream_of(verb: Verb, subresource: Option<&str>) -> Option<Stream> {
    match (verb, subresource) {
        (Verb::Watch, None) => Some(Stream::Events),
        (Verb::Get, Some("log")) => Some(Stream::Log),
        _ => None,
    }
}

/// Does what the verb says to an object or a collection.
async fn perform(call: &Call, verb: Verb, body: &[u8]) -> Result<Answer, ApiError> {
    let fits = match verb {
        Verb::Get | Verb::Update | Verb::Patch | Verb::Delete => !call.name.is_empty(),
        Verb::List | Verb::Create | Verb::DeleteCollection => call.name.is_empty(),
        Verb::Watch => true,
    };
    // Reads of all namespaces at once are fine; an object is created in one.
    let homeless = call.served.is_namespaced() && call.namespace.is_none();
    if homeless && !matches!(verb, Verb::List | Verb::Watch) {
        return Err(call.served.namespace_required());
    }
    if !fits || !call.served.resource.verbs.contains(&verb) {
        return Err(ApiError::method_not_allowed());
    }
    match verb {
        Verb::Watch => watch::watch(call).await,
        Verb::Get => get::get(call).await,
        Verb::List => list::list(call).await,
        Verb::Create if is_review(&call.served.resource.group, &call.served.resource.kind) => {
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
