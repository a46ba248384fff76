//! Kinds that are not the project's own: of Kubernetes, of a crate, or of a definition on file.

use std::path::Path;

use anyhow::{Context as _, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubewright_manifests::project::{Resource, plural_of};
use kubewright_manifests::rust_types;

use super::code::Report;
use crate::scaffold::plan::read_text;

/// Where a type is, as Rust calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// The module of a type of this project.
    Own(String),
    /// A type of somebody else.
    External(String),
}

impl Foreign {
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Own(path) | Self::External(path) => path,
        }
    }
}

/// Groups of Kubernetes: as people write them, what follows, and the module of k8s-openapi.
const CORE: &[(&str, &str, &str)] = &[
    ("", "", "core"),
    ("core", "", "core"),
    ("admissionregistration", "k8s.io", "admissionregistration"),
    ("apps", "", "apps"),
    ("autoscaling", "", "autoscaling"),
    ("batch", "", "batch"),
    ("certificates", "k8s.io", "certificates"),
    ("coordination", "k8s.io", "coordination"),
    ("discovery", "k8s.io", "discovery"),
    ("events", "k8s.io", "events"),
    ("networking", "k8s.io", "networking"),
    ("node", "k8s.io", "node"),
    ("policy", "", "policy"),
    ("rbac.authorization", "k8s.io", "rbac"),
    ("resource", "k8s.io", "resource"),
    ("scheduling", "k8s.io", "scheduling"),
    ("storage", "k8s.io", "storage"),
];

/// The module of a group of Kubernetes.
pub(crate) fn core_module(group: &str) -> Option<&'static str> {
    let found = CORE.iter().find(|(name, ..)| *name == group);
    found.map(|(_, _, module)| *module)
}

/// What follows a group of Kubernetes.
pub(crate) fn core_domain(group: &str) -> &'static str {
    let found = CORE.iter().find(|(name, ..)| *name == group);
    found.map_or("", |(_, domain, _)| *domain)
}

/// Where the type of a kind is that is not the project's own; `written` tells of one that was written from a definition.
///
/// # Errors
/// When neither Kubernetes, nor a flag, nor a definition on file has the type, or the flag is not a path.
pub(crate) fn find(
    resource: &Resource,
    given: Option<&str>,
    written: impl FnOnce() -> Option<String>,
) -> anyhow::Result<Foreign> {
    if resource.core {
        let module = core_module(&resource.group).unwrap_or("core");
        return Ok(Foreign::External(format!(
            "kubewright::k8s_openapi::api::{module}::{}::{}",
            resource.version, resource.kind
        )));
    }
    if let Some(path) = given {
        check_path(path, &resource.kind)?;
        return Ok(Foreign::External(path.to_owned()));
    }
    match written() {
        Some(module) => Ok(Foreign::External(format!("{module}::{}", resource.kind))),
        None => bail!(
            "group {:?} is none of Kubernetes, so the type of {} has to come from somewhere: \
             --external-api-path crate::Type, or --from-crd FILE",
            resource.group,
            resource.kind
        ),
    }
}

fn check_path(path: &str, kind: &str) -> anyhow::Result<()> {
    let word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if !path.split("::").all(word) || path.rsplit("::").next() != Some(kind) {
        bail!("--external-api-path {path:?} is not the path of a Rust type {kind}");
    }
    Ok(())
}

/// Takes over what a definition on file says of a kind that becomes one's own: where its objects live, and its plural.
pub(crate) fn adopt(file: &Path, resource: &mut Resource) -> anyhow::Result<()> {
    let definition = read(file, resource)?;
    let names = &definition.spec.names;
    resource.plural = (names.plural != plural_of(&names.kind)).then(|| names.plural.clone());
    if let Some(api) = &mut resource.api {
        api.namespaced = definition.spec.scope == "Namespaced";
    }
    Ok(())
}

/// What a controller of a kind from a definition on file can tell its users.
pub(super) fn report(file: &Path, resource: &Resource) -> anyhow::Result<Report> {
    let definition = read(file, resource)?;
    if rust_types::has_conditions(&definition, &resource.version) {
        Ok(Report::Status)
    } else {
        Ok(Report::Nothing)
    }
}

/// The source of types for a kind of one's own, from a definition on file: it is this project's from now on.
pub(crate) fn own_types(file: &Path, resource: &Resource) -> anyhow::Result<String> {
    let definition = read(file, resource)?;
    rust_types::source_of(&definition, &resource.version)
        .with_context(|| format!("{} cannot be turned into Rust", file.display()))
}

/// The source of types for a kind of somebody else, from a definition on file: known here, and not registered.
pub(crate) fn types(file: &Path, resource: &Resource) -> anyhow::Result<String> {
    let source = own_types(file, resource)?;
    Ok(source.replace("#[kubewright::api]", "#[kubewright::schema]"))
}

/// The definition of a kind in a file, which may have others in it.
fn read(file: &Path, resource: &Resource) -> anyhow::Result<CustomResourceDefinition> {
    let text = read_text(file)?.with_context(|| format!("{} does not exist", file.display()))?;
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text)
        .with_context(|| format!("{} is no YAML", file.display()))?;
    let (group, kind) = (resource.qualified_group(), &resource.kind);
    let found = documents.into_iter().find(|document| {
        document["kind"] == "CustomResourceDefinition"
            && document["spec"]["names"]["kind"] == *kind
            && document["spec"]["group"] == *group
    });
    let found = found.with_context(|| {
        format!(
            "{} has no CustomResourceDefinition of {kind} in group {group}",
            file.display()
        )
    })?;
    serde_json::from_value(found)
        .with_context(|| format!("{} has no usable definition of {kind}", file.display()))
}
