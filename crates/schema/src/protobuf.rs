//! Kubernetes protobuf: objects of built-in kinds from and to the bytes that client-go sends and reads.
//!
//! An object is a message in an [`Envelope`] that names its type. Messages are read and written by the type table:
//! the value that comes out is the one that [`decode`](crate::decode::decode) gives for the same object in JSON.
//! Custom resources have no messages; only their metadata can be written, see [`encode_partial`].
//!
//! Go writes scalars that are not pointers even when they are zero, so a zero on the wire means nothing for those
//! fields ([`Field::omit_zero`](crate::Field::omit_zero)) and is left out; elsewhere it was set and is kept.

mod envelope;
mod partial;
mod read;
mod special;
mod watch;
pub(crate) mod wire;
mod write;

use serde_json::Value;

use crate::decode::{self, DecodeError, ParseError};
use crate::types::{Shape, Table, TypeId};
pub use envelope::{Envelope, MAGIC};
pub use partial::encode_partial;
pub use watch::watch_frame;

/// Why bytes are not an object. `Display` uses the words of Go's decoder where it has some.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// There are no bytes at all.
    #[error("empty data")]
    Empty,
    /// The bytes do not start as Kubernetes protobuf does.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoPrefix,
    /// There is nothing after the prefix.
    #[error("empty body")]
    EmptyBody,
    /// A field reaches beyond the end of its message.
    #[error("unexpected EOF")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A field without a valid number or wire type.
    #[error("proto: illegal tag {number} (wire type {wire_type})")]
    IllegalTag {
        /// Number of the field.
        number: u64,
        /// Its wire type.
        wire_type: u8,
    },
    /// A group that ends without having begun.
    #[error("proto: unexpected end of group")]
    UnexpectedEndOfGroup,
    /// A field that is encoded as another type.
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WrongWireType {
        /// The wire type that was found.
        wire_type: u8,
        /// Go name of the field.
        field: String,
    },
    /// Messages are nested too deeply.
    #[error("proto: exceeded max depth")]
    TooDeep,
    /// JSON inside a message is malformed.
    #[error("{0}")]
    Json(ParseError),
    /// A value that JSON could not hold, such as a time after the year 9999.
    #[error("{0}")]
    Unrepresentable(&'static str),
    /// A value that does not fit its type, such as a malformed quantity.
    #[error("{0}")]
    Value(DecodeError),
}

impl ProtobufError {
    /// Returns whether the envelope itself cannot be read, so that not even the kind of the object is known.
    pub fn is_outside(&self) -> bool {
        matches!(
            self,
            ProtobufError::Empty | ProtobufError::NoPrefix | ProtobufError::EmptyBody
        )
    }
}

/// Reads an object with its envelope. `apiVersion` and `kind` are those of the envelope.
///
/// # Errors
/// When the bytes are malformed or hold values that the type does not allow.
pub fn decode(table: &Table, ty: TypeId, bytes: &[u8]) -> Result<Value, ProtobufError> {
    let envelope = Envelope::parse(bytes)?;
    let mut value = decode_message(table, ty, envelope.raw)?;
    if let Value::Object(map) = &mut value {
        for (field, text) in [
            ("apiVersion", envelope.api_version),
            ("kind", envelope.kind),
        ] {
            if !text.is_empty() {
                map.insert(field.to_owned(), Value::String(text));
            }
        }
    }
    Ok(value)
}

/// Reads a message that is a value of a struct type.
///
/// # Errors
/// As [`decode()`].
pub fn decode_message(table: &Table, ty: TypeId, bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut value = read::message(table, ty, bytes)?;
    // What JSON would have been refused for is refused here too, the depth of the whole value included.
    decode::conform(table, ty, &mut value).map_err(ProtobufError::Value)?;
    Ok(value)
}

/// Writes an object with its envelope, which takes `apiVersion` and `kind` from the object.
///
/// Values are expected to come from decoding; what does not fit its type is left out.
pub fn encode(table: &Table, ty: TypeId, value: &Value) -> Vec<u8> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    envelope::wrap(text("apiVersion"), text("kind"), |out| {
        write::message(table, ty, value, out);
    })
}

/// Whether objects of a type can be written as protobuf.
pub fn is_supported(table: &Table, ty: TypeId) -> bool {
    matches!(&table.get(ty).shape, Shape::Struct(s) if !s.message().is_empty())
}

#[cfg(test)]
mod tests;
