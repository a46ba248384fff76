//! What the records on disk say.

use std::sync::Arc;

use bytes::Bytes;

use super::frame::{self, HEAD};
use super::watermark::Mark;
use crate::event::{Change, Event};
use crate::pairs::Pairs;
use crate::record::{Record, digits_of};

/// The format that this code writes and reads.
const FORMAT: u32 = 1;

/// One record on disk.
#[derive(Debug, PartialEq)]
pub(super) enum Entry<'a> {
    /// First in a log segment.
    Segment { sequence: u64, reserved: u64 },
    /// Second in a log segment: how long the segment before it was.
    Previous { length: u64 },
    /// First in an image: everything up to `revision`; what came later is in the log from `first_segment` on.
    Image { revision: u64, first_segment: u64 },
    /// An object has this version.
    Put { collection: &'a str, record: Record },
    /// An object is gone.
    Delete {
        collection: &'a str,
        key: &'a str,
        revision: u64,
    },
    /// Revisions up to this one may have been handed out.
    Reserve { up_to: u64 },
    /// Last in a log that was closed: no revision above this one was handed out.
    Close { revision: u64 },
    /// Last in an image, with the number of objects.
    End { objects: u64 },
    /// All of a watermark.
    Watermark(Mark),
}

const SEGMENT: u8 = 1;
const IMAGE: u8 = 2;
const PUT: u8 = 3;
const DELETE: u8 = 4;
const RESERVE: u8 = 5;
const CLOSE: u8 = 6;
const END: u8 = 7;
const WATERMARK: u8 = 8;
const PREVIOUS: u8 = 9;

pub(super) fn append_segment(out: &mut Vec<u8>, sequence: u64, reserved: u64) {
    append_numbers(out, SEGMENT, Some(FORMAT), &[sequence, reserved]);
}

pub(super) fn append_previous(out: &mut Vec<u8>, length: u64) {
    append_numbers(out, PREVIOUS, None, &[length]);
}

pub(super) fn append_image(out: &mut Vec<u8>, revision: u64, first_segment: u64) {
    append_numbers(out, IMAGE, Some(FORMAT), &[revision, first_segment]);
}

pub(super) fn append_reserve(out: &mut Vec<u8>, up_to: u64) {
    append_numbers(out, RESERVE, None, &[up_to]);
}

pub(super) fn append_close(out: &mut Vec<u8>, revision: u64) {
    append_numbers(out, CLOSE, None, &[revision]);
}

pub(super) fn append_end(out: &mut Vec<u8>, objects: u64) {
    append_numbers(out, END, None, &[objects]);
}

pub(super) fn append_watermark(out: &mut Vec<u8>, mark: &Mark) {
    let numbers = [mark.sequence, mark.length, mark.reserved];
    append_numbers(out, WATERMARK, Some(FORMAT), &numbers);
}

fn append_numbers(out: &mut Vec<u8>, kind: u8, format: Option<u32>, numbers: &[u64]) {
    frame::append(out, |out| {
        out.push(kind);
        out.extend(format.into_iter().flat_map(u32::to_le_bytes));
        out.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
    });
}

pub(super) fn append_event(out: &mut Vec<u8>, collection: &str, event: &Event) {
    match event.change() {
        Change::Created | Change::Updated { .. } => append_put(out, collection, event.record()),
        Change::Deleted { .. } => frame::append(out, |out| {
            out.push(DELETE);
            append_bytes(out, collection.as_bytes());
            append_bytes(out, event.record().key().as_bytes());
            out.extend(event.revision().to_le_bytes());
        }),
    }
}

pub(super) fn append_put(out: &mut Vec<u8>, collection: &str, record: &Record) {
    frame::append(out, |out| {
        out.push(PUT);
        append_bytes(out, collection.as_bytes());
        append_bytes(out, record.key.as_bytes());
        append_bytes(out, record.uid.as_bytes());
        out.extend(record.revision.to_le_bytes());
        out.extend(record.create_revision.to_le_bytes());
        append_pairs(out, &record.labels);
        append_pairs(out, &record.fields);
        out.extend(record.version_at.to_le_bytes());
        append_bytes(out, &record.body);
    });
}

fn append_pairs(out: &mut Vec<u8>, pairs: &Pairs) {
    append_length(out, pairs.len());
    for (key, value) in pairs.iter() {
        append_bytes(out, key.as_bytes());
        append_bytes(out, value.as_bytes());
    }
}

fn append_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    append_length(out, bytes.len());
    out.extend(bytes);
}

fn append_length(out: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).expect("parts of a payload are at most MAX_PAYLOAD long");
    out.extend(length.to_le_bytes());
}

impl<'a> Entry<'a> {
    /// Reads a payload whose checksum was right, which does not mean that this code wrote it.
    pub(super) fn decode(payload: &'a [u8]) -> Result<Self, &'static str> {
        let (kind, rest) = payload.split_first().ok_or("the record is empty")?;
        let mut parts = Parts(rest);
        if matches!(*kind, SEGMENT | IMAGE | WATERMARK) && parts.u32() != Some(FORMAT) {
            return Err("the file's format is not known");
        }
        let entry = parts.entry(*kind).ok_or("the record makes no sense")?;
        match parts.0 {
            [] => Ok(entry),
            _ => Err("the record is longer than what it says"),
        }
    }
}

/// Where the first whole record at or after `from` begins. Bytes of a body cannot be taken for one: a record begins
/// with a length whose last byte is a control character, which JSON does not contain.
pub(super) fn next_whole(bytes: &[u8], from: usize) -> Option<usize> {
    // The kind is looked at before a checksum is computed, so that this is quick even where every length is possible.
    let begins = |at: &usize| {
        let rest = &bytes[*at..];
        let known = |kind: &u8| (SEGMENT..=PREVIOUS).contains(kind);
        rest.get(HEAD).is_some_and(known)
            && frame::whole(rest).is_some_and(|payload| Entry::decode(payload).is_ok())
    };
    (from..bytes.len()).find(begins)
}

/// What is left of a payload.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn entry(&mut self, kind: u8) -> Option<Entry<'a>> {
        Some(match kind {
            SEGMENT => Entry::Segment {
                sequence: self.u64()?,
                reserved: self.u64()?,
            },
            IMAGE => Entry::Image {
                revision: self.u64()?,
                first_segment: self.u64()?,
            },
            PUT => Entry::Put {
                collection: self.text()?,
                record: self.record()?,
            },
            DELETE => Entry::Delete {
                collection: self.text()?,
                key: self.text()?,
                revision: self.u64()?,
            },
            PREVIOUS => Entry::Previous {
                length: self.u64()?,
            },
            RESERVE => Entry::Reserve { up_to: self.u64()? },
            CLOSE => Entry::Close {
                revision: self.u64()?,
            },
            END => Entry::End {
                objects: self.u64()?,
            },
            WATERMARK => Entry::Watermark(Mark {
                sequence: self.u64()?,
                length: self.u64()?,
                reserved: self.u64()?,
            }),
            _ => return None,
        })
    }

    fn record(&mut self) -> Option<Record> {
        let record = Record {
            key: Arc::from(self.text()?),
            uid: self.text()?.into(),
            revision: self.u64()?,
            create_revision: self.u64()?,
            labels: self.pairs()?,
            fields: self.pairs()?,
            version_at: self.u32()?,
            // A copy of its own size: a slice would keep the whole payload alive.
            body: Bytes::copy_from_slice(self.bytes()?),
        };
        let digits = record.body.get(record.version_at as usize..)?;
        let digits = digits.get(..digits_of(record.revision))?;
        (digits == record.revision.to_string().as_bytes()).then_some(record)
    }

    fn pairs(&mut self) -> Option<Pairs> {
        let count = self.u32()?;
        (0..count)
            .map(|_| Some((self.text()?, self.text()?)))
            .collect()
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn u64(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }
}
