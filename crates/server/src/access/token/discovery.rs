//! What others need to check our tokens: the issuer's description and its public key.

use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderValue};
use serde_json::json;

use super::Issuer;
use crate::http::body::full;
use crate::http::respond::{self, Answer};

/// `/.well-known/openid-configuration`
pub(crate) fn configuration(issuer: &Issuer) -> Answer {
    let document = json!({
        "issuer": issuer.name,
        "jwks_uri": format!("{}/openid/v1/jwks", issuer.name.trim_end_matches('/')),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    });
    cached("application/json", document.to_string())
}

/// `/openid/v1/jwks`
pub(crate) fn keys(issuer: &Issuer) -> Answer {
    let (x, y) = issuer.key.coordinates();
    let key = json!({
        "use": "sig", "kty": "EC", "kid": issuer.key.id(), "crv": "P-256", "alg": "ES256", "x": x, "y": y,
    });
    cached(
        "application/jwk-set+json",
        json!({ "keys": [key] }).to_string(),
    )
}

fn cached(content_type: &'static str, document: String) -> Answer {
    let mut answer = respond::answer(StatusCode::OK, content_type, full(document));
    let an_hour = HeaderValue::from_static("public, max-age=3600");
    answer.headers_mut().insert(CACHE_CONTROL, an_hour);
    answer
}
