//! Objects reduced to their metadata, for clients that need no more.

use std::sync::LazyLock;

use kubewright_schema::encode::{write_key, write_string, write_untyped};
use kubewright_schema::{Shape, Struct, Table};
use serde_json::{Map, Value};

/// Version of `meta.k8s.io` that a client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MetaVersion {
    /// The current version, `meta.k8s.io/v1`.
    #[default]
    V1,
    /// `v1beta1`, with the same content.
    V1Beta1,
}

impl MetaVersion {
    /// The `apiVersion` of documents of this version.
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What a list says about itself. Empty fields are left out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ListMetadata<'a> {
    /// Revision the list was read at.
    pub(crate) resource_version: &'a str,
    /// Where the next page starts.
    pub(crate) continue_token: &'a str,
    /// How many objects the following pages hold.
    pub(crate) remaining_item_count: Option<i64>,
}

/// A `PartialObjectMetadata` document: the metadata of an object and nothing else.
pub(crate) fn partial_metadata(object: &Value, version: MetaVersion) -> Vec<u8> {
    let mut out = Vec::new();
    append_partial(&mut out, object, version);
    out
}

/// The same of an object of a built-in kind as it is stored, whose metadata is in the order of the wire already: it is
/// found and copied, not read.
pub(crate) fn metadata_of_bytes(
    body: &[u8],
    version: MetaVersion,
) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(serde::Deserialize)]
    struct Whole<'a> {
        #[serde(borrow)]
        metadata: &'a serde_json::value::RawValue,
    }
    let metadata = serde_json::from_slice::<Whole<'_>>(body)?.metadata.get();
    let mut out = Vec::with_capacity(metadata.len() + 96);
    append_start(&mut out, "PartialObjectMetadata", version);
    out.extend_from_slice(metadata.as_bytes());
    out.push(b'}');
    Ok(out)
}

/// A `PartialObjectMetadataList` that is written object by object.
#[derive(Debug)]
pub(crate) struct PartialList {
    out: Vec<u8>,
    version: MetaVersion,
    is_empty: bool,
}

impl PartialList {
    /// Starts the list.
    pub(crate) fn new(metadata: &ListMetadata<'_>, version: MetaVersion) -> Self {
        let mut out = Vec::new();
        append_start(&mut out, "PartialObjectMetadataList", version);
        append_list_metadata(&mut out, metadata);
        out.extend_from_slice(b",\"items\":");
        Self {
            out,
            version,
            is_empty: true,
        }
    }

    /// Adds an object.
    pub(crate) fn item(&mut self, object: &Value) {
        self.out.push(if self.is_empty { b'[' } else { b',' });
        self.is_empty = false;
        append_partial(&mut self.out, object, self.version);
    }

    /// The whole document. A list without items has `null` for them, as the real server sends it.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let end: &[u8] = if self.is_empty { b"null}" } else { b"]}" };
        self.out.extend_from_slice(end);
        self.out
    }
}

/// Appends `{"kind":…,"apiVersion":…,"metadata":`.
pub(super) fn append_start(out: &mut Vec<u8>, kind: &str, version: MetaVersion) {
    out.extend_from_slice(b"{\"kind\":");
    write_string(kind, out);
    out.extend_from_slice(b",\"apiVersion\":");
    write_string(version.api_version(), out);
    out.extend_from_slice(b",\"metadata\":");
}

/// Appends the metadata of a list.
pub(super) fn append_list_metadata(out: &mut Vec<u8>, metadata: &ListMetadata<'_>) {
    let mut fields = Fields::new(out);
    if !metadata.resource_version.is_empty() {
        write_string(metadata.resource_version, fields.key("resourceVersion"));
    }
    if !metadata.continue_token.is_empty() {
        write_string(metadata.continue_token, fields.key("continue"));
    }
    if let Some(count) = metadata.remaining_item_count {
        write_untyped(&count.into(), fields.key("remainingItemCount"));
    }
    fields.finish();
}

/// Appends the metadata document of one object.
pub(super) fn append_partial(out: &mut Vec<u8>, object: &Value, version: MetaVersion) {
    append_start(out, "PartialObjectMetadata", version);
    match object.get("metadata").and_then(Value::as_object) {
        Some(metadata) => append_struct(out, metadata, *OBJECT_META),
        None => out.extend_from_slice(b"{}"),
    }
    out.push(b'}');
}

static OBJECT_META: LazyLock<&Struct> = LazyLock::new(|| {
    let table = Table::builtin();
    let ty = table.named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    match ty.map(|ty| &table.get(ty).shape) {
        Some(Shape::Struct(fields)) => fields,
        _ => panic!("the built-in types have the metadata of objects"),
    }
});

/// Appends the fields that are set, in the order of the wire.
fn append_struct(out: &mut Vec<u8>, map: &Map<String, Value>, ty: &Struct) {
    let table = Table::builtin();
    let mut fields = Fields::new(out);
    for field in ty.fields() {
        let name = &*field.name;
        let Some(value) = map.get(name).filter(|value| is_set(name, value)) else {
            continue;
        };
        let out = fields.key(name);
        match (&table.get(field.ty).shape, value) {
            (Shape::List(list), Value::Array(items)) => match &table.get(list.item).shape {
                Shape::Struct(item) => append_structs(out, items, item),
                _ => write_untyped(value, out),
            },
            _ => write_untyped(value, out),
        }
    }
    fields.finish();
}

fn append_structs(out: &mut Vec<u8>, items: &[Value], ty: &Struct) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match item.as_object() {
            Some(item) => append_struct(out, item, ty),
            None => write_untyped(item, out),
        }
    }
    out.push(b']');
}

/// Whether a field is written: empty ones are not, unless empty means something.
fn is_set(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Number(number) => name != "generation" || number.as_i64() != Some(0),
        // An owner reference without these is invalid, and then it shows.
        Value::String(text) => !text.is_empty() || matches!(name, "apiVersion" | "kind"),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty() || name == "fieldsV1",
        Value::Bool(_) => true,
    }
}

/// Writes the members of one JSON object.
struct Fields<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Fields<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self {
            out,
            is_empty: true,
        }
    }

    /// Appends a key and hands out the place for its value.
    fn key(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        write_key(name, self.out);
        self.out
    }

    fn finish(self) {
        self.out.push(b'}');
    }
}
