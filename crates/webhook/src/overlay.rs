//! Lays the change of a typed value over the object that the value was decoded from.
//!
//! A type knows less than the object has, and writes what the object leaves out. So it is not the typed value that
//! replaces the object, but the difference between the value before and after that is made to it.

use serde_json::{Map, Value};

/// The object, changed as `before` was to `after`.
pub(crate) fn overlay(mut object: Value, before: &Value, after: &Value) -> Value {
    change(&mut object, before, after);
    object
}

fn change(object: &mut Value, before: &Value, after: &Value) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) if object.is_object() || object.is_null() => {
            if object.is_null() {
                *object = Value::Object(Map::new());
            }
            if let Value::Object(fields) = object {
                change_fields(fields, before, after);
            }
        }
        // Of lists whose length changed nobody knows which item became which.
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            match object {
                Value::Array(items) if items.len() == after.len() => {
                    let changes = before.iter().zip(after);
                    for (item, (before, after)) in items.iter_mut().zip(changes) {
                        change(item, before, after);
                    }
                }
                other => *other = Value::from(after.clone()),
            }
        }
        _ => *object = after.clone(),
    }
}

fn change_fields(
    fields: &mut Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) {
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        fields.remove(name);
    }
    for (name, after) in after {
        let before = before.get(name).unwrap_or(&Value::Null);
        if before != after {
            change(fields.entry(name).or_insert(Value::Null), before, after);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::patch::tests::value;

    #[test]
    fn what_the_type_does_not_know_stays_and_what_it_adds_by_itself_does_not_come() {
        let object = json!({
            "spec": {"known": 1, "unknown": 2, "items": [{"a": 1, "hidden": true}]},
        });
        // The type has a status, which the object has not, and knows nothing of some fields.
        let before = json!({"spec": {"known": 1, "items": [{"a": 1}]}, "status": {}});
        let after =
            json!({"spec": {"known": 3, "items": [{"a": 2}], "new": {"x": 1}}, "status": {}});
        let expected = json!({
            "spec": {"known": 3, "unknown": 2, "items": [{"a": 2, "hidden": true}], "new": {"x": 1}},
        });
        assert_eq!(overlay(object, &before, &after), expected);
    }

    #[test]
    fn field_within_something_that_the_object_leaves_out_brings_it() {
        let changed = overlay(
            json!({}),
            &json!({"status": {}}),
            &json!({"status": {"x": 1}}),
        );
        assert_eq!(changed, json!({"status": {"x": 1}}));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn overlay_on_what_was_before_is_what_is_after(before in value(), after in value()) {
            prop_assert_eq!(overlay(before.clone(), &before, &after), after);
        }

        #[test]
        fn overlay_of_no_change_changes_nothing(object in value(), same in value()) {
            prop_assert_eq!(overlay(object.clone(), &same, &same), object);
        }
    }
}
