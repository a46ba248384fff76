//! Finds lists and objects that are one value: to set a part of one means to lose the rest of it.

use serde_json::Value;

use super::form::{Form, Typed};
use super::path::PathElement;

/// The places of atomic lists and objects in a configuration, as paths.
pub fn atomics(typed: Typed<'_>, config: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(typed, config, &mut Vec::new(), &mut found);
    found
}

fn walk(typed: Typed<'_>, value: &Value, path: &mut Vec<String>, found: &mut Vec<String>) {
    match typed.form(value) {
        Form::Leaf if value.is_array() || value.is_object() => found.push(path.concat()),
        Form::Leaf => {}
        Form::List(items) => {
            for item in value.as_array().into_iter().flatten() {
                let name = items
                    .name(item)
                    .map(|name| name.to_string())
                    .unwrap_or_default();
                path.push(name);
                walk(items.item, item, path, found);
                path.pop();
            }
        }
        Form::Object(members) => {
            for (name, inner) in value.as_object().into_iter().flatten() {
                path.push(PathElement::field(name).to_string());
                walk(members.member(name).0, inner, path, found);
                path.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::types::Table;

    #[test]
    fn atomic_lists_and_objects_are_found() {
        let table = Table::builtin();
        let pod = table.kind("", "v1", "Pod").expect("pods are built in");
        let find = |config| atomics(Typed::new(table, pod), &config);
        let args = json!({"spec": {"containers": [{"name": "a", "image": "i"}], "nodeSelector": {"x": "y"}}});
        assert_eq!(find(args), [".spec.nodeSelector"]);
        assert!(
            find(json!({"metadata": {"labels": {"a": "b"}}, "spec": {"hostNetwork": true}}))
                .is_empty()
        );
    }
}
