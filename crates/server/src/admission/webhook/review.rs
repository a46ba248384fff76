//! `AdmissionReview`: the question to a webhook, and its answer.

use base64::Engine;
use kubewright_schema::patch::json::JsonPatch;
use serde_json::{Value, json};

use super::hook::ReviewVersion;
use crate::admission::attributes::{AdmissionRequest, Kind};
use crate::auth::User;
use crate::http::query::Persist;
use crate::kinds::value::{is_true, set, strings, text};
use crate::resource::Served;
use crate::status::ApiError;

/// What a request is, without its objects. `shown` is the version that they are shown at.
pub(in crate::admission) fn request(request: &AdmissionRequest<'_>, shown: &Served) -> Value {
    let own = request.kind();
    let own_resource = &request.served.resource;
    let is_part = own.kind != *own_resource.kind || own.group != *own_resource.group;
    let kind = if is_part {
        own.clone()
    } else {
        Kind {
            group: shown.resource.group.to_string(),
            version: shown.resource.version.to_string(),
            kind: shown.resource.kind.to_string(),
        }
    };
    let mut review = json!({
        "kind": kind.to_value(),
        "resource": resource(shown),
        "requestKind": own.to_value(),
        "requestResource": resource(request.served),
        "operation": request.operation.as_str(),
        "userInfo": user_info(&request.requester.user),
        "dryRun": request.persist == Persist::DryRun,
        "options": request.requester.options(request.operation),
    });
    for (field, value) in [
        ("subResource", request.subresource),
        ("requestSubResource", request.subresource),
        ("name", request.name),
        ("namespace", request.namespace()),
    ] {
        if !value.is_empty() {
            set(&mut review, field, value);
        }
    }
    review
}

fn resource(served: &Served) -> Value {
    let resource = &served.resource;
    json!({ "group": resource.group, "version": resource.version, "resource": resource.plural })
}

fn user_info(user: &User) -> Value {
    let mut info = json!({ "username": user.name });
    if !user.uid.is_empty() {
        set(&mut info, "uid", user.uid.as_str());
    }
    if !user.groups.is_empty() {
        set(&mut info, "groups", json!(user.groups));
    }
    if !user.extra.is_empty() {
        set(&mut info, "extra", json!(user.extra));
    }
    info
}

impl ReviewVersion {
    fn api_version(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "admission.k8s.io/v1",
            ReviewVersion::V1beta1 => "admission.k8s.io/v1beta1",
        }
    }

    /// The question.
    pub(super) fn question(
        self,
        uid: &str,
        mut request: Value,
        object: &Value,
        old: &Value,
    ) -> Value {
        set(&mut request, "uid", uid);
        set(&mut request, "object", object.clone());
        set(&mut request, "oldObject", old.clone());
        json!({ "kind": "AdmissionReview", "apiVersion": self.api_version(), "request": request })
    }
}

/// Whether a webhook may change the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Mutating,
    Validating,
}

/// Why an answer of a webhook cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct InvalidAnswer(String);

impl From<String> for InvalidAnswer {
    fn from(why: String) -> Self {
        Self(why)
    }
}

/// What a webhook answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    pub(super) patch: Option<Vec<u8>>,
    status: Value,
    pub(super) warnings: Vec<String>,
}

impl Answer {
    /// Reads an answer, or says why it is none.
    pub(super) fn read(
        review: &Value,
        uid: &str,
        role: Role,
        version: ReviewVersion,
    ) -> Result<Self, InvalidAnswer> {
        let response = &review["response"];
        if !response.is_object() {
            return Err(InvalidAnswer("webhook response was absent".into()));
        }
        let patch_type = response.get("patchType").filter(|t| !t.is_null()).map(text);
        let patch = text(&response["patch"]);
        if version == ReviewVersion::V1 {
            let found = text(&response["uid"]);
            if found != uid {
                return Err(InvalidAnswer(format!(
                    "expected response.uid={uid:?}, got {found:?}"
                )));
            }
            check_kind(review)?;
            check_patch(role, patch, patch_type)?;
        }
        let patch = match (role, patch) {
            (Role::Validating, _) | (_, "") => None,
            (Role::Mutating, patch) => {
                let decoded = base64::engine::general_purpose::STANDARD.decode(patch);
                Some(decoded.map_err(|e| format!("illegal base64 data in response.patch: {e}"))?)
            }
        };
        Ok(Self {
            allowed: is_true(&response["allowed"]),
            patch,
            status: response["status"].clone(),
            warnings: strings(&response["warnings"]).map(str::to_owned).collect(),
        })
    }

    /// The refusal, in the webhook's words.
    pub(super) fn refusal(&self, hook: &str) -> ApiError {
        let denied = format!("admission webhook {hook:?} denied the request");
        let (message, reason) = (text(&self.status["message"]), text(&self.status["reason"]));
        let message = match (message, reason) {
            ("", "") => format!("{denied} without explanation"),
            ("", reason) => format!("{denied}: {reason}"),
            (message, _) => format!("{denied}: {message}"),
        };
        let code = self.status["code"].as_u64().filter(|code| *code >= 400);
        let code = code
            .and_then(|code| u16::try_from(code).ok())
            .unwrap_or(400);
        ApiError::relayed(code, message, &self.status)
    }
}

fn check_kind(review: &Value) -> Result<(), InvalidAnswer> {
    let shown = |api_version: &str, kind: &str| {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        format!("{group}/{version}, Kind={kind}")
    };
    let found = shown(text(&review["apiVersion"]), text(&review["kind"]));
    let expected = shown(ReviewVersion::V1.api_version(), "AdmissionReview");
    if found != expected {
        return Err(InvalidAnswer(format!(
            "expected webhook response of {expected}, got {found}"
        )));
    }
    Ok(())
}

fn check_patch(role: Role, patch: &str, patch_type: Option<&str>) -> Result<(), InvalidAnswer> {
    let why = match (role, patch.is_empty(), patch_type) {
        (Role::Validating, false, _) => "validating webhook may not return response.patch",
        (Role::Validating, true, Some(_)) => "validating webhook may not return response.patchType",
        (Role::Mutating, false, None) => {
            "webhook returned response.patch but not response.patchType"
        }
        (Role::Mutating, true, Some(_)) => {
            "webhook returned response.patchType but not response.patch"
        }
        (Role::Mutating, false, Some("JSONPatch")) => return Ok(()),
        (Role::Mutating, false, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (Role::Mutating, false, Some(other)) => {
            return Err(InvalidAnswer(format!("unsupported patch type {other:?}")));
        }
        _ => return Ok(()),
    };
    Err(InvalidAnswer(why.into()))
}

/// Reads the patch of an answer.
pub(super) fn decode_patch(patch: &[u8]) -> Result<JsonPatch, InvalidAnswer> {
    JsonPatch::decode(patch).map_err(|e| InvalidAnswer(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(response: Value) -> Value {
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response})
    }

    #[test]
    fn answers_that_are_none_are_distinguished() {
        let patch = "W10=";
        for (review, role, expect) in [
            (json!({}), Role::Mutating, "webhook response was absent"),
            (
                answer(json!({"uid": "2"})),
                Role::Mutating,
                "expected response.uid=\"1\", got \"2\"",
            ),
            (
                json!({"apiVersion": "v2", "kind": "X", "response": {"uid": "1"}}),
                Role::Mutating,
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /v2, Kind=X",
            ),
            (
                answer(json!({"uid": "1", "patch": patch})),
                Role::Mutating,
                "webhook returned response.patch but not response.patchType",
            ),
            (
                answer(json!({"uid": "1", "patch": patch, "patchType": "JSONPatch"})),
                Role::Validating,
                "validating webhook may not return response.patch",
            ),
        ] {
            let found = Answer::read(&review, "1", role, ReviewVersion::V1);
            assert_eq!(found.map(drop), Err(InvalidAnswer(expect.to_owned())));
        }
    }

    #[test]
    fn refusals_keep_the_words_of_the_webhook() {
        for (status, code, message) in [
            (
                json!(null),
                400,
                "admission webhook \"x\" denied the request without explanation",
            ),
            (
                json!({"message": "no", "code": 403}),
                403,
                "admission webhook \"x\" denied the request: no",
            ),
            (
                json!({"reason": "Forbidden", "code": 200}),
                400,
                "admission webhook \"x\" denied the request: Forbidden",
            ),
        ] {
            let review = answer(json!({"uid": "1", "allowed": false, "status": status}));
            let read = Answer::read(&review, "1", Role::Validating, ReviewVersion::V1);
            let refusal = read.expect("an answer").refusal("x");
            assert_eq!(refusal.code().as_u16(), code);
            assert_eq!(refusal.message(), message);
        }
    }
}
