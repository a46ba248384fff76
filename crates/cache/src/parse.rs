//! Makes a cached object of JSON bytes: finds the metadata, cuts what is not wanted, copies the rest once.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::Key;
use crate::json::{self, Malformed, Member, Span, Walk};
use crate::object::{Object, Spans};
use crate::shape::{Keep, Shape};
use crate::value::Value;

/// Why bytes cannot be read as an object. One such object is reported and skipped; the rest goes on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The bytes are not a JSON object.
    #[error("not a JSON object")]
    Malformed,
    /// The metadata lacks a name.
    #[error("metadata.name is missing")]
    Unnamed,
    /// The object is too large.
    #[error("the object has {0} bytes")]
    TooLarge(usize),
    /// The transform refused the object.
    #[error("the transform refused it: {0}")]
    Transform(String),
    /// The object does not decode as the type that is asked for.
    #[error("it does not decode")]
    Decode(#[source] serde_json::Error),
}

/// The kind that items of a list leave out because the list says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TypeMeta {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

/// Objects larger than this are refused: spans are 32 bits, and no API server stores a hundredth of it.
const LARGEST: usize = 256 << 20;

impl Object {
    /// Reads an object from JSON, in the given shape.
    ///
    /// # Errors
    /// When it is no JSON object with a name, or the shape's transform or decoding refuses it.
    pub fn parse(json: &[u8], shape: &Shape) -> Result<Arc<Self>, ParseError> {
        parse(json, shape, None)
    }
}

pub(crate) fn parse(
    json: &[u8],
    shape: &Shape,
    types: Option<&TypeMeta>,
) -> Result<Arc<Object>, ParseError> {
    if json.len() > LARGEST {
        return Err(ParseError::TooLarge(json.len()));
    }
    match &shape.edit {
        None => build(json, shape, types),
        Some(edit) => {
            let mut value = serde_json::from_slice(json).map_err(|_| ParseError::Malformed)?;
            // The user's function must not end the watch of everybody else.
            catch_unwind(AssertUnwindSafe(|| edit(&mut value)))
                .unwrap_or_else(|_| Err("it panicked".to_owned()))
                .map_err(ParseError::Transform)?;
            let edited = serde_json::to_vec(&value).map_err(ParseError::Decode)?;
            build(&edited, shape, types)
        }
    }
}

/// Which object these bytes are about, and which version of it: all that is needed to remove it. Of an object that cannot be
/// read nothing else is kept, since its transform has not had its say.
pub(crate) fn identity(json: &[u8]) -> Option<Arc<Object>> {
    const KEPT: [&[u8]; 4] = [b"name", b"namespace", b"uid", b"resourceVersion"];
    if json.len() > LARGEST {
        return None;
    }
    let layout = Layout::find(json, &Shape::default()).ok()?;
    let mut layout = layout.metadata_only();
    layout
        .metadata
        .retain(|member| KEPT.contains(&&json[member.name.clone()]));
    let key = layout.key(json)?;
    let (body, spans) = layout.write(json, None);
    Some(Arc::new(Object::new(key, body, spans, Value::Identity)))
}

fn build(json: &[u8], shape: &Shape, types: Option<&TypeMeta>) -> Result<Arc<Object>, ParseError> {
    let layout = Layout::find(json, shape).map_err(|Malformed| ParseError::Malformed)?;
    if layout.name.is_empty() {
        return Err(ParseError::Unnamed);
    }
    let value = match (&shape.decode, shape.keep) {
        (Some(decode), Keep::Checked | Keep::Decoded) => {
            let whole = layout.write(json, types).0;
            let value = decode(&whole).map_err(ParseError::Decode)?;
            match shape.keep {
                Keep::Decoded => Value::Kept(value),
                _ => Value::None,
            }
        }
        _ => Value::None,
    };
    let types = types.filter(|_| !matches!(value, Value::Kept(_)));
    let layout = match value {
        Value::Kept(_) => layout.metadata_only(),
        _ => layout,
    };
    let (body, spans) = layout.write(json, types);
    // Made after the body, so that key and object, which every lookup reads together, lie together.
    let key = layout.key(json).ok_or(ParseError::Unnamed)?;
    Ok(Arc::new(Object::new(key, body, spans, value)))
}

/// What is kept of the bytes: members of the object and of its metadata, each with its name.
#[derive(Default)]
struct Layout {
    before: Vec<Member>,
    metadata: Vec<Member>,
    after: Vec<Member>,
    has_kind: bool,
    name: Span,
    namespace: Span,
}

impl Layout {
    fn find(json: &[u8], shape: &Shape) -> Result<Self, Malformed> {
        let mut layout = Self::default();
        let mut seen_metadata = false;
        let mut walk = Walk::new(json, 0..json.len(), b'{')?;
        while let Some(span) = walk.name()? {
            let name = &json[span.clone()];
            if name == b"metadata" {
                walk.inside(|member| layout.note_metadata(json, member, shape))?;
                seen_metadata = true;
                continue;
            }
            let member = Member {
                name: span,
                value: walk.value()?,
            };
            match name {
                b"kind" => layout.has_kind = true,
                _ if is_cut(&shape.top_level, name) => continue,
                _ => {}
            }
            let part = if seen_metadata {
                &mut layout.after
            } else {
                &mut layout.before
            };
            part.push(member);
        }
        if json::skip_whitespace(json, walk.position()) == json.len() {
            Ok(layout)
        } else {
            Err(Malformed)
        }
    }

    fn note_metadata(&mut self, json: &[u8], member: Member, shape: &Shape) {
        let name = &json[member.name.clone()];
        match name {
            b"name" => self.name = member.value.clone(),
            b"namespace" => self.namespace = member.value.clone(),
            _ if is_cut(&shape.metadata, name) => return,
            _ => {}
        }
        self.metadata.push(member);
    }

    fn key(&self, json: &[u8]) -> Option<Key> {
        let name = json::text(json, self.name.clone()).filter(|name| !name.is_empty())?;
        let namespace = json::text(json, self.namespace.clone()).unwrap_or_default();
        Some(Key::new(&namespace, &name))
    }

    fn metadata_only(self) -> Self {
        Self {
            metadata: self.metadata,
            has_kind: true,
            name: self.name,
            namespace: self.namespace,
            ..Self::default()
        }
    }

    /// Writes what is kept into one allocation of exactly the right size: counts first, then copies.
    fn write(&self, json: &[u8], types: Option<&TypeMeta>) -> (Box<[u8]>, Spans) {
        let mut size = 0_usize;
        self.write_to(&mut size, json, types);
        let mut bytes = Vec::with_capacity(size);
        let spans = self.write_to(&mut bytes, json, types);
        (bytes.into_boxed_slice(), spans)
    }

    fn write_to(&self, out: &mut impl Sink, json: &[u8], types: Option<&TypeMeta>) -> Spans {
        let mut spans = Spans::default();
        let mut separator: &'static [u8] = b"{";
        if let Some(types) = types.filter(|_| !self.has_kind) {
            out.put(b"{\"apiVersion\":\"");
            out.put(types.api_version.as_bytes());
            out.put(b"\",\"kind\":\"");
            out.put(types.kind.as_bytes());
            out.put(b"\"");
            separator = b",";
        }
        for member in &self.before {
            put_member(out, json, member, &mut separator);
        }
        out.put(separator);
        out.put(b"\"metadata\":");
        separator = b"{";
        for member in &self.metadata {
            let at = put_member(out, json, member, &mut separator);
            note(&mut spans, &json[member.name.clone()], at);
        }
        out.put(if self.metadata.is_empty() {
            b"{}"
        } else {
            b"}"
        });
        separator = b",";
        for member in &self.after {
            put_member(out, json, member, &mut separator);
        }
        out.put(b"}");
        spans
    }
}

/// Takes bytes, or counts them.
trait Sink {
    fn put(&mut self, bytes: &[u8]);
    fn length(&self) -> usize;
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn length(&self) -> usize {
        self.len()
    }
}

impl Sink for usize {
    fn put(&mut self, bytes: &[u8]) {
        *self += bytes.len();
    }

    fn length(&self) -> usize {
        *self
    }
}

/// Writes one member and says where its value went.
fn put_member(
    out: &mut impl Sink,
    json: &[u8],
    member: &Member,
    separator: &mut &'static [u8],
) -> Range<u32> {
    out.put(separator);
    *separator = b",";
    out.put(b"\"");
    out.put(&json[member.name.clone()]);
    out.put(b"\":");
    let start = out.length();
    out.put(&json[member.value.clone()]);
    // No object is larger than `LARGEST`, which fits.
    start as u32..out.length() as u32
}

fn note(spans: &mut Spans, name: &[u8], at: Range<u32>) {
    match name {
        b"resourceVersion" => spans.resource_version = at,
        b"uid" => spans.uid = at,
        b"generation" => spans.generation = at,
        b"labels" => spans.labels = at,
        b"annotations" => spans.annotations = at,
        b"ownerReferences" => spans.owner_references = at,
        b"deletionTimestamp" => spans.deletion_timestamp = at,
        _ => {}
    }
}

fn is_cut(fields: &[String], name: &[u8]) -> bool {
    fields.iter().any(|field| field.as_bytes() == name)
}

#[cfg(test)]
mod tests;
