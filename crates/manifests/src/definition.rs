//! Custom resource definitions from kinds: what kube's derive knows of names, columns and subresources, and a schema of our
//! own making.
//!
//! The schema is read from schemars before it is squeezed into the API's type, because that loses what it has no field for.
//! What comes out is structural, whatever the Rust types are:
//!
//! - Unsigned and small numbers have bounds instead of formats that the server does not know.
//! - `serde_json::Value` and raw extensions keep unknown fields; recursive types do from the second level on.
//! - Sets are lists of type `set`; lists of conditions are maps by `type`, and conditions have their validation.
//! - An `Option` is not required, and not nullable unless `#[k8s(nullable)]` asks for it.
//! - Embedded metadata has the five fields that make sense; `Quantity` and `IntOrString` are as controller-gen writes them.
//! - A default is what was asked for: of those that come with `#[serde(default)]`, empty values and objects are left out.
//! - Choices of serde's enums become one struct with all their fields, and `oneOf` says which belong together.
//! - Descriptions of Kubernetes' own types are short, see [`Limits`].
//!
//! What a structural schema cannot express (a list of different types, a text or an object) keeps unknown fields and is
//! not validated. Checks of a finished definition are in `kubewright-manifests`' other modules, which an operator does not
//! carry with it.

mod choice;
mod description;
mod known;
#[doc(hidden)]
pub mod marks;
mod merge;
mod overlay;
mod resolve;
mod scalar;
mod settle;

#[cfg(test)]
mod tests;

use k8s_openapi::api::admissionregistration::v1 as admission;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceValidation, JSONSchemaProps,
    ServiceReference, WebhookClientConfig, WebhookConversion,
};
use kube::CustomResourceExt;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

pub use description::Limits;
pub use merge::{MergeError, merge};

/// The definition of a kind, with the one version that the type is.
///
/// # Panics
/// When a `#[schemars(extend(..))]` says something that no schema can have, such as a number for `type`.
pub fn of<K: CustomResourceExt + JsonSchema>() -> CustomResourceDefinition {
    with_limits::<K>(&Limits::default())
}

/// The definition of a kind, with descriptions as long as one likes.
///
/// # Panics
/// As [`of`].
pub fn with_limits<K: CustomResourceExt + JsonSchema>(limits: &Limits) -> CustomResourceDefinition {
    let mut definition = K::crd();
    let names = &mut definition.spec.names;
    names
        .list_kind
        .get_or_insert_with(|| format!("{}List", names.kind));
    let schema: JSONSchemaProps = match serde_json::from_value(schema::<K>(limits)) {
        Ok(schema) => schema,
        Err(error) => panic!("the schema of {} is none: {error}", K::crd_name()),
    };
    for version in &mut definition.spec.versions {
        version.schema = Some(CustomResourceValidation {
            open_api_v3_schema: Some(schema.clone()),
        });
    }
    definition
}

/// Conversion between versions by the webhook of a service, at the path `/convert`.
pub fn converted_by(service: &admission::ServiceReference) -> CustomResourceConversion {
    let client = WebhookClientConfig {
        service: Some(ServiceReference {
            name: service.name.clone(),
            namespace: service.namespace.clone(),
            path: Some("/convert".to_owned()),
            port: service.port,
        }),
        ..WebhookClientConfig::default()
    };
    CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(client),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    }
}

/// The schema of a kind as JSON, in which whole numbers are whole numbers.
pub fn schema<K: JsonSchema>(limits: &Limits) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.transforms = Vec::new();
    });
    let generated = settings.into_generator().into_root_schema_for::<K>();
    Value::Object(root(resolve::resolved(generated.to_value(), limits)))
}

/// Adds what every object has, and takes away what was made up.
fn root(mut schema: Map<String, Value>) -> Map<String, Value> {
    schema.remove("title");
    let made_up = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        text.starts_with("Auto-generated derived type for ")
    };
    if schema.get("description").is_some_and(made_up) {
        schema.remove("description");
        let spec = schema.get("properties").and_then(|all| all.get("spec"));
        let text = spec.and_then(|spec| spec.get("description")).cloned();
        schema.extend(text.map(|text| ("description".to_owned(), text)));
    }
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        properties.insert(
            "apiVersion".into(),
            json!({"type": "string", "description": API_VERSION}),
        );
        properties.insert(
            "kind".into(),
            json!({"type": "string", "description": KIND}),
        );
        properties.insert("metadata".into(), json!({"type": "object"}));
    }
    schema
}

const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object.\n\
    Servers should convert recognized schemas to the latest internal value, and\nmay reject unrecognized values.\n\
    More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";

const KIND: &str = "Kind is a string value representing the REST resource this object represents.\n\
    Servers may infer this from the endpoint the client submits requests to.\nCannot be updated.\nIn CamelCase.\n\
    More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
