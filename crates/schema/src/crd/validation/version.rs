//! What a version declares: schema, subresources, columns and selectable fields.

use serde_json::{Value, json};

use super::super::compile::CompiledVersion;
use super::super::expressions::{self, Costs};
use super::super::openapi::{self, Strictness};
use super::super::path::{child, index};
use super::super::schema::Schema;
use super::super::{schema_defaults, structural};
use super::selectable;
use crate::field::FieldError;

const COLUMN_TYPES: &str = "boolean,date,integer,number,string";
const COLUMN_FORMATS: &str = "byte,date,date-time,double,float,int32,int64,password";

/// What the checks of versions need to know of the whole CRD.
pub(super) struct Context {
    /// Any version has a `status` subresource.
    pub(super) any_status: bool,
    pub(super) strictness: Strictness,
    /// The versions before an update.
    pub(super) old_versions: Vec<Value>,
}

impl Context {
    /// Schemas that an update leaves as they are may go on being expensive.
    fn costs(&self, schema: &Value) -> Costs {
        let same = |version: &Value| version["schema"]["openAPIV3Schema"] == *schema;
        if self.old_versions.iter().any(same) {
            Costs::OnlyTotal
        } else {
            Costs::Each
        }
    }
}

/// What all versions have in common, which the server keeps once in `spec`.
pub(super) struct Lifted<'a> {
    schema: Option<&'a Value>,
    subresources: Option<&'a Value>,
    columns: Option<&'a Value>,
    selectable: Option<&'a Value>,
}

impl<'a> Lifted<'a> {
    pub(super) fn of(versions: &'a [Value]) -> Self {
        let common = |key: &str| {
            let first = part(versions.first()?, key);
            versions
                .iter()
                .all(|version| part(version, key) == first)
                .then_some(first)
        };
        Self {
            schema: common("schema"),
            subresources: common("subresources"),
            columns: common("additionalPrinterColumns"),
            selectable: common("selectableFields"),
        }
    }
}

/// A part of a version; empty lists count as absent.
fn part<'a>(version: &'a Value, key: &str) -> &'a Value {
    static ABSENT: Value = Value::Null;
    match &version[key] {
        Value::Array(items) if items.is_empty() => &ABSENT,
        other => other,
    }
}

/// What is wrong with one version, apart from what it has in common with all others.
pub(super) fn errors(
    version: &Value,
    lifted: &Lifted<'_>,
    context: &Context,
    at: &str,
) -> Vec<FieldError> {
    let mut errors = warning_errors(version, &child(at, "deprecationWarning"));
    let status = version["subresources"]["status"].is_object();
    if lifted.schema.is_none() {
        schema_errors(
            &version["schema"],
            status,
            context,
            &child(at, "schema"),
            &mut errors,
        );
    }
    if lifted.subresources.is_none() {
        scale_errors(
            &version["subresources"]["scale"],
            &child(at, "subresources"),
            &mut errors,
        );
    }
    if lifted.columns.is_none() {
        let columns = &version["additionalPrinterColumns"];
        column_errors(columns, &child(at, "additionalPrinterColumns"), &mut errors);
    }
    if lifted.selectable.is_none() {
        let schema = match lifted.schema {
            // The server looks for the schema in the version only, where a common one no longer is.
            Some(_) => &Value::Null,
            None => &version["schema"]["openAPIV3Schema"],
        };
        let at = child(at, "selectableFields");
        selectable::errors(version, schema, context, &at, &mut errors);
    }
    errors
}

/// What is wrong with what all versions have in common.
pub(super) fn common_errors(
    versions: &[Value],
    lifted: &Lifted<'_>,
    context: &Context,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(schema) = lifted.schema {
        schema_errors(
            schema,
            context.any_status,
            context,
            "spec.validation",
            &mut errors,
        );
    }
    if let Some(subresources) = lifted.subresources {
        scale_errors(&subresources["scale"], "spec.subresources", &mut errors);
    }
    if let Some(columns) = lifted.columns {
        column_errors(columns, "spec.additionalPrinterColumns", &mut errors);
    }
    if let (Some(_), Some(first)) = (lifted.selectable, versions.first()) {
        let schema = lifted
            .schema
            .map_or(&Value::Null, |schema| &schema["openAPIV3Schema"]);
        selectable::errors(first, schema, context, "spec.selectableFields", &mut errors);
    }
    errors
}

/// The versions as the server prints them in errors: its own names of fields, without what is common to all.
pub(super) fn internal_versions(versions: &[Value], lifted: &Lifted<'_>) -> String {
    let flag = |version: &Value, key: &str| version[key].as_bool().unwrap_or(false);
    let own = |version: &Value, key: &str, common: Option<&Value>| match common {
        Some(_) => Value::Null,
        None => part(version, key).clone(),
    };
    let one = |version: &Value| {
        format!(
            "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{},\
             \"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
            json!(version["name"].as_str().unwrap_or("")),
            flag(version, "served"),
            flag(version, "storage"),
            flag(version, "deprecated"),
            version["deprecationWarning"],
            own(version, "schema", lifted.schema),
            own(version, "subresources", lifted.subresources),
            own(version, "additionalPrinterColumns", lifted.columns),
            own(version, "selectableFields", lifted.selectable),
        )
    };
    let all: Vec<String> = versions.iter().map(one).collect();
    format!("[{}]", all.join(","))
}

fn warning_errors(version: &Value, at: &str) -> Vec<FieldError> {
    let Some(warning) = version["deprecationWarning"].as_str() else {
        return Vec::new();
    };
    let mut details = Vec::new();
    if version["deprecated"] != true {
        details.push("can only be set for deprecated versions".to_owned());
    } else {
        if warning.len() > 256 {
            details.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            details.push("must not be an empty string".to_owned());
        }
        if let Some((i, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
            details.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {i}"
            ));
        }
    }
    let error = |detail: &String| FieldError::invalid(at, &json!(warning), detail);
    details.iter().map(error).collect()
}

fn schema_errors(
    validation: &Value,
    status: bool,
    context: &Context,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    let raw = &validation["openAPIV3Schema"];
    if !raw.is_object() {
        return;
    }
    let (schema, at) = (Schema(raw), child(at, "openAPIV3Schema"));
    if let Err(error) = schema.check_size() {
        return errors.push(FieldError::invalid(at, &json!(""), &error.to_string()));
    }
    let before = errors.len();
    if status {
        errors.extend(root_error(schema, &at));
    }
    if schema.flag("nullable") {
        errors.push(FieldError::forbidden(
            child(&at, "nullable"),
            "nullable cannot be true at the root",
        ));
    }
    let unreadable = structural::unreadable(schema);
    let compiled = match unreadable {
        None => structure_errors(schema, &at, errors),
        Some(_) => None,
    };
    errors.extend(openapi::errors(schema, &at, context.strictness));
    if let Some(compiled) = compiled.filter(|_| errors.len() == before) {
        let costs = context.costs(raw);
        errors.extend(expressions::definition_errors(&compiled, &at, costs));
    }
    if let Some(reason) = unreadable.filter(|_| errors.len() == before) {
        errors.push(FieldError::invalid(at, &json!(""), &reason));
    }
}

/// Defaults and expressions are looked at only in a structural schema.
fn structure_errors(
    schema: Schema<'_>,
    at: &str,
    errors: &mut Vec<FieldError>,
) -> Option<CompiledVersion> {
    let found = structural::errors(schema, at);
    if !found.is_empty() {
        errors.extend(found);
        return None;
    }
    match CompiledVersion::of_schema(schema.0, None) {
        Ok(compiled) => {
            errors.extend(schema_defaults::errors(&compiled, at));
            Some(compiled)
        }
        Err(error) => {
            errors.push(FieldError::invalid(at, &json!(""), &error.to_string()));
            None
        }
    }
}

/// With a `status` subresource the status is validated on its own, so nothing at the root may speak about it.
fn root_error(schema: Schema<'_>, at: &str) -> Option<FieldError> {
    const ALLOWED: [(&str, &str); 22] = [
        ("description", "Description"),
        ("type", "Type"),
        ("format", "Format"),
        ("title", "Title"),
        ("maximum", "Maximum"),
        ("exclusiveMaximum", "ExclusiveMaximum"),
        ("minimum", "Minimum"),
        ("exclusiveMinimum", "ExclusiveMinimum"),
        ("maxLength", "MaxLength"),
        ("minLength", "MinLength"),
        ("pattern", "Pattern"),
        ("maxItems", "MaxItems"),
        ("minItems", "MinItems"),
        ("uniqueItems", "UniqueItems"),
        ("multipleOf", "MultipleOf"),
        ("required", "Required"),
        ("items", "Items"),
        ("properties", "Properties"),
        ("externalDocs", "ExternalDocs"),
        ("example", "Example"),
        (
            "x-kubernetes-preserve-unknown-fields",
            "XPreserveUnknownFields",
        ),
        ("x-kubernetes-validations", "XValidations"),
    ];
    if !matches!(schema.ty(), "" | "object") {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Some(FieldError::invalid(
            child(at, "type"),
            &json!(schema.ty()),
            detail,
        ));
    }
    let map = schema.0.as_object()?;
    let other = |(keyword, value): (&String, &Value)| {
        let zero = matches!(value, Value::Null | Value::Bool(false))
            || *value == json!("")
            || *value == json!([]);
        !zero && !ALLOWED.iter().any(|(allowed, _)| allowed == keyword)
    };
    map.iter().any(other).then(|| {
        let names: Vec<&str> = ALLOWED.iter().map(|(_, name)| *name).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            names.join(" ")
        );
        FieldError::invalid(at, schema.0, &detail)
    })
}

fn scale_errors(scale: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if !scale.is_object() {
        return;
    }
    for (name, under) in [
        ("specReplicasPath", ".spec"),
        ("statusReplicasPath", ".status"),
    ] {
        let path = scale[name].as_str().unwrap_or("");
        let at = child(at, &format!("scale.{name}"));
        if path.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if let Some(error) = path_error(path, &at) {
            errors.push(error);
        } else if !path.starts_with(&format!("{under}.")) {
            let detail = format!("should be a json path under {under}");
            errors.push(FieldError::invalid(at, &json!(path), &detail));
        }
    }
    let selector = scale["labelSelectorPath"].as_str().unwrap_or("");
    let at = child(at, "scale.labelSelectorPath");
    if selector.is_empty() {
        return;
    }
    if let Some(error) = path_error(selector, &at) {
        errors.push(error);
    } else if !selector.starts_with(".spec.") && !selector.starts_with(".status.") {
        let detail = "should be a json path under either .spec or .status";
        errors.push(FieldError::invalid(at, &json!(selector), detail));
    }
}

fn path_error(path: &str, at: &str) -> Option<FieldError> {
    let detail = "must be a simple json path starting with .";
    (!path.starts_with('.')).then(|| FieldError::invalid(at, &json!(path), detail))
}

fn column_errors(columns: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for (i, column) in columns.as_array().into_iter().flatten().enumerate() {
        let at = index(at, i);
        let text = |key: &str| column[key].as_str().unwrap_or("");
        if text("name").is_empty() {
            errors.push(FieldError::required(child(&at, "name"), ""));
        }
        let detail = format!("must be one of {COLUMN_TYPES}");
        match text("type") {
            "" => errors.push(FieldError::required(child(&at, "type"), &detail)),
            ty if COLUMN_TYPES.split(',').any(|known| known == ty) => {}
            ty => errors.push(FieldError::invalid(child(&at, "type"), &json!(ty), &detail)),
        }
        let format = text("format");
        if !format.is_empty() && !COLUMN_FORMATS.split(',').any(|known| known == format) {
            let detail = format!("must be one of {COLUMN_FORMATS}");
            errors.push(FieldError::invalid(
                child(&at, "format"),
                &json!(format),
                &detail,
            ));
        }
        let path = text("jsonPath");
        if path.is_empty() {
            errors.push(FieldError::required(child(&at, "JSONPath"), ""));
        } else {
            errors.extend(path_error(path, &child(&at, "JSONPath")));
        }
    }
}
