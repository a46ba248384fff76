//! The `#[kube(..)]` of a kind.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition as Column, CustomResourceDefinition,
    CustomResourceDefinitionVersion as Version, JSONSchemaProps,
};

use super::attribute::Item;
use super::literal::text;
use crate::fields::property;

/// The annotation without which servers refuse groups of Kubernetes itself.
const APPROVED: &str = "api-approved.kubernetes.io";

pub(super) fn attributes(
    definition: &CustomResourceDefinition,
    version: &Version,
    schema: &JSONSchemaProps,
    status: Option<&str>,
) -> Vec<Item> {
    let (spec, names) = (&definition.spec, &definition.spec.names);
    let pair = |name: &str, value: &str| Item::pair(name, text(value));
    let mut items = vec![
        pair("group", &spec.group),
        pair("version", &version.name),
        pair("kind", &names.kind),
    ];
    items.extend(names_of(definition));
    if spec.scope == "Namespaced" {
        items.push(Item::word("namespaced"));
    }
    if property(schema, "spec").is_none() {
        items.push(Item::word("no_spec"));
    }
    let description = schema
        .description
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty());
    items.extend(description.map(|description| pair("doc", description)));
    items.extend(status.map(|status| pair("status", status)));
    items.extend(scale(version));
    items.extend(
        version
            .additional_printer_columns
            .iter()
            .flatten()
            .map(column),
    );
    items.extend(
        version
            .selectable_fields
            .iter()
            .flatten()
            .map(|field| pair("selectable", &field.json_path)),
    );
    if version.deprecated == Some(true) {
        let warning = version.deprecation_warning.as_deref();
        items.push(warning.map_or_else(
            || Item::word("deprecated"),
            |warning| pair("deprecated", warning),
        ));
    }
    if !version.served {
        items.push(Item::pair("served", false));
    }
    if !version.storage {
        items.push(Item::pair("storage", false));
    }
    let annotations = definition.metadata.annotations.iter().flatten();
    for (key, value) in annotations.filter(|(key, _)| *key == APPROVED) {
        items.push(Item::List(
            "annotation".to_owned(),
            vec![Item::Plain(text(key)), Item::Plain(text(value))],
        ));
    }
    items
}

/// The plural is written unless it follows from the kind.
fn names_of(definition: &CustomResourceDefinition) -> Vec<Item> {
    let names = &definition.spec.names;
    let lower = names.kind.to_lowercase();
    let pair = |name: &str, value: &str| Item::pair(name, text(value));
    let mut items = Vec::new();
    if names.plural != format!("{lower}s") || lower.ends_with(['s', 'x', 'z', 'h', 'y']) {
        items.push(pair("plural", &names.plural));
    }
    if let Some(singular) = names
        .singular
        .as_ref()
        .filter(|singular| **singular != lower)
    {
        items.push(pair("singular", singular));
    }
    items.extend(
        names
            .short_names
            .iter()
            .flatten()
            .map(|name| pair("shortname", name)),
    );
    items.extend(
        names
            .categories
            .iter()
            .flatten()
            .map(|name| pair("category", name)),
    );
    items
}

fn scale(version: &Version) -> Option<Item> {
    let scale = version.subresources.as_ref()?.scale.as_ref()?;
    let mut items = vec![
        Item::pair("spec_replicas_path", text(&scale.spec_replicas_path)),
        Item::pair("status_replicas_path", text(&scale.status_replicas_path)),
    ];
    items.extend(
        scale
            .label_selector_path
            .as_ref()
            .map(|path| Item::pair("label_selector_path", text(path))),
    );
    Some(Item::List("scale".to_owned(), items))
}

fn column(column: &Column) -> Item {
    let mut items = vec![
        Item::pair("name", text(&column.name)),
        Item::pair("type_", text(&column.type_)),
        Item::pair("json_path", text(&column.json_path)),
    ];
    for (name, value) in [
        ("description", &column.description),
        ("format", &column.format),
    ] {
        items.extend(
            value
                .as_ref()
                .filter(|value| !value.is_empty())
                .map(|value| Item::pair(name, text(value))),
        );
    }
    items.extend(
        column
            .priority
            .filter(|priority| *priority != 0)
            .map(|priority| Item::pair("priority", priority)),
    );
    Item::List("printcolumn".to_owned(), items)
}
