//! How tests of kinds take objects through the steps of a request.

use kubewright_schema::FieldError;
use kubewright_schema::catalog::Scope;
use serde_json::{Value, json};

use super::strategy;
use super::strategy::CreateContext;

pub(crate) const CONTEXT: CreateContext<'static> = CreateContext {
    uid: "00000000-0000-4000-8000-000000000000",
    now: "2026-01-01T00:00:00Z",
};

/// A change to an object, in a table of cases.
pub(crate) type Edit = fn(&mut Value);

/// The object as it would be stored. Defaults are applied twice: the second time must change nothing.
pub(crate) fn create(group: &str, kind: &str, mut object: Value) -> Value {
    let strategy = super::strategy(group, kind);
    strategy.default(&mut object);
    let once = object.clone();
    strategy.default(&mut object);
    assert_eq!(object, once, "defaulting {kind} twice");
    strategy.prepare_for_create(&mut object, &CONTEXT);
    object
}

fn scope(object: &Value) -> Scope {
    if object["metadata"]["namespace"].is_null() {
        Scope::Cluster
    } else {
        Scope::Namespaced
    }
}

fn texts(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// What is wrong with a new object.
pub(crate) fn create_errors(group: &str, kind: &str, object: Value) -> Vec<String> {
    let object = create(group, kind, object);
    texts(super::strategy(group, kind).validate(&object, scope(&object)))
}

/// What is wrong with an edit of an object that was created from `object`.
pub(crate) fn update_errors(
    group: &str,
    kind: &str,
    object: Value,
    edit: impl Fn(&mut Value),
) -> Vec<String> {
    edit_errors(group, kind, create(group, kind, object), edit)
}

/// What is wrong with an edit of a stored object.
pub(crate) fn edit_errors(
    group: &str,
    kind: &str,
    mut old: Value,
    edit: impl Fn(&mut Value),
) -> Vec<String> {
    old["metadata"]["resourceVersion"] = json!("1");
    let new = update(group, kind, &old, edit);
    texts(super::strategy(group, kind).validate_update(&new, &old, scope(&old)))
}

/// A stored object after an edit.
pub(crate) fn update(group: &str, kind: &str, old: &Value, edit: impl Fn(&mut Value)) -> Value {
    let strategy: &strategy::Strategy = super::strategy(group, kind);
    let mut new = old.clone();
    edit(&mut new);
    strategy.default(&mut new);
    strategy.prepare_for_update(&mut new, old);
    new
}
