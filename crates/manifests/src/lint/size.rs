//! Whether a definition fits where it has to go.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::finding::Report;

/// All annotations of an object together; `kubectl apply` keeps the whole object in one.
const ANNOTATIONS: usize = 262_144;
/// A request to etcd.
const REQUEST: usize = 1_572_864;

pub(super) fn check(definition: &CustomResourceDefinition, report: &mut Report) {
    let size = serde_json::to_vec(definition).map_or(0, |json| json.len());
    if size > REQUEST {
        report.error(
            "",
            format!(
                "the definition has {size} bytes; servers store no object of more than {REQUEST}"
            ),
            "shorten descriptions, embed fewer types of Kubernetes, or split the kind",
        );
    } else if size > ANNOTATIONS {
        report.warning(
            "",
            format!("the definition has {size} bytes; client-side `kubectl apply` takes {ANNOTATIONS} at most"),
            "apply it with `--server-side`, or shorten its descriptions",
        );
    }
}
