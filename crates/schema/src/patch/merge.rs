//! JSON merge patch (RFC 7396): objects merge, `null` removes, everything else replaces.
//!
//! As with the API server, a `null` member that has nothing to remove disappears also where it is inside an array.

use serde_json::{Map, Value};

use super::{MAX_DEPTH, is_within_depth};

/// Why a merge patch was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergePatchError {
    /// The patch is `null`.
    #[error("Invalid JSON Patch")]
    Null,
    /// The patch is not an object.
    #[error(
        "error decoding patch: json: cannot unmarshal {0} into Go value of type map[string]interface {{}}"
    )]
    NotAnObject(&'static str),
    /// The patch is nested too deeply.
    #[error("error decoding patch: exceeded max depth of {MAX_DEPTH}")]
    TooDeep,
}

impl MergePatchError {
    /// The HTTP status that the API server answers with.
    pub fn status(&self) -> u16 {
        400
    }
}

/// Applies a merge patch to an object.
///
/// # Errors
/// When the patch is not an object, or is nested too deeply.
pub fn apply(mut document: Value, patch: Value) -> Result<Value, MergePatchError> {
    if !is_within_depth(&patch, MAX_DEPTH) {
        return Err(MergePatchError::TooDeep);
    }
    let found = match patch {
        Value::Object(members) => {
            merge(&mut document, Value::Object(members));
            return Ok(document);
        }
        Value::Null => return Err(MergePatchError::Null),
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
    };
    Err(MergePatchError::NotAnObject(found))
}

fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_members(target, patch),
        (target @ Value::Object(_), patch) => *target = patch,
        (target, mut patch) => {
            drop_nulls(&mut patch);
            *target = patch;
        }
    }
}

fn merge_members(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (key, value) in patch {
        if value.is_null() {
            target.remove(&key);
        } else {
            merge(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// Removes `null` members of all objects; `null` items of arrays stay.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(document: Value, patch: Value, expect: Value) {
        assert_eq!(apply(document, patch), Ok(expect));
    }

    #[test]
    fn objects_merge_and_nulls_remove() {
        check(
            json!({"a": "b", "c": {"d": 1, "e": 2}}),
            json!({"a": "z", "c": {"e": null, "f": 3}}),
            json!({"a": "z", "c": {"d": 1, "f": 3}}),
        );
        check(json!({"a": 1}), json!({"a": null}), json!({}));
        check(json!({"a": 1}), json!({"b": null}), json!({"a": 1}));
        check(
            json!({"a": null}),
            json!({"b": 1}),
            json!({"a": null, "b": 1}),
        );
    }

    #[test]
    fn everything_but_objects_is_replaced() {
        check(json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]}));
        check(json!({"a": {"b": 1}}), json!({"a": 5}), json!({"a": 5}));
        check(
            json!({"a": 5}),
            json!({"a": {"b": 1}}),
            json!({"a": {"b": 1}}),
        );
    }

    #[test]
    fn nulls_without_a_target_disappear() {
        let patch = json!({"a": {"b": null, "c": [{"d": null, "e": 1}, null]}});
        check(json!({}), patch, json!({"a": {"c": [{"e": 1}, null]}}));
    }

    #[test]
    fn patches_that_are_not_objects_are_refused() {
        let cases = [
            (Value::Null, "Invalid JSON Patch"),
            (
                json!([1]),
                "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
        ];
        for (patch, expect) in cases {
            let error = apply(json!({}), patch).expect_err("not an object");
            assert_eq!(error.to_string(), expect);
            assert_eq!(error.status(), 400);
        }
        let deep = (0..MAX_DEPTH).fold(json!({}), |inner, _| json!({"a": inner}));
        assert_eq!(apply(json!({}), deep), Err(MergePatchError::TooDeep));
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            proptest::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|members| members.into_iter().collect())
        })
    }

    /// The algorithm of RFC 7396, word for word.
    fn model(target: &Value, patch: &Value) -> Value {
        let Some(patch) = patch.as_object() else {
            return patch.clone();
        };
        let mut result = target.as_object().cloned().unwrap_or_default();
        for (key, value) in patch {
            let old = result.remove(key).unwrap_or(Value::Null);
            if !value.is_null() {
                result.insert(key.clone(), model(&old, value));
            }
        }
        Value::Object(result)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn merging_agrees_with_the_rfc(document in json_value(), patch in json_value()) {
            let document = json!({"root": document});
            let patch = json!({"root": patch});
            prop_assert_eq!(apply(document.clone(), patch.clone()), Ok(model(&document, &patch)));
        }
    }
}
