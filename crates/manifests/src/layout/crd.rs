//! Definitions, and a sample of each kind.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use super::{LayoutError, Operator, Tree, conversion};
use crate::sample;

pub(super) fn add(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    for definition in operator.definitions() {
        let definition = &definition;
        let mut value =
            serde_json::to_value(definition).map_err(|error| wrong(definition, &error))?;
        if let Some(object) = value.as_object_mut() {
            // What a cluster says of it is none of ours to write.
            object.remove("status");
        }
        if conversion::is_by_webhook(definition) {
            operator.annotate_authority(&mut value);
        }
        let (group, plural) = (&definition.spec.group, &definition.spec.names.plural);
        tree.add(format!("crd/bases/{group}_{plural}.yaml"), value)?;
        add_samples(operator, definition, tree)?;
    }
    Ok(())
}

fn add_samples(
    operator: &Operator<'_>,
    definition: &CustomResourceDefinition,
    tree: &mut Tree,
) -> Result<(), LayoutError> {
    let group = operator.short_group(definition);
    let kind = definition.spec.names.kind.to_ascii_lowercase();
    for version in definition
        .spec
        .versions
        .iter()
        .filter(|version| version.served)
    {
        let mut object =
            sample::of(definition, &version.name).map_err(|error| wrong(definition, &error))?;
        // One name for two versions would be one object on a cluster, written twice.
        object["metadata"]["name"] = if version.storage {
            json!(format!("{kind}-sample"))
        } else {
            json!(format!("{kind}-sample-{}", version.name))
        };
        if definition.spec.scope == "Namespaced" {
            object["metadata"]["namespace"] = json!("default");
        }
        object["metadata"]["labels"] = json!(operator.labels());
        tree.add(
            format!("samples/{group}_{}_{kind}.yaml", version.name),
            object,
        )?;
    }
    Ok(())
}

fn wrong(definition: &CustomResourceDefinition, error: &dyn std::fmt::Display) -> LayoutError {
    LayoutError::Definition {
        name: definition.metadata.name.clone().unwrap_or_default(),
        reason: error.to_string(),
    }
}

impl Operator<'_> {
    /// The group as files are called by it: without the domain of the project.
    pub(super) fn short_group(&self, definition: &CustomResourceDefinition) -> String {
        let spec = &definition.spec;
        let known = self.project.resources.iter().find(|resource| {
            resource.kind == spec.names.kind && resource.qualified_group() == spec.group
        });
        match known {
            Some(resource) if !resource.group.is_empty() => resource.group.clone(),
            _ => spec.group.clone(),
        }
    }
}
