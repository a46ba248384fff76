//! Named formats, and what is wrong with a text that does not have one.

use super::super::eval::Evaluator;
use super::super::value::{Evaluated, Value, no_overload};
use super::read;
use super::url::Url;
use crate::formats::matches as has_format;
use crate::names;

const NAMES: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

fn named(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|known| *known == name)
}

pub(super) fn call<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    eval.charge(1)?;
    match (name, args) {
        ("format.named", [Value::Text(name)]) => Ok(match named(name) {
            Some(name) => Value::some(Value::Format(name)),
            None => Value::Optional(None),
        }),
        ("validate", [Value::Format(format), Value::Text(text)]) => {
            // Charged like a regular expression of the usual length.
            eval.charge(text.len() as u64)?;
            let errors = errors(format, read(eval, text)?);
            if errors.is_empty() {
                return Ok(Value::Optional(None));
            }
            let errors = errors.into_iter().map(Value::text).collect();
            Ok(Value::some(Value::list(errors)))
        }
        (_, []) => match name.strip_prefix("format.").and_then(named) {
            Some(name) => Ok(Value::Format(name)),
            None => no_overload(),
        },
        _ => no_overload(),
    }
}

fn errors(format: &str, text: &str) -> Vec<String> {
    let unless = |valid: bool, message: &str| {
        if valid {
            Vec::new()
        } else {
            vec![message.to_owned()]
        }
    };
    match format {
        "dns1123Label" => names::dns1123_label(text),
        "dns1123Subdomain" => names::dns1123_subdomain(text),
        "dns1035Label" => names::dns1035_label(text),
        "qualifiedName" => names::qualified_name(text),
        "dns1123LabelPrefix" => names::dns1123_label(&completed(text)),
        "dns1123SubdomainPrefix" => names::dns1123_subdomain(&completed(text)),
        "dns1035LabelPrefix" => names::dns1035_label(&completed(text)),
        "labelValue" => names::label_value(text),
        "uri" => match Url::parse(text) {
            Ok(_) => Vec::new(),
            Err(reason) => vec![format!("parse {text:?}: {reason}")],
        },
        "uuid" => unless(has_format("uuid", text), "does not match the UUID format"),
        "byte" => unless(has_format("byte", text), "invalid base64"),
        "date" => unless(has_format("date", text), "invalid date"),
        _ => unless(has_format("datetime", text), "invalid datetime"),
    }
}

/// A prefix may end with a dash, because something will follow it.
fn completed(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(start) if !start.is_empty() => format!("{start}a"),
        _ => prefix.to_owned(),
    }
}
