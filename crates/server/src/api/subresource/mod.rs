//! Parts of objects with an address of their own.

mod budget;
mod connect;
mod log;
mod namespace;
mod pod;
mod proxy;
mod scale;
mod stream;
mod token;

use kubewright_schema::catalog::Verb;

use super::call::Call;
use super::{get, patch, update};
use crate::http::respond::Answer;
use crate::request::Part;
use crate::status::ApiError;

/// Answers a request for a part of an object.
pub(crate) async fn dispatch(
    call: &Call,
    verb: Verb,
    part: &str,
    body: &[u8],
) -> Result<Answer, ApiError> {
    // What follows a proxy's name is the path behind it.
    let (name, behind) = match part.split_once('/') {
        Some(("proxy", behind)) => ("proxy", behind),
        _ => (part, ""),
    };
    let Some(subresource) = call.served.resource.subresource(name) else {
        return Err(ApiError::no_such_resource());
    };
    if !subresource.verbs.contains(&verb) {
        return Err(ApiError::method_not_allowed());
    }
    match part {
        // Served where the server has a source of logs; elsewhere the answer is an error that says so.
        "log" => log::log(call),
        "exec" => stream::exec(call).await,
        "attach" => stream::attach(call).await,
        "portforward" => stream::port_forward(call).await,
        _ if name == "proxy" => proxy::proxy(call, verb, behind, body).await,
        "scale" => scale::dispatch(call, verb, body).await,
        "status" => whole_or_part(call, verb, body, Part::Status).await,
        "approval" => pod::restricted(call, verb, "approval", body).await,
        "ephemeralcontainers" => pod::restricted(call, verb, "ephemeralcontainers", body).await,
        "resize" => pod::restricted(call, verb, "resize", body).await,
        "finalize" => namespace::finalize(call, body).await,
        "binding" => pod::bind(call, body).await,
        "token" => token::create(call, body).await,
        "eviction" => pod::evict(call, body).await,
        _ => Err(ApiError::no_such_resource()),
    }
}

async fn whole_or_part(
    call: &Call,
    verb: Verb,
    body: &[u8],
    part: Part,
) -> Result<Answer, ApiError> {
    match verb {
        Verb::Get => get::get(call).await,
        Verb::Update => update::update(call, body, part).await,
        Verb::Patch => patch::patch(call, body, part).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}
