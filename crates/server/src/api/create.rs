//! POST to a collection.

use http::StatusCode;

use super::call::Call;
use crate::access::escalation::Guard;
use crate::http::query::WriteOptions;
use crate::http::respond::Answer;
use crate::status::ApiError;

/// Creates an object.
pub(crate) async fn create(call: &mut Call, body: &[u8]) -> Result<Answer, ApiError> {
    let options = WriteOptions::read(&call.query, "CreateOptions")?;
    let incoming = call.served.decode(body, call.body_format()?)?;
    call.strict(incoming.strict, options.field_validation)?;
    Guard::of(call).check(None, &incoming.object)?;
    let (core, served, namespace) = (
        call.core.clone(),
        call.served.clone(),
        call.namespace.clone(),
    );
    let writer = call.writer(&options, "");
    let written = core
        .create(
            &served,
            namespace.as_deref(),
            incoming.object,
            &writer,
            &mut call.warnings,
        )
        .await?;
    call.answer_written(StatusCode::CREATED, &written).await
}
