//! PUT of one object.

use http::StatusCode;
use serde_json::Value;

use super::call::Call;
use crate::http::query::WriteOptions;
use crate::http::respond::Answer;
use crate::object;
use crate::request::Part;
use crate::status::ApiError;
use crate::write::{WriteRequest, match_namespace};

/// Replaces an object, or the part of it that the request names.
pub(crate) async fn update(call: &Call, body: &[u8], part: Part) -> Result<Answer, ApiError> {
    let options = WriteOptions::read(&call.query, "UpdateOptions")?;
    let incoming = call.served.decode(body, call.body_format()?)?;
    call.strict(incoming.strict, options.field_validation)?;
    let mut object = incoming.object;
    check_name(call, &mut object)?;
    let request = call.write_request(options.persist, part);
    let absent = call.served.collection.get(&call.key()).is_none();
    if absent && part == Part::Whole && call.served.strategy().allow_create_on_update {
        return create_instead(call, &request, object).await;
    }
    let mut sent = Sent::new(object);
    let change = |_: &Value| {
        let object = sent.take();
        object.ok_or_else(|| ApiError::modified(call.served.about(), &call.name))
    };
    let written = call.core.update(&request, change).await?;
    call.answer_written(StatusCode::OK, &written).await
}

/// The object that was sent. One that is good for a single version is not copied: when somebody else was faster, it is
/// good for nothing.
enum Sent {
    ForAnyVersion(Value),
    ForOneVersion(Option<Value>),
}

impl Sent {
    fn new(object: Value) -> Self {
        match object::resource_version(&object) {
            "" | "0" => Self::ForAnyVersion(object),
            _ => Self::ForOneVersion(Some(object)),
        }
    }

    fn take(&mut self) -> Option<Value> {
        match self {
            Self::ForAnyVersion(object) => Some(object.clone()),
            Self::ForOneVersion(object) => object.take(),
        }
    }
}

async fn create_instead(
    call: &Call,
    request: &WriteRequest,
    object: Value,
) -> Result<Answer, ApiError> {
    if !object::resource_version(&object).is_empty() {
        return Err(call.not_found());
    }
    call.authorize("create")?;
    let written = call.core.create(request, object).await?;
    call.answer_written(StatusCode::CREATED, &written).await
}

/// The name and namespace in the object must be those of the path; absent ones are filled in.
fn check_name(call: &Call, object: &mut Value) -> Result<(), ApiError> {
    let name = object::name(object);
    if name.is_empty() {
        return Err(ApiError::bad_request(
            "the name of the object (based on URL) was undeterminable: name must be provided",
        ));
    }
    if name != call.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        )));
    }
    match_namespace(object, call.namespace.as_deref())
}
