//! The protobuf wire format: numbers, lengths and fields, without knowing what they mean.

use super::ProtobufError;

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const BYTES: u8 = 2;
const START_GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Payload<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
    /// Deprecated, and never part of a known message.
    Group,
}

impl Payload<'_> {
    /// As it is numbered on the wire.
    pub(super) fn wire_type(self) -> u8 {
        match self {
            Payload::Varint(_) => VARINT,
            Payload::Fixed64(_) => FIXED64,
            Payload::Bytes(_) => BYTES,
            Payload::Group => START_GROUP,
            Payload::Fixed32 => FIXED32,
        }
    }
}

/// Reads the fields of one message.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The next field's number and content; nothing at the end of the message.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Payload<'a>)>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = self.key()?;
        let payload = match wire_type {
            START_GROUP => {
                self.skip_group()?;
                Payload::Group
            }
            END_GROUP => return Err(ProtobufError::UnexpectedEndOfGroup),
            _ => self.payload(number, wire_type)?,
        };
        Ok(Some((number, payload)))
    }

    fn key(&mut self) -> Result<(u32, u8), ProtobufError> {
        let key = self.varint()?;
        let wire_type = (key & 7) as u8;
        match u32::try_from(key >> 3) {
            Ok(number) if number > 0 && number < 1 << 29 => Ok((number, wire_type)),
            _ => Err(ProtobufError::IllegalTag {
                number: key >> 3,
                wire_type,
            }),
        }
    }

    fn payload(&mut self, number: u32, wire_type: u8) -> Result<Payload<'a>, ProtobufError> {
        Ok(match wire_type {
            VARINT => Payload::Varint(self.varint()?),
            FIXED64 => {
                let bytes = self.take(8)?;
                let bytes = bytes.try_into().map_err(|_| ProtobufError::Truncated)?;
                Payload::Fixed64(u64::from_le_bytes(bytes))
            }
            BYTES => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| ProtobufError::Truncated)?;
                Payload::Bytes(self.take(length)?)
            }
            FIXED32 => {
                self.take(4)?;
                Payload::Fixed32
            }
            _ => {
                return Err(ProtobufError::IllegalTag {
                    number: number.into(),
                    wire_type,
                });
            }
        })
    }

    /// Skips to the end of a group that has begun. Counts groups inside rather than recursing into them.
    fn skip_group(&mut self) -> Result<(), ProtobufError> {
        let mut open = 1;
        while open > 0 {
            let (number, wire_type) = self.key()?;
            match wire_type {
                START_GROUP => open += 1,
                END_GROUP => open -= 1,
                _ => drop(self.payload(number, wire_type)?),
            }
        }
        Ok(())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, ProtobufError> {
        let (value, rest) = varint(self.rest)?;
        self.rest = rest;
        Ok(value)
    }
}

/// The number at the start of some bytes, and what follows it.
pub(super) fn varint(bytes: &[u8]) -> Result<(u64, &[u8]), ProtobufError> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().enumerate() {
        let shift = at * 7;
        if shift >= 64 {
            return Err(ProtobufError::Overflow);
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[at + 1..]));
        }
    }
    Err(ProtobufError::Truncated)
}

/// Appends a number.
pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field that is a number.
pub(crate) fn put_number(number: u32, value: u64, out: &mut Vec<u8>) {
    put_key(number, VARINT, out);
    put_varint(value, out);
}

/// Appends a field that is a floating-point number.
pub(crate) fn put_double(number: u32, value: f64, out: &mut Vec<u8>) {
    put_key(number, FIXED64, out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a field that is text or bytes.
pub(crate) fn put_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_key(number, BYTES, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a field that `write` fills with a message; returns the length of the message.
pub(crate) fn put_message(
    number: u32,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) -> usize {
    put_key(number, BYTES, out);
    let start = out.len();
    // Most messages are short: their length is one byte, and only longer ones have to move.
    out.push(0);
    write(out);
    let length = out.len() - start - 1;
    if length < 0x80 {
        out[start] = length as u8;
        return length;
    }
    let mut prefix = Vec::with_capacity(10);
    put_varint(length as u64, &mut prefix);
    out.splice(start..=start, prefix);
    length
}

fn put_key(number: u32, wire_type: u8, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | u64::from(wire_type), out);
}
