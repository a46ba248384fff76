//! Writes Kubernetes documents as YAML: the same value gives the same text, in the look that people know from Go.
//!
//! Keys are sorted, lists are not indented, text of several lines is a block, and a text is quoted exactly when some
//! reader of YAML 1.1 or 1.2 would take it for something else. Other than controller-gen it never folds a long line:
//! one sentence more is one line more in a difference.

mod ambiguous;
mod number;
mod scalar;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use self::scalar::Style;

/// The longest key that readers accept without a mark in front of it.
const MAX_PLAIN_KEY: usize = 1000;

/// One document, beginning with `---`.
///
/// # Panics
/// When the `Serialize` of the value fails. The derived ones do not, as long as the keys of their maps are text or
/// numbers.
///
/// # Examples
/// ```
/// use kubewright_manifests::yaml;
/// use serde_json::json;
///
/// let role = json!({"kind": "Role", "rules": [{"verbs": ["*"], "apiGroups": [""]}]});
/// let text = yaml::document(&role);
/// assert_eq!(text, "---\nkind: Role\nrules:\n- apiGroups:\n  - \"\"\n  verbs:\n  - '*'\n");
/// ```
pub fn document<T: Serialize + ?Sized>(value: &T) -> String {
    let value =
        serde_json::to_value(value).expect("a Kubernetes document is representable as JSON");
    let mut text = String::from("---\n");
    write_top(&mut text, &value);
    text
}

/// Many documents in one text, each as [`document`] writes it.
///
/// # Panics
/// As [`document`].
pub fn documents<'a, T: Serialize + 'a>(values: impl IntoIterator<Item = &'a T>) -> String {
    values.into_iter().map(document).collect()
}

fn write_top(out: &mut String, value: &Value) {
    match value {
        Value::Object(map) if !map.is_empty() => write_map(out, map, 0, Lead::Indent),
        Value::Array(items) if !items.is_empty() => write_list(out, items, 0, Lead::Indent),
        other => write_leaf(out, other, 2),
    }
}

/// Whether the first line of a block has its indentation before it already.
#[derive(Clone, Copy, PartialEq)]
enum Lead {
    Indent,
    Written,
}

fn write_map(out: &mut String, map: &Map<String, Value>, indent: usize, lead: Lead) {
    // Programs that link this crate may make serde_json keep the order of insertion.
    let sorted: BTreeMap<&str, &Value> = map.iter().map(|(k, v)| (k.as_str(), v)).collect();
    for (position, (key, value)) in sorted.into_iter().enumerate() {
        if position > 0 || lead == Lead::Indent {
            write_indent(out, indent);
        }
        write_key(out, key, indent);
        write_member(out, value, indent);
    }
}

fn write_key(out: &mut String, key: &str, indent: usize) {
    let marked = key.chars().count() > MAX_PLAIN_KEY;
    if marked {
        out.push_str("? ");
    }
    match scalar::style(key) {
        Style::Plain => out.push_str(key),
        Style::Single => scalar::write_single(out, key),
        // A key is one line.
        Style::Double | Style::Block => scalar::write_double(out, key),
    }
    if marked {
        out.push('\n');
        write_indent(out, indent);
    }
    out.push(':');
}

/// The value of a key, after its colon.
fn write_member(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            write_map(out, map, indent + 2, Lead::Indent);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write_list(out, items, indent, Lead::Indent);
        }
        leaf => {
            out.push(' ');
            write_leaf(out, leaf, indent + 2);
        }
    }
}

fn write_list(out: &mut String, items: &[Value], indent: usize, lead: Lead) {
    for (position, item) in items.iter().enumerate() {
        if position > 0 || lead == Lead::Indent {
            write_indent(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => {
                write_map(out, map, indent + 2, Lead::Written);
            }
            Value::Array(items) if !items.is_empty() => {
                write_list(out, items, indent + 2, Lead::Written);
            }
            leaf => write_leaf(out, leaf, indent + 2),
        }
    }
}

/// What fits behind its key, with the end of the line. `indent` is that of the lines of a block of text.
fn write_leaf(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => number::write(out, number),
        Value::String(text) => return write_text(out, text, indent),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
    out.push('\n');
}

fn write_text(out: &mut String, text: &str, indent: usize) {
    match scalar::style(text) {
        Style::Plain => out.push_str(text),
        Style::Single => scalar::write_single(out, text),
        Style::Double => scalar::write_double(out, text),
        Style::Block => return scalar::write_block(out, text, indent),
    }
    out.push('\n');
}

fn write_indent(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}
