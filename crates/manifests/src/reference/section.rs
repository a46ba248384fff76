//! One kind: what it is, and a table for each type in it.

use std::fmt::Write;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion as Version, JSONSchemaProps,
};

use super::{INFALLIBLE, anchor, cell};
use crate::fields::{self, Field, properties};

pub(super) fn write(out: &mut String, definition: &CustomResourceDefinition, version: &Version) {
    let kind = &definition.spec.names.kind;
    let anchor = anchor(kind, &version.name, "");
    write!(out, "\n<a id=\"{anchor}\"></a>\n### {kind}\n\n").expect(INFALLIBLE);
    let schema = version
        .schema
        .as_ref()
        .and_then(|s| s.open_api_v3_schema.as_ref());
    if let Some(text) = schema.and_then(|schema| schema.description.as_deref()) {
        write!(out, "{}\n\n", cell::paragraphs(text)).expect(INFALLIBLE);
    }
    for fact in facts(definition, version) {
        writeln!(out, "- {fact}").expect(INFALLIBLE);
    }
    if let Some(schema) = schema {
        write_tables(out, kind, version, schema);
    }
}

fn facts(definition: &CustomResourceDefinition, version: &Version) -> Vec<String> {
    let names = &definition.spec.names;
    let mut facts = Vec::new();
    if version.deprecated == Some(true) {
        let why = version
            .deprecation_warning
            .as_deref()
            .map(|text| format!(": {}", cell::escape(text)));
        facts.push(format!("**Deprecated**{}", why.unwrap_or_default()));
    }
    if !version.served {
        facts.push("Not served".to_owned());
    }
    facts.push(format!("Scope: {}", definition.spec.scope));
    facts.push(format!("Resource: `{}`", names.plural));
    let shorts: Vec<String> = names
        .short_names
        .iter()
        .flatten()
        .map(|name| format!("`{name}`"))
        .collect();
    if !shorts.is_empty() {
        facts.push(format!("Short names: {}", shorts.join(", ")));
    }
    let subresources = version.subresources.as_ref();
    let status = subresources
        .is_some_and(|s| s.status.is_some())
        .then_some("`status`");
    let scale = subresources
        .is_some_and(|s| s.scale.is_some())
        .then_some("`scale`");
    let both: Vec<&str> = [status, scale].into_iter().flatten().collect();
    if !both.is_empty() {
        facts.push(format!("Subresources: {}", both.join(", ")));
    }
    facts
}

/// The fields of the object itself, then those of each object below it.
fn write_tables(out: &mut String, kind: &str, version: &Version, schema: &JSONSchemaProps) {
    let fields = fields::of(schema);
    write_table(out, kind, version, "", &fields);
    for field in fields
        .iter()
        .filter(|field| properties(field.schema).next().is_some())
    {
        let anchor = anchor(kind, &version.name, &field.path);
        write!(
            out,
            "\n<a id=\"{anchor}\"></a>\n#### {kind}{}\n",
            field.path
        )
        .expect(INFALLIBLE);
        if let Some(text) = field.schema.description.as_deref() {
            write!(out, "\n{}\n", cell::paragraphs(text)).expect(INFALLIBLE);
        }
        for rule in field.schema.x_kubernetes_validations.iter().flatten() {
            write!(out, "\n- {}\n", cell::rule(rule)).expect(INFALLIBLE);
        }
        write_table(out, kind, version, &field.path, &fields);
    }
}

fn write_table(out: &mut String, kind: &str, version: &Version, path: &str, fields: &[Field<'_>]) {
    let is_child = |field: &&Field<'_>| {
        let below = field
            .path
            .strip_prefix(path)
            .and_then(|rest| rest.strip_prefix('.'));
        field.name.is_some() && below == field.name
    };
    let mut children = fields.iter().filter(is_child).peekable();
    if children.peek().is_none() {
        return;
    }
    out.push_str(
        "\n| Field | Type | Description | Default | Validation |\n|---|---|---|---|---|\n",
    );
    for field in children {
        let required = if field.required { " *required*" } else { "" };
        let name = field.name.unwrap_or_default();
        let link = |path: &str| anchor(kind, &version.name, path);
        let ty = cell::type_of(field.schema, &field.path, &link);
        let description = cell::escape(field.schema.description.as_deref().unwrap_or(""));
        let default = field
            .schema
            .default
            .as_ref()
            .map(|value| cell::code(&value.0.to_string()));
        let validation = cell::validation(field.schema).join("<br />");
        let default = default.unwrap_or_default();
        writeln!(
            out,
            "| `{name}`{required} | {ty} | {description} | {default} | {validation} |"
        )
        .expect(INFALLIBLE);
    }
}
