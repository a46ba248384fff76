//! `proxy` of pods, services and nodes: an HTTP request is passed on to whoever is behind it.
//!
//! Requests and answers are passed on whole, so nothing that never ends can be read through a proxy.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, Method, Request, Response, Uri};
use kubewright_schema::catalog::Verb;
use serde_json::Value;

use super::connect::ConnectOptions;
use super::stream::{refused, target_of};
use crate::agents::{AgentError, PodTarget};
use crate::api::call::Call;
use crate::http::body::full;
use crate::http::respond::Answer;
use crate::status::ApiError;

/// What a name in the path of a proxy says: `name`, `name:port` or `scheme:name:port`.
struct Address<'a> {
    name: &'a str,
    port: Option<&'a str>,
}

impl<'a> Address<'a> {
    /// Mirrors `utilnet.SplitSchemeNamePort`.
    fn read(text: &'a str) -> Result<Self, ApiError> {
        let parts: Vec<&str> = text.split(':').collect();
        let (name, port) = match parts.as_slice() {
            [name] => (*name, None),
            [name, port] => (*name, Some(*port)),
            ["http" | "https" | "", name, port] => (*name, Some(*port)),
            _ => {
                return Err(ApiError::bad_request(format!(
                    "invalid proxy request {text:?}"
                )));
            }
        };
        Ok(Self {
            name,
            port: port.filter(|port| !port.is_empty()),
        })
    }
}

/// Passes a request on.
pub(super) async fn proxy(
    call: &Call,
    verb: Verb,
    behind: &str,
    body: &[u8],
) -> Result<Answer, ApiError> {
    let path = if behind.is_empty() {
        String::new()
    } else {
        format!("/{behind}")
    };
    let options = ConnectOptions::admitted(call, "proxy", &path).await?;
    let request = request(call, verb, options.text("path").unwrap_or("/"), body)?;
    let address = Address::read(&call.name)?;
    let Some(agents) = call.core.agents.clone() else {
        return Err(refused(&AgentError::Unreachable(call.name.clone())));
    };
    let answered = match &*call.served.resource.plural {
        "nodes" => {
            object(call, &call.served.resource.plural, None, address.name)?;
            agents.node_http(address.name.to_owned(), request).await
        }
        "services" => {
            let (pod, port) = endpoint(call, &address)?;
            agents.pod_http(pod, port, request).await
        }
        _ => {
            let pod = object(call, "pods", call.namespace.as_deref(), address.name)?;
            let port = pod_port(&pod, address.port)?;
            agents.pod_http(target_of(&pod)?, port, request).await
        }
    };
    answered.map(answer).map_err(|error| unavailable(&error))
}

/// The error when nothing answers behind a proxy.
fn unavailable(error: &AgentError) -> ApiError {
    ApiError::service_unavailable(format!("error trying to reach service: {error}"))
}

/// The request as it is passed on, for this path.
fn request(call: &Call, verb: Verb, path: &str, body: &[u8]) -> Result<Request<Bytes>, ApiError> {
    let method = match verb {
        Verb::Create => Method::POST,
        Verb::Update => Method::PUT,
        Verb::Patch => Method::PATCH,
        Verb::Delete => Method::DELETE,
        _ => Method::GET,
    };
    let query = call.query.encode();
    let path = format!(
        "/{}{}{query}",
        path.trim_start_matches('/'),
        if query.is_empty() { "" } else { "?" }
    );
    let uri: Uri = path
        .parse()
        .map_err(|_| ApiError::bad_request("the path behind the proxy is not one"))?;
    let mut request = Request::new(Bytes::copy_from_slice(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = passed_on(&call.headers);
    Ok(request)
}

/// The headers that are passed on: not those of the connection, and not who the caller is.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let own = [
        AUTHORIZATION,
        CONNECTION,
        CONTENT_LENGTH,
        HOST,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    let kept = headers.iter().filter(|(name, _)| !own.contains(name));
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn answer(answered: Response<Bytes>) -> Answer {
    let (parts, body) = answered.into_parts();
    let mut answer = Response::new(full(body));
    *answer.status_mut() = parts.status;
    *answer.headers_mut() = passed_on(&parts.headers);
    answer
}

/// An object of a built-in kind of the core group.
fn object(
    call: &Call,
    plural: &str,
    namespace: Option<&str>,
    name: &str,
) -> Result<Value, ApiError> {
    let served = call.core.registry.now().builtin("", "v1", plural);
    let record = served.collection.get(&served.key(namespace, name));
    let record = record.ok_or_else(|| ApiError::not_found(served.about(), name))?;
    served.revive(&record)
}

/// The port of a pod: the one that was named, or the first that a container declares.
fn pod_port(pod: &Value, named: Option<&str>) -> Result<u16, ApiError> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut ports = containers.flat_map(|c| c["ports"].as_array().into_iter().flatten());
    let declared = |port: &Value| u16::try_from(port["containerPort"].as_u64()?).ok();
    let found = match named {
        None => ports.find_map(declared).or(Some(80)),
        Some(named) => named
            .parse()
            .ok()
            .or_else(|| ports.find(|port| port["name"] == named).and_then(declared)),
    };
    found.ok_or_else(|| ApiError::bad_request("the pod has no such port"))
}

/// A pod behind a Service, and the port that is meant there.
///
/// Mirrors `service.REST.ResourceLocation`.
fn endpoint(call: &Call, address: &Address<'_>) -> Result<(PodTarget, u16), ApiError> {
    let (namespace, name) = (call.namespace.as_deref(), address.name);
    let service = object(call, "services", namespace, name)?;
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let mut ports: Vec<&Value> = ports.collect();
    if let Some(wanted) = address.port {
        let number: Option<u64> = wanted.parse().ok();
        ports.retain(|port| {
            port["name"] == wanted || (number.is_some() && port["port"].as_u64() == number)
        });
    }
    let none = || {
        ApiError::service_unavailable(format!(
            "no endpoints available for service {:?}",
            call.name
        ))
    };
    let port_name = ports.first().ok_or_else(none)?["name"]
        .as_str()
        .unwrap_or("");
    let endpoints = object(call, "endpoints", namespace, name).map_err(|_| none())?;
    for subset in endpoints["subsets"].as_array().into_iter().flatten() {
        let mut ports = subset["ports"].as_array().into_iter().flatten();
        let port = ports.find(|port| port["name"].as_str().unwrap_or("") == port_name);
        let port = port.and_then(|port| u16::try_from(port["port"].as_u64()?).ok());
        let pod = subset["addresses"][0]["targetRef"]["name"].as_str();
        if let (Some(port), Some(pod)) = (port, pod) {
            let pod = object(call, "pods", namespace, pod)?;
            return Ok((target_of(&pod)?, port));
        }
    }
    Err(none())
}
