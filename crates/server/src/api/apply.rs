//! PATCH of one object by server-side apply: the manager says which fields it wants to have which values.

use http::StatusCode;
use kubewright_schema::FieldError;
use kubewright_schema::apply::Force;
use kubewright_schema::decode::{self, Format, Parsed};
use serde_json::Value;

use super::call::Call;
use super::patch::check_size;
use super::write::{self, Part, Written};
use crate::access::escalation::Guard;
use crate::fields::Writer;
use crate::http::query::{FieldValidation, WriteOptions};
use crate::http::respond::Answer;
use crate::object;
use crate::status::ApiError;

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
    pub(crate) fn read(call: &mut Call, bytes: &[u8]) -> Result<Self, ApiError> {
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
        check_duplicates(call, &parsed.duplicates, options.field_validation)?;
        Ok(Self {
            value: parsed.value,
            force: match call.query.flag("force") {
                true => Force::Yes,
                false => Force::No,
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
    decode::parse(bytes, Format::Yaml)
        .map_err(|e| ApiError::bad_request(format!("error decoding patch: {e}")))
}

fn check_duplicates(
    call: &mut Call,
    duplicates: &[String],
    validation: FieldValidation,
) -> Result<(), ApiError> {
    let mut found = duplicates
        .iter()
        .map(|path| format!("duplicate field \"{path}\""));
    match validation {
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Warn => {
            call.warnings.extend(found);
            Ok(())
        }
        FieldValidation::Strict => match found.next() {
            None => Ok(()),
            Some(first) => Err(ApiError::bad_request(format!(
                "error strict decoding patch: {first}"
            ))),
        },
    }
}

/// Applies a configuration to an object, or to the part of it that the request names. An object that is not there
/// is made.
pub(crate) async fn apply(call: &mut Call, bytes: &[u8], part: Part) -> Result<Answer, ApiError> {
    let config = Config::read(call, bytes)?;
    let writer = call.writer(&config.options, part.subresource());
    for attempt in 1.. {
        let absent = call.served.collection.get(&call.key()).is_none();
        let written = if absent && part == Part::Whole {
            let created = create(call, &config, &writer).await;
            created.map(|written| (StatusCode::CREATED, written))
        } else {
            let updated = update(call, &config, &writer, part).await;
            updated.map(|written| (StatusCode::OK, written))
        };
        match written {
            Ok((code, written)) => return call.answer_written(code, &written).await,
            Err(error) if attempt == ATTEMPTS || !came_or_went(&error, part) => return Err(error),
            Err(_) => {}
        }
    }
    unreachable!("the loop returns at the last attempt")
}

/// Whether the object was made or removed by somebody else in the meantime.
fn came_or_went(error: &ApiError, part: Part) -> bool {
    let gone = error.code() == StatusCode::NOT_FOUND && part == Part::Whole;
    gone || error.reason() == Some("AlreadyExists")
}

async fn create(call: &mut Call, config: &Config, writer: &Writer) -> Result<Written, ApiError> {
    let (core, served) = (call.core.clone(), call.served.clone());
    let mut new = core.apply(
        &served,
        None,
        &config.value,
        Part::Whole,
        writer,
        config.force,
    )?;
    let uid = object::uid(&new);
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(ApiError::conflict(served.about(), &call.name, &why));
    }
    check_place(call, &mut new)?;
    served.conform(&mut new)?;
    call.authorize("create")?;
    Guard::of(call).check(None, &new)?;
    let namespace = call.namespace.clone();
    core.create(
        &served,
        namespace.as_deref(),
        new,
        &writer.clone().settled(),
        &mut call.warnings,
    )
    .await
}

async fn update(
    call: &mut Call,
    config: &Config,
    writer: &Writer,
    part: Part,
) -> Result<Written, ApiError> {
    let (core, served, key) = (call.core.clone(), call.served.clone(), call.key());
    let (name, namespace) = (call.name.clone(), call.namespace.clone());
    let guard = Guard::of(call);
    let change = |old: &Value| {
        let mut new = core.apply(
            &served,
            Some(old),
            &config.value,
            part,
            writer,
            config.force,
        )?;
        check_size(&new)?;
        check_name(&new, &name)?;
        write::match_namespace(&mut new, namespace.as_deref())?;
        served.conform(&mut new)?;
        guard.check(Some(old), &new)?;
        Ok(new)
    };
    let settled = writer.clone().settled();
    core.update(&served, &key, part, &settled, &mut call.warnings, change)
        .await
}

fn check_place(call: &Call, new: &mut Value) -> Result<(), ApiError> {
    check_name(new, &call.name)?;
    write::match_namespace(new, call.namespace.as_deref())
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
