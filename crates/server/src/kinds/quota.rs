//! ResourceQuotas and LimitRanges.

use std::collections::BTreeSet;

use kubewright_schema::FieldError;
use kubewright_schema::names;
use kubewright_schema::quantity::Quantity;
use serde_json::{Value, json};

use super::checks::{Errors, immutable, invalid_each};
use super::path::Path;
use super::pod;
use super::strategy::Strategy;
use super::value::{ensure, entries, is_empty, items, items_mut, map, set, text};

/// ResourceQuotas.
pub(super) static RESOURCE_QUOTA: Strategy = Strategy {
    has_status: true,
    returns_deleted_object: true,
    default: |object| pod::default_resource_list(ensure(object, "spec").get_mut("hard")),
    create: |object, _| set(object, "status", json!({})),
    validate: |object, errors| {
        validate_list(&object["spec"]["hard"], &Path::Root("spec.hard"), errors);
    },
    validate_update: |new, old, errors| {
        let (now, before) = (&new["spec"]["scopes"], &old["spec"]["scopes"]);
        immutable(now, before, &Path::Root("spec.scopes"), errors);
    },
    validate_status: |new, _, errors| {
        if is_empty(&new["metadata"]["resourceVersion"]) {
            errors.push(FieldError::required("resourceVersion", ""));
        }
        for list in ["hard", "used"] {
            let path = Path::Root("status");
            validate_list(&new["status"][list], &path.child(list), errors);
        }
    },
    ..Strategy::PLAIN
};

/// LimitRanges.
pub(super) static LIMIT_RANGE: Strategy = Strategy {
    allow_create_on_update: true,
    default: default_limits,
    validate: validate_limits,
    ..Strategy::PLAIN
};

fn validate_list(list: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (name, quantity) in entries(list) {
        let path = path.key(name);
        invalid_each(names::qualified_name(name), name.as_str(), &path, errors);
        pod::validate_quantity(quantity, &path, errors);
    }
}

/// A container's default limit is the largest allowed; its default request is that limit, or the least allowed.
fn default_limits(object: &mut Value) {
    for limit in items_mut(ensure(object, "spec").get_mut("limits")) {
        if text(&limit["type"]) != "Container" {
            continue;
        }
        fill(limit, "default", "max");
        fill(limit, "defaultRequest", "default");
        fill(limit, "defaultRequest", "min");
        for list in ["default", "defaultRequest"] {
            if is_empty(&limit[list]) {
                super::value::remove(limit, list);
            }
        }
    }
}

fn fill(limit: &mut Value, list: &str, from: &str) {
    let source = limit[from].clone();
    let target = map(ensure(limit, list));
    for (name, quantity) in entries(&source) {
        target.entry(name).or_insert_with(|| quantity.clone());
    }
}

fn validate_limits(object: &Value, errors: &mut Errors) {
    let path = Path::Root("spec.limits");
    let mut seen = BTreeSet::new();
    for (i, limit) in items(&object["spec"]["limits"]).iter().enumerate() {
        let path = path.index(i);
        let kind = text(&limit["type"]);
        invalid_each(
            names::qualified_name(kind),
            kind,
            &path.child("type"),
            errors,
        );
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(path.child("type"), &kind.into()));
        }
        if kind == "Pod" {
            for field in ["default", "defaultRequest"] {
                if !is_empty(&limit[field]) {
                    let text = "may not be specified when `type` is 'Pod'";
                    errors.push(FieldError::forbidden(path.child(field), text));
                }
            }
        }
        validate_order(limit, &path, errors);
    }
}

/// For each resource: min ≤ default request ≤ default ≤ max.
fn validate_order(limit: &Value, path: &Path<'_>, errors: &mut Errors) {
    let order = [
        ("min", "max", "min", "min value", "max value"),
        (
            "min",
            "defaultRequest",
            "defaultRequest",
            "min value",
            "default request value",
        ),
        (
            "defaultRequest",
            "max",
            "defaultRequest",
            "default request value",
            "max value",
        ),
        (
            "defaultRequest",
            "default",
            "defaultRequest",
            "default request value",
            "default limit value",
        ),
        ("min", "default", "default", "min value", "default value"),
        ("default", "max", "default", "default value", "max value"),
    ];
    let fields = ["max", "min", "default", "defaultRequest"];
    let resources: BTreeSet<&String> = fields
        .iter()
        .flat_map(|field| entries(&limit[*field]).map(|(name, _)| name))
        .collect();
    for name in resources {
        for (low, high, at, low_text, high_text) in order {
            let (small, large) = (text(&limit[low][name]), text(&limit[high][name]));
            let (Ok(least), Ok(most)) = (Quantity::parse(small), Quantity::parse(large)) else {
                continue;
            };
            if least > most {
                let complaint = format!("{low_text} {small} is greater than {high_text} {large}");
                let at_path = path.child(at);
                errors.push(FieldError::invalid(
                    at_path.key(name),
                    &limit[low][name],
                    &complaint,
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{create, create_errors};

    fn range(limit: Value) -> Value {
        json!({"metadata": {"name": "l", "namespace": "d"}, "spec": {"limits": [limit]}})
    }

    #[test]
    fn limits_fill_each_other() {
        let object = create(
            "",
            "LimitRange",
            range(json!({"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1"}})),
        );
        let limit = &object["spec"]["limits"][0];
        assert_eq!(limit["default"], json!({"cpu": "2"}));
        assert_eq!(limit["defaultRequest"], json!({"cpu": "2", "memory": "1"}));
    }

    #[test]
    fn bounds_stand_in_order() {
        assert_eq!(
            create_errors(
                "",
                "LimitRange",
                range(json!({"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}}))
            ),
            [
                "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1"
            ]
        );
    }
}
