//! GET of one object.

use std::time::Duration;

use http::StatusCode;

use super::call::Call;
use crate::core::Core;
use crate::flow::release_while;
use crate::http::respond::Answer;
use crate::status::ApiError;

/// How long a read waits for a version that does not exist yet.
const FRESHNESS: Duration = Duration::from_secs(3);

/// Answers with one object.
pub(crate) async fn get(call: &Call) -> Result<Answer, ApiError> {
    if let Some(text) = call.query.get("resourceVersion") {
        let version = text.parse().map_err(|_| {
            ApiError::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing \
                 {text:?}: invalid syntax"
            ))
        })?;
        call.core.wait_until_fresh(version).await?;
    }
    let record = call
        .served
        .collection
        .get(&call.key())
        .ok_or_else(|| call.not_found())?;
    let body = call.core.converter.body(&call.served, &record).await?;
    call.answer_object(StatusCode::OK, body)
}

impl Core {
    /// Waits a moment for a version that a client has heard of and this server has not.
    pub(crate) async fn wait_until_fresh(&self, version: u64) -> Result<(), ApiError> {
        release_while(self.store.wait_for(version, FRESHNESS))
            .await
            .map_err(|future| ApiError::too_large_version(version, future.current))
    }
}
