//! Checks that a configuration can be applied: every field is declared, values fit, items of lists have names.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::form::{Form, Items, Members, NoName, Typed};
use super::path::PathElement;
use crate::types::{ListKind, Scalar, Shape};

/// Problems beyond this number are not looked for.
const MAX_ERRORS: usize = 100;

/// What is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeErrors(Vec<String>);

impl fmt::Display for TypeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [only] => f.write_str(only),
            several => {
                f.write_str("errors:")?;
                several.iter().try_for_each(|e| write!(f, "\n  {e}"))
            }
        }
    }
}

impl std::error::Error for TypeErrors {}

/// Checks a configuration.
///
/// # Errors
/// When a field is not declared, a value does not fit its type, or two items of a list have the same name.
pub fn validate(typed: Typed<'_>, value: &Value) -> Result<(), TypeErrors> {
    let mut walk = Walk {
        path: String::new(),
        errors: Vec::new(),
    };
    walk.value(typed, value);
    if walk.errors.is_empty() {
        Ok(())
    } else {
        Err(TypeErrors(walk.errors))
    }
}

struct Walk {
    path: String,
    errors: Vec<String>,
}

impl Walk {
    fn fail(&mut self, why: &str) {
        if self.errors.len() < MAX_ERRORS {
            let colon = if self.path.is_empty() { "" } else { ": " };
            self.errors.push(format!("{}{colon}{why}", self.path));
        }
    }

    fn at(&mut self, element: &PathElement, visit: impl FnOnce(&mut Self)) {
        let end = self.path.len();
        self.path.push_str(&element.to_string());
        visit(self);
        self.path.truncate(end);
    }

    fn value(&mut self, typed: Typed<'_>, value: &Value) {
        if value.is_null() {
            return;
        }
        match (typed.shape(), value) {
            (None | Some(Shape::Any), _) => {}
            (Some(Shape::Scalar(scalar)), value) => self.scalar(*scalar, value),
            (Some(Shape::List(list)), Value::Array(values)) => match list.kind {
                ListKind::Atomic => self.places(typed, values),
                _ => {
                    if let Form::List(items) = typed.form(value) {
                        self.items(&items, values);
                    }
                }
            },
            (Some(Shape::List(_)), other) => {
                self.fail(&format!("expected list, got &{{{}}}", plain(other)));
            }
            (Some(Shape::Struct(_) | Shape::Map { .. }), Value::Object(object)) => {
                self.members(typed, object);
            }
            (Some(Shape::Struct(_) | Shape::Map { .. }), other) => {
                self.fail(&format!("expected map, got &{{{}}}", plain(other)));
            }
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        let why = match (scalar, value) {
            (Scalar::Int32 | Scalar::Int64 | Scalar::Double, Value::Number(_)) => return,
            (Scalar::Int32 | Scalar::Int64 | Scalar::Double, other) => {
                format!("expected numeric (int or float), got {}", go_type(other))
            }
            (Scalar::Bool, Value::Bool(_)) => return,
            (Scalar::Bool, other) => format!("expected boolean, got &{{{}}}", plain(other)),
            (Scalar::Quantity | Scalar::IntOrString, Value::Array(_) | Value::Object(_)) => {
                format!("expected any scalar, got &{{{}}}", plain(value))
            }
            (Scalar::Quantity | Scalar::IntOrString, _) | (_, Value::String(_)) => return,
            (_, other) => format!(
                "expected string, got &value.valueUnstructured{{Value:{}}}",
                go_syntax(other)
            ),
        };
        self.fail(&why);
    }

    /// Items of an atomic list have places, not names.
    fn places(&mut self, typed: Typed<'_>, values: &[Value]) {
        let Some(item) = typed.step(&PathElement::Value(Value::Null)) else {
            return;
        };
        for (index, value) in values.iter().enumerate() {
            self.at(&PathElement::Index(index as i64), |walk| {
                walk.value(item, value);
            });
        }
    }

    fn items(&mut self, items: &Items<'_>, values: &[Value]) {
        let mut seen = BTreeSet::new();
        for (index, value) in values.iter().enumerate() {
            let name = match items.name(value) {
                Ok(PathElement::Value(Value::Object(_))) => {
                    let why = "associative list without keys has an element that's a map type";
                    return self.fail(&format!("element {index}: {why}"));
                }
                Ok(name) => name,
                Err(why) => {
                    return self.fail(&format!("element {index}: {}", no_name(items, &why)));
                }
            };
            if !seen.insert(name.clone()) {
                self.fail(&format!("duplicate entries for key {name}"));
            }
            self.at(&name, |walk| walk.value(items.item, value));
        }
    }

    fn members(&mut self, typed: Typed<'_>, object: &serde_json::Map<String, Value>) {
        let members = match typed.shape() {
            Some(Shape::Struct(fields)) => Members::Declared { fields, typed },
            _ => match typed.step(&PathElement::Field("".into())) {
                Some(value) => Members::Keys(value),
                None => return,
            },
        };
        for (name, value) in object {
            let element = PathElement::field(name);
            if typed.step(&element).is_none() {
                self.at(&element, |walk| walk.fail("field not declared in schema"));
                return;
            }
            self.at(&element, |walk| walk.value(members.member(name).0, value));
        }
    }
}

fn no_name(items: &Items<'_>, why: &NoName<'_>) -> String {
    match why {
        NoName::Null if items.is_set() => {
            "associative list without keys has an element that's an explicit null".to_owned()
        }
        NoName::Null => "associative list with keys may not have a null element".to_owned(),
        NoName::NotAnObject => {
            "associative list with keys may not have non-map elements".to_owned()
        }
        NoName::WithoutKeys(keys) => {
            let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
            format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
                 values for any key fields)",
                keys.join(" ")
            )
        }
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// As Go prints a value with `%v`.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<String> = fields
                .iter()
                .map(|(k, v)| format!("{k}:{}", plain(v)))
                .collect();
            fields.sort();
            format!("map[{}]", fields.join(" "))
        }
        scalar => scalar.to_string(),
    }
}

/// As Go prints a value with `%#v`.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<String> = fields
                .iter()
                .map(|(k, v)| format!("{k:?}:{}", go_syntax(v)))
                .collect();
            fields.sort();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        scalar => scalar.to_string(),
    }
}
