//! The difference between two JSON values, as operations of RFC 6902.

use serde_json::{Value, json};

/// Operations that make `to` of `from`.
pub(crate) fn between(from: &Value, to: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    compare(from, to, &mut String::new(), &mut operations);
    operations
}

/// The path is as it was when this returns.
fn compare(from: &Value, to: &Value, path: &mut String, operations: &mut Vec<Value>) {
    match (from, to) {
        _ if from == to => {}
        (Value::Object(from), Value::Object(to)) => {
            for name in from.keys().filter(|name| !to.contains_key(*name)) {
                at(path, name, |path| {
                    operations.push(json!({"op": "remove", "path": path}))
                });
            }
            for (name, value) in to {
                at(path, name, |path| match from.get(name) {
                    Some(from) => compare(from, value, path, operations),
                    None => operations.push(json!({"op": "add", "path": path, "value": value})),
                });
            }
        }
        // Items that moved are not looked for: a list of another length is replaced.
        (Value::Array(from), Value::Array(to)) if from.len() == to.len() => {
            for (place, (from, to)) in from.iter().zip(to).enumerate() {
                at(path, &place.to_string(), |path| {
                    compare(from, to, path, operations)
                });
            }
        }
        _ => operations.push(json!({"op": "replace", "path": path, "value": to})),
    }
}

/// Calls with the path of a member.
fn at(path: &mut String, name: &str, call: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(&name.replace('~', "~0").replace('/', "~1"));
    call(path);
    path.truncate(length);
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any small value. Names have the characters that paths escape; values are never null, as objects of the API.
    pub(crate) fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            (0..4).prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ab~/]{1,2}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// Does what RFC 6902 says of the three operations that are used.
    fn apply(value: &mut Value, operation: &Value) {
        let path = operation["path"].as_str().expect("it has a path");
        let Some((parent, name)) = path.rsplit_once('/') else {
            *value = operation["value"].clone();
            return;
        };
        let parent = value.pointer_mut(parent).expect("the parent is there");
        let name = name.replace("~1", "/").replace("~0", "~");
        match (operation["op"].as_str(), parent) {
            (Some("remove"), Value::Object(fields)) => drop(fields.remove(&name)),
            (Some("add" | "replace"), Value::Object(fields)) => {
                fields.insert(name, operation["value"].clone());
            }
            (Some("replace"), Value::Array(items)) => {
                items[name.parse::<usize>().expect("a place")] = operation["value"].clone();
            }
            other => panic!("unexpected {other:?}"),
        }
    }

    #[test]
    fn operations_are_small() {
        let from =
            json!({"spec": {"a": 1, "b": [1, 2], "c": true}, "metadata": {"annotations": {}}});
        let to = json!({"spec": {"a": 2, "b": [1, 3]}, "metadata": {"annotations": {"x/y": "z"}}});
        let expected = [
            json!({"op": "add", "path": "/metadata/annotations/x~1y", "value": "z"}),
            json!({"op": "remove", "path": "/spec/c"}),
            json!({"op": "replace", "path": "/spec/a", "value": 2}),
            json!({"op": "replace", "path": "/spec/b/1", "value": 3}),
        ];
        assert_eq!(between(&from, &to), expected);
        assert!(between(&to, &to).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn operations_lead_from_one_value_to_the_other(from in value(), to in value()) {
            let mut value = from.clone();
            for operation in between(&from, &to) {
                apply(&mut value, &operation);
            }
            prop_assert_eq!(value, to);
        }
    }
}
