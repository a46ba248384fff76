//! Names of kinds, resources and versions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::finding::Report;

/// Names that mean a built-in resource to kubectl.
const TAKEN: &[&str] = &[
    "cm", "cs", "crd", "crds", "csr", "deploy", "ds", "ep", "ev", "hpa", "ing", "limits", "netpol",
    "no", "ns", "pc", "pdb", "po", "pv", "pvc", "quota", "rc", "rs", "sa", "sc", "sts", "svc",
    "cj", "ip", "sc", "vac",
];

pub(super) fn check(definition: &CustomResourceDefinition, report: &mut Report) {
    let names = &definition.spec.names;
    if !is_camel(&names.kind, char::is_uppercase) {
        let advice = "begin with a capital letter, and use letters and digits only";
        report.warning(
            "spec.names.kind",
            format!("the kind {:?} is not CamelCase", names.kind),
            advice,
        );
    }
    for short in names
        .short_names
        .iter()
        .flatten()
        .filter(|name| TAKEN.contains(&name.as_str()))
    {
        let message =
            format!("the short name {short:?} is that of a built-in resource, which wins");
        report.warning(
            "spec.names.shortNames",
            message,
            "choose another short name",
        );
    }
    for version in &definition.spec.versions {
        if !is_version(&version.name) {
            report.warning(
                "spec.versions",
                format!(
                    "the version {:?} is not like v1, v1beta1 or v2alpha3",
                    version.name
                ),
                "rename it: clients sort versions by this form, and it says how stable they are",
            );
        }
    }
}

/// Letters and digits, of which the first is as it should be.
pub(super) fn is_camel(name: &str, first: fn(char) -> bool) -> bool {
    name.starts_with(first) && name.chars().all(|c| c.is_ascii_alphanumeric())
}

/// `v1`, `v1alpha1`, `v2beta3`.
fn is_version(name: &str) -> bool {
    let number = |text: &str| {
        !text.is_empty() && !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit())
    };
    let Some(rest) = name.strip_prefix('v') else {
        return false;
    };
    let stages = ["alpha", "beta"]
        .iter()
        .find_map(|stage| rest.split_once(stage));
    match stages {
        Some((major, minor)) => number(major) && number(minor),
        None => number(rest),
    }
}
