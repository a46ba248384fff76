//! One version of one object: the bytes that are served and what is needed to select it.

use std::sync::Arc;

use bytes::Bytes;

use super::event::Delivery;
use super::pairs::Pairs;

/// Longest key: a namespace, a slash and a name are at most 317 bytes; RBAC names may be longer.
const MAX_KEY: usize = 4096;
/// Largest body. Request limits lie far below; this one keeps offsets in 32 bits and the log's records readable.
pub(super) const MAX_BODY: usize = 32 << 20;
/// Most text in labels or selectable fields, which are parts of the body.
const MAX_PAIRS: usize = 4 << 20;
/// Longest uid: ours have 36 bytes, and imported ones may be anything.
const MAX_UID: usize = 1024;

/// Why a key or a draft cannot be stored; a mistake of the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unfit(pub(super) &'static str);

/// One version of one object. Immutable; shared by the collection, its history and everybody who reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub(super) key: Arc<str>,
    pub(super) uid: Box<str>,
    pub(super) revision: u64,
    pub(super) create_revision: u64,
    pub(super) labels: Pairs,
    pub(super) fields: Pairs,
    /// A slice of the watch frame that announced it, so that frame and body are one allocation.
    pub(super) body: Bytes,
    /// Where in `body` the digits of the revision begin; how many there are follows from `revision`.
    pub(super) version_at: u32,
}

/// A new version of an object, complete but for its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The object's `metadata.uid`. An update must carry the uid of what it updates.
    pub uid: Box<str>,
    /// The object's `metadata.labels`, which label selectors match.
    pub labels: Pairs,
    /// Values of the fields that field selectors can name. The names are the caller's own: short ones save memory.
    pub fields: Pairs,
    /// The object as JSON, with `"resourceVersion":""`.
    pub body: Vec<u8>,
    /// Offset in `body` between the two quotes of the empty `resourceVersion`.
    pub version_at: usize,
}

/// A draft rendered as a watch frame before the lock is taken. Only the revision's digits are missing, and room is
/// left for as many as the next revision probably has.
#[derive(Debug)]
pub(super) struct Candidate {
    uid: Box<str>,
    labels: Pairs,
    fields: Pairs,
    kind: Delivery,
    frame: Vec<u8>,
    /// In `frame`, the room for the digits.
    version_at: usize,
    digits: usize,
}

impl Record {
    /// `namespace/name`, or `name` for a cluster-scoped object.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The namespace, if the key has one.
    pub fn namespace(&self) -> Option<&str> {
        self.key.split_once('/').map(|(namespace, _)| namespace)
    }

    /// The name, without the namespace.
    pub fn name(&self) -> &str {
        self.key.split_once('/').map_or(&self.key, |(_, name)| name)
    }

    /// Returns the object's `metadata.uid`.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// The revision of this version; `metadata.resourceVersion` in the body.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The revision at which the object was created.
    pub fn create_revision(&self) -> u64 {
        self.create_revision
    }

    /// Returns the object's `metadata.labels`.
    pub fn labels(&self) -> &Pairs {
        &self.labels
    }

    /// Values of the fields that field selectors can name.
    pub fn fields(&self) -> &Pairs {
        &self.fields
    }

    /// The object as JSON, as it is served.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The body before and after the digits of the revision.
    pub(super) fn around_version(&self) -> (&[u8], &[u8]) {
        let start = self.version_at as usize;
        let end = start + digits_of(self.revision);
        (&self.body[..start], &self.body[end..])
    }

    /// A watch frame with this object's content and another revision.
    pub(super) fn frame_at(&self, kind: Delivery, revision: u64) -> Bytes {
        let (before, after) = self.around_version();
        render(kind, before, revision.to_string().as_bytes(), after).into()
    }

    /// The last state of a deleted object: the same content at the deletion's revision, and the frame it is part of.
    pub(super) fn deleted_at(&self, revision: u64) -> (Record, Bytes) {
        let frame = self.frame_at(Delivery::Deleted, revision);
        let record = Record {
            body: Delivery::Deleted.body_of(&frame),
            revision,
            ..self.clone()
        };
        (record, frame)
    }
}

impl Candidate {
    pub(super) fn new(draft: Draft, kind: Delivery, next: u64) -> Result<Self, Unfit> {
        let reason = match draft.body.get(draft.version_at.wrapping_sub(1)..) {
            _ if draft.body.len() > MAX_BODY => "the object is too large",
            _ if draft.uid.len() > MAX_UID => "the uid is too long",
            _ if draft.labels.packed_len().max(draft.fields.packed_len()) > MAX_PAIRS => {
                "the labels or fields are too large"
            }
            Some([b'"', b'"', ..]) => "",
            _ => "the offset of the resourceVersion does not lie between two quotes",
        };
        if !reason.is_empty() {
            return Err(Unfit(reason));
        }
        let (before, after) = draft.body.split_at(draft.version_at);
        let digits = digits_of(next);
        let frame = render(kind, before, &[b'0'; 20][..digits], after);
        Ok(Self {
            uid: draft.uid,
            labels: draft.labels,
            fields: draft.fields,
            kind,
            frame,
            version_at: kind.head().len() + draft.version_at,
            digits,
        })
    }

    pub(super) fn uid(&self) -> &str {
        &self.uid
    }

    /// Whether a record says the same, revision aside.
    pub(super) fn equals(&self, record: &Record) -> bool {
        let (before, after) = self.around_version();
        (before, after) == record.around_version()
    }

    /// The finished record and its watch frame.
    pub(super) fn seal(
        mut self,
        key: Arc<str>,
        revision: u64,
        created: Option<u64>,
    ) -> (Record, Bytes) {
        let digits = revision.to_string();
        if digits.len() == self.digits {
            self.frame[self.version_at..][..digits.len()].copy_from_slice(digits.as_bytes());
        } else {
            let (before, after) = self.around_version();
            self.frame = render(self.kind, before, digits.as_bytes(), after);
        }
        let frame = Bytes::from(self.frame);
        let record = Record {
            key,
            uid: self.uid,
            revision,
            create_revision: created.unwrap_or(revision),
            labels: self.labels,
            fields: self.fields,
            body: self.kind.body_of(&frame),
            version_at: u32::try_from(self.version_at - self.kind.head().len())
                .expect("a body is at most MAX_BODY long"),
        };
        (record, frame)
    }

    fn around_version(&self) -> (&[u8], &[u8]) {
        let (before, rest) = self.frame.split_at(self.version_at);
        let after = &rest[self.digits..rest.len() - Delivery::TAIL.len()];
        (&before[self.kind.head().len()..], after)
    }
}

/// Whether a key can be stored.
pub(super) fn check_key(key: &str) -> Result<(), Unfit> {
    match key.len() {
        0 => Err("the key is empty"),
        1..=MAX_KEY => Ok(()),
        _ => Err("the key is too long"),
    }
    .map_err(Unfit)
}

/// How many decimal digits a number has.
pub(super) fn digits_of(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

fn render(kind: Delivery, before: &[u8], version: &[u8], after: &[u8]) -> Vec<u8> {
    [kind.head(), before, version, after, Delivery::TAIL].concat()
}
