//! May somebody do something? `SelfSubjectAccessReview`, `SubjectAccessReview`, `LocalSubjectAccessReview`.

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use super::{AUTHORIZATION, strings};
use crate::access::{Attributes, Resource, Subject};
use crate::api::call::Call;
use crate::auth::User;
use crate::object;
use crate::status::{About, ApiError};

/// May the caller?
pub(super) fn of_caller(call: &Call, review: &Value) -> Result<Value, ApiError> {
    let mut errors = Vec::new();
    validate_spec(&review["spec"], &mut errors);
    validate_metadata(review, &[], "must be empty", &mut errors);
    refuse(&errors)?;
    Ok(decide(call, &call.user, &review["spec"]))
}

/// May a given user?
pub(super) fn of_anybody(call: &Call, review: &Value) -> Result<Value, ApiError> {
    let mut errors = Vec::new();
    validate_subject(&review["spec"], &mut errors);
    validate_metadata(review, &[], "must be empty", &mut errors);
    refuse(&errors)?;
    Ok(decide(call, &subject(&review["spec"]), &review["spec"]))
}

/// May a given user, in the namespace of the request? Whoever rules there may ask.
pub(super) fn in_namespace(call: &Call, review: &mut Value) -> Result<Value, ApiError> {
    let namespace = call.namespace.as_deref().unwrap_or("");
    if object::namespace(review).is_empty() {
        object::set_meta(review, "namespace", namespace);
    }
    let spec = &review["spec"];
    let mut errors = Vec::new();
    validate_subject(spec, &mut errors);
    let text = "must be empty except for namespace";
    validate_metadata(review, &["namespace"], text, &mut errors);
    let asked = &spec["resourceAttributes"]["namespace"];
    if !spec["resourceAttributes"].is_null()
        && asked.as_str().unwrap_or("") != object::namespace(review)
    {
        errors.push(FieldError::invalid(
            "spec.resourceAttributes.namespace",
            &json!(asked.as_str().unwrap_or("")),
            "must match metadata.namespace",
        ));
    }
    if !spec["nonResourceAttributes"].is_null() {
        errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            &spec["nonResourceAttributes"],
            "disallowed on this kind of request",
        ));
    }
    refuse(&errors)?;
    if object::namespace(review) != namespace {
        return Err(ApiError::bad_request(format!(
            "spec.resourceAttributes.namespace must match namespace: {namespace}"
        )));
    }
    Ok(decide(call, &subject(spec), spec))
}

fn refuse(errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    // The API leaves the kind out here.
    let about = About {
        group: AUTHORIZATION,
        resource: "",
    };
    Err(ApiError::invalid(about, "", errors))
}

fn validate_spec(spec: &Value, errors: &mut Vec<FieldError>) {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    if resource.is_null() == path.is_null() {
        let text = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.push(FieldError::invalid("spec", path, text));
    }
    for field in ["fieldSelector", "labelSelector"] {
        validate_selector(&resource[field], field, errors);
    }
}

/// Selectors are looked at and then not needed: roles know nothing of them.
fn validate_selector(selector: &Value, field: &str, errors: &mut Vec<FieldError>) {
    if selector.is_null() {
        return;
    }
    let path = format!("spec.resourceAttributes.{field}");
    let raw = selector["rawSelector"].as_str().unwrap_or("");
    let requirements = selector["requirements"]
        .as_array()
        .is_some_and(|r| !r.is_empty());
    match (raw.is_empty(), requirements) {
        (false, true) => errors.push(FieldError::invalid(
            format!("{path}.rawSelector"),
            &json!(raw),
            "may not specified at the same time as requirements",
        )),
        (true, false) => errors.push(FieldError::required(
            format!("{path}.requirements"),
            &format!("when {path} is specified, requirements or rawSelector is required"),
        )),
        _ => {}
    }
}

fn validate_subject(spec: &Value, errors: &mut Vec<FieldError>) {
    validate_spec(spec, errors);
    let user = spec["user"].as_str().unwrap_or("");
    if user.is_empty() && strings(&spec["groups"]).is_empty() {
        let text = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", &json!(user), text));
    }
}

fn validate_metadata(review: &Value, allowed: &[&str], text: &str, errors: &mut Vec<FieldError>) {
    let metadata = object::metadata(review).into_iter().flatten();
    let mut given = metadata.filter(|(field, value)| {
        *field != "managedFields" && !allowed.contains(&field.as_str()) && !value.is_null()
    });
    if given.next().is_some() {
        errors.push(FieldError::invalid("metadata", &review["metadata"], text));
    }
}

/// The user that a review names, with exactly the groups it names.
fn subject(spec: &Value) -> User {
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: spec["user"].as_str().unwrap_or("").to_owned(),
        groups: strings(&spec["groups"]),
        uid: spec["uid"].as_str().unwrap_or("").to_owned(),
        extra: extra
            .map(|(key, values)| (key.clone(), strings(values)))
            .collect(),
    }
}

fn decide(call: &Call, user: &User, spec: &Value) -> Value {
    let decision = call.core.access.decide(user, &attributes(spec));
    let mut status = json!({ "allowed": decision.allowed });
    if !decision.reason.is_empty() {
        status["reason"] = json!(decision.reason);
    }
    status
}

fn attributes(spec: &Value) -> Attributes<'_> {
    let path = &spec["nonResourceAttributes"];
    if !path.is_null() {
        return Attributes {
            verb: text(path, "verb").into(),
            subject: Subject::Path(text(path, "path").into()),
        };
    }
    let asked = &spec["resourceAttributes"];
    Attributes {
        verb: text(asked, "verb").into(),
        subject: Subject::Resource(Resource {
            group: text(asked, "group"),
            version: text(asked, "version"),
            plural: text(asked, "resource"),
            subresource: text(asked, "subresource"),
            namespace: text(asked, "namespace"),
            name: text(asked, "name").into(),
        }),
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or("")
}
