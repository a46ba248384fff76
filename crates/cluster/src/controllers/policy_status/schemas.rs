//! The types of kinds, as the OpenAPI documents of the server describe them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::core::{GroupVersionKind, GroupVersionResource};
use kubewright_schema::cel::{Declaration, Form, ListKind, Object};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Schemas that are nested deeper than this are left open.
const DEEPEST: usize = 64;
/// How references begin.
const COMPONENTS: &str = "#/components/schemas/";

/// What the server says of its groups and versions, each read once.
pub(super) struct Documents<'a> {
    client: &'a kube::Client,
    resources: BTreeMap<String, Option<APIResourceList>>,
    schemas: BTreeMap<String, Option<Value>>,
}

impl<'a> Documents<'a> {
    pub(super) fn new(client: &'a kube::Client) -> Self {
        Self {
            client,
            resources: BTreeMap::new(),
            schemas: BTreeMap::new(),
        }
    }

    /// The kind of a resource, if it is served.
    pub(super) async fn kind_of(
        &mut self,
        resource: &GroupVersionResource,
    ) -> Result<Option<GroupVersionKind>, kube::Error> {
        let (group, version) = (&resource.group, &resource.version);
        let path = path(group, version);
        if !self.resources.contains_key(&path) {
            let list = read(self.client, &format!("/{path}")).await?;
            self.resources.insert(path.clone(), list);
        }
        let Some(list) = self.resources.get(&path).and_then(Option::as_ref) else {
            return Ok(None);
        };
        let mut served = list.resources.iter();
        let found = served.find(|known| known.name == resource.resource);
        Ok(found.map(|found| GroupVersionKind::gvk(group, version, &found.kind)))
    }

    /// The type of the objects of a kind, if the server describes it.
    pub(super) async fn declare(
        &mut self,
        kind: &GroupVersionKind,
    ) -> Result<Option<Arc<Declaration>>, kube::Error> {
        let path = path(&kind.group, &kind.version);
        if !self.schemas.contains_key(&path) {
            let document = read(self.client, &format!("/openapi/v3/{path}")).await?;
            self.schemas.insert(path.clone(), document);
        }
        let document = self.schemas.get(&path).and_then(Option::as_ref);
        Ok(document.and_then(|document| declare(document, kind)))
    }
}

fn path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// Reads a document; nothing when the server has none there or whoever has it does not answer.
async fn read<T: DeserializeOwned>(
    client: &kube::Client,
    path: &str,
) -> Result<Option<T>, kube::Error> {
    let request = Request::get(path).body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    match client.request(request).await {
        Ok(document) => Ok(Some(document)),
        Err(kube::Error::Api(_) | kube::Error::SerdeError(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The type of the objects of a kind in the document of its group and version.
pub(super) fn declare(document: &Value, kind: &GroupVersionKind) -> Option<Arc<Declaration>> {
    let schemas = document.pointer("/components/schemas")?.as_object()?;
    let is_it = |schema: &&Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.into_iter().flatten().any(|named| {
            named["group"] == *kind.group
                && named["version"] == *kind.version
                && named["kind"] == *kind.kind
        })
    };
    let schema = schemas.values().find(is_it)?;
    let mut declarer = Declarer {
        schemas,
        known: HashMap::new(),
    };
    Some(declarer.declare(schema, 0))
}

/// Makes declarations of schemas (`apiserver/pkg/cel/common: SchemaDeclType`).
struct Declarer<'a> {
    schemas: &'a serde_json::Map<String, Value>,
    /// Types by their names. One that is being declared is left open, so that a type which has itself as a part ends.
    known: HashMap<&'a str, Arc<Declaration>>,
}

impl<'a> Declarer<'a> {
    fn declare(&mut self, schema: &'a Value, depth: usize) -> Arc<Declaration> {
        if depth > DEEPEST {
            return open();
        }
        let Some(name) = referred(schema) else {
            return Arc::new(self.form(schema, depth));
        };
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        self.known.insert(name, open());
        let declared = match self.schemas.get(name) {
            Some(schema) => self.declare(schema, depth + 1),
            None => open(),
        };
        self.known.insert(name, declared.clone());
        declared
    }

    fn form(&mut self, schema: &'a Value, depth: usize) -> Declaration {
        let format = schema["format"].as_str().unwrap_or_default();
        let is_set = |extension: &str| schema[extension] == true;
        if is_set("x-kubernetes-int-or-string") || format == "int-or-string" {
            return Declaration::plain(Form::IntOrString);
        }
        match schema["type"].as_str().unwrap_or_default() {
            "boolean" => Declaration::plain(Form::Bool),
            "integer" => Declaration::plain(Form::Int),
            "number" => Declaration::plain(Form::Double),
            "string" => Declaration::plain(match format {
                "byte" => Form::Bytes,
                "duration" => Form::Duration,
                "date" => Form::Date,
                "date-time" => Form::DateTime,
                _ => Form::String,
            }),
            "array" => {
                let item = self.declare(&schema["items"], depth + 1);
                Declaration::list(item, list_kind(schema), None)
            }
            "object" if is_set("x-kubernetes-preserve-unknown-fields") => {
                Declaration::plain(Form::Dynamic)
            }
            "object" => self.object(schema, depth),
            _ => Declaration::plain(Form::Dynamic),
        }
    }

    fn object(&mut self, schema: &'a Value, depth: usize) -> Declaration {
        let values = &schema["additionalProperties"];
        if values.is_object() {
            return Declaration::map(self.declare(values, depth + 1), None);
        }
        let Some(properties) = schema["properties"].as_object() else {
            return Declaration::plain(Form::Dynamic);
        };
        let fields = properties.iter().map(|(name, property)| {
            let declared = self.declare(property, depth + 1);
            (name.as_str().into(), declared)
        });
        let object = Object::new(fields.collect());
        Declaration::plain(Form::Object(Arc::new(object)))
    }
}

/// The name of the type that a schema refers to. Where something stands beside the reference, it is the only one of `allOf`.
fn referred(schema: &Value) -> Option<&str> {
    let reference = match schema["allOf"].as_array().map(Vec::as_slice) {
        Some([one]) => &one["$ref"],
        _ => &schema["$ref"],
    };
    reference.as_str()?.strip_prefix(COMPONENTS)
}

fn list_kind(schema: &Value) -> ListKind {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListKind::Set,
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array();
            let keys = keys.into_iter().flatten().filter_map(Value::as_str);
            ListKind::Map(keys.map(Into::into).collect())
        }
        _ => ListKind::Atomic,
    }
}

fn open() -> Arc<Declaration> {
    Arc::new(Declaration::plain(Form::Dynamic))
}
