//! POST to a collection.

use http::StatusCode;

use super::call::Call;
use crate::http::query::WriteOptions;
use crate::http::respond::Answer;
use crate::request::Part;
use crate::status::ApiError;

/// Creates an object.
pub(crate) async fn create(call: &Call, body: &[u8]) -> Result<Answer, ApiError> {
    let options = WriteOptions::read(&call.query, "CreateOptions")?;
    let incoming = call.served.decode(body, call.body_format()?)?;
    call.strict(incoming.strict, options.field_validation)?;
    let request = call.write_request(options.persist, Part::Whole);
    let written = call.core.create(&request, incoming.object).await?;
    call.answer_written(StatusCode::CREATED, &written).await
}
