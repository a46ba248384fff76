//! What stands around every object: a prefix and `runtime.Unknown`, which names the type of the message inside.

use super::ProtobufError;
use super::wire::{Fields, Payload, put_bytes, put_message};

/// The first bytes of every object.
pub const MAGIC: [u8; 4] = *b"k8s\0";

const TYPE_META: u32 = 1;
const RAW: u32 = 2;
const CONTENT_ENCODING: u32 = 3;
const CONTENT_TYPE: u32 = 4;
const API_VERSION: u32 = 1;
const KIND: u32 = 2;

/// An object's type, and its message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Empty when the client did not say.
    pub api_version: String,
    /// Empty when the client did not say.
    pub kind: String,
    /// The bytes of the message inside the envelope.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Opens an envelope.
    ///
    /// # Errors
    /// When the bytes are not an envelope. The message inside is not looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ProtobufError> {
        if bytes.is_empty() {
            return Err(ProtobufError::Empty);
        }
        let body = bytes.strip_prefix(&MAGIC).ok_or(ProtobufError::NoPrefix)?;
        if body.is_empty() {
            return Err(ProtobufError::EmptyBody);
        }
        let mut envelope = Self::default();
        let mut fields = Fields::new(body);
        while let Some((number, payload)) = fields.next()? {
            match (number, payload) {
                (TYPE_META, Payload::Bytes(bytes)) => envelope.read_type(bytes)?,
                (RAW, Payload::Bytes(bytes)) => envelope.raw = bytes,
                (TYPE_META | RAW | CONTENT_ENCODING | CONTENT_TYPE, payload) => {
                    expect_bytes(number, payload)?;
                }
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &[u8]) -> Result<(), ProtobufError> {
        let mut fields = Fields::new(bytes);
        while let Some((number, payload)) = fields.next()? {
            match (number, payload) {
                (API_VERSION, Payload::Bytes(bytes)) => self.api_version = text(bytes),
                (KIND, Payload::Bytes(bytes)) => self.kind = text(bytes),
                _ => {}
            }
        }
        Ok(())
    }
}

fn expect_bytes(number: u32, payload: Payload<'_>) -> Result<(), ProtobufError> {
    let field = match (number, payload) {
        (_, Payload::Bytes(_)) => return Ok(()),
        (TYPE_META, _) => "TypeMeta",
        (RAW, _) => "Raw",
        (CONTENT_ENCODING, _) => "ContentEncoding",
        _ => "ContentType",
    };
    Err(ProtobufError::WrongWireType {
        wire_type: payload.wire_type(),
        field: field.to_owned(),
    })
}

/// Text as Go shows it in JSON: what is not UTF-8 is replaced.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An object of a type, whose message `write` appends.
pub(super) fn wrap(api_version: &str, kind: &str, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(&MAGIC);
    put_message(TYPE_META, &mut out, |out| {
        put_bytes(API_VERSION, api_version.as_bytes(), out);
        put_bytes(KIND, kind.as_bytes(), out);
    });
    put_message(RAW, &mut out, write);
    put_bytes(CONTENT_ENCODING, b"", &mut out);
    put_bytes(CONTENT_TYPE, b"", &mut out);
    out
}
