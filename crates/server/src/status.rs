//! `Status` errors: how the API says no. One constructor for each reason of the API, with the texts clients match on.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use http::StatusCode;
use kubewright_schema::FieldError;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The most errors that are reported for one object. A request can be wrong in more ways than are worth reporting,
/// and the answer must not be many times its size.
const MAX_CAUSES: usize = 1_000;

/// A refusal, sent to the client as a `Status` object. Small, because it is the error of every handler.
#[derive(Debug, Clone)]
pub(crate) struct ApiError(Box<Status>);

/// The `meta/v1` Status object.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    kind: &'static str,
    api_version: &'static str,
    metadata: Map<String, Value>,
    status: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

/// What a [`Status`] is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Details {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group of the resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Its resource or kind, as the reason demands.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The uid of the object, where it matters.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// What is wrong, one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Cause {
    /// The machine-readable class, such as `FieldValueRequired`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: Cow<'static, str>,
    /// The description for people.
    pub message: String,
    /// Path of the field, if there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// The resource a refusal speaks of: group and plural.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// The resource's plural, or the kind.
    pub resource: &'a str,
}

impl fmt::Display for About<'_> {
    /// `deployments.apps`, `pods`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

impl About<'_> {
    fn details(&self, name: &str) -> Details {
        Details {
            name: name.to_owned(),
            group: self.group.to_owned(),
            kind: self.resource.to_owned(),
            ..Details::default()
        }
    }
}

impl ApiError {
    fn new(
        code: StatusCode,
        reason: impl Into<Option<&'static str>>,
        message: impl Into<String>,
    ) -> Self {
        Self(Box::new(Status {
            kind: "Status",
            api_version: "v1",
            metadata: Map::new(),
            status: "Failure",
            message: message.into(),
            reason: reason.into().map(Cow::Borrowed),
            details: None,
            code: Some(code.as_u16()),
        }))
    }

    fn details(mut self, details: Details) -> Self {
        self.0.details = Some(details);
        self
    }

    /// The object is not there.
    pub(crate) fn not_found(about: About<'_>, name: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            format!("{about} \"{name}\" not found"),
        )
        .details(about.details(name))
    }

    /// The resource itself is not served.
    pub(crate) fn no_such_resource() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
        )
        .details(Details::default())
    }

    /// The name is taken.
    pub(crate) fn already_exists(about: About<'_>, name: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "AlreadyExists",
            format!("{about} \"{name}\" already exists"),
        )
        .details(about.details(name))
    }

    /// No free name was found for a `generateName`.
    pub(crate) fn generate_name_conflict(about: About<'_>, name: &str) -> Self {
        let message = format!(
            "{about} \"{name}\" already exists, the server was not able to generate a unique name for the object"
        );
        let details = Details {
            retry_after_seconds: Some(1),
            ..about.details(name)
        };
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).details(details)
    }

    /// Somebody else was faster, or a precondition does not hold.
    pub(crate) fn conflict(about: About<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {about} \"{name}\": {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message).details(about.details(name))
    }

    /// The object changed since the client read it.
    pub(crate) fn modified(about: About<'_>, name: &str) -> Self {
        Self::conflict(
            about,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// An apply would change fields that others manage; the causes say which.
    pub(crate) fn apply_conflict(message: String) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message)
    }

    /// The object breaks rules; `about` names its kind.
    pub(crate) fn invalid(about: About<'_>, name: &str, errors: &[FieldError]) -> Self {
        let errors = &errors[..errors.len().min(MAX_CAUSES)];
        let causes = errors
            .iter()
            .map(|e| Cause {
                reason: e.reason.as_str().into(),
                message: e.message.clone(),
                field: e.field.clone(),
            })
            .collect();
        let message = format!("{about} \"{name}\" is invalid: {}", aggregate(errors));
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).details(Details {
            causes,
            ..about.details(name)
        })
    }

    /// The options of a request are wrong.
    pub(crate) fn invalid_options(kind: &'static str, errors: &[FieldError]) -> Self {
        Self::invalid(
            About {
                group: "meta.k8s.io",
                resource: kind,
            },
            "",
            errors,
        )
    }

    /// A patch does not apply. The API is deliberately silent on why.
    pub(crate) fn rejected() -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
        .details(Details::default())
    }

    /// What a patch makes is not an object of the kind (`handlers/patch.go: applyPatchToCurrentObject`). It says
    /// neither which kind nor which object.
    pub(crate) fn invalid_patch(shown: String, why: &str) -> Self {
        let (group, resource) = ("", "");
        let error = FieldError::invalid("patch", &Value::String(shown), why);
        Self::invalid(About { group, resource }, "", &[error])
    }

    /// The request cannot be understood.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// The caller did not prove who they are.
    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// The request is understood and refused.
    pub(crate) fn forbidden(about: About<'_>, name: &str, why: &str) -> Self {
        let subject = if name.is_empty() {
            about.to_string()
        } else {
            format!("{about} \"{name}\"")
        };
        Self::new(
            StatusCode::FORBIDDEN,
            "Forbidden",
            format!("{subject} is forbidden: {why}"),
        )
        .details(about.details(name))
    }

    /// A path that names no resource is understood and refused.
    pub(crate) fn forbidden_path(why: &str) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "Forbidden",
            format!("forbidden: {why}"),
        )
        .details(Details::default())
    }

    /// Adds a cause to the details.
    pub(crate) fn with_cause(mut self, reason: &'static str, message: &str, field: &str) -> Self {
        let details = self.0.details.get_or_insert_default();
        details.causes.push(Cause {
            reason: reason.into(),
            message: message.to_owned(),
            field: field.to_owned(),
        });
        self
    }

    /// A list or page at a version that is no longer kept.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// An expired page, with a token that goes on at the newest version.
    pub(crate) fn expired_continue(token: String) -> Self {
        let mut error = Self::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new \
             list without the continue parameter, or use the continue token in this response to retrieve the \
             remainder of the results. Continuing with the provided token results in an inconsistent list - \
             objects that were created, modified, or deleted between the time the first chunk was returned and \
             now may show up in the list.",
        );
        error.0.metadata.insert("continue".into(), json!(token));
        error
    }

    /// A watch from a version that is no longer kept.
    pub(crate) fn too_old(asked: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {asked} ({oldest})"))
    }

    /// A read at a version that does not exist yet.
    pub(crate) fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).details(Details {
            causes: vec![Cause {
                reason: "ResourceVersionTooLarge".into(),
                message: "Too large resource version".into(),
                field: String::new(),
            }],
            retry_after_seconds: Some(1),
            ..Details::default()
        })
    }

    /// The verb is not served here.
    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .details(Details::default())
    }

    /// The server is busy, or a budget is used up.
    pub(crate) fn too_many_requests(message: impl Into<String>, retry_after: u32) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message).details(Details {
            retry_after_seconds: Some(retry_after),
            ..Details::default()
        })
    }

    /// The kind was defined anew or removed while the request was under way; asking again finds what it is now.
    pub(crate) fn redefined(about: About<'_>) -> Self {
        let message = format!("the definition of {about} has changed, please try again");
        let code = StatusCode::SERVICE_UNAVAILABLE;
        Self::new(code, "ServiceUnavailable", message).details(Details {
            retry_after_seconds: Some(1),
            ..Details::default()
        })
    }

    /// Somebody whom the server asks on behalf of the client does not answer.
    pub(crate) fn service_unavailable(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            message,
        )
    }

    /// No representation the client accepts.
    pub(crate) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// A body in a format the server does not read.
    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            message,
        )
    }

    /// A body or patch that is too large.
    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            message,
        )
    }

    /// The request took too long to arrive.
    pub(crate) fn request_timeout() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "Timeout",
            "the request body did not arrive in time",
        )
    }

    /// The server failed.
    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {message}"),
        )
    }

    /// An error the real server sends without a reason, as code 500.
    pub(crate) fn unreasoned(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, None, message)
    }

    /// An error with empty details, which some of the generic ones carry.
    pub(crate) fn with_empty_details(mut self) -> Self {
        self.0.details = Some(Details::default());
        self
    }

    /// The reason, where there is one.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.0.reason.as_deref()
    }

    /// The same refusal for another reason, with the code that goes with it.
    pub(crate) fn because(mut self, code: StatusCode, reason: &str) -> Self {
        self.0.code = Some(code.as_u16());
        self.0.reason = Some(Cow::Owned(reason.to_owned()));
        self
    }

    /// The same refusal in other words.
    pub(crate) fn saying(mut self, message: &str) -> Self {
        self.0.message = message.to_owned();
        self
    }

    /// A refusal in the words of somebody else: the `Status` object of a webhook.
    pub(crate) fn relayed(code: u16, message: String, status: &Value) -> Self {
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST);
        let mut error = Self::new(code, None, message);
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let reason = text(&status["reason"]);
        error.0.reason = (!reason.is_empty()).then_some(Cow::Owned(reason));
        let details = &status["details"];
        if details.is_object() {
            let causes = details["causes"].as_array().into_iter().flatten();
            error.0.details = Some(Details {
                name: text(&details["name"]),
                group: text(&details["group"]),
                kind: text(&details["kind"]),
                uid: text(&details["uid"]),
                causes: causes
                    .take(MAX_CAUSES)
                    .map(|cause| Cause {
                        reason: text(&cause["reason"]).into(),
                        message: text(&cause["message"]),
                        field: text(&cause["field"]),
                    })
                    .collect(),
                retry_after_seconds: details["retryAfterSeconds"]
                    .as_u64()
                    .and_then(|seconds| u32::try_from(seconds).ok()),
            });
        }
        error
    }

    /// The HTTP status.
    pub(crate) fn code(&self) -> StatusCode {
        self.0
            .code
            .and_then(|c| StatusCode::from_u16(c).ok())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Seconds for the `Retry-After` header.
    pub(crate) fn retry_after(&self) -> Option<u32> {
        self.0.details.as_ref()?.retry_after_seconds
    }

    /// The text.
    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// The Status object as a JSON value.
    pub(crate) fn to_value(&self) -> Value {
        serde_json::to_value(&*self.0).expect("a Status is plain data")
    }
}

/// `Status: Success` with the details of what was deleted.
pub(crate) fn success(about: About<'_>, name: &str, uid: &str) -> Value {
    let details = Details {
        uid: uid.to_owned(),
        ..about.details(name)
    };
    let status = Status {
        kind: "Status",
        api_version: "v1",
        metadata: Map::new(),
        status: "Success",
        message: String::new(),
        reason: None,
        details: Some(details),
        code: None,
    };
    serde_json::to_value(status).expect("a Status is plain data")
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ApiError {}

/// One error as it is, several in brackets, each text once.
fn aggregate(errors: &[FieldError]) -> String {
    let mut seen = HashSet::with_capacity(errors.len());
    let texts = errors.iter().map(ToString::to_string);
    let texts: Vec<String> = texts.filter(|text| seen.insert(text.clone())).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
