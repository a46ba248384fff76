//! One schema over another: what a field says over what its type says.

use serde_json::{Map, Value, json};

use super::scalar;

type Schema = Map<String, Value>;

const LIST_TYPE: &str = "x-kubernetes-list-type";

/// Adds to a schema what another says that it does not say itself. Where both limit values, the narrower limit holds.
pub(super) fn under(outer: &mut Schema, inner: Schema) {
    for (key, value) in inner {
        match outer.get_mut(&key) {
            None => {
                outer.insert(key, value);
            }
            Some(own) => combine(&key, own, value, &mut Vec::new()),
        }
    }
}

/// As [`under`], for two schemas that both have to hold: fields of both are there.
pub(super) fn along(outer: &mut Schema, inner: Schema) {
    let items_alone = outer.contains_key("items") && !outer.contains_key(LIST_TYPE);
    let mut conflicts = Vec::new();
    for (key, value) in inner {
        match outer.get_mut(&key) {
            None => {
                outer.insert(key, value);
            }
            Some(own) => combine(&key, own, value, &mut conflicts),
        }
    }
    if !conflicts.is_empty() {
        let all = outer.entry("allOf").or_insert_with(|| json!([]));
        if let Value::Array(all) = all {
            all.extend(conflicts);
        }
    }
    if items_alone {
        scalar::list_of_its_items(outer);
    }
}

fn combine(key: &str, own: &mut Value, value: Value, conflicts: &mut Vec<Value>) {
    match key {
        "minimum" | "minLength" | "minItems" | "minProperties" => choose(own, value, |a, b| a >= b),
        "maximum" | "maxLength" | "maxItems" | "maxProperties" => choose(own, value, |a, b| a <= b),
        // Rules of the field come before those of its type.
        "x-kubernetes-validations" => append(own, value),
        "required" => append(own, value),
        "properties" => {
            if let (Value::Object(own), Value::Object(more)) = (own, value) {
                for (name, schema) in more {
                    own.entry(name).or_insert(schema);
                }
            }
        }
        "pattern" if *own != value => conflicts.push(json!({"pattern": value})),
        _ => {}
    }
}

fn choose(own: &mut Value, value: Value, keep: impl Fn(f64, f64) -> bool) {
    if let (Some(a), Some(b)) = (own.as_f64(), value.as_f64())
        && !keep(a, b)
    {
        *own = value;
    }
}

fn append(own: &mut Value, value: Value) {
    if let (Value::Array(own), Value::Array(more)) = (own, value) {
        for item in more {
            if !own.contains(&item) {
                own.push(item);
            }
        }
    }
}

/// What both say. Used for fields that several choices have: each may limit them in its own way.
pub(super) fn common(left: &Schema, right: &Schema) -> Option<Schema> {
    let same_type = left.contains_key("type") && left.get("type") == right.get("type");
    let free =
        |schema: &Schema| !schema.contains_key("properties") && !schema.contains_key("items");
    match (left == right, same_type && free(left) && free(right)) {
        (true, _) => Some(left.clone()),
        (false, false) => None,
        (false, true) => {
            let mut schema: Schema = left
                .iter()
                .filter(|(key, value)| right.get(*key) == Some(value))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            if let (Some(Value::Array(a)), Some(Value::Array(b))) =
                (left.get("enum"), right.get("enum"))
            {
                let mut values = a.clone();
                values.extend(b.iter().filter(|value| !a.contains(value)).cloned());
                schema.insert("enum".into(), Value::Array(values));
            }
            Some(schema)
        }
    }
}
