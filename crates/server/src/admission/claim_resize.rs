//! `PersistentVolumeClaimResize`: a claim grows only where its storage class allows it.

use kubewright_schema::quantity::Quantity;
use serde_json::Value;

use super::PluginRefusal;
use super::attributes::{AdmissionRequest, Operation};
use crate::kinds::value::text;

/// Whether it is about a claim that grows.
pub(super) fn concerns(request: &AdmissionRequest<'_>, claim: &Value, old: &Value) -> bool {
    let size = |claim: &Value| {
        Quantity::parse(text(&claim["spec"]["resources"]["requests"]["storage"])).ok()
    };
    request.operation == Operation::Update
        && request.is_whole("", "PersistentVolumeClaim")
        && size(claim).is_some_and(|new| size(old).is_none_or(|old| new > old))
}

/// Refuses to let a claim grow that is not bound, or whose class does not allow it.
pub(super) fn check(
    class: Option<&Value>,
    claim: &Value,
    old: &Value,
) -> Result<(), PluginRefusal> {
    if old["status"]["phase"] != "Bound" {
        return Err("Only bound persistent volume claims can be expanded".into());
    }
    let name = class_name(claim);
    let same = !name.is_empty() && name == class_name(old);
    if same && class.is_some_and(|class| class["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    Err("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize".into())
}

/// The class of a claim; empty when it has none.
pub(super) fn class_name(claim: &Value) -> &str {
    let old_way = &claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
    match text(old_way) {
        "" => text(&claim["spec"]["storageClassName"]),
        name => name,
    }
}
