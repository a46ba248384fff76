//! The names of a custom resource, in `spec` and as accepted in `status`.

use serde_json::json;

use super::super::definition::Names;
use super::super::path::{child, index};
use crate::field::FieldError;
use crate::names::dns1035_label;

/// Names that `spec` must have; `status` may do without.
pub(super) fn missing(names: &Names) -> Vec<FieldError> {
    let fields = [
        ("plural", &names.plural),
        ("singular", &names.singular),
        ("kind", &names.kind),
        ("listKind", &names.list_kind),
    ];
    let empty = fields.into_iter().filter(|(_, name)| name.is_empty());
    empty
        .map(|(field, _)| FieldError::required(child("spec.names", field), ""))
        .collect()
}

/// Names that cannot be ones.
pub(super) fn errors(names: &Names, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (field, name) in [("plural", &names.plural), ("singular", &names.singular)] {
        if !name.is_empty() {
            errors.extend(label_error(name, child(path, field)));
        }
    }
    for (field, kind) in [("kind", &names.kind), ("listKind", &names.list_kind)] {
        let faults = dns1035_label(&kind.to_lowercase());
        if !kind.is_empty() && !faults.is_empty() {
            let detail = format!(
                "may have mixed case, but should otherwise match: {}",
                faults.join(",")
            );
            errors.push(FieldError::invalid(
                child(path, field),
                &json!(kind),
                &detail,
            ));
        }
    }
    for (i, name) in names.short_names.iter().enumerate() {
        errors.extend(label_error(name, index(&child(path, "shortNames"), i)));
    }
    if !names.kind.is_empty() && names.kind == names.list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(
            child(path, "listKind"),
            &json!(names.list_kind),
            detail,
        ));
    }
    for (i, name) in names.categories.iter().enumerate() {
        errors.extend(label_error(name, index(&child(path, "categories"), i)));
    }
    errors
}

fn label_error(name: &str, field: String) -> Option<FieldError> {
    let faults = dns1035_label(name);
    (!faults.is_empty()).then(|| FieldError::invalid(field, &json!(name), &faults.join(",")))
}
