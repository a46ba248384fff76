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
use crate::resource::{Nature, Served};
use crate::status::ApiError;

/// A patch that has been parsed and can be applied more than once.
pub(crate) enum Patch {
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
    let (patch, duplicates) = Patch::read(call, bytes)?;
    call.strict(duplicates, options.field_validation)?;
    let mut dropped = Vec::new();
    let change = |old: &Value| {
        let served = &call.served;
        change(served, &patch, old, &mut dropped, options.field_validation)
    };
    let request = call.write_request(options.persist, part);
    let written = call.core.update(&request, change).await;
    if options.field_validation == FieldValidation::Warn {
        call.warnings.extend(dropped);
    }
    call.answer_written(StatusCode::OK, &written?).await
}

/// The object that a patch makes of another. Names and namespaces cannot be patched away.
fn change(
    served: &Served,
    patch: &Patch,
    old: &Value,
    dropped: &mut Vec<String>,
    validation: FieldValidation,
) -> Result<Value, ApiError> {
    let mut new = patch.apply(served, old)?;
    body::check_size(&new)?;
    let strict = served.conform(&mut new)?;
    if validation == FieldValidation::Strict && !strict.is_empty() {
        return Err(served.unhandled(&format!("strict decoding error: {}", strict.join(", "))));
    }
    *dropped = strict;
    for (field, what) in [("name", "name"), ("namespace", "namespace")] {
        let (was, is) = (object::meta_str(old, field), object::meta_str(&new, field));
        if was != is && !is.is_empty() {
            return Err(ApiError::bad_request(format!(
                "the {what} of the object ({is}) does not match the {what} on the URL ({was})"
            )));
        }
    }
    Ok(new)
}

impl Patch {
    /// Reads the patch that a request carries; also gives the fields that stand in it twice.
    pub(crate) fn read(call: &Call, bytes: &[u8]) -> Result<(Self, Vec<String>), ApiError> {
        let media_type = body::media_type(&call.headers);
        check_force(call, media_type)?;
        match media_type {
            "application/json-patch+json" => {
                let patch = json::JsonPatch::decode(bytes).map_err(|e| json_patch_error(&e))?;
                Ok((Patch::Json(patch), Vec::new()))
            }
            "application/merge-patch+json" => read_object(bytes).map(|(v, d)| (Patch::Merge(v), d)),
            "application/strategic-merge-patch+json" => match call.served.nature {
                Nature::Builtin(_) => read_object(bytes).map(|(v, d)| (Patch::Strategic(v), d)),
                Nature::Custom(_) => Err(unsupported(&call.served)),
            },
            apply::MEDIA_TYPE | "application/apply-patch+cbor" => Err(unsupported(&call.served)),
            _ => Err(
                ApiError::unsupported_media_type("415: Unsupported Media Type")
                    .with_empty_details(),
            ),
        }
    }

    /// Applies the patch to a value.
    pub(crate) fn apply(&self, served: &Served, old: &Value) -> Result<Value, ApiError> {
        let (table, ty) = served.ty();
        self.apply_to(table, ty, old)
    }

    /// Applies the patch to a value of a type.
    pub(crate) fn apply_to(
        &self,
        table: &Table,
        ty: TypeId,
        old: &Value,
    ) -> Result<Value, ApiError> {
        match self {
            Patch::Json(patch) => patch.apply(old.clone()).map_err(|e| json_patch_error(&e)),
            Patch::Merge(patch) => merge::apply(old.clone(), patch.clone())
                .map_err(|e| ApiError::bad_request(e.to_string())),
            Patch::Strategic(patch) => {
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
    if matches!(served.nature, Nature::Builtin(_)) {
        accepted.push("application/strategic-merge-patch+json");
    }
    accepted.push(apply::MEDIA_TYPE);
    ApiError::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    ))
}
