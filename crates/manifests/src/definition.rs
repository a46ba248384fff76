//! Custom resource definitions from kinds.

#[doc(hidden)]
pub mod marks;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::JsonSchema;

/// The definition of a kind, with the one version that the type is.
pub fn of<K: CustomResourceExt + JsonSchema>() -> CustomResourceDefinition {
    K::crd()
}
