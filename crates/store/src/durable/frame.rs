//! Records with a length and a checksum: the form of everything on disk.
//!
//! `length: u32 | crc32 of length and payload: u32 | payload`, integers little-endian.

use std::io::Read;

use crc32fast::Hasher;

use crate::record::MAX_BODY;

/// Bytes before a payload.
pub(super) const HEAD: usize = 8;
/// Longest payload: a body, the labels and fields taken from it, and the names.
pub(super) const MAX_PAYLOAD: usize = 4 * MAX_BODY;

/// Appends a record whose payload `write` appends.
pub(super) fn append(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; HEAD]);
    write(out);
    let payload = out.len() - start - HEAD;
    let length = u32::try_from(payload).expect("a payload is at most MAX_PAYLOAD long");
    let length = length.to_le_bytes();
    let sum = checksum(length, &out[start + HEAD..]).to_le_bytes();
    out[start..][..4].copy_from_slice(&length);
    out[start + 4..][..4].copy_from_slice(&sum);
}

fn checksum(length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}

/// The payload of the record that these bytes begin with, if it is whole.
pub(super) fn whole(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (sum, rest) = rest.split_first_chunk()?;
    let payload = rest.get(..u32::from_le_bytes(*length) as usize)?;
    let whole = payload.len() <= MAX_PAYLOAD;
    (whole && checksum(*length, payload) == u32::from_le_bytes(*sum)).then_some(payload)
}

/// Reads records one after the other.
pub(super) struct Frames<R> {
    input: R,
    /// Where the next record begins.
    offset: u64,
    /// Bytes from there to the end of the file.
    remaining: u64,
    payload: Vec<u8>,
}

/// Why the next record cannot be read.
#[derive(Debug)]
pub(super) enum FrameError {
    /// It is not whole.
    Damaged(&'static str),
    /// The file cannot be read.
    Io(std::io::Error),
}

impl<R: Read> Frames<R> {
    pub(super) fn new(input: R, length: u64) -> Self {
        Self {
            input,
            offset: 0,
            remaining: length,
            payload: Vec::new(),
        }
    }

    /// Where the next record begins. After a failure, where the record that failed begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that have not been read as whole records.
    pub(super) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The payload of the next record; none at the end of the file.
    pub(super) fn read(&mut self) -> Result<Option<&[u8]>, FrameError> {
        if self.remaining == 0 {
            return Ok(None);
        }
        if self.remaining < HEAD as u64 {
            return Err(FrameError::Damaged("the record's head is cut off"));
        }
        let (mut length, mut sum) = ([0; 4], [0; 4]);
        self.fill(|input| {
            input
                .read_exact(&mut length)
                .and_then(|()| input.read_exact(&mut sum))
        })?;
        let payload = u32::from_le_bytes(length) as usize;
        if payload > MAX_PAYLOAD {
            return Err(FrameError::Damaged("the record's length is impossible"));
        }
        // Before anything is allocated for it.
        if payload as u64 > self.remaining - HEAD as u64 {
            return Err(FrameError::Damaged("the record is cut off"));
        }
        let mut buffer = std::mem::take(&mut self.payload);
        buffer.resize(payload, 0);
        self.fill(|input| input.read_exact(&mut buffer))?;
        if checksum(length, &buffer) != u32::from_le_bytes(sum) {
            return Err(FrameError::Damaged("the record's checksum does not match"));
        }
        self.offset += (HEAD + payload) as u64;
        self.remaining -= (HEAD + payload) as u64;
        self.payload = buffer;
        Ok(Some(&self.payload))
    }

    fn fill(&mut self, read: impl FnOnce(&mut R) -> std::io::Result<()>) -> Result<(), FrameError> {
        read(&mut self.input).map_err(FrameError::Io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(bytes: &[u8]) -> (Vec<Vec<u8>>, u64, Option<&'static str>) {
        let mut frames = Frames::new(bytes, bytes.len() as u64);
        let mut payloads = Vec::new();
        loop {
            match frames.read() {
                Ok(Some(payload)) => payloads.push(payload.to_vec()),
                Ok(None) => return (payloads, frames.offset(), None),
                Err(FrameError::Damaged(why)) => return (payloads, frames.offset(), Some(why)),
                Err(FrameError::Io(e)) => panic!("{e}"),
            }
        }
    }

    #[test]
    fn records_are_read_back_and_every_flipped_bit_is_noticed() {
        let mut bytes = Vec::new();
        append(&mut bytes, |out| out.extend(b"one"));
        let first = bytes.len() as u64;
        append(&mut bytes, |_| {});
        append(&mut bytes, |out| out.extend(b"three"));
        let whole = [b"one".to_vec(), vec![], b"three".to_vec()];
        assert_eq!(read_all(&bytes), (whole.to_vec(), bytes.len() as u64, None));
        for bit in 0..8 * first as usize {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let (payloads, offset, why) = read_all(&damaged);
            assert!(
                payloads.is_empty() && offset == 0 && why.is_some(),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn zeros_are_not_a_record() {
        assert_eq!(read_all(&[0; 64]).0.len(), 0);
    }
}
