//! Values as Go prints them: `%v` and `%T` appear in the API server's messages.

use serde_json::{Number, Value};

/// A number as the API server holds it: an integer of 64 bits where it fits, otherwise floating point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Num {
    Int(i64),
    Float(f64),
}

impl Num {
    pub(super) fn of(number: &Number) -> Self {
        match number.as_i64() {
            Some(n) => Num::Int(n),
            None => Num::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    pub(super) fn as_f64(self) -> f64 {
        match self {
            Num::Int(n) => n as f64,
            Num::Float(f) => f,
        }
    }

    /// `%v`
    pub(super) fn display(self) -> String {
        match self {
            Num::Int(n) => n.to_string(),
            Num::Float(f) => float(f),
        }
    }
}

/// `%v` of a float: shortest digits, with an exponent from 21 digits on or below 0.0001.
pub(super) fn float(f: f64) -> String {
    let scientific = format!("{f:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..21).contains(&exponent) {
        return format!("{f}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// `%T` of a decoded JSON value.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) => match Num::of(n) {
            Num::Int(_) => "int64",
            Num::Float(_) => "float64",
        },
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// `%v` of a decoded JSON value. Deep values are cut off, which Go would not do.
pub(super) fn display(value: &Value) -> String {
    let mut out = String::new();
    write(value, 16, &mut out);
    out
}

fn write(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => out.push_str(&Num::of(n).display()),
        Value::String(s) => out.push_str(s),
        Value::Array(_) | Value::Object(_) if depth == 0 => out.push('…'),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { " " });
                write(item, depth - 1, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push_str("map[");
            for (i, (key, item)) in sorted(map).into_iter().enumerate() {
                out.push_str(if i == 0 { "" } else { " " });
                out.push_str(key);
                out.push(':');
                write(item, depth - 1, out);
            }
            out.push(']');
        }
    }
}

/// The entries of an object by name, whatever order the map keeps.
pub(super) fn sorted(map: &serde_json::Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by(|a, b| a.0.cmp(b.0));
    entries
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn floats_print_as_in_go() {
        let cases = [
            (0.1, "0.1"),
            (1.0, "1"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (0.00001, "1e-05"),
            (1.5e300, "1.5e+300"),
        ];
        for (value, expect) in cases {
            assert_eq!(float(value), expect);
        }
    }

    #[test]
    fn values_print_as_in_go() {
        let value = json!({"b": [1, "x", null], "a": true});
        assert_eq!(display(&value), "map[a:true b:[1 x <nil>]]");
    }
}
