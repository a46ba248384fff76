//! The difference of two objects as a JSON merge patch.

use serde_json::{Map, Value};

/// The patch that turns `old` into `new`; nothing when they are equal. Lists are replaced as a whole.
pub(crate) fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return Some(new.clone());
    };
    let mut patch = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in new {
        match old.get(name) {
            Some(before) => {
                if let Some(change) = difference(before, value) {
                    patch.insert(name.clone(), change);
                }
            }
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn difference_has_only_what_changed() {
        for (old, new, patch) in [
            (json!({"a":1}), json!({"a":1}), None),
            (json!({"a":1}), json!({"a":2}), Some(json!({"a":2}))),
            (
                json!({"a":1,"b":2}),
                json!({"b":2}),
                Some(json!({"a":null})),
            ),
            (json!({}), json!({"a":{"b":1}}), Some(json!({"a":{"b":1}}))),
            (
                json!({"a":{"b":1,"c":2}}),
                json!({"a":{"b":1,"c":3}}),
                Some(json!({"a":{"c":3}})),
            ),
            (json!({"l":[1,2]}), json!({"l":[1]}), Some(json!({"l":[1]}))),
        ] {
            assert_eq!(difference(&old, &new), patch, "{old} {new}");
        }
    }
}
