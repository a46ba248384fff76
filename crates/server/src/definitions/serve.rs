//! Definitions that are served: versions compiled, each a resource of its own.

use std::sync::Arc;

use kubewright_schema::Table;
use kubewright_schema::catalog::{Resource, Subresource, Verb};
use kubewright_schema::crd::{
    ColumnDefinition, Columns, CompiledVersion, Conversion, Definition, Names, SelectableFields,
    Version,
};
use serde_json::Value;

use crate::conversion::{ConversionHook, collection_name};
use crate::core::Core;
use crate::kinds::custom_strategy;
use crate::object;
use crate::printers::{Column, Printer};
use crate::resource::{Custom, Nature, Served};
use crate::status::ApiError;

/// Whether objects may still be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Alive,
    Terminating,
}

impl Core {
    /// Serves the versions of a definition.
    pub(super) fn serve(&self, value: &Value, revision: u64, stage: Stage) -> Result<(), ApiError> {
        let definition = Definition::parse(value);
        let group = definition.group.clone();
        let accepted = Names {
            plural: definition.names.plural.clone(),
            ..definition.accepted_names.clone()
        };
        let names = if accepted.kind.is_empty() {
            definition.names.clone()
        } else {
            accepted
        };
        let stored = definition
            .storage_version()
            .map(|v| format!("{group}/{}", v.name))
            .unwrap_or_default();
        let generation = object::generation(value);
        let schema_revision = self
            .schema_revision(&group, &names.plural, generation)
            .unwrap_or(revision);
        let conversion = match &definition.conversion {
            Conversion::Webhook(webhook) => Some(Arc::new(ConversionHook::read(webhook))),
            _ => None,
        };
        let mut versions = Vec::new();
        for version in definition.versions.iter().filter(|v| v.served) {
            let compiled = compile(version)?;
            versions.push(Served {
                api_version: format!("{group}/{}", version.name),
                collection: self
                    .store
                    .collection(&collection_name(&group, &names.plural)),
                printer: printer(version),
                resource: resource(&definition, &names, version),
                nature: Nature::Custom(Arc::new(Custom {
                    version: Arc::new(compiled),
                    schema: version.schema.clone().unwrap_or_default(),
                    strategy: custom_strategy(version.status),
                    scale: version.scale.clone(),
                    selectable: SelectableFields::new(version),
                    stored_api_version: stored.clone(),
                    conversion: conversion.clone(),
                    generation,
                    schema_revision,
                    terminating: stage == Stage::Terminating,
                    deprecation: deprecation(&definition, version),
                })),
            });
        }
        self.registry
            .replace_custom(&group, &names.plural, versions);
        Ok(())
    }

    /// Since when the schema is what it is, if it is served already. Writes of the status do not change it.
    fn schema_revision(&self, group: &str, plural: &str, generation: i64) -> Option<u64> {
        let resources = self.registry.now();
        let mut same = resources
            .all
            .iter()
            .filter(|s| &*s.resource.group == group && &*s.resource.plural == plural);
        let custom = same.find_map(|s| s.custom())?;
        (custom.generation == generation).then_some(custom.schema_revision)
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
