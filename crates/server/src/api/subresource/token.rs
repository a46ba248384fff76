//! `serviceaccounts/token`: a token on request.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use kubewright_schema::{FieldError, Table, TypeId, encode};
use serde_json::{Value, json};

use crate::access::service_account_name;
use crate::access::token::claims::{Bound, Claims, Reference};
use crate::api::call::Call;
use crate::environment::rfc3339;
use crate::http::query::WriteOptions;
use crate::http::respond::{self, Answer};
use crate::object;
use crate::status::{About, ApiError};
use crate::storage::Record;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
const REQUEST: About<'static> = About {
    group: GROUP,
    resource: KIND,
};
/// How long a token lasts when nobody says, in seconds.
const DEFAULT_SECONDS: i64 = 3600;
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;

/// Makes a token for the service account that the request names.
pub(crate) async fn create(call: &Call, body: &[u8]) -> Result<Answer, ApiError> {
    let options = WriteOptions::read(&call.query, "CreateOptions")?;
    let ty = request_type()?;
    let decoded = call
        .body_format()?
        .decode(Table::builtin(), ty, body)
        .map_err(|e| {
            ApiError::bad_request(format!(
                "{KIND} in version \"v1\" cannot be handled as a {KIND}: {e}"
            ))
        })?;
    let strict = decoded.strict.iter().map(ToString::to_string).collect();
    call.strict(strict, options.field_validation)?;
    let mut request = decoded.value;
    check_kind(&mut request)?;
    check_names(call, &request)?;
    let account = call
        .served
        .collection
        .get(&call.key())
        .ok_or_else(|| call.not_found())?;
    let mut request = call.admit_posted("token", request, options.persist).await?;
    complete(call, &account, &mut request)?;
    let seconds = seconds(&request)?;
    let bound = bind(call, &account, &request["spec"]["boundObjectRef"])?;
    let now = call.core.environment.now();
    let claims = claims(call, bound, &request, now, seconds);
    let token = call.core.access.issuer.sign(&claims);
    let token = token.ok_or_else(|| ApiError::internal("failed to generate token"))?;
    let expires = now
        .saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX);
    request["status"] = json!({ "token": token, "expirationTimestamp": rfc3339(expires) });
    let mut bytes = Vec::with_capacity(2048);
    encode::write(Table::builtin(), ty, &request, &mut bytes);
    Ok(respond::json(
        StatusCode::CREATED,
        call.accept.format,
        bytes.into(),
    ))
}

fn request_type() -> Result<TypeId, ApiError> {
    Table::builtin()
        .kind(GROUP, "v1", KIND)
        .ok_or_else(|| ApiError::internal("TokenRequest is not in the type table"))
}

fn check_kind(request: &mut Value) -> Result<(), ApiError> {
    for (field, expected) in [("kind", KIND), ("apiVersion", "authentication.k8s.io/v1")] {
        let given = request[field].as_str().unwrap_or("");
        if !given.is_empty() && given != expected {
            return Err(ApiError::bad_request(format!(
                "the {field} in the data ({given}) does not match the expected {field} ({expected})"
            )));
        }
        request[field] = json!(expected);
    }
    Ok(())
}

/// The name and namespace in the body are those of the path, or absent.
fn check_names(call: &Call, request: &Value) -> Result<(), ApiError> {
    let namespace = call.namespace.as_deref().unwrap_or("");
    for (field, what, expected) in [
        ("name", "name", call.name.as_str()),
        ("namespace", "namespace", namespace),
    ] {
        let given = object::meta_str(request, field);
        if !given.is_empty() && given != expected {
            let text = format!("must match the service account {what} if specified");
            let error = FieldError::invalid(format!("metadata.{field}"), &json!(given), &text);
            return Err(ApiError::invalid(REQUEST, &call.name, &[error]));
        }
    }
    Ok(())
}

/// Fills in what the answer shows.
fn complete(call: &Call, account: &Record, request: &mut Value) -> Result<(), ApiError> {
    let uid = object::uid(request);
    if !uid.is_empty() && uid != account.uid() {
        let why = format!(
            "the UID in the token request ({uid}) does not match the UID of the service account ({})",
            account.uid()
        );
        return Err(ApiError::conflict(REQUEST, &call.name, &why));
    }
    object::set_meta(request, "name", account.name());
    object::set_meta(request, "namespace", account.namespace().unwrap_or(""));
    object::set_meta(request, "uid", account.uid());
    object::set_meta(
        request,
        "creationTimestamp",
        call.core.environment.now_rfc3339(),
    );
    if !request["spec"].is_object() {
        request["spec"] = json!({});
    }
    let spec = &mut request["spec"];
    if spec["audiences"].as_array().is_none_or(Vec::is_empty) {
        spec["audiences"] = json!([call.core.access.issuer.name]);
    }
    if spec["expirationSeconds"].is_null() {
        spec["expirationSeconds"] = json!(DEFAULT_SECONDS);
    }
    Ok(())
}

fn seconds(request: &Value) -> Result<i64, ApiError> {
    let given = &request["spec"]["expirationSeconds"];
    let seconds = given.as_i64().unwrap_or(0);
    let why = match seconds {
        ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
        MIN_SECONDS..=MAX_SECONDS => return Ok(seconds),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let error = FieldError::invalid("spec.expirationSeconds", given, why);
    Err(ApiError::invalid(REQUEST, "", &[error]))
}

/// Ties the token to an object that is there.
fn bind(call: &Call, account: &Record, wanted: &Value) -> Result<Bound, ApiError> {
    let mut bound = Bound {
        namespace: call.namespace.clone().unwrap_or_default(),
        node: None,
        pod: None,
        secret: None,
        service_account: reference(account),
    };
    if wanted.is_null() {
        return Ok(bound);
    }
    let text = |field: &str| wanted[field].as_str().unwrap_or("");
    let (api_version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let uid = match kind {
        _ if api_version.contains('/') => return Err(cannot_bind(api_version, kind)),
        "Pod" => {
            let (pod, node) = pod_and_node(call, name)?;
            bound.node = node;
            bound.pod.insert(pod).uid.clone()
        }
        "Secret" => bound
            .secret
            .insert(find(call, "secrets", name)?)
            .uid
            .clone(),
        "Node" => bound.node.insert(find(call, "nodes", name)?).uid.clone(),
        _ => return Err(cannot_bind(api_version, kind)),
    };
    if !text("uid").is_empty() && text("uid") != uid {
        let about = About {
            group: "",
            resource: kind,
        };
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been \
             deleted and then recreated",
            text("uid")
        );
        return Err(ApiError::conflict(about, name, &why));
    }
    Ok(bound)
}

fn cannot_bind(api_version: &str, kind: &str) -> ApiError {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiError::bad_request(format!(
        "cannot bind token to object of type {group}/{version}, Kind={kind}"
    ))
}

fn record(call: &Call, plural: &str, name: &str) -> Result<std::sync::Arc<Record>, ApiError> {
    let served = call.core.registry.now().builtin("", "v1", plural);
    let found = served
        .collection
        .get(&served.key(call.namespace.as_deref(), name));
    found.ok_or_else(|| ApiError::not_found(served.about(), name))
}

fn find(call: &Call, plural: &str, name: &str) -> Result<Reference, ApiError> {
    Ok(reference(&*record(call, plural, name)?))
}

/// A pod of this service account, and its node as far as it is known.
fn pod_and_node(call: &Call, name: &str) -> Result<(Reference, Option<Reference>), ApiError> {
    let record = record(call, "pods", name)?;
    let pod: Value = serde_json::from_slice(record.body()).map_err(ApiError::internal)?;
    let account = pod["spec"]["serviceAccountName"].as_str().unwrap_or("");
    if account != call.name {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            call.name
        )));
    }
    let node = pod["spec"]["nodeName"]
        .as_str()
        .filter(|node| !node.is_empty());
    let node = node.map(|node| {
        find(call, "nodes", node).unwrap_or_else(|_| Reference {
            name: node.to_owned(),
            uid: String::new(),
        })
    });
    Ok((reference(&record), node))
}

fn reference(record: &Record) -> Reference {
    Reference {
        name: record.name().to_owned(),
        uid: record.uid().to_owned(),
    }
}

fn claims(call: &Call, bound: Bound, request: &Value, now: Timestamp, seconds: i64) -> Claims {
    let audiences = request["spec"]["audiences"]
        .as_array()
        .into_iter()
        .flatten();
    let issued = now.as_second();
    Claims {
        audiences: audiences
            .filter_map(|a| a.as_str().map(str::to_owned))
            .collect(),
        expires: issued.saturating_add(seconds),
        issued,
        issuer: call.core.access.issuer.name.clone(),
        id: call.core.environment.uid(),
        subject: service_account_name(&bound.namespace, &bound.service_account.name),
        not_before: issued,
        bound,
    }
}
