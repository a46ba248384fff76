//! Resource requirements: names, quantities, and requests within limits.

use kubewright_schema::FieldError;
use kubewright_schema::names;
use kubewright_schema::quantity::Quantity;
use serde_json::Value;

use crate::kinds::checks::{Errors, invalid_each};
use crate::kinds::path::Path;
use crate::kinds::value::{entries, text};

/// Checks `limits` and `requests` of a container.
pub(super) fn validate(resources: &Value, path: &Path<'_>, errors: &mut Errors) {
    let limits = path.child("limits");
    for (name, quantity) in entries(&resources["limits"]) {
        validate_one(name, quantity, &limits.key(name), errors);
    }
    let requests = path.child("requests");
    for (name, quantity) in entries(&resources["requests"]) {
        validate_one(name, quantity, &requests.key(name), errors);
        let limit = resources["limits"].get(name);
        validate_within(name, quantity, limit, path, errors);
    }
}

fn validate_one(name: &str, quantity: &Value, path: &Path<'_>, errors: &mut Errors) {
    invalid_each(names::qualified_name(name), name, path, errors);
    match name.split_once('/') {
        None if !is_standard(name) => {
            let text = "must be a standard resource for containers";
            errors.push(FieldError::invalid(path, &name.into(), text));
        }
        Some((prefix, _)) if prefix.starts_with("requests.") => {
            let text = "doesn't follow extended resource name standard";
            errors.push(FieldError::invalid(path, &name.into(), text));
        }
        _ => {}
    }
    validate_quantity(quantity, path, errors);
    let whole = Quantity::parse(text(quantity)).map_or(true, |quantity| quantity.is_integer());
    if !overcommits(name) && !name.starts_with("hugepages-") && !whole {
        errors.push(FieldError::invalid(path, quantity, "must be an integer"));
    }
}

/// Checks that a quantity reads and is not below zero.
pub(crate) fn validate_quantity(quantity: &Value, path: &Path<'_>, errors: &mut Errors) {
    match Quantity::parse(text(quantity)) {
        Err(error) => errors.push(FieldError::invalid(path, quantity, &error.to_string())),
        Ok(q) if q.is_negative() => errors.push(FieldError::invalid(
            path,
            quantity,
            "must be greater than or equal to 0",
        )),
        Ok(_) => {}
    }
}

fn validate_within(
    name: &str,
    quantity: &Value,
    limit: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(limit) = limit else {
        if !overcommits(name) {
            let text = "Limit must be set for non overcommitable resources";
            errors.push(FieldError::required(path.child("limits"), text));
        }
        return;
    };
    let (Ok(asked), Ok(most)) = (
        Quantity::parse(text(quantity)),
        Quantity::parse(text(limit)),
    ) else {
        return;
    };
    let rule = if asked != most && !overcommits(name) {
        "must be equal to"
    } else if asked > most {
        "must be less than or equal to"
    } else {
        return;
    };
    let complaint = format!("{rule} {name} limit of {}", text(limit));
    errors.push(FieldError::invalid(
        path.child("requests"),
        quantity,
        &complaint,
    ));
}

fn is_standard(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-")
}

/// Whether requests may differ from limits: true of Kubernetes' own resources, not of devices.
fn overcommits(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    native && !name.starts_with("hugepages-")
}
