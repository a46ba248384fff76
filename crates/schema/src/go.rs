//! Values as Go prints them: `%v`, `%T` and names of JSON types appear in the API server's messages.
//!
//! Values come from decoding, which limits how deep they are nested.

use serde_json::{Map, Number, Value};

/// A number as the API server holds it: an integer of 64 bits where it fits, otherwise floating point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Num {
    Int(i64),
    Float(f64),
}

impl Num {
    pub(crate) fn of(number: &Number) -> Self {
        match number.as_i64() {
            Some(n) => Num::Int(n),
            None => Num::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Num::Int(n) => n as f64,
            Num::Float(f) => f,
        }
    }

    /// `%v`
    pub(crate) fn display(self) -> String {
        match self {
            Num::Int(n) => n.to_string(),
            Num::Float(f) => float(f),
        }
    }
}

/// `%v` of a float: shortest digits, with an exponent from 21 digits on or below 0.0001.
pub(crate) fn float(f: f64) -> String {
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
pub(crate) fn type_name(value: &Value) -> &'static str {
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

/// A value's JSON type as Go's decoder calls it.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// `%v` of a decoded JSON value.
pub(crate) fn display(value: &Value) -> String {
    let mut printer = Printer::within(usize::MAX);
    printer.value(value);
    printer.finish()
}

/// Writes values as `%v` does.
pub(crate) struct Printer {
    out: String,
    most: usize,
}

impl Printer {
    /// Beyond so many bytes only brackets follow.
    pub(crate) fn within(most: usize) -> Self {
        let out = String::new();
        Self { out, most }
    }

    /// What was written.
    pub(crate) fn finish(self) -> String {
        self.out
    }

    pub(crate) fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.out.push_str("<nil>"),
            Value::Bool(b) => self.out.push_str(if *b { "true" } else { "false" }),
            Value::Number(n) => self.out.push_str(&Num::of(n).display()),
            Value::String(text) => self.text(text),
            Value::Array(items) => self.list(items),
            Value::Object(map) => self.map(map),
        }
    }

    fn text(&mut self, text: &str) {
        let left = self.most.saturating_sub(self.out.len());
        let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= left);
        self.out.push_str(&text[..end.unwrap_or(text.len())]);
    }

    pub(crate) fn list(&mut self, items: &[Value]) {
        self.out.push('[');
        for (index, item) in items.iter().enumerate() {
            if self.starts(index) {
                self.value(item);
            }
        }
        self.out.push(']');
    }

    pub(crate) fn map(&mut self, map: &Map<String, Value>) {
        self.out.push_str("map[");
        for (index, (key, value)) in sorted(map).into_iter().enumerate() {
            if self.starts(index) {
                self.text(key);
                self.out.push(':');
                self.value(value);
            }
        }
        self.out.push(']');
    }

    /// Whether there is room for the next part; if so, its separator is written.
    fn starts(&mut self, index: usize) -> bool {
        let room = self.out.len() <= self.most;
        if room && index > 0 {
            self.out.push(' ');
        }
        room
    }
}

/// The entries of an object by name, whatever order the map keeps.
pub(crate) fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
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

    #[test]
    fn prints_with_a_bound_keep_their_brackets() {
        let mut printer = Printer::within(10);
        printer.value(&json!({"a": ["éé", "long"], "b": 1}));
        assert_eq!(printer.finish(), "map[a:[éé]]");
    }
}
