//! The answers of an API server in each format that clients ask for: lists, watch events, bookmarks, the end of a watch.

use anyhow::{Context as _, Result};
use kubewright_schema::Table;
use kubewright_schema::protobuf::{self, Envelope};
use serde_json::{Value, json};

use super::kind::Kind;
use super::template::{FIRST_VERSION, Template};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// How objects are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Protobuf,
}

/// How much of an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    Metadata,
}

/// One way to write the objects of a kind.
#[derive(Debug)]
pub(crate) struct Rendering {
    kind: Kind,
    format: Format,
    extent: Extent,
    /// An item of a list.
    pub(crate) item: Template,
    /// What stands before each item but, in JSON, the first.
    pub(crate) before_item: Vec<u8>,
    pub(crate) added: Template,
    pub(crate) modified: Template,
}

/// A list, but for its items.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) head: Vec<u8>,
    pub(crate) tail: &'static [u8],
}

impl Rendering {
    /// All ways to write the objects of a kind.
    pub(crate) fn all(kind: Kind) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        let formats: &[Format] = match kind {
            Kind::Pod => &[Format::Json, Format::Protobuf],
            Kind::Foo => &[Format::Json],
        };
        for &format in formats {
            for extent in [Extent::Whole, Extent::Metadata] {
                all.push(Self::new(kind, format, extent)?);
            }
        }
        Ok(all)
    }

    fn new(kind: Kind, format: Format, extent: Extent) -> Result<Self> {
        let mut object: Value = serde_json::from_str(kind.first())?;
        if extent == Extent::Metadata {
            object = json!({"metadata": object["metadata"].take()});
        }
        let (api_version, name) = type_of(kind, extent);
        object["apiVersion"] = api_version.into();
        object["kind"] = name.into();
        let bytes = encode(format, extent, &object)?;
        let item = item(format, &bytes, object)?;
        let before_item = match format {
            Format::Json => b",".to_vec(),
            Format::Protobuf => {
                let mut tag = vec![0x12];
                varint(item.len() as u64, &mut tag);
                tag
            }
        };
        Ok(Self {
            kind,
            format,
            extent,
            item: Template::new(item),
            before_item,
            added: Template::new(event(format, "ADDED", &bytes)),
            modified: Template::new(event(format, "MODIFIED", &bytes)),
        })
    }

    /// Whether this is what an `Accept` header asks for in the first place.
    pub(crate) fn suits(&self, accept: &str) -> bool {
        let first = accept.split(',').next().unwrap_or_default();
        first.contains(PROTOBUF) == (self.format == Format::Protobuf)
            && first.contains("as=PartialObjectMetadata") == (self.extent == Extent::Metadata)
    }

    pub(crate) fn content_type(&self, streaming: Streaming) -> String {
        match (self.format, streaming) {
            (Format::Json, _) => "application/json".to_owned(),
            (Format::Protobuf, Streaming::No) => PROTOBUF.to_owned(),
            (Format::Protobuf, Streaming::Yes) => format!("{PROTOBUF};stream=watch"),
        }
    }

    /// What stands around the items of a list.
    pub(crate) fn list(&self, items: usize, version: u64, token: &str) -> Frame {
        let version = (FIRST_VERSION + version).to_string();
        let (api_version, kind) = type_of(self.kind, self.extent);
        match self.format {
            Format::Json => Frame {
                head: format!(
                    r#"{{"kind":"{kind}List","apiVersion":"{api_version}","metadata":{{"resourceVersion":"{version}","continue":"{token}"}},"items":["#
                )
                .into_bytes(),
                tail: b"]}\n",
            },
            Format::Protobuf => {
                let mut metadata = Vec::new();
                field(2, version.as_bytes(), &mut metadata);
                field(3, token.as_bytes(), &mut metadata);
                let mut start = Vec::new();
                field(1, &metadata, &mut start);
                let length = start.len() + items * (self.before_item.len() + self.item.len());
                let mut types = Vec::new();
                field(1, api_version.as_bytes(), &mut types);
                field(2, format!("{kind}List").as_bytes(), &mut types);
                let mut head = protobuf::MAGIC.to_vec();
                field(1, &types, &mut head);
                head.push(0x12);
                varint(length as u64, &mut head);
                head.extend_from_slice(&start);
                Frame { head, tail: b"" }
            }
        }
    }

    /// The bookmark after the initial events.
    pub(crate) fn initial_end(&self, version: u64) -> Result<Vec<u8>> {
        let (api_version, kind) = type_of(self.kind, self.extent);
        let object = json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {
                "resourceVersion": (FIRST_VERSION + version).to_string(),
                "creationTimestamp": null,
                "annotations": {"k8s.io/initial-events-end": "true"},
            },
        });
        let object = encode(self.format, self.extent, &object)?;
        Ok(event(self.format, "BOOKMARK", &object))
    }

    /// The event that ends a watch whose version is too old.
    pub(crate) fn expired(&self) -> Result<Vec<u8>> {
        let status = json!({
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "message": "The resourceVersion for the provided watch is too old.",
            "reason": "Expired",
            "code": 410,
        });
        let status = encode(self.format, Extent::Whole, &status)?;
        Ok(event(self.format, "ERROR", &status))
    }
}

/// Whether an answer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streaming {
    Yes,
    No,
}

fn type_of(kind: Kind, extent: Extent) -> (&'static str, &'static str) {
    match extent {
        Extent::Whole => kind.type_meta(),
        Extent::Metadata => ("meta.k8s.io/v1", "PartialObjectMetadata"),
    }
}

fn encode(format: Format, extent: Extent, object: &Value) -> Result<Vec<u8>> {
    let kind = object["kind"].as_str().unwrap_or_default();
    match (format, extent) {
        (Format::Json, _) => Ok(serde_json::to_vec(object)?),
        (Format::Protobuf, Extent::Metadata) => Ok(protobuf::encode_partial(object)),
        (Format::Protobuf, Extent::Whole) => {
            let table = Table::builtin();
            let ty = table
                .kind("", "v1", kind)
                .with_context(|| format!("there is no type {kind}"))?;
            Ok(protobuf::encode(table, ty, object))
        }
    }
}

/// An item of a list: without its type in JSON, without its envelope in protobuf.
fn item(format: Format, bytes: &[u8], mut object: Value) -> Result<Vec<u8>> {
    match format {
        Format::Protobuf => Ok(Envelope::parse(bytes)?.raw.to_vec()),
        Format::Json => {
            if let Value::Object(members) = &mut object {
                members.retain(|name, _| name != "apiVersion" && name != "kind");
            }
            Ok(serde_json::to_vec(&object)?)
        }
    }
}

fn event(format: Format, kind: &str, object: &[u8]) -> Vec<u8> {
    match format {
        Format::Protobuf => protobuf::watch_frame(kind, object),
        Format::Json => {
            let mut line = format!(r#"{{"type":"{kind}","object":"#).into_bytes();
            line.extend_from_slice(object);
            line.extend_from_slice(b"}\n");
            line
        }
    }
}

fn field(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(number << 3 | 2);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
