//! `NamespaceLifecycle`: new objects need a namespace that is there to stay.

use serde_json::Value;

use super::AdmissionChain;
use super::attributes::{AdmissionRequest, Operation};
use super::lookup;
use crate::status::{About, ApiError};

const NAMESPACES: About<'static> = About {
    group: "",
    resource: "namespaces",
};

/// Refuses new objects where there is no namespace, or one that is on its way out.
pub(super) fn admit(
    chain: &AdmissionChain,
    request: &AdmissionRequest<'_>,
    object: &Value,
) -> Result<(), ApiError> {
    let Some(namespace) = request
        .namespace
        .filter(|_| request.operation == Operation::Create)
    else {
        return Ok(());
    };
    let Some(record) = lookup::namespaces(chain).collection.get(namespace) else {
        return Err(ApiError::not_found(NAMESPACES, namespace));
    };
    if record.fields().get("status.phase") != Some("Terminating") {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let cause = format!("namespace {namespace} is being terminated");
    Err(request.forbidden(object, &why).with_cause(
        "NamespaceTerminating",
        &cause,
        "metadata.namespace",
    ))
}
