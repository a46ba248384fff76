//! OpenAPI version 2 as the protobuf that kubectl up to 1.27 and the Go discovery client read.
//!
//! The messages are those of gnostic's `openapi.v2` package. They follow the JSON closely, so a table of names and
//! field numbers is all there is to it; see `messages`.

mod messages;

use serde_json::{Map, Value};

use crate::encode;
use crate::protobuf::wire::{put_bytes, put_double, put_message, put_number};
use messages::{Content, DOCUMENT, Message};

/// Prefix of keys that extend the format.
const EXTENSION: &str = "x-";

/// Writes a version 2 document, given as JSON. What the format does not know is left out.
pub fn encode(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    if let Value::Object(map) = document {
        write_message(&DOCUMENT, map, &mut out);
    }
    out
}

fn write_message(message: &Message, map: &Map<String, Value>, out: &mut Vec<u8>) {
    for (key, value) in map {
        if let Some((_, number, content)) = message.fields.iter().find(|(name, ..)| name == key) {
            write(*number, *content, value, out);
        } else if let (true, Some(number)) = (key.starts_with(EXTENSION), message.extensions) {
            write_named(number, key, Content::Any, value, out);
        } else if let Some((number, content)) = message.rest {
            write_named(number, key, content, value, out);
        }
    }
}

/// Maps are lists of messages with a name and a value.
fn write_named(number: u32, name: &str, content: Content, value: &Value, out: &mut Vec<u8>) {
    put_message(number, out, |out| {
        put_bytes(1, name.as_bytes(), out);
        write(2, content, value, out);
    });
}

/// Writes a field; a list writes it many times.
fn write(number: u32, content: Content, value: &Value, out: &mut Vec<u8>) {
    match (content, value) {
        // Not every list of anything is a list of fields: `enum` is, the value of an extension is not.
        (Content::Each(inner), Value::Array(items)) => {
            items
                .iter()
                .for_each(|item| write(number, *inner, item, out));
        }
        (Content::Each(inner), value) => write(number, *inner, value, out),
        (Content::Inside(inner), value) => {
            put_message(number, out, |out| write(1, *inner, value, out));
        }
        (Content::Text, Value::String(text)) => put_bytes(number, text.as_bytes(), out),
        (Content::Flag, Value::Bool(flag)) => put_number(number, (*flag).into(), out),
        (Content::Integer, value) => {
            if let Some(integer) = value.as_i64() {
                put_number(number, integer as u64, out);
            }
        }
        (Content::Number, value) => {
            if let Some(float) = value.as_f64() {
                put_double(number, float, out);
            }
        }
        (Content::Message(message), Value::Object(map)) => {
            put_message(number, out, |out| write_message(message, map, out));
        }
        (Content::Any, value) => {
            put_message(number, out, |out| write_any(value, out));
        }
        (Content::SchemaOrFlag, value) => {
            put_message(number, out, |out| match value {
                Value::Bool(flag) => put_number(2, (*flag).into(), out),
                schema => write(1, Content::Message(&messages::SCHEMA), schema, out),
            });
        }
        (Content::Parameter, value) => {
            put_message(number, out, |out| write_parameter(value, out));
        }
        (Content::Security, value) => {
            put_message(number, out, |out| write_security(value, out));
        }
        _ => {}
    }
}

/// Anything is YAML, which JSON is.
fn write_any(value: &Value, out: &mut Vec<u8>) {
    let mut yaml = Vec::new();
    encode::write_untyped(value, &mut yaml);
    yaml.push(b'\n');
    put_bytes(2, &yaml, out);
}

/// A parameter is of one of several messages, two or three deep.
fn write_parameter(value: &Value, out: &mut Vec<u8>) {
    if value.get("$ref").is_some() {
        return write(2, Content::Message(&messages::REFERENCE), value, out);
    }
    put_message(1, out, |out| {
        let (number, message) = match value.get("in").and_then(Value::as_str) {
            Some("body") => return write(1, Content::Message(&messages::BODY), value, out),
            Some("header") => (1, &messages::HEADER_OR_PATH),
            Some("formData") => (2, &messages::FORM_OR_QUERY),
            Some("path") => (4, &messages::HEADER_OR_PATH),
            _ => (3, &messages::FORM_OR_QUERY),
        };
        put_message(2, out, |out| {
            write(number, Content::Message(message), value, out);
        });
    });
}

fn write_security(value: &Value, out: &mut Vec<u8>) {
    match value.get("type").and_then(Value::as_str) {
        Some("basic") => write(1, Content::Message(&messages::BASIC), value, out),
        Some("apiKey") => write(2, Content::Message(&messages::API_KEY), value, out),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(document: &Value, expected: &[u8]) {
        let written = encode(document);
        assert_eq!(written, expected, "{:?}", String::from_utf8_lossy(&written));
    }

    #[test]
    fn definitions_are_named_schemas() {
        let document = json!({"swagger": "2.0", "definitions": {"a.B": {
            "type": "object",
            "properties": {"c": {"$ref": "#/d"}},
            "x-e": ["f"],
        }}});
        let properties = b"\xca\x01\x0c\x0a\x0a\x0a\x01c\x12\x05\x0a\x03#/d";
        let ty = b"\xb2\x01\x08\x0a\x06object";
        let extension = b"\xfa\x01\x0f\x0a\x03x-e\x12\x08\x12\x06[\"f\"]\x0a";
        let mut expected = b"J5\x0a3\x0a\x03a.B\x12,".to_vec();
        expected.extend_from_slice(properties);
        expected.extend_from_slice(ty);
        expected.extend_from_slice(extension);
        expected.extend_from_slice(b"\x0a\x032.0");
        check(&document, &expected);
    }

    #[test]
    fn parameters_lie_in_the_message_of_their_place() {
        let path = |parameter: Value| json!({"paths": {"/a": {"parameters": [parameter]}}});
        check(
            &path(json!({"in": "query"})),
            b"B\x17\x12\x15\x0a\x02/a\x12\x0fJ\x0d\x0a\x0b\x12\x09\x1a\x07\x12\x05query",
        );
        check(
            &path(json!({"in": "body", "required": true})),
            b"B\x16\x12\x14\x0a\x02/a\x12\x0eJ\x0c\x0a\x0a\x0a\x08\x1a\x04body\x20\x01",
        );
    }

    #[test]
    fn responses_lie_one_message_deeper() {
        let document =
            json!({"paths": {"/a": {"get": {"responses": {"200": {"description": "OK"}}}}}});
        check(
            &document,
            b"B\x1b\x12\x19\x0a\x02/a\x12\x13\x12\x11J\x0f\x0a\x0d\x0a\x03200\x12\x06\x0a\x04\x0a\x02OK",
        );
    }
}
