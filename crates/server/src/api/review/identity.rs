//! Who is somebody? `SelfSubjectReview` of the caller, `TokenReview` of a token.

use serde_json::{Value, json};

use super::{strings, user_info};
use crate::access::token::{Accepted, Refusal};
use crate::api::call::Call;
use crate::status::ApiError;

/// Who the caller is. The answer shows nothing of the question.
pub(super) fn of_caller(call: &Call, review: &mut Value) -> Value {
    review["metadata"] = json!({ "creationTimestamp": call.core.environment.now_rfc3339() });
    json!({ "userInfo": user_info(&call.user) })
}

/// Whose token it is, if it is good.
pub(super) fn of_token(call: &Call, review: &Value) -> Result<Value, ApiError> {
    let token = review["spec"]["token"].as_str().unwrap_or("");
    if token.is_empty() {
        return Err(ApiError::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let mut audiences = strings(&review["spec"]["audiences"]);
    if audiences.is_empty() {
        audiences.push(call.core.access.issuer.name.clone());
    }
    Ok(match find(call, token, audiences) {
        Ok(accepted) => json!({
            "authenticated": true,
            "user": user_info(&accepted.user),
            "audiences": accepted.audiences,
        }),
        Err(refusal) => json!({ "user": {}, "error": refusal.to_string() }),
    })
}

/// Tokens that were given to the server are for every audience; those it signs say which they are for.
fn find(call: &Call, token: &str, audiences: Vec<String>) -> Result<Accepted, Refusal> {
    match call.core.tokens.find(token) {
        Some(user) => Ok(Accepted {
            user: user.clone(),
            audiences,
        }),
        None => call.core.token_checker().check_token(token, &audiences),
    }
}
