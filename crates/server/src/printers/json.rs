//! JSON as Go's encoder writes it, so that responses match the real server byte for byte.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Appends a value.
pub(super) fn append(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let mut serializer = Serializer::with_formatter(out, GoFormatter);
    value
        .serialize(&mut serializer)
        .expect("strings, numbers and JSON values always serialize into memory");
}

/// Appends `"key":`.
pub(super) fn append_key(out: &mut Vec<u8>, key: &str) {
    append(out, key);
    out.push(b':');
}

/// Differs from the usual compact form in two ways: characters that mean something in HTML or JavaScript are
/// escaped, and whole floats have no fraction.
struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_string_fragment<W>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (plain, special) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            let mut characters = special.chars();
            if let Some(character) = characters.next() {
                write!(writer, "\\u{:04x}", u32::from(character))?;
            }
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_f64<W>(&mut self, writer: &mut W, value: f64) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        let size = value.abs();
        if size == 0.0 || (1e-6..1e21).contains(&size) {
            return write!(writer, "{value}");
        }
        let text = format!("{value:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                write!(writer, "{digits}e+{exponent}")
            }
            _ => writer.write_all(text.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(value: Value, expect: &str) {
        let mut out = Vec::new();
        append(&mut out, &value);
        assert_eq!(String::from_utf8_lossy(&out), expect);
    }

    #[test]
    fn html_is_escaped_in_values_and_keys() {
        check(json!("<none>"), r#""\u003cnone\u003e""#);
        check(json!({"a&b": "x > y"}), r#"{"a\u0026b":"x \u003e y"}"#);
        check(json!("\u{2028}é\n\""), r#""\u2028é\n\"""#);
    }

    #[test]
    fn floats_are_written_as_go_writes_them() {
        check(json!(1.0), "1");
        check(json!(0.5), "0.5");
        check(json!(-0.000_001), "-0.000001");
        check(json!(1e-7), "1e-7");
        check(json!(1e21), "1e+21");
        check(json!(100), "100");
    }
}
