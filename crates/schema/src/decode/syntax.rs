//! Says in the words of Go's JSON parser what is wrong with a document.

use serde_json::error::Category;

use super::{MAX_DEPTH, ParseError};

/// What our parser says, and what Go's says after naming the character.
const WORDS: [(&str, &str); 9] = [
    ("expected value", "looking for beginning of value"),
    (
        "key must be a string",
        "looking for beginning of object key string",
    ),
    ("expected `:`", "after object key"),
    ("expected `,` or `}`", "after object key:value pair"),
    ("expected `,` or `]`", "after array element"),
    ("trailing characters", "after top-level value"),
    ("invalid escape", "in string escape code"),
    ("control character", "in string literal"),
    ("invalid number", "in numeric literal"),
];

/// The error for a document that is nested too deeply.
pub(super) fn too_deep() -> ParseError {
    ParseError::new(format!("exceeded max depth of {MAX_DEPTH}"))
}

/// Translates an error of the JSON parser about a document.
pub(super) fn in_go_words(error: &serde_json::Error, document: &[u8]) -> ParseError {
    let text = error.to_string();
    if error.classify() == Category::Eof {
        return ParseError::new("unexpected end of JSON input");
    }
    if text.starts_with("recursion limit exceeded") || text.starts_with("exceeded max depth") {
        return too_deep();
    }
    let Some(found) = character(error, document) else {
        return ParseError::new(text);
    };
    if text.starts_with("trailing comma") {
        let place = match found {
            '}' => "object key string",
            _ => "value",
        };
        return ParseError::new(format!(
            "invalid character {found:?} looking for beginning of {place}"
        ));
    }
    match WORDS.iter().find(|(ours, _)| text.starts_with(ours)) {
        Some((_, words)) => ParseError::new(format!("invalid character {found:?} {words}")),
        None => ParseError::new(text),
    }
}

/// The character an error points at.
fn character(error: &serde_json::Error, document: &[u8]) -> Option<char> {
    let line = document
        .split(|byte| *byte == b'\n')
        .nth(error.line().checked_sub(1)?)?;
    let rest = line.get(error.column().checked_sub(1)?..)?;
    let rest = &rest[..rest.len().min(4)];
    match std::str::from_utf8(rest) {
        Ok(text) => text.chars().next(),
        Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()])
            .ok()?
            .chars()
            .next(),
    }
}
