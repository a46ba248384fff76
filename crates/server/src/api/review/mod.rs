//! Reviews: objects that are questions. They are answered and not stored.

mod access;
mod identity;
mod rules;

use http::StatusCode;
use serde_json::{Value, json};

use crate::api::call::Call;
use crate::auth::User;
use crate::http::accept::Representation;
use crate::http::query::WriteOptions;
use crate::http::respond::Answer;
use crate::resource::Served;
use crate::status::ApiError;
use crate::write::encode_at;

const AUTHORIZATION: &str = "authorization.k8s.io";

/// Answers the question that a request creates.
pub(crate) fn create(call: &Call, body: &[u8]) -> Result<Answer, ApiError> {
    // Answers are not objects that could be shown in a table.
    if !matches!(call.accept.representation, Representation::Object) {
        let available = call.served.protobuf().available();
        let why = format!("only the following media types are accepted: {available}");
        return Err(ApiError::not_acceptable(why));
    }
    let options = WriteOptions::read(&call.query, "CreateOptions")?;
    let incoming = call.served.decode(body, call.body_format()?)?;
    call.strict(incoming.strict, options.field_validation)?;
    let mut review = incoming.object;
    let status = match &*call.served.resource.kind {
        "SelfSubjectAccessReview" => access::of_caller(call, &review)?,
        "SubjectAccessReview" => access::of_anybody(call, &review)?,
        "LocalSubjectAccessReview" => access::in_namespace(call, &mut review)?,
        "SelfSubjectRulesReview" => rules::answer(call, &mut review)?,
        "SelfSubjectReview" => identity::of_caller(call, &mut review),
        "TokenReview" => identity::of_token(call, &review)?,
        _ => return Err(ApiError::no_such_resource()),
    };
    review["status"] = status;
    call.answer_object(StatusCode::CREATED, encode(&call.served, review))
}

/// A review as it is sent: it was never stored, so it has no version.
fn encode(served: &Served, mut review: Value) -> bytes::Bytes {
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    encode_at(served, review, None).into()
}

/// A user as reviews show them.
fn user_info(user: &User) -> Value {
    let mut info = json!({ "username": user.name });
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.groups.is_empty() {
        info["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

/// The strings of a list.
fn strings(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
