//! Writes the Rust types of a definition that somebody else wrote.
//!
//! The source compiles with the dependencies of a scaffolded project and is formatted as rustfmt would. What the
//! attributes of kinds cannot say is named at the top of it, so that nothing is lost in silence.

mod attribute;
mod build;
mod kind;
mod literal;
mod marks;
mod model;
mod names;
mod print;
#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion as Version, JSONSchemaProps,
};

use self::build::Builder;
use crate::fields::{items, properties, property, type_of};

/// Why no Rust types can be generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RustTypesError {
    /// The definition has no such version.
    #[error("{definition} has no version {version}")]
    Version {
        /// Name of the definition.
        definition: String,
        /// The version that was asked for.
        version: String,
    },
    /// The version has no schema.
    #[error("version {version} has no schema to make types of")]
    Schema {
        /// The version.
        version: String,
    },
    /// Rust types of kinds have either a `spec` or fields of their own.
    #[error("the kind has a spec and other fields beside it ({}), which Rust types of kinds cannot have", .fields.join(", "))]
    Fields {
        /// The others.
        fields: Vec<String>,
    },
    /// The kind is not a valid name of a Rust type.
    #[error("the kind {kind:?} is not a valid name of a Rust type")]
    Kind {
        /// The kind.
        kind: String,
    },
}

/// The source of the types of the stored version.
///
/// # Errors
/// When it has no schema, or one that Rust types of kinds cannot have.
pub fn source(definition: &CustomResourceDefinition) -> Result<String, RustTypesError> {
    let versions = &definition.spec.versions;
    let stored = versions
        .iter()
        .find(|version| version.storage)
        .or(versions.first());
    source_of(definition, stored.map_or("", |version| &version.name))
}

/// The source of the types of one version.
///
/// # Errors
/// As [`source`], and when there is no such version.
pub fn source_of(
    definition: &CustomResourceDefinition,
    version: &str,
) -> Result<String, RustTypesError> {
    let found = definition
        .spec
        .versions
        .iter()
        .find(|found| found.name == version);
    let found = found.ok_or_else(|| RustTypesError::Version {
        definition: definition.metadata.name.clone().unwrap_or_default(),
        version: version.to_owned(),
    })?;
    let schema = found
        .schema
        .as_ref()
        .and_then(|schema| schema.open_api_v3_schema.as_ref());
    let schema = schema.ok_or_else(|| RustTypesError::Schema {
        version: version.to_owned(),
    })?;
    let kind = &definition.spec.names.kind;
    if !names::is_type(kind) {
        return Err(RustTypesError::Kind { kind: kind.clone() });
    }
    build(definition, found, schema)
}

/// Whether the status of a version has the fields that a controller reports with: conditions as all kinds share them, and
/// the generation that they are about.
pub fn has_conditions(definition: &CustomResourceDefinition, version: &str) -> bool {
    let found = definition.spec.versions.iter();
    let mut found = found.filter(|found| found.name == version);
    let schema = found.next().and_then(|found| found.schema.as_ref());
    let schema = schema.and_then(|schema| schema.open_api_v3_schema.as_ref());
    let Some(status) = schema.and_then(|schema| property(schema, "status")) else {
        return false;
    };
    let conditions = property(status, "conditions").and_then(items);
    conditions.is_some_and(build::is_condition)
        && property(status, "observedGeneration").is_some_and(|it| type_of(it) == "integer")
}

fn build(
    definition: &CustomResourceDefinition,
    version: &Version,
    schema: &JSONSchemaProps,
) -> Result<String, RustTypesError> {
    let kind = &definition.spec.names.kind;
    let own = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata" | "status");
    let others = properties(schema)
        .map(|(name, _)| name)
        .filter(|name| own(name) && *name != "spec");
    let others: Vec<String> = others.map(str::to_owned).collect();
    let spec = property(schema, "spec");
    if spec.is_some() && !others.is_empty() {
        return Err(RustTypesError::Fields { fields: others });
    }
    let mut builder = Builder::new();
    let (name, fields) = match spec {
        Some(spec) => (format!("{kind}Spec"), spec.clone()),
        None => (format!("{kind}Fields"), without_metadata(schema, own)),
    };
    let status = property(schema, "status").map(|status| (format!("{kind}Status"), status));
    builder.reserve(&name);
    builder.reserve(kind);
    if let Some((name, _)) = &status {
        builder.reserve(name);
    }
    let main = builder.root(
        &name,
        &fields,
        kind,
        if spec.is_some() { ".spec" } else { "" },
    );
    if let Some((name, status)) = &status {
        builder.status(name, status, kind);
    }
    if spec.is_some() {
        builder.note_root(schema);
    }
    let attributes = kind::attributes(
        definition,
        version,
        schema,
        status.map(|(name, _)| name).as_deref(),
    );
    Ok(print::file(
        definition, version, &builder, &main, attributes,
    ))
}

/// The fields that stand beside the metadata.
fn without_metadata(schema: &JSONSchemaProps, own: impl Fn(&str) -> bool) -> JSONSchemaProps {
    let mut schema = schema.clone();
    if let Some(properties) = &mut schema.properties {
        properties.retain(|name, _| own(name));
    }
    schema
}
