//! Decoding: bytes of a request become JSON values, untyped ([`parse`]) or checked against a type ([`decode`]).
//!
//! Both keep Go's behaviour where clients can see it: the last of several equal keys wins and the others are
//! reported, unknown fields are dropped and reported, `null` means absent, and errors use the words of Go's decoder.
//! Nesting is limited to [`MAX_DEPTH`] levels, so that no later walk over a value has to fear for its stack.

mod conform;
mod context;
mod repeated;
mod scalar;
mod syntax;
mod time;
mod typed;
mod untyped;
mod yaml;

use std::fmt;

use serde::de::DeserializeSeed;
use serde_json::Value;

use crate::types::{Table, TypeId};
pub use conform::conform;
use context::Context;
pub use repeated::{RepeatedKey, repeated_keys};
pub(crate) use scalar::zero;
use typed::TypedSeed;
use untyped::UntypedSeed;

/// How deep objects and arrays may be nested: as deep as the JSON parser goes, so that what is taken in one form can be
/// read in all.
pub const MAX_DEPTH: usize = 127;

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON, exactly one value.
    Json,
    /// YAML, exactly one document.
    Yaml,
}

/// A document without a type.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The value; of several equal keys, the last.
    pub value: Value,
    /// Paths of keys that stand more than once in their object, such as `spec.num`, in document order.
    pub duplicates: Vec<String>,
}

/// A document that has been checked against a type.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The value, with known fields only and without nulls.
    pub value: Value,
    /// What strict field validation complains about, in document order, without repetitions, at most 100.
    pub strict: Vec<StrictError>,
}

/// Something that is wrong in strict field validation, and a warning otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StrictError {
    /// A field that the type does not have, by its path.
    Unknown(String),
    /// A key that stands more than once, by its path.
    Duplicate(String),
}

/// The document is not well-formed, or larger in shape than allowed. `Display` uses the words of Go's parsers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    message: String,
}

/// Why a document cannot be decoded as a type. `Display` uses the words of Go's decoder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The document is not well-formed.
    #[error("{0}")]
    Parse(ParseError),
    /// A value does not fit the type of its field.
    #[error("{0}")]
    Type(String),
    /// A value of one JSON type stands where Go has a type that is made of another.
    #[error("{0}")]
    Mismatch(Mismatch),
}

/// A value of the wrong JSON type. `Display` uses the words of Go's decoder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("json: cannot unmarshal {found} into Go {place} of type {wanted}")]
pub struct Mismatch {
    /// What stands there: `string`, `number 1.5`.
    found: String,
    /// `struct field ConfigMap.data`
    place: String,
    /// The Go type of the place: `map[string]string`.
    wanted: String,
}

impl fmt::Display for StrictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StrictError::Unknown(path) => write!(f, "unknown field {path:?}"),
            StrictError::Duplicate(path) => write!(f, "duplicate field {path:?}"),
        }
    }
}

impl DecodeError {
    /// Whether the document is not even well-formed.
    pub fn is_parse(&self) -> bool {
        matches!(self, DecodeError::Parse(_))
    }

    /// What is wrong in the words of Go's converter, which makes objects of the results of strategic merge patches
    /// (`runtime/converter.go: fromUnstructured`).
    pub fn in_words_of_converter(&self) -> String {
        match self {
            DecodeError::Mismatch(mismatch) => mismatch.in_words_of_converter(),
            DecodeError::Parse(_) | DecodeError::Type(_) => self.to_string(),
        }
    }
}

impl Mismatch {
    fn in_words_of_converter(&self) -> String {
        let number = self.found.strip_prefix("number").map(str::trim);
        let found = match (self.found.as_str(), number) {
            (_, Some(digits)) if digits.contains(['.', 'e', 'E']) => "float64",
            (_, Some(_)) => "int64",
            ("array", _) => "slice",
            ("object", _) => "map",
            (other, _) => other,
        };
        match self.wanted.as_str() {
            wanted if wanted.starts_with("map[") => format!("cannot restore map from {found}"),
            wanted if wanted.starts_with("[]") => format!("cannot restore slice from {found}"),
            wanted if wanted.contains('.') => format!("cannot restore struct from: {found}"),
            "string" if found == "int64" => "cannot convert int64 to string".to_owned(),
            wanted if number.is_some() && wanted != "string" && wanted != "bool" => {
                format!("cannot convert {found} to {wanted}")
            }
            wanted => format!("unrecognized type: {wanted}"),
        }
    }
}

impl ParseError {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

/// Parses one document without a type.
///
/// Integers beyond 64 bits become floating-point numbers, as they do in Go; numbers beyond those are an error.
///
/// # Errors
/// When the document is not well-formed, is followed by anything, is nested too deeply, or repeats itself too much
/// by YAML aliases.
pub fn parse(bytes: &[u8], format: Format) -> Result<Parsed, ParseError> {
    if format == Format::Yaml
        && looks_like_json(bytes)
        && let Ok(parsed) = parse(bytes, Format::Json)
    {
        return Ok(parsed);
    }
    let empty = Table::new();
    let mut context = Context::new(&empty);
    let seed = UntypedSeed::strict(&mut context);
    let value = run(seed, bytes, format)?;
    let duplicates = context
        .into_strict()
        .into_iter()
        .map(|error| match error {
            StrictError::Duplicate(path) | StrictError::Unknown(path) => path,
        })
        .collect();
    Ok(Parsed { value, duplicates })
}

/// Decodes one document as a type of a table.
///
/// # Errors
/// When the document is not well-formed (see [`parse`]) or a value does not fit its type. A malformed document is
/// reported as such even when a value before the damage does not fit.
pub fn decode(
    table: &Table,
    ty: TypeId,
    bytes: &[u8],
    format: Format,
) -> Result<Decoded, DecodeError> {
    if format == Format::Yaml && looks_like_json(bytes) {
        let decoded = decode(table, ty, bytes, Format::Json);
        if !decoded.as_ref().is_err_and(DecodeError::is_parse) {
            return decoded;
        }
    }
    let mut context = Context::new(table);
    let seed = TypedSeed::root(&mut context, ty);
    let value = run(seed, bytes, format).map_err(DecodeError::Parse)?;
    let strict = context.finish()?;
    Ok(Decoded {
        value: value.unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        strict,
    })
}

/// Feeds a document to a seed and makes sure that nothing follows it.
fn run<'de, S>(seed: S, bytes: &'de [u8], format: Format) -> Result<S::Value, ParseError>
where
    S: DeserializeSeed<'de> + Send,
    S::Value: Send,
{
    match format {
        Format::Json => {
            let mut json = serde_json::Deserializer::from_slice(bytes);
            let value = seed.deserialize(&mut json);
            value
                .and_then(|value| json.end().map(|()| value))
                .map_err(|error| syntax::in_go_words(&error, bytes))
        }
        Format::Yaml => yaml::run(seed, bytes),
    }
}

/// Clients send JSON as YAML, which it is; reading it as JSON is many times faster.
fn looks_like_json(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"{")
}

#[cfg(test)]
mod tests;
