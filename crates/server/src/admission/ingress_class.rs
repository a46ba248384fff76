//! `DefaultIngressClass`: ingresses that ask for no class get the one that is marked.

use serde_json::Value;

use super::attributes::{AdmissionRequest, Operation};
use super::storage_class::newest_marked;
use crate::kinds::value::{ensure, set};
use crate::object;

const MARKS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];
/// An old way for an ingress to name its class.
const CLASS: &str = "kubernetes.io/ingress.class";

/// Whether it is about a new ingress without a class.
pub(super) fn concerns(request: &AdmissionRequest<'_>, ingress: &Value) -> bool {
    request.operation == Operation::Create
        && request.is_whole("networking.k8s.io", "Ingress")
        && ingress["spec"]["ingressClassName"].is_null()
        && ingress["metadata"]["annotations"][CLASS].is_null()
}

/// Gives an ingress the class that is marked as the default.
pub(super) fn default(classes: &[Value], ingress: &mut Value) {
    if let Some(class) = newest_marked(classes, &MARKS) {
        let name = object::name(class);
        set(ensure(ingress, "spec"), "ingressClassName", name);
    }
}
