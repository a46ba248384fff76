//! PATCH of one object by server-side apply: the manager says which fields it wants to have which values.

use http::StatusCode;
use kubewright_schema::FieldError;
use kubewright_schema::apply::Force;
use kubewright_schema::decode::{self, Format, ParseError, Parsed};
use serde_json::Value;

use super::call::Call;
use crate::http::body;
use crate::http::query::{FieldValidation, WriteOptions};
use crate::http::respond::Answer;
use crate::object;
use crate::request::Part;
use crate::status::ApiError;
use crate::write::{WriteRequest, Written, match_namespace};

/// The media type of configurations.
pub(crate) const MEDIA_TYPE: &str = "application/apply-patch+yaml";
/// How often an object is tried again that comes and goes while it is being applied.
const ATTEMPTS: usize = 8;

/// A configuration as it was sent.
pub(crate) struct Config {
    pub(crate) value: Value,
    pub(crate) force: Force,
    pub(crate) options: WriteOptions,
}

impl Config {
    /// Reads the configuration of a request.
    pub(crate) fn read(call: &Call, bytes: &[u8]) -> Result<Self, ApiError> {
        let options = WriteOptions::read(&call.query, "PatchOptions")?;
        if call.query.get("fieldManager").is_none() {
            let error = FieldError::required("fieldManager", "is required for apply patch");
            return Err(ApiError::invalid_options("PatchOptions", &[error]));
        }
        let parsed = parse(bytes)?;
        if !parsed.value.is_object() {
            return Err(ApiError::bad_request(
                "error decoding patch: the configuration is not an object",
            ));
        }
        check_duplicates(call, bytes, &parsed, options.field_validation)?;
        Ok(Self {
            value: parsed.value,
            force: if call.query.flag("force") {
                Force::Yes
            } else {
                Force::No
            },
            options,
        })
    }
}

/// Most clients send JSON, which is read faster than YAML.
fn parse(bytes: &[u8]) -> Result<Parsed, ApiError> {
    let is_json = bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{');
    if is_json && let Ok(parsed) = decode::parse(bytes, Format::Json) {
        return Ok(parsed);
    }
    decode::parse(bytes, Format::Yaml).map_err(|e| undecodable(&e))
}

/// Keys that stand more than once are refused in the words of Go's YAML reader, which Kubernetes reads configurations
/// with, also those in JSON (`handlers/patch.go: applyPatchToCurrentObject`).
fn check_duplicates(
    call: &Call,
    bytes: &[u8],
    parsed: &Parsed,
    validation: FieldValidation,
) -> Result<(), ApiError> {
    if parsed.duplicates.is_empty() || validation == FieldValidation::Ignore {
        return Ok(());
    }
    let repeated = decode::repeated_keys(bytes).map_err(|e| undecodable(&e))?;
    let repeated: Vec<String> = repeated.iter().map(ToString::to_string).collect();
    if validation == FieldValidation::Strict {
        let lines = repeated.join("\n  ");
        return Err(ApiError::bad_request(format!(
            "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  {lines}"
        )));
    }
    call.warnings.extend(repeated);
    Ok(())
}

fn undecodable(error: &ParseError) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: {error}"))
}

/// Applies a configuration to an object, or to the part of it that the request names. An object that is not there
/// is made.
pub(crate) async fn apply(call: &Call, bytes: &[u8], part: Part) -> Result<Answer, ApiError> {
    let config = Config::read(call, bytes)?;
    let request = call.write_request(config.options.persist, part);
    let request = request.with_managers_as_given();
    let mut attempts = ATTEMPTS;
    loop {
        let absent = call.served.collection.get(&call.key()).is_none();
        let written = if absent && part == Part::Whole {
            let created = create(call, &request, &config).await;
            created.map(|written| (StatusCode::CREATED, written))
        } else {
            let updated = update(call, &request, &config).await;
            updated.map(|written| (StatusCode::OK, written))
        };
        attempts -= 1;
        match written {
            Ok((code, written)) => return call.answer_written(code, &written).await,
            Err(error) if attempts == 0 || !came_or_went(&error, part) => return Err(error),
            Err(_) => {}
        }
    }
}

/// Whether the object was made or removed by somebody else in the meantime.
fn came_or_went(error: &ApiError, part: Part) -> bool {
    let gone = error.code() == StatusCode::NOT_FOUND && part == Part::Whole;
    gone || error.reason() == Some("AlreadyExists")
}

async fn create(call: &Call, request: &WriteRequest, config: &Config) -> Result<Written, ApiError> {
    let mut new = call
        .core
        .apply(request, None, &config.value, config.force)?;
    let uid = object::uid(&new);
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(ApiError::conflict(call.served.about(), &call.name, &why));
    }
    check_place(call, &mut new)?;
    let conformed = call.served.conform(&mut new);
    conformed.map_err(|misfit| call.served.refuse(&misfit))?;
    call.authorize("create")?;
    call.core.create(request, new).await
}

async fn update(call: &Call, request: &WriteRequest, config: &Config) -> Result<Written, ApiError> {
    let change = |old: &Value| {
        let live = Some(old);
        let mut new = call
            .core
            .apply(request, live, &config.value, config.force)?;
        body::check_size(&new)?;
        check_place(call, &mut new)?;
        let conformed = call.served.conform(&mut new);
        conformed.map_err(|misfit| call.served.refuse(&misfit))?;
        Ok(new)
    };
    call.core.update(request, change).await
}

fn check_place(call: &Call, new: &mut Value) -> Result<(), ApiError> {
    check_name(new, &call.name)?;
    match_namespace(new, call.namespace.as_deref())
}

/// The name in the object must be that of the path.
fn check_name(new: &Value, name: &str) -> Result<(), ApiError> {
    let found = object::name(new);
    if found.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if found != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({found}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}
