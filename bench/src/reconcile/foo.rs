//! The Foo of `examples/foo`, as far as it is measured.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

use crate::source::template::NAMESPACES;

/// What a user asks for.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "samplecontroller.k8s.io",
    version = "v1alpha1",
    kind = "Foo",
    namespaced,
    status = "FooStatus",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FooSpec {
    pub(crate) deployment_name: String,
    pub(crate) replicas: Option<i32>,
}

/// What became of it.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FooStatus {
    pub(crate) available_replicas: i32,
}

/// Namespace and name of the Foo with this number.
pub(super) fn name(number: usize) -> (String, String) {
    let namespace = format!("namespace-{:02}", number % NAMESPACES);
    (namespace, format!("foo-{number:07}"))
}

/// The number of the Foo of this name.
pub(super) fn number(name: &str) -> Option<usize> {
    name.rsplit('-').next()?.parse().ok()
}
