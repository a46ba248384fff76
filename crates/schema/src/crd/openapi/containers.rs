//! List and map types: what they need of the type, the items and the keys.

use serde_json::json;

use super::super::path::{child, key};
use super::super::schema::Schema;
use super::Check;
use crate::field::FieldError;

impl Check {
    /// The type that an extension needs.
    fn needs_type(&mut self, schema: Schema<'_>, path: &str, ty: &str, extension: &str) {
        let detail = format!("must be {ty} if {extension} is specified");
        let at = child(path, "type");
        self.errors.push(if schema.ty().is_empty() {
            FieldError::required(at, &detail)
        } else {
            FieldError::invalid(at, &json!(schema.ty()), &detail)
        });
    }

    pub(super) fn map_type(&mut self, schema: Schema<'_>, path: &str) {
        let Some(map_type) = schema.map_type() else {
            return;
        };
        if schema.ty() != "object" {
            self.needs_type(schema, path, "object", "x-kubernetes-map-type");
        }
        if !matches!(map_type, "atomic" | "granular") {
            let at = child(path, "x-kubernetes-map-type");
            self.errors.push(FieldError::not_supported(
                at,
                &json!(map_type),
                &["atomic", "granular"],
            ));
        }
    }

    pub(super) fn list_type(&mut self, schema: Schema<'_>, path: &str) {
        let at = child(path, "x-kubernetes-list-type");
        let has_keys = !schema.list("x-kubernetes-list-map-keys").is_empty();
        let needs_map = "must be map if x-kubernetes-list-map-keys is non-empty";
        let Some(list_type) = schema.list_type() else {
            if has_keys {
                self.errors.push(FieldError::required(at, needs_map));
            }
            return;
        };
        if schema.ty() != "array" {
            self.needs_type(schema, path, "array", "x-kubernetes-list-type");
        } else if self.strictness.atomic_sets {
            self.errors.extend(atomic_set_error(schema, path));
        }
        if !matches!(list_type, "atomic" | "set" | "map") {
            let supported = ["atomic", "set", "map"];
            self.errors.push(FieldError::not_supported(
                at.clone(),
                &json!(list_type),
                &supported,
            ));
        }
        if list_type == "map" {
            self.list_map(schema, path);
        } else if has_keys {
            self.errors
                .push(FieldError::invalid(at, &json!(list_type), needs_map));
        }
    }

    fn list_map(&mut self, schema: Schema<'_>, path: &str) {
        let keys_at = child(path, "x-kubernetes-list-map-keys");
        let keys = schema.list("x-kubernetes-list-map-keys");
        if keys.is_empty() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            self.errors
                .push(FieldError::required(keys_at.clone(), detail));
        }
        let at = child(path, "items");
        let Some(items) = schema.items() else {
            self.errors.push(match schema.raw("items") {
                None => {
                    FieldError::required(at, "must have a schema if x-kubernetes-list-type is map")
                }
                Some(items) => FieldError::invalid(
                    at,
                    items,
                    "must only have a single schema if x-kubernetes-list-type is map",
                ),
            });
            return;
        };
        if items.ty() != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            self.errors.push(FieldError::invalid(
                child(&at, "type"),
                &json!(items.ty()),
                detail,
            ));
            return;
        }
        for (i, name) in schema.texts("x-kubernetes-list-map-keys").enumerate() {
            match items.property(name) {
                Some(property) if matches!(property.ty(), "array" | "object") => {
                    let at = child(&key(&child(&at, "properties"), name), "type");
                    let detail =
                        "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.errors
                        .push(FieldError::invalid(at, &json!(items.ty()), detail));
                }
                Some(_) => {}
                None => {
                    let detail = "entries must all be names of item properties";
                    self.errors
                        .push(FieldError::invalid(keys_at.clone(), &json!(keys), detail));
                }
            }
            if keys[..i].iter().any(|earlier| earlier == name) {
                let detail = "must not contain duplicate entries";
                self.errors
                    .push(FieldError::invalid(keys_at.clone(), &json!(keys), detail));
            }
        }
    }
}

/// Items of a set are compared as wholes, so they must be atomic.
pub(super) fn atomic_set_error(schema: Schema<'_>, path: &str) -> Option<FieldError> {
    let items = schema
        .items()
        .filter(|_| schema.list_type() == Some("set"))?;
    let (name, broken) = match items.ty() {
        "array" => (
            "x-kubernetes-list-type",
            items.list_type().is_some_and(|ty| ty != "atomic"),
        ),
        "object" => ("x-kubernetes-map-type", items.map_type() != Some("atomic")),
        _ => return None,
    };
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let at = child(&child(path, "items"), name);
    broken.then(|| FieldError::invalid(at, &json!(items.list_type()), detail))
}

/// Items of sets and maps, and the keys of maps, are always there.
pub(super) fn list_key_errors(schema: Schema<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (Some(items), Some(list_type @ ("set" | "map"))) = (schema.items(), schema.list_type())
    else {
        return errors;
    };
    let at = child(path, "items");
    if items.flag("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(child(&at, "nullable"), &detail));
    }
    if list_type != "map" {
        return errors;
    }
    for name in schema.texts("x-kubernetes-list-map-keys") {
        let Some(property) = items.property(name) else {
            continue;
        };
        let at = key(&child(&at, "properties"), name);
        let required = items.texts("required").any(|required| required == name);
        if !required && property.raw("default").is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(child(&at, "default"), detail));
        }
        if property.flag("nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(child(&at, "nullable"), detail));
        }
    }
    errors
}
