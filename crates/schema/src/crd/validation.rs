//! Validation of CustomResourceDefinitions themselves, on creation and on update.
//!
//! The API server looks at a CRD in an older shape: what all versions have in common (schema, subresources,
//! columns, selectable fields) stands once in `spec` there. Its messages name the fields of that shape, so with one
//! version, or with equal ones, the schema is at `spec.validation.openAPIV3Schema`.
//!
//! Labels, annotations and the like are checked where the metadata of all objects is; here only the name is.

mod approval;
mod conversion;
mod names;
mod selectable;
mod version;

use serde_json::{Value, json};

use self::version::{Context, Lifted, internal_versions};
use super::definition::Definition;
use super::openapi::Strictness;
use super::path::{child, index};
use super::schema::Schema;
use crate::field::FieldError;
use crate::names::{dns1035_label, dns1123_subdomain};

/// What is wrong with a new CRD. Its defaults must have been filled in and its status reset.
pub fn validate_definition(crd: &Value) -> Vec<FieldError> {
    let definition = Definition::parse(crd);
    let mut errors = name_errors(crd, &definition);
    errors.extend(spec_errors(crd, &definition, None));
    errors.extend(status_errors(&definition));
    errors.extend(approval::errors(crd, None));
    errors.extend(preserve_errors(crd, None));
    errors
}

/// What is wrong with an update of a CRD. The status must have been carried over from the old one.
pub fn validate_definition_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let (definition, before) = (Definition::parse(new), Definition::parse(old));
    let mut errors = spec_errors(new, &definition, Some(old));
    let mut immutable = |now: &str, then: &str, field: &str| {
        if now != then {
            errors.push(FieldError::invalid(
                field,
                &json!(now),
                "field is immutable",
            ));
        }
    };
    if is_established(old) {
        immutable(&definition.scope, &before.scope, "spec.scope");
        immutable(
            &definition.names.kind,
            &before.names.kind,
            "spec.names.kind",
        );
    }
    immutable(&definition.group, &before.group, "spec.group");
    immutable(
        &definition.names.plural,
        &before.names.plural,
        "spec.names.plural",
    );
    errors.extend(status_errors(&definition));
    errors.extend(approval::errors(new, Some(old)));
    errors.extend(preserve_errors(new, Some(old)));
    errors
}

/// What is wrong with an update of a CRD's status.
pub fn validate_definition_status(new: &Value) -> Vec<FieldError> {
    names::errors(
        &Definition::parse(new).accepted_names,
        "status.acceptedNames",
    )
}

/// Whether a CRD serves objects already.
fn is_established(crd: &Value) -> bool {
    let conditions = crd["status"]["conditions"].as_array();
    conditions.is_some_and(|conditions| {
        let established = |c: &Value| c["type"] == "Established" && c["status"] == "True";
        conditions.iter().any(established)
    })
}

fn name_errors(crd: &Value, definition: &Definition) -> Vec<FieldError> {
    let name = crd["metadata"]["name"].as_str().unwrap_or("");
    if name.is_empty() {
        return Vec::new();
    }
    let mut details = dns1123_subdomain(name);
    if name != format!("{}.{}", definition.names.plural, definition.group) {
        details.push("must be spec.names.plural+\".\"+spec.group".to_owned());
    }
    let error = |detail: &String| FieldError::invalid("metadata.name", &json!(name), detail);
    details.iter().map(error).collect()
}

fn spec_errors(crd: &Value, definition: &Definition, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &crd["spec"];
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let lifted = Lifted::of(versions);
    let context = Context::new(versions, old);
    let mut errors: Vec<FieldError> = group_error(&definition.group).into_iter().collect();
    errors.extend(one_of(
        "spec.scope",
        &definition.scope,
        &["Cluster", "Namespaced"],
    ));
    errors.extend(missing_schemas(versions));
    if spec["preserveUnknownFields"] == true && has_defaults(versions) {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(
            "spec.preserveUnknownFields",
            &json!(true),
            detail,
        ));
    }
    for (i, version) in versions.iter().enumerate() {
        let at = index("spec.versions", i);
        errors.extend(version_name_error(&version["name"], &child(&at, "name")));
        errors.extend(version::errors(version, &lifted, &context, &at));
    }
    errors.extend(version_set_errors(spec, versions, &lifted));
    let first = versions.first().map(|version| &version["name"]);
    if let Some(name) = first.filter(|name| name.as_str().is_some_and(|name| !name.is_empty())) {
        errors.extend(version_name_error(name, "spec.version"));
    }
    errors.extend(names::missing(&definition.names));
    errors.extend(names::errors(&definition.names, "spec.names"));
    errors.extend(version::common_errors(versions, &lifted, &context));
    errors.extend(conversion::errors(spec, old));
    errors
}

fn group_error(group: &str) -> Option<FieldError> {
    if group.is_empty() {
        return Some(FieldError::required("spec.group", ""));
    }
    let faults = dns1123_subdomain(group);
    let detail = if !faults.is_empty() {
        faults.join(",")
    } else if !group.contains('.') {
        "should be a domain with at least one dot".to_owned()
    } else {
        return None;
    };
    Some(FieldError::invalid("spec.group", &json!(group), &detail))
}

/// A value that must be one of a few.
fn one_of(field: &str, value: &str, accepted: &[&str]) -> Option<FieldError> {
    if value.is_empty() {
        return Some(FieldError::required(field, ""));
    }
    (!accepted.contains(&value)).then(|| FieldError::not_supported(field, &json!(value), accepted))
}

fn missing_schemas(versions: &[Value]) -> Vec<FieldError> {
    let missing =
        |(_, version): &(usize, &Value)| !version["schema"]["openAPIV3Schema"].is_object();
    let error =
        |(i, _)| FieldError::required(format!("spec.versions[{i}].schema.openAPIV3Schema"), "");
    versions
        .iter()
        .enumerate()
        .filter(missing)
        .map(error)
        .collect()
}

fn has_defaults(versions: &[Value]) -> bool {
    let schemas = versions
        .iter()
        .map(|v| Schema(&v["schema"]["openAPIV3Schema"]));
    let mut walkable = schemas.filter(|s| s.check_size().is_ok());
    walkable.any(|schema| schema.any(&|s| s.raw("default").is_some()))
}

fn version_name_error(name: &Value, field: &str) -> Option<FieldError> {
    let name = name.as_str().unwrap_or("");
    let faults = dns1035_label(name);
    (!faults.is_empty()).then(|| FieldError::invalid(field, &json!(name), &faults.join(",")))
}

fn version_set_errors(spec: &Value, versions: &[Value], lifted: &Lifted<'_>) -> Vec<FieldError> {
    let mut details = Vec::new();
    let repeated =
        |(i, version): (usize, &Value)| versions[..i].iter().any(|v| v["name"] == version["name"]);
    if versions.iter().enumerate().any(repeated) {
        details.push("must contain unique version names");
    }
    if versions.iter().filter(|v| v["storage"] == true).count() != 1 {
        details.push("must have exactly one version marked as storage version");
    }
    let printed = || match &spec["versions"] {
        Value::Null => "null".to_owned(),
        _ => internal_versions(versions, lifted),
    };
    let error = |detail| super::failure::invalid_printed("spec.versions", &printed(), detail);
    details.into_iter().map(error).collect()
}

fn status_errors(definition: &Definition) -> Vec<FieldError> {
    const FIELD: &str = "status.storedVersions";
    let mut errors = names::errors(&definition.accepted_names, "status.acceptedNames");
    let stored = &definition.stored_versions;
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid(FIELD, &Value::Null, detail));
        return errors;
    }
    for version in definition
        .versions
        .iter()
        .filter(|v| v.storage && !stored.contains(&v.name))
    {
        let detail = format!("must have the storage version {}", version.name);
        errors.push(FieldError::invalid(FIELD, &json!(stored), &detail));
    }
    for (i, name) in stored.iter().enumerate() {
        if definition.version(name).is_none() {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            errors.push(FieldError::invalid(index(FIELD, i), &json!(name), &detail));
        }
    }
    errors
}

fn preserve_errors(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    let preserves = |crd: &Value| crd["spec"]["preserveUnknownFields"] == true;
    (preserves(crd) && !old.is_some_and(preserves)).then(|| {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        FieldError::invalid("spec.preserveUnknownFields", &json!(true), detail)
    })
}

impl Context {
    fn new(versions: &[Value], old: Option<&Value>) -> Self {
        let any_status = versions
            .iter()
            .any(|v| v["subresources"]["status"].is_object());
        let Some(old) = old else {
            return Self {
                any_status,
                strictness: Strictness::ALL,
                old_versions: Vec::new(),
            };
        };
        let old_versions = old["spec"]["versions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let schemas: Vec<Schema<'_>> = old_versions
            .iter()
            .map(|version| Schema(&version["schema"]["openAPIV3Schema"]))
            .filter(|schema| schema.check_size().is_ok())
            .collect();
        Self {
            any_status,
            strictness: Strictness::after(schemas.into_iter()),
            old_versions,
        }
    }
}

#[cfg(test)]
mod tests;
