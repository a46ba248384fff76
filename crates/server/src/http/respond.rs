//! Writing answers: objects in the format the client asked for, errors, and the headers all answers carry.

use std::collections::HashSet;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING};
use http::{HeaderName, Response, StatusCode};
use kubewright_schema::{Table, encode, protobuf};
use serde_json::Value;

use super::accept::{Format, PROTOBUF};
use super::body::{ResponseBody, full};
use crate::status::ApiError;

/// The type of refusals, and of some answers to a delete.
pub(crate) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// The answer to a request.
pub(crate) type Answer = Response<ResponseBody>;

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
const NO_SNIFF: HeaderName = HeaderName::from_static("x-content-type-options");

/// Most characters of all `Warning` headers together before they are cut.
const MAX_WARNINGS: usize = 4 * 1024;
/// Most characters of each warning once they are cut.
const CUT_WARNING: usize = 256;

/// Answers with an object that is compact JSON.
pub(crate) fn json(code: StatusCode, format: Format, compact: Bytes) -> Answer {
    match format {
        Format::Json => answer(code, "application/json", full(compact)),
        Format::PrettyJson => answer(code, "application/json", full(indent(&compact))),
        Format::Yaml => match yaml(&compact) {
            Ok(text) => answer(code, "application/yaml", full(text)),
            Err(error) => failure(&error, Format::Json),
        },
        Format::Protobuf => match serde_json::from_slice(&compact) {
            Ok(object) => match protobuf(&object) {
                Some(bytes) => answer(code, PROTOBUF, full(bytes)),
                None => answer(code, "application/json", full(compact)),
            },
            Err(error) => failure(&ApiError::internal(error), Format::Json),
        },
    }
}

/// An object as protobuf, if its kind is built in or its metadata is all there is.
pub(crate) fn protobuf(object: &Value) -> Option<Vec<u8>> {
    let (api_version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if group == "meta.k8s.io" && kind.starts_with("PartialObjectMetadata") {
        return Some(protobuf::encode_partial(object));
    }
    let table = Table::builtin();
    let ty = table.kind(group, version, kind)?;
    protobuf::is_supported(table, ty).then(|| protobuf::encode(table, ty, object))
}

/// Answers with a value.
pub(crate) fn value(code: StatusCode, format: Format, value: &Value) -> Answer {
    json(code, format, Bytes::from(value.to_string()))
}

/// Answers with a value of a built-in type, its fields in the type's order.
pub(crate) fn typed(code: StatusCode, format: Format, ty: &str, value: &Value) -> Answer {
    json(code, format, encode_typed(ty, value).into())
}

/// A value of a built-in type as JSON, its fields in the type's order.
pub(crate) fn encode_typed(ty: &str, value: &Value) -> Vec<u8> {
    let table = Table::builtin();
    let mut bytes = Vec::new();
    match table.named(ty) {
        Some(ty) => encode::write(table, ty, value, &mut bytes),
        None => encode::write_untyped(value, &mut bytes),
    }
    bytes
}

/// Answers with a refusal.
pub(crate) fn failure(error: &ApiError, format: Format) -> Answer {
    let mut answer = typed(error.code(), format, STATUS, &error.to_value());
    if let Some(seconds) = error.retry_after() {
        answer
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// Answers with plain text.
pub(crate) fn text(code: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = answer(code, "text/plain; charset=utf-8", full(text));
    no_sniff(&mut answer);
    answer
}

/// Tells browsers not to guess what an answer is.
pub(crate) fn no_sniff(answer: &mut Answer) {
    let value = HeaderValue::from_static("nosniff");
    answer.headers_mut().insert(NO_SNIFF, value);
}

/// The answer to a path that names nothing.
pub(crate) fn page_not_found() -> Answer {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// The answer to an HTTP/1.1 request that does not name its host, or names two: it may have been tampered with on the
/// way, so nothing more is read from the connection.
pub(crate) fn one_host_required() -> Answer {
    let text_of_it = "400 Bad Request: exactly one Host header is required\n";
    let mut answer = text(StatusCode::BAD_REQUEST, text_of_it);
    let close = HeaderValue::from_static("close");
    answer.headers_mut().insert(CONNECTION, close);
    answer
}

/// An answer of this type.
pub(crate) fn answer(code: StatusCode, content_type: &'static str, body: ResponseBody) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = code;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// Names the FlowSchema and the PriorityLevelConfiguration that a request belongs to.
pub(crate) fn name_flow(answer: &mut Answer, schema_uid: &str, level_uid: &str) {
    for (name, uid) in [(FLOW_SCHEMA, schema_uid), (PRIORITY_LEVEL, level_uid)] {
        if let Ok(uid) = HeaderValue::from_str(uid) {
            answer.headers_mut().insert(name, uid);
        }
    }
}

/// Adds what every answer carries. Whatever set `Cache-Control` before keeps it.
pub(crate) fn finish(answer: &mut Answer, audit_id: &str, warnings: &[String]) {
    let headers = answer.headers_mut();
    if let Ok(id) = HeaderValue::from_str(audit_id) {
        headers.insert(AUDIT_ID, id);
    }
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-cache, private"));
    for value in warning_headers(warnings) {
        headers.append(WARNING, value);
    }
}

/// Each warning once. Too many of them are cut, first each and then the rest, as in Kubernetes.
fn warning_headers(warnings: &[String]) -> Vec<HeaderValue> {
    let mut seen = HashSet::new();
    let distinct: Vec<&String> = warnings.iter().filter(|w| seen.insert(*w)).collect();
    let total: usize = distinct.iter().map(|w| w.chars().count()).sum();
    let cut = if total > MAX_WARNINGS {
        CUT_WARNING
    } else {
        MAX_WARNINGS
    };
    let mut left = MAX_WARNINGS;
    let mut values = Vec::new();
    for warning in distinct {
        if left == 0 {
            break;
        }
        let text: String = warning.chars().take(cut).collect();
        left = left.saturating_sub(text.chars().count());
        values.extend(warning_header(&text));
    }
    values
}

/// `299 - "text"`, the text quoted as RFC 9110 asks, without anything that cannot stand in a header.
fn warning_header(text: &str) -> Option<HeaderValue> {
    let mut quoted = String::with_capacity(text.len() + 8);
    quoted.push_str("299 - \"");
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    HeaderValue::from_bytes(quoted.as_bytes()).ok()
}

/// Indents compact JSON by two spaces without taking it apart, so that the order of fields stays.
pub(crate) fn indent(compact: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(compact.len() * 2);
    let mut depth = 0;
    let mut in_string = false;
    let mut escaped = false;
    for (i, &b) in compact.iter().enumerate() {
        if in_string {
            out.push(b);
            match b {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        let next = compact.get(i + 1).copied();
        let previous = i.checked_sub(1).map(|p| compact[p]);
        match b {
            b'{' | b'[' => {
                out.push(b);
                if !matches!(next, Some(b'}' | b']')) {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                if !matches!(previous, Some(b'{' | b'[')) {
                    depth -= 1;
                    new_line(&mut out, depth);
                }
                out.push(b);
            }
            b',' => {
                out.push(b);
                new_line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            b'\n' | b' ' => {}
            other => {
                in_string = other == b'"';
                out.push(other);
            }
        }
    }
    out
}

fn new_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + depth * 2, b' ');
}

fn yaml(compact: &[u8]) -> Result<String, ApiError> {
    let value: Value = serde_json::from_slice(compact).map_err(ApiError::internal)?;
    kubewright_schema::yaml::to_string(&value).map_err(ApiError::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indented_json_is_the_same_value_in_the_same_order() {
        let compact = br#"{"b":{},"a":[1,{"x":"a,b{\"\\"}],"e":[]}"#;
        let pretty = String::from_utf8(indent(compact)).expect("still text");
        let expected = "{\n  \"b\": {},\n  \"a\": [\n    1,\n    {\n      \"x\": \"a,b{\\\"\\\\\"\n    }\n  ],\n  \"e\": []\n}";
        assert_eq!(pretty, expected);
    }

    #[test]
    fn protobuf_is_written_for_what_has_a_message() {
        let cases = [
            ("v1", "PodList", true),
            ("v1", "Status", true),
            ("autoscaling/v1", "Scale", true),
            ("meta.k8s.io/v1", "PartialObjectMetadataList", true),
            ("meta.k8s.io/v1", "Table", false),
            ("example.com/v1", "Foo", false),
        ];
        for (api_version, kind, expected) in cases {
            let object = serde_json::json!({"apiVersion": api_version, "kind": kind});
            assert_eq!(protobuf(&object).is_some(), expected, "{kind}");
        }
    }

    #[test]
    fn warnings_are_quoted_and_cannot_break_the_header() {
        let value = warning_header("unknown field \"a\"\r\nSet-Cookie: x").expect("a header");
        assert_eq!(
            value.to_str().expect("text"),
            r#"299 - "unknown field \"a\"Set-Cookie: x""#
        );
    }
}
