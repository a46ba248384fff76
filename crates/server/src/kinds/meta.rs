//! Object metadata: is it well formed when an object is created, and what may change when it is updated.
//!
//! Built-in and custom kinds share it. Every check is linear in the number of labels, annotations and owners.

use std::collections::BTreeSet;

use kubewright_schema::FieldError;
use kubewright_schema::catalog::Scope;
use kubewright_schema::names;
use serde_json::Value;

use super::checks::{Errors, immutable, invalid_each, non_negative};
use super::name_rule::NameRule;
use super::path::Path;
use super::value::{entries, is_true, items, strings, text};

/// Largest sum of the sizes of all annotations.
const MAX_ANNOTATIONS_SIZE: usize = 256 * 1024;

const METADATA: Path<'static> = Path::Root("metadata");

/// Checks the metadata of a new object, whose name has been generated already.
pub(crate) fn validate(object: &Value, scope: Scope, rule: NameRule, errors: &mut Errors) {
    validate_at(&object["metadata"], scope, rule, &METADATA, errors);
}

/// Checks metadata at any place.
pub(crate) fn validate_at(
    meta: &Value,
    scope: Scope,
    rule: NameRule,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let generate_name = text(&meta["generateName"]);
    if !generate_name.is_empty() {
        let complaints = rule.check_prefix(generate_name);
        invalid_each(
            complaints,
            generate_name,
            &path.child("generateName"),
            errors,
        );
    }
    match text(&meta["name"]) {
        "" => errors.push(FieldError::required(
            path.child("name"),
            "name or generateName is required",
        )),
        name => invalid_each(rule.check(name), name, &path.child("name"), errors),
    }
    validate_namespace(text(&meta["namespace"]), scope, path, errors);
    non_negative(&meta["generation"], &path.child("generation"), errors);
    validate_labels(&meta["labels"], &path.child("labels"), errors);
    validate_annotations(&meta["annotations"], &path.child("annotations"), errors);
    validate_owners(
        &meta["ownerReferences"],
        &path.child("ownerReferences"),
        errors,
    );
    validate_finalizers(&meta["finalizers"], &path.child("finalizers"), errors);
}

fn validate_namespace(namespace: &str, scope: Scope, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("namespace");
    match (scope, namespace) {
        (Scope::Namespaced, "") => errors.push(FieldError::required(path, "")),
        (Scope::Namespaced, _) => {
            invalid_each(names::dns1123_label(namespace), namespace, &path, errors)
        }
        (Scope::Cluster, "") => {}
        (Scope::Cluster, _) => errors.push(FieldError::forbidden(path, "not allowed on this type")),
    }
}

/// Checks that an update changes nothing in the metadata that must stay.
pub(crate) fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let (new, old) = (&new["metadata"], &old["metadata"]);
    if !old["deletionTimestamp"].is_null() {
        validate_no_new_finalizers(new, old, errors);
    }
    if text(&new["resourceVersion"]).is_empty() {
        errors.push(FieldError::invalid(
            METADATA.child("resourceVersion"),
            &"".into(),
            "must be specified for an update",
        ));
    }
    if new["generation"].as_i64().unwrap_or(0) < old["generation"].as_i64().unwrap_or(0) {
        errors.push(FieldError::invalid(
            METADATA.child("generation"),
            &new["generation"],
            "must not be decremented",
        ));
    }
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        immutable(&new[field], &old[field], &METADATA.child(field), errors);
    }
    validate_labels(&new["labels"], &METADATA.child("labels"), errors);
    validate_annotations(&new["annotations"], &METADATA.child("annotations"), errors);
    let owners = METADATA.child("ownerReferences");
    validate_owners(&new["ownerReferences"], &owners, errors);
}

/// What every update is checked for before its kind has a say: the general rules, with the laxest rule for names.
pub(crate) fn validate_update_common(new: &Value, old: &Value, scope: Scope, errors: &mut Errors) {
    validate(new, scope, NameRule::PathSegment, errors);
    validate_update(new, old, errors);
}

fn validate_no_new_finalizers(new: &Value, old: &Value, errors: &mut Errors) {
    let old: BTreeSet<&str> = strings(&old["finalizers"]).collect();
    let extra: BTreeSet<&str> = strings(&new["finalizers"])
        .filter(|f| !old.contains(f))
        .collect();
    if extra.is_empty() {
        return;
    }
    let quoted: Vec<String> = extra.iter().map(|f| format!("{f:?}")).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        quoted.join(", ")
    );
    errors.push(FieldError::forbidden(METADATA.child("finalizers"), &detail));
}

/// What is wrong with labels or annotations, whichever the field names.
pub(crate) fn pair_errors(field: &str, pairs: &Value) -> Errors {
    let mut errors = Errors::new();
    let path = METADATA.child(if field == "labels" {
        "labels"
    } else {
        "annotations"
    });
    match field {
        "labels" => validate_labels(pairs, &path, &mut errors),
        _ => validate_annotations(pairs, &path, &mut errors),
    }
    errors
}

/// Checks keys and values of labels.
pub(crate) fn validate_labels(labels: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (key, value) in entries(labels) {
        invalid_each(names::qualified_name(key), key.as_str(), path, errors);
        let value = text(value);
        invalid_each(names::label_value(value), value, path, errors);
    }
}

/// Checks keys of annotations and the size of all together.
pub(crate) fn validate_annotations(annotations: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in entries(annotations) {
        let complaints = names::qualified_name(&key.to_ascii_lowercase());
        invalid_each(complaints, key.as_str(), path, errors);
        size += key.len() + text(value).len();
    }
    if size > MAX_ANNOTATIONS_SIZE {
        errors.push(FieldError::too_long(path, MAX_ANNOTATIONS_SIZE));
    }
}

/// How often too many controllers are complained about: each complaint shows all owners.
const MAX_CONTROLLER_COMPLAINTS: usize = 8;

fn validate_owners(owners: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut controllers = Vec::new();
    for owner in items(owners) {
        validate_owner(owner, path, errors);
        if !is_true(&owner["controller"]) || controllers.len() > MAX_CONTROLLER_COMPLAINTS {
            continue;
        }
        controllers.push(format!("{}/{}", text(&owner["kind"]), text(&owner["name"])));
        if let [first, .., last] = controllers.as_slice() {
            let detail = format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {last}"
            );
            errors.push(FieldError::invalid(path, owners, &detail));
        }
    }
}

fn validate_owner(owner: &Value, path: &Path<'_>, errors: &mut Errors) {
    let api_version = text(&owner["apiVersion"]);
    let version = api_version.rsplit('/').next().unwrap_or_default();
    if version.is_empty() || api_version.matches('/').count() > 1 {
        errors.push(FieldError::invalid(
            path.child("apiVersion"),
            &api_version.into(),
            "version must not be empty",
        ));
    }
    for field in ["kind", "name", "uid"] {
        if text(&owner[field]).is_empty() {
            errors.push(FieldError::invalid(
                path.child(field),
                &"".into(),
                "must not be empty",
            ));
        }
    }
    if api_version == "v1" && text(&owner["kind"]) == "Event" {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::invalid(path, owner, detail));
    }
}

fn validate_finalizers(finalizers: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (mut orphan, mut foreground) = (false, false);
    for finalizer in strings(finalizers) {
        invalid_each(names::qualified_name(finalizer), finalizer, path, errors);
        orphan |= finalizer == "orphan";
        foreground |= finalizer == "foregroundDeletion";
    }
    if orphan && foreground {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, finalizers, detail));
    }
}

#[cfg(test)]
#[path = "meta/tests.rs"]
mod tests;
