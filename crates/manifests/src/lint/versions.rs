//! The versions of a kind together.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};

use crate::finding::Report;

pub(super) fn check(definition: &CustomResourceDefinition, report: &mut Report) {
    let versions = &definition.spec.versions;
    if !versions.is_empty() && !versions.iter().any(|version| version.served) {
        let advice = "serve at least one version";
        report.warning(
            "spec.versions",
            "no version is served: nobody can use the kind",
            advice,
        );
    }
    for version in versions {
        if version.deprecated == Some(true) && version.deprecation_warning.is_none() {
            let message = format!(
                "{} is deprecated, and does not say in favour of what",
                version.name
            );
            report.hint(
                "spec.versions",
                message,
                "set deprecationWarning, and name the version to use instead",
            );
        }
    }
    let converts = definition
        .spec
        .conversion
        .as_ref()
        .is_some_and(|c| c.strategy == "Webhook");
    if !converts && differ(versions) {
        report.warning(
            "spec.conversion",
            "versions have different fields and nothing converts between them: fields that the stored version does not \
             have are lost",
            "set up a conversion webhook, or give all versions the same fields",
        );
    }
}

fn differ(versions: &[CustomResourceDefinitionVersion]) -> bool {
    let fields = |version: &CustomResourceDefinitionVersion| -> Vec<String> {
        let schema = version
            .schema
            .as_ref()
            .and_then(|s| s.open_api_v3_schema.as_ref());
        let fields = schema.map(crate::fields::of).unwrap_or_default();
        fields
            .into_iter()
            .map(|field| format!("{} {}", field.path, crate::fields::type_of(field.schema)))
            .collect()
    };
    versions
        .windows(2)
        .any(|pair| fields(&pair[0]) != fields(&pair[1]))
}
