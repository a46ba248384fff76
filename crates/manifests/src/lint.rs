//! Judges definitions: would a server take them, and do they keep to the conventions of Kubernetes APIs.
//!
//! Errors are what a server refuses, or what makes a kind useless. Warnings are conventions whose breach hurts users,
//! hints those that have good exceptions.

mod columns;
mod conditions;
mod fields;
mod limits;
mod names;
mod path;
mod program;
mod server;
mod shape;
mod size;
#[cfg(test)]
mod tests;
mod versions;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::Inventory;
use crate::finding::{Finding, Report};

/// What is wrong, or could be better, with definitions: theirs in the order given, and of each the worst first.
///
/// # Examples
/// ```
/// use kubewright_manifests::{Severity, lint};
///
/// let definition = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "foos.example.com"},
///     "spec": {
///         "group": "example.com", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
///         "versions": [{"name": "v1", "served": true, "storage": true}],
///     },
/// }))?;
/// let findings = lint::definitions(&[definition]);
/// assert_eq!(findings[0].severity, Severity::Error);
/// assert_eq!(findings[0].message, "Required value");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn definitions(definitions: &[CustomResourceDefinition]) -> Vec<Finding> {
    definitions.iter().flat_map(definition).collect()
}

/// What is wrong, or could be better, with all that a program consists of: its definitions, and whether webhooks, conversions and
/// controllers fit them.
pub fn inventory(inventory: &Inventory) -> Vec<Finding> {
    let mut findings = definitions(&inventory.definitions);
    findings.extend(program::check(inventory));
    findings
}

fn definition(definition: &CustomResourceDefinition) -> Vec<Finding> {
    let mut report = Report::default();
    let name = definition.metadata.name.as_deref().unwrap_or("(no name)");
    report.about(name, None);
    server::check(definition, &mut report);
    size::check(definition, &mut report);
    names::check(definition, &mut report);
    versions::check(definition, &mut report);
    for version in &definition.spec.versions {
        report.about(name, Some(&version.name));
        let schema = version
            .schema
            .as_ref()
            .and_then(|s| s.open_api_v3_schema.as_ref());
        if let Some(schema) = schema {
            shape::check(version, schema, &mut report);
            columns::check(version, schema, &mut report);
            fields::check(schema, &mut report);
            limits::check(schema, &mut report);
        }
    }
    let mut findings = report.finish();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}
