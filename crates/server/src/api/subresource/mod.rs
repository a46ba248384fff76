//! Parts of objects with an address of their own.

mod budget;
mod log;
mod namespace;
mod pod;
pub(crate) mod scale;

use http::Method;

use super::call::Call;
use super::write::Part;
use super::{get, patch, update};
use crate::access::token;
use crate::http::respond::Answer;
use crate::status::ApiError;

/// Answers a request for a part of an object.
pub(crate) async fn dispatch(
    call: &mut Call,
    method: &Method,
    part: &str,
    body: &[u8],
) -> Result<Answer, ApiError> {
    // Served where there is somebody to ask for logs; whoever asks elsewhere is told so.
    if call.served.is("", "Pod") && part == "log" && method == Method::GET {
        return log::log(call);
    }
    let Some(subresource) = call.served.resource.subresource(part) else {
        return Err(ApiError::no_such_resource());
    };
    let verb = match *method {
        Method::GET | Method::HEAD => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::POST => "create",
        _ => "",
    };
    if !subresource.verbs.iter().any(|v| v.as_str() == verb) {
        return Err(ApiError::method_not_allowed());
    }
    match part {
        "scale" => scale::dispatch(call, verb, body).await,
        "status" => whole_or_part(call, verb, body, Part::Status).await,
        "approval" | "ephemeralcontainers" | "resize" => {
            pod::restricted(call, verb, part, body).await
        }
        "finalize" => namespace::finalize(call, body).await,
        "binding" => pod::bind(call, body).await,
        "token" => token::create(call, body).await,
        "eviction" => pod::evict(call, body).await,
        _ => Err(ApiError::no_such_resource()),
    }
}

async fn whole_or_part(
    call: &mut Call,
    verb: &str,
    body: &[u8],
    part: Part,
) -> Result<Answer, ApiError> {
    match verb {
        "get" => get::get(call).await,
        "update" => update::update(call, body, part).await,
        "patch" => patch::patch(call, body, part).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}
