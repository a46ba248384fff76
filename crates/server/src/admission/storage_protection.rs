//! `StorageObjectInUseProtection`: claims and volumes get a finalizer that their controller takes away when nobody uses
//! them any more.

use serde_json::Value;

use super::attributes::{AdmissionRequest, Operation};
use crate::object;

/// Keeps a claim as long as a pod uses it.
const CLAIM: &str = "kubernetes.io/pvc-protection";
/// Keeps a volume as long as it is bound.
const VOLUME: &str = "kubernetes.io/pv-protection";

/// The finalizer that a new object gets.
pub(super) fn finalizer(request: &AdmissionRequest<'_>) -> Option<&'static str> {
    if request.operation != Operation::Create {
        return None;
    }
    let of = [
        ("PersistentVolumeClaim", CLAIM),
        ("PersistentVolume", VOLUME),
    ];
    let found = of.into_iter().find(|(kind, _)| request.is_whole("", kind));
    found.map(|(_, finalizer)| finalizer)
}

/// Adds a finalizer, once.
pub(super) fn protect(finalizer: &str, object: &mut Value) {
    let mut finalizers: Vec<String> = object::finalizers(object)
        .into_iter()
        .map(str::to_owned)
        .collect();
    if !finalizers.iter().any(|known| known == finalizer) {
        finalizers.push(finalizer.to_owned());
        object::set_finalizers(object, finalizers);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finalizer_is_added_once_and_after_those_of_users() {
        for (before, after) in [
            (json!({}), json!([CLAIM])),
            (json!({"finalizers": ["a/b"]}), json!(["a/b", CLAIM])),
            (json!({"finalizers": [CLAIM, "a/b"]}), json!([CLAIM, "a/b"])),
        ] {
            let mut claim = json!({"metadata": before});
            protect(CLAIM, &mut claim);
            assert_eq!(claim["metadata"]["finalizers"], after);
        }
    }
}
