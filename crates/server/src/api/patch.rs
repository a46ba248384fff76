//! PATCH of one object: JSON patch, merge patch, strategic merge patch.

use http::StatusCode;
use kubewright_schema::decode::{self, Format};
use kubewright_schema::patch::{json, merge, strategic};
use kubewright_schema::{FieldError, Table, TypeId};
use serde_json::Value;

use super::apply;
use super::call::Call;
use crate::http::body;
use crate::http::query::{FieldValidation, WriteOptions};
use crate::http::respond::Answer;
use crate::object;
use crate::request::Part;
use crate::resource::{Misfit, Served};
use crate::status::ApiError;

/// A patch that has been parsed and can be applied more than once.
pub(crate) struct Patch {
    body: PatchBody,
    /// What strict field validation says of the patch itself: fields that stand in it twice.
    duplicates: Vec<String>,
    validation: FieldValidation,
}

/// What a patch changes, in one of three languages.
enum PatchBody {
    Json(json::JsonPatch),
    Merge(Value),
    Strategic(Value),
}

/// Changes an object, or the part of it that the request names.
pub(crate) async fn patch(call: &Call, bytes: &[u8], part: Part) -> Result<Answer, ApiError> {
    if body::media_type(&call.headers) == apply::MEDIA_TYPE {
        return apply::apply(call, bytes, part).await;
    }
    let options = WriteOptions::read(&call.query, "PatchOptions")?;
    let patch = Patch::read(call, bytes, options.field_validation)?;
    let mut complaints = Vec::new();
    let change = |old: &Value| {
        let (new, strict) = patch.apply(&call.served, old)?;
        complaints = strict;
        check_place(old, &new)?;
        Ok(new)
    };
    let request = call.write_request(options.persist, part);
    let written = call.core.update(&request, change).await;
    call.warnings.extend(complaints);
    call.answer_written(StatusCode::OK, &written?).await
}

/// Names and namespaces cannot be patched away.
fn check_place(old: &Value, new: &Value) -> Result<(), ApiError> {
    for (field, what) in [("name", "name"), ("namespace", "namespace")] {
        let (was, is) = (object::meta_str(old, field), object::meta_str(new, field));
        if was != is && !is.is_empty() {
            return Err(ApiError::bad_request(format!(
                "the {what} of the object ({is}) does not match the {what} on the URL ({was})"
            )));
        }
    }
    Ok(())
}

impl Patch {
    /// Reads the patch that a request carries.
    pub(crate) fn read(
        call: &Call,
        bytes: &[u8],
        validation: FieldValidation,
    ) -> Result<Self, ApiError> {
        let media_type = body::media_type(&call.headers);
        check_force(call, media_type)?;
        let (body, duplicates) = match media_type {
            "application/json-patch+json" => {
                let patch = json::JsonPatch::decode(bytes).map_err(|e| json_patch_error(&e))?;
                (PatchBody::Json(patch), Vec::new())
            }
            "application/merge-patch+json" => {
                let (patch, duplicates) = read_object(bytes)?;
                (PatchBody::Merge(patch), duplicates)
            }
            "application/strategic-merge-patch+json" if call.served.merges_strategically() => {
                let (patch, duplicates) = read_object(bytes)?;
                (PatchBody::Strategic(patch), duplicates)
            }
            "application/strategic-merge-patch+json"
            | apply::MEDIA_TYPE
            | "application/apply-patch+cbor" => return Err(unsupported(&call.served)),
            _ => {
                let error = ApiError::unsupported_media_type("415: Unsupported Media Type");
                return Err(error.with_empty_details());
            }
        };
        Ok(Self {
            body,
            duplicates,
            validation,
        })
    }

    /// The object that the patch makes of another, and what the client is to be warned of.
    pub(crate) fn apply(
        &self,
        served: &Served,
        old: &Value,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let mut new = self.body.apply(served.ty(), old)?;
        body::check_size(&new)?;
        let unknown = served.conform(&mut new).map_err(|misfit| {
            let why = match (&self.body, &misfit) {
                (PatchBody::Strategic(_), Misfit::Type(error)) => error.in_words_of_converter(),
                _ => served.why(&misfit),
            };
            self.refuse(served.ty(), old, &why)
        })?;
        self.strict(served.ty(), old, unknown)
            .map(|complaints| (new, complaints))
    }

    /// The value of a type that the patch makes of another, and what the client is to be warned of.
    pub(crate) fn apply_to(
        &self,
        ty: (&Table, TypeId),
        old: &Value,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let mut new = self.body.apply(ty, old)?;
        let unknown = decode::conform(ty.0, ty.1, &mut new).map_err(|error| {
            let why = match &self.body {
                PatchBody::Strategic(_) => error.in_words_of_converter(),
                PatchBody::Json(_) | PatchBody::Merge(_) => error.to_string(),
            };
            self.refuse(ty, old, &why)
        })?;
        let unknown = unknown.iter().map(ToString::to_string).collect();
        self.strict(ty, old, unknown)
            .map(|complaints| (new, complaints))
    }

    /// Deals with unknown and duplicate fields as the client wished.
    fn strict(
        &self,
        ty: (&Table, TypeId),
        old: &Value,
        unknown: Vec<String>,
    ) -> Result<Vec<String>, ApiError> {
        let mut complaints = self.duplicates.clone();
        complaints.extend(unknown);
        match self.validation {
            FieldValidation::Ignore => Ok(Vec::new()),
            FieldValidation::Strict if !complaints.is_empty() => {
                let why = format!("strict decoding error: {}", complaints.join(", "));
                Err(self.refuse(ty, old, &why))
            }
            FieldValidation::Strict | FieldValidation::Warn => Ok(complaints),
        }
    }

    /// The refusal of what the patch makes. It shows a strategic patch itself, and of the others what they made.
    fn refuse(&self, ty: (&Table, TypeId), old: &Value, why: &str) -> ApiError {
        let shown = match &self.body {
            PatchBody::Strategic(patch) => Ok(strategic::display(patch)),
            body => body.apply(ty, old).map(|made| made.to_string()),
        };
        match shown {
            Ok(shown) => ApiError::invalid_patch(shown, why),
            Err(error) => error,
        }
    }
}

impl PatchBody {
    /// Applies the patch to a value of a type.
    fn apply(&self, (table, ty): (&Table, TypeId), old: &Value) -> Result<Value, ApiError> {
        match self {
            PatchBody::Json(patch) => patch.apply(old.clone()).map_err(|e| json_patch_error(&e)),
            PatchBody::Merge(patch) => merge::apply(old.clone(), patch.clone())
                .map_err(|e| ApiError::bad_request(e.to_string())),
            PatchBody::Strategic(patch) => {
                strategic::apply(table, ty, old, patch.clone()).map_err(|e| strategic_error(&e))
            }
        }
    }
}

fn read_object(bytes: &[u8]) -> Result<(Value, Vec<String>), ApiError> {
    let parsed = decode::parse(bytes, Format::Json)
        .map_err(|e| ApiError::bad_request(format!("error decoding patch: {e}")))?;
    if !parsed.value.is_object() {
        return Err(ApiError::bad_request(
            "error decoding patch: the patch is not an object",
        ));
    }
    let duplicates = parsed
        .duplicates
        .iter()
        .map(|path| format!("duplicate field \"{path}\""))
        .collect();
    Ok((parsed.value, duplicates))
}

fn json_patch_error(error: &json::JsonPatchError) -> ApiError {
    match error.status() {
        413 => ApiError::too_large(error.to_string()),
        400 => ApiError::bad_request(error.to_string()),
        _ => ApiError::rejected(),
    }
}

fn strategic_error(error: &strategic::StrategicError) -> ApiError {
    match error.status() {
        400 => ApiError::bad_request(error.to_string()),
        422 => ApiError::rejected(),
        _ => ApiError::unreasoned(error.to_string()),
    }
}

/// `force` belongs to server-side apply alone.
fn check_force(call: &Call, media_type: &str) -> Result<(), ApiError> {
    if call.query.get("force").is_some() && !media_type.starts_with("application/apply-patch") {
        let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
        return Err(ApiError::invalid_options("PatchOptions", &[error]));
    }
    Ok(())
}

fn unsupported(served: &Served) -> ApiError {
    let mut accepted = vec![
        "application/json-patch+json",
        "application/merge-patch+json",
    ];
    if served.merges_strategically() {
        accepted.push("application/strategic-merge-patch+json");
    }
    accepted.push(apply::MEDIA_TYPE);
    ApiError::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    ))
}
