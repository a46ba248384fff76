//! OpenAPI version 2 ("Swagger"): one document for everything that is served.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::definitions::Definitions;
use super::operation::{Answer, Body, GroupVersionKind, Operation, Path, Paths, status_text};
use super::parameter::{Parameter, Place};
use super::routes::GroupVersion;
use super::schema::Reference;
use super::v3::{BEARER_TOKEN, Info, SecuritySchemes, bytes};
use super::{Described, Dialect, KUBERNETES_VERSION};
use crate::types::Table;

/// The document of all resources.
pub fn document(table: &Table, resources: &[Described<'_>]) -> Vec<u8> {
    let mut by_version: BTreeMap<(&str, &str), Vec<Described<'_>>> = BTreeMap::new();
    for described in resources {
        let resource = described.resource;
        by_version
            .entry((&resource.group, &resource.version))
            .or_default()
            .push(*described);
    }
    let versions: Vec<_> = by_version
        .iter()
        .map(|((group, version), served)| (GroupVersion::new(group, version), served))
        .collect();
    let mut paths = Paths::new();
    for (gv, served) in &versions {
        gv.add_paths(table, served, &mut paths);
    }
    paths.values_mut().for_each(Path::share_parameters);
    let definitions = Definitions::new(table, Dialect::V2, None, resources, &paths);
    bytes(&Document {
        swagger: "2.0",
        info: Info {
            title: "Kubernetes",
            version: KUBERNETES_VERSION,
        },
        paths: paths
            .iter()
            .map(|(path, p)| (&**path, PathItem(p)))
            .collect(),
        definitions,
        security_definitions: SecuritySchemes {
            bearer_token: BEARER_TOKEN,
        },
        security: [Security { bearer_token: [] }],
    })
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    swagger: &'static str,
    info: Info,
    paths: BTreeMap<&'a str, PathItem<'a>>,
    definitions: Definitions<'a>,
    security_definitions: SecuritySchemes,
    security: [Security; 1],
}

#[derive(serde::Serialize)]
struct Security {
    #[serde(rename = "BearerToken")]
    bearer_token: [&'static str; 0],
}

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
    description: &'a str,
    consumes: &'static [&'static str],
    produces: &'static [&'static str],
    schemes: [&'static str; 1],
    tags: [&'a str; 1],
    operation_id: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<ParameterObject<'a>>,
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
#[serde(untagged)]
enum ParameterObject<'a> {
    Simple(Simple),
    Body(BodyObject<'a>),
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Simple {
    name: &'static str,
    #[serde(rename = "in")]
    place: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    required: Option<bool>,
    #[serde(rename = "type")]
    ty: &'static str,
    unique_items: bool,
}

#[derive(serde::Serialize)]
struct BodyObject<'a> {
    name: &'static str,
    #[serde(rename = "in")]
    place: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    required: Option<bool>,
    schema: Reference<'a>,
}

#[derive(serde::Serialize)]
struct Response<'a> {
    description: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<AnswerSchema<'a>>,
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum AnswerSchema<'a> {
    Definition(Reference<'a>),
    Text {
        #[serde(rename = "type")]
        ty: &'static str,
    },
}

impl<'a> OperationObject<'a> {
    fn of(operation: &'a Operation<'a>) -> Self {
        let body = operation.body.as_ref();
        let mut parameters = parameters(&operation.parameters);
        parameters.extend(body.map(|body| ParameterObject::Body(body_object(body))));
        Self {
            description: &operation.description,
            consumes: body.map_or(&["*/*"], |body| body.consumes),
            produces: operation.produces,
            schemes: ["https"],
            tags: [operation.tag],
            operation_id: &operation.id,
            parameters,
            responses: responses(operation),
            action: operation.acts.map(|(action, _)| action),
            kind: operation.acts.map(|(_, kind)| kind),
        }
    }
}

fn body_object<'a>(body: &'a Body<'a>) -> BodyObject<'a> {
    BodyObject {
        name: "body",
        place: "body",
        required: body.required.then_some(true),
        schema: Reference {
            dialect: Dialect::V2,
            name: &body.definition,
        },
    }
}

fn responses<'a>(operation: &'a Operation<'a>) -> BTreeMap<u16, Response<'a>> {
    let good = operation.statuses.iter().map(|status| {
        let schema = match &operation.answer {
            Answer::Definition(name) => AnswerSchema::Definition(Reference {
                dialect: Dialect::V2,
                name,
            }),
            Answer::Text => AnswerSchema::Text { ty: "string" },
        };
        let response = Response {
            description: status_text(*status),
            schema: Some(schema),
        };
        (*status, response)
    });
    let unauthorized = Response {
        description: status_text(401),
        schema: None,
    };
    good.chain([(401, unauthorized)]).collect()
}

fn parameters(parameters: &[Parameter]) -> Vec<ParameterObject<'static>> {
    parameters
        .iter()
        .map(|parameter| {
            ParameterObject::Simple(Simple {
                name: parameter.name,
                place: parameter.place.as_str(),
                required: (parameter.place == Place::Path).then_some(true),
                ty: parameter.ty,
                unique_items: true,
            })
        })
        .collect()
}
