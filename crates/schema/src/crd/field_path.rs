//! Paths into a schema, as `selectableFields` and the `fieldPath` of expressions write them.

use super::path;
use super::schema::{AdditionalProperties, Schema};

/// Longest path we follow, in bytes.
const MAX_PATH: usize = 4096;

/// Whether `['name']` may be used besides `.name`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Brackets {
    Allowed,
    Forbidden,
}

/// Why a path does not lead into a schema, in the words of the API server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FieldPathError {
    #[error("is longer than {MAX_PATH} bytes")]
    Long,
    #[error("unexpected end of JSON path")]
    End,
    #[error("array notation is not allowed")]
    Brackets,
    #[error("expected ] but got {0}")]
    OpenBracket(String),
    #[error("expected [ or . but got: {0}")]
    Separator(String),
    #[error("expected single quoted string but got {0}")]
    Unquoted(String),
    #[error("does not refer to a valid field")]
    UnknownField,
}

/// Follows a path; gives it in its usual form, and the schema it leads to.
pub(super) fn resolve<'a>(
    text: &str,
    schema: Schema<'a>,
    brackets: Brackets,
) -> Result<(String, Schema<'a>), FieldPathError> {
    if text.len() > MAX_PATH {
        return Err(FieldPathError::Long);
    }
    let (mut at, mut schema) = (String::new(), schema);
    let mut tokens = tokens(text).into_iter();
    while let Some(token) = tokens.next() {
        let mut next = || tokens.next().ok_or(FieldPathError::End);
        let name = match token {
            "[" if brackets == Brackets::Forbidden => {
                return Err(FieldPathError::Brackets);
            }
            "[" => {
                let name = unquote(next()?)?;
                match next()? {
                    "]" => name,
                    other => return Err(FieldPathError::OpenBracket(other.to_owned())),
                }
            }
            "." => next()?.to_owned(),
            other => return Err(FieldPathError::Separator(other.to_owned())),
        };
        (at, schema) = enter(&at, schema, &name)?;
    }
    Ok((at, schema))
}

fn enter<'a>(
    at: &str,
    schema: Schema<'a>,
    name: &str,
) -> Result<(String, Schema<'a>), FieldPathError> {
    let entered = if schema.has_properties() {
        schema
            .property(name)
            .map(|schema| (path::child(at, name), schema))
    } else if let AdditionalProperties::Schema(value) = schema.additional() {
        Some((path::key(at, name), value))
    } else {
        None
    };
    entered.ok_or(FieldPathError::UnknownField)
}

/// Splits at `.`, `[` and `]`, which are tokens themselves; quoted names stay whole.
fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let bytes = rest.as_bytes();
        let end = match bytes[0] {
            b'.' | b'[' | b']' => 1,
            b'\'' => (1..bytes.len())
                .find(|i| bytes[*i] == b'\'' && bytes[i - 1] != b'\\')
                .map_or(rest.len(), |i| i + 1),
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        found.push(&rest[..end]);
        rest = &rest[end..];
    }
    found
}

fn unquote(token: &str) -> Result<String, FieldPathError> {
    let inner = token.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
    let inner = inner.ok_or_else(|| FieldPathError::Unquoted(token.to_owned()))?;
    Ok(inner.replace("\\'", "'").replace("\\\\", "\\"))
}
