//! PUT of one object.

use http::StatusCode;
use serde_json::Value;

use super::call::Call;
use super::write::Part;
use crate::access::escalation::Guard;
use crate::http::query::WriteOptions;
use crate::http::respond::Answer;
use crate::object;
use crate::status::ApiError;

/// Replaces an object, or the part of it that the request names.
pub(crate) async fn update(call: &mut Call, body: &[u8], part: Part) -> Result<Answer, ApiError> {
    let options = WriteOptions::read(&call.query, "UpdateOptions")?;
    let incoming = call.served.decode(body, call.body_format()?)?;
    call.strict(incoming.strict, options.field_validation)?;
    let mut object = incoming.object;
    check_name(call, &mut object)?;
    let (core, served, key) = (call.core.clone(), call.served.clone(), call.key());
    let absent = served.collection.get(&key).is_none();
    if absent && part == Part::Whole && served.strategy().allow_create_on_update {
        return create_instead(call, object, options).await;
    }
    let guard = Guard::of(call);
    let writer = call.writer(&options, part.subresource());
    let name = call.name.clone();
    let mut sent = Sent::new(object);
    let change = |old: &Value| {
        let object = sent.take();
        let object = object.ok_or_else(|| ApiError::modified(served.about(), &name))?;
        guard.check(Some(old), &object).map(|()| object)
    };
    let written = core
        .update(&served, &key, part, &writer, &mut call.warnings, change)
        .await?;
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
    call: &mut Call,
    object: Value,
    options: WriteOptions,
) -> Result<Answer, ApiError> {
    let (core, served, namespace) = (
        call.core.clone(),
        call.served.clone(),
        call.namespace.clone(),
    );
    if !object::resource_version(&object).is_empty() {
        return Err(call.not_found());
    }
    call.authorize("create")?;
    Guard::of(call).check(None, &object)?;
    let writer = call.writer(&options, "");
    let written = core
        .create(
            &served,
            namespace.as_deref(),
            object,
            &writer,
            &mut call.warnings,
        )
        .await?;
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
    super::write::match_namespace(object, call.namespace.as_deref())
}
