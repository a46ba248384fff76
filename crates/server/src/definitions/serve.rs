//! Definitions that are served: versions compiled, each a resource of its own.

use std::sync::{Arc, OnceLock};

use kubewright_schema::Table;
use kubewright_schema::catalog::{Resource, Subresource, Verb};
use kubewright_schema::crd::{
    ColumnDefinition, Columns, CompiledVersion, Conversion, Definition, Names, SelectableFields,
    Version,
};
use kubewright_schema::discovery::version_order;
use serde_json::Value;

use crate::conversion::{ConversionHook, collection_name};
use crate::kinds::custom_strategy;
use crate::printers::{Column, Printer};
use crate::resource::{Custom, Incarnation, Nature, Schemas, Served};
use crate::status::ApiError;
use crate::storage::Store;

/// The versions of a definition that are served, the preferred one first, with their objects in a store. Each gets its first revision when the
/// definition is stored.
pub(crate) fn versions(
    value: &Value,
    incarnation: &Arc<Incarnation>,
    store: &Store,
) -> Result<Vec<Served>, ApiError> {
    let definition = Definition::parse(value);
    let group = &definition.group;
    let names = accepted_names(&definition);
    let schemas = Arc::new(schemas(&definition)?);
    let conversion = match &definition.conversion {
        Conversion::Webhook(webhook) => Some(Arc::new(ConversionHook::read(webhook))),
        _ => None,
    };
    let collection = store.collection(&collection_name(group, &names.plural));
    let served = definition.versions.iter().filter(|v| v.served);
    let version = |version: &Version| -> Result<Served, ApiError> {
        let api_version = format!("{group}/{}", version.name);
        let compiled = schemas.versions.iter().find(|(v, _)| *v == api_version);
        let (_, compiled) =
            compiled.ok_or_else(|| ApiError::internal("a version has no schema"))?;
        Ok(Served {
            collection: collection.clone(),
            printer: printer(version),
            resource: Arc::new(resource(&definition, &names, version)),
            definition: Some(incarnation.clone()),
            api_version,
            nature: Nature::Custom(Arc::new(Custom {
                version: compiled.clone(),
                schema: version.schema.clone().unwrap_or_default(),
                openapi_basis: OnceLock::new(),
                strategy: custom_strategy(version.status),
                scale: version.scale.clone(),
                selectable: SelectableFields::new(version),
                schemas: schemas.clone(),
                conversion: conversion.clone(),
                schema_revision: 0,
                deprecation: deprecation(&definition, version),
            })),
        })
    };
    let mut versions = served
        .map(version)
        .collect::<Result<Vec<Served>, ApiError>>()?;
    versions.sort_by(|a, b| version_order(&a.resource.version, &b.resource.version));
    Ok(versions)
}

/// The schemas of all versions: objects that were stored before the stored version was another one are still of theirs.
fn schemas(definition: &Definition) -> Result<Schemas, ApiError> {
    let storage = definition.storage_version();
    let storage = storage.ok_or_else(|| ApiError::internal("no version is stored"))?;
    let api_version = |version: &Version| format!("{}/{}", definition.group, version.name);
    let versions = definition.versions.iter();
    let compiled = versions.map(|version| Ok((api_version(version), Arc::new(compile(version)?))));
    Ok(Schemas {
        versions: compiled.collect::<Result<_, ApiError>>()?,
        stored_api_version: api_version(storage),
        selectable: SelectableFields::new(storage),
    })
}

/// The names that a definition is served under: those that were accepted, or those it wants.
fn accepted_names(definition: &Definition) -> Names {
    if definition.accepted_names.kind.is_empty() {
        return definition.names.clone();
    }
    Names {
        plural: definition.names.plural.clone(),
        ..definition.accepted_names.clone()
    }
}

fn compile(version: &Version) -> Result<CompiledVersion, ApiError> {
    let table = Table::builtin();
    let meta = table
        .named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        .map(|id| (table, id));
    CompiledVersion::new(version, meta).map_err(ApiError::internal)
}

fn printer(version: &Version) -> Printer {
    let columns = Columns::new(version);
    let headers = columns.definitions().iter().map(column).collect();
    Printer::new(headers, move |object, now| columns.cells(object, now))
}

fn column(definition: &ColumnDefinition) -> Column {
    Column {
        name: definition.name.clone().into(),
        type_: definition.column_type.clone().into(),
        format: definition.format.clone().into(),
        description: definition.description.clone().into(),
        priority: i32::try_from(definition.priority).unwrap_or(i32::MAX),
    }
}

fn resource(definition: &Definition, names: &Names, version: &Version) -> Resource {
    let boxed = |list: &[String]| list.iter().map(|s| s.as_str().into()).collect();
    let (group, version_name, kind) = (
        definition.group.as_str(),
        version.name.as_str(),
        names.kind.as_str(),
    );
    let part = |name: &str, group: &str, version: &str, kind: &str| Subresource {
        name: name.into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs: vec![Verb::Get, Verb::Patch, Verb::Update],
    };
    let status = version
        .status
        .then(|| part("status", group, version_name, kind));
    let scale = version
        .scale
        .as_ref()
        .map(|_| part("scale", "autoscaling", "v1", "Scale"));
    Resource {
        group: group.into(),
        version: version_name.into(),
        plural: names.plural.as_str().into(),
        singular: names.singular.as_str().into(),
        kind: kind.into(),
        list_kind: names.list_kind.as_str().into(),
        scope: definition.catalog_scope(),
        short_names: boxed(&names.short_names),
        categories: boxed(&names.categories),
        verbs: Verb::ALL.to_vec(),
        subresources: status.into_iter().chain(scale).collect(),
    }
}

fn deprecation(definition: &Definition, version: &Version) -> Option<String> {
    version.deprecated.then(|| {
        version.deprecation_warning.clone().unwrap_or_else(|| {
            format!(
                "{}/{} {} is deprecated",
                definition.group, version.name, definition.names.kind
            )
        })
    })
}
