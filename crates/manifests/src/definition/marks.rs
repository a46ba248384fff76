//! What `#[k8s(..)]` writes into a schema while schemars makes it.

use schemars::Schema;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Says that the default beside it was asked for, and is to be kept whatever it is.
pub(super) const EXPLICIT_DEFAULT: &str = "x-kubewright-default";

/// How long the description may be.
pub(super) const DESCRIPTION_LIMIT: &str = "x-kubewright-description-limit";

/// A schema that is being written to. Made by the attributes of `kubewright-derive`; not for hands.
#[derive(Debug)]
pub struct Marks<'a>(&'a mut Schema);

/// A rule in CEL.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The expression, which is true for valid values.
    pub rule: &'static str,
    /// The message when it does not hold.
    pub message: Option<&'static str>,
    /// An expression that makes the message.
    pub message_expression: Option<&'static str>,
    /// The reason in the answer.
    pub reason: Option<&'static str>,
    /// The field in the answer.
    pub field_path: Option<&'static str>,
    /// Whether it also runs on objects that are created.
    pub optional_old_self: bool,
}

impl<'a> Marks<'a> {
    /// Writes to this schema.
    pub fn on(schema: &'a mut Schema) -> Self {
        Self(schema)
    }

    /// Sets a key of the schema to a value, and replaces what it had.
    pub fn set(self, key: &str, value: impl Serialize) -> Self {
        self.0.insert(key.to_owned(), json(&value));
        self
    }

    /// Sets the default, and that it was asked for.
    pub fn default(self, value: Value) -> Self {
        self.set("default", value).set(EXPLICIT_DEFAULT, true)
    }

    /// Sets where more is written.
    pub fn documents(self, url: &str, description: Option<&str>) -> Self {
        let mut documents = Map::from_iter([("url".to_owned(), json!(url))]);
        documents.extend(description.map(|text| ("description".to_owned(), json!(text))));
        self.set("externalDocs", documents)
    }

    /// Adds a rule to those that are there.
    pub fn rule(self, rule: Rule) -> Self {
        let mut written = Map::from_iter([("rule".to_owned(), json!(rule.rule))]);
        for (key, value) in [
            ("message", rule.message),
            ("messageExpression", rule.message_expression),
            ("reason", rule.reason),
            ("fieldPath", rule.field_path),
        ] {
            written.extend(value.map(|value| (key.to_owned(), json!(value))));
        }
        if rule.optional_old_self {
            written.insert("optionalOldSelf".to_owned(), json!(true));
        }
        let rules = self.0.ensure_object().entry("x-kubernetes-validations");
        if let Value::Array(rules) = rules.or_insert_with(|| json!([])) {
            rules.push(Value::Object(written));
        }
        self
    }

    /// Writes to the schema of the elements.
    pub fn items(self, write: impl FnOnce(&mut Schema)) -> Self {
        let items = self.0.get("items").cloned();
        let mut items = items
            .and_then(|items| Schema::try_from(items).ok())
            .unwrap_or_default();
        write(&mut items);
        self.set("items", items)
    }
}

/// A value as JSON.
///
/// # Panics
/// When the value cannot be JSON, such as a map with keys that are not texts: a mistake in an attribute, which shows as soon
/// as the schema is made.
pub fn json(value: &impl Serialize) -> Value {
    match serde_json::to_value(value) {
        Ok(value) => value,
        Err(error) => panic!("a value in a `k8s` attribute is no JSON: {error}"),
    }
}

/// Returns an empty object, `{}`.
pub fn empty_object() -> Value {
    json!({})
}
