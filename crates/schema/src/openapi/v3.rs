//! OpenAPI version 3: an index, and one document per group and version.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::definitions::Definitions;
use super::operation::{Answer, GroupVersionKind, Operation, Path, Paths, status_text};
use super::parameter::{Parameter, Place};
use super::routes::GroupVersion;
use super::schema::Reference;
use super::{Described, Dialect, KUBERNETES_VERSION};
use crate::types::Table;

/// The path of a document below `/openapi/v3/`: `api/v1` or `apis/apps/v1`.
pub fn path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// The index at `/openapi/v3`: where each document is. An entry is a [`path`] and the hash of the document there,
/// which makes its address change with its content.
pub fn index<P: AsRef<str>, H: AsRef<str>>(entries: impl IntoIterator<Item = (P, H)>) -> Vec<u8> {
    #[derive(serde::Serialize)]
    struct Index {
        paths: BTreeMap<String, Address>,
    }
    #[derive(serde::Serialize)]
    struct Address {
        #[serde(rename = "serverRelativeURL")]
        server_relative_url: String,
    }
    let address = |(path, hash): (P, H)| {
        let (path, hash) = (path.as_ref(), hash.as_ref());
        let server_relative_url = format!("/openapi/v3/{path}?hash={hash}");
        let address = Address {
            server_relative_url,
        };
        (path.to_owned(), address)
    };
    bytes(&Index {
        paths: entries.into_iter().map(address).collect(),
    })
}

/// The document of one group and version. Resources of other groups and versions are left out.
pub fn document(table: &Table, group: &str, version: &str, resources: &[Described<'_>]) -> Vec<u8> {
    let resources: Vec<Described<'_>> = resources
        .iter()
        .filter(|d| *d.resource.group == *group && *d.resource.version == *version)
        .copied()
        .collect();
    let gv = GroupVersion::new(group, version);
    let mut paths = Paths::new();
    gv.add_paths(table, &resources, &mut paths);
    paths.values_mut().for_each(Path::share_parameters);
    let definitions = Definitions::new(
        table,
        Dialect::V3,
        Some((group, version)),
        &resources,
        &paths,
    );
    bytes(&Document {
        openapi: "3.0.0",
        info: Info {
            title: "Kubernetes",
            version: KUBERNETES_VERSION,
        },
        paths: paths
            .iter()
            .map(|(path, p)| (&**path, PathItem(p)))
            .collect(),
        components: Components {
            schemas: definitions,
            security_schemes: SecuritySchemes {
                bearer_token: BEARER_TOKEN,
            },
        },
    })
}

#[derive(serde::Serialize)]
struct Document<'a> {
    openapi: &'static str,
    info: Info,
    paths: BTreeMap<&'a str, PathItem<'a>>,
    components: Components<'a>,
}

/// What a document is about.
#[derive(serde::Serialize)]
pub(super) struct Info {
    pub(super) title: &'static str,
    pub(super) version: &'static str,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Components<'a> {
    schemas: Definitions<'a>,
    security_schemes: SecuritySchemes,
}

/// How clients prove who they are.
#[derive(serde::Serialize)]
pub(super) struct SecuritySchemes {
    #[serde(rename = "BearerToken")]
    pub(super) bearer_token: SecurityScheme,
}

/// One way for clients to prove who they are.
#[derive(serde::Serialize)]
pub(super) struct SecurityScheme {
    description: &'static str,
    #[serde(rename = "in")]
    place: &'static str,
    name: &'static str,
    #[serde(rename = "type")]
    ty: &'static str,
}

pub(super) const BEARER_TOKEN: SecurityScheme = SecurityScheme {
    description: "Bearer Token authentication",
    place: "header",
    name: "authorization",
    ty: "apiKey",
};

struct PathItem<'a>(&'a Path<'a>);

impl Serialize for PathItem<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for operation in &self.0.operations {
            map.serialize_entry(operation.method, &OperationObject::of(operation))?;
        }
        if !self.0.parameters.is_empty() {
            map.serialize_entry("parameters", &parameters(&self.0.parameters))?;
        }
        map.end()
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct OperationObject<'a> {
    tags: [&'a str; 1],
    description: &'a str,
    operation_id: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<ParameterObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_body: Option<RequestBody<'a>>,
    responses: BTreeMap<u16, Response<'a>>,
    #[serde(
        rename = "x-kubernetes-action",
        skip_serializing_if = "Option::is_none"
    )]
    action: Option<&'static str>,
    #[serde(
        rename = "x-kubernetes-group-version-kind",
        skip_serializing_if = "Option::is_none"
    )]
    kind: Option<GroupVersionKind<'a>>,
}

#[derive(serde::Serialize)]
struct RequestBody<'a> {
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    required: Option<bool>,
}

#[derive(serde::Serialize)]
struct Response<'a> {
    description: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content<'a>>,
}

/// One schema in each of several media types.
struct Content<'a> {
    types: &'static [&'static str],
    /// Text when absent.
    definition: Option<&'a str>,
}

#[derive(serde::Serialize)]
struct ParameterObject {
    name: &'static str,
    #[serde(rename = "in")]
    place: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    required: Option<bool>,
    schema: ParameterSchema,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct ParameterSchema {
    #[serde(rename = "type")]
    ty: &'static str,
    unique_items: bool,
}

#[derive(serde::Serialize)]
struct MediaType<T> {
    schema: T,
}

#[derive(serde::Serialize)]
struct Text {
    #[serde(rename = "type")]
    ty: &'static str,
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.types.len()))?;
        for media_type in self.types {
            match self.definition {
                Some(name) => {
                    let dialect = Dialect::V3;
                    let schema = Reference { dialect, name };
                    map.serialize_entry(media_type, &MediaType { schema })?;
                }
                None => {
                    let schema = Text { ty: "string" };
                    map.serialize_entry(media_type, &MediaType { schema })?;
                }
            }
        }
        map.end()
    }
}

impl<'a> OperationObject<'a> {
    fn of(operation: &'a Operation<'a>) -> Self {
        Self {
            tags: [operation.tag],
            description: &operation.description,
            operation_id: &operation.id,
            parameters: parameters(&operation.parameters),
            request_body: operation.body.as_ref().map(|body| RequestBody {
                content: Content {
                    types: body.consumes,
                    definition: Some(&body.definition),
                },
                required: body.required.then_some(true),
            }),
            responses: responses(operation),
            action: operation.acts.map(|(action, _)| action),
            kind: operation.acts.map(|(_, kind)| kind),
        }
    }
}

fn responses<'a>(operation: &'a Operation<'a>) -> BTreeMap<u16, Response<'a>> {
    let definition = match &operation.answer {
        Answer::Definition(name) => Some(&**name),
        Answer::Text => None,
    };
    let good = operation.statuses.iter().map(|status| {
        let content = Content {
            types: operation.produces,
            definition,
        };
        let response = Response {
            description: status_text(*status),
            content: Some(content),
        };
        (*status, response)
    });
    let unauthorized = Response {
        description: status_text(401),
        content: None,
    };
    good.chain([(401, unauthorized)]).collect()
}

fn parameters(parameters: &[Parameter]) -> Vec<ParameterObject> {
    parameters
        .iter()
        .map(|parameter| ParameterObject {
            name: parameter.name,
            place: parameter.place.as_str(),
            required: (parameter.place == Place::Path).then_some(true),
            schema: ParameterSchema {
                ty: parameter.ty,
                unique_items: true,
            },
        })
        .collect()
}

pub(super) fn bytes(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("an OpenAPI document has string keys only")
}
