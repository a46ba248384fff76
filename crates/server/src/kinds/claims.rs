//! Requests for devices and certificates, and other kinds of which the server knows little more than that their status is
//! written through `/status` and their spec stays.

use super::checks::spec_is_immutable;
use super::strategy::{Generation, StatusMeta, Strategy};

/// ResourceClaims (pkg/apis/resource/validation: ValidateResourceClaimUpdate).
pub(super) static RESOURCE_CLAIM: Strategy = Strategy {
    has_status: true,
    status_meta: StatusMeta::Closed,
    validate_update: spec_is_immutable,
    ..Strategy::PLAIN
};

/// DeviceTaintRules.
pub(super) static DEVICE_TAINT_RULE: Strategy = Strategy {
    generation: Generation::Field("spec"),
    has_status: true,
    status_meta: StatusMeta::Closed,
    ..Strategy::PLAIN
};

/// PodCertificateRequests (pkg/apis/certificates/validation: ValidatePodCertificateRequestUpdate).
pub(super) static POD_CERTIFICATE_REQUEST: Strategy = Strategy {
    has_status: true,
    validate_update: spec_is_immutable,
    ..Strategy::PLAIN
};

/// StorageVersionMigrations.
pub(super) static STORAGE_VERSION_MIGRATION: Strategy = Strategy {
    has_status: true,
    status_meta: StatusMeta::Closed,
    ..Strategy::PLAIN
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::kinds::testing::{create, update, update_errors};

    #[test]
    fn claims_and_requests_keep_their_spec() {
        for (group, kind) in [
            ("resource.k8s.io", "ResourceClaim"),
            ("certificates.k8s.io", "PodCertificateRequest"),
        ] {
            let object = json!({"metadata": {"name": "a", "namespace": "b"}, "spec": {"x": 1}});
            let errors = update_errors(group, kind, object, |new| new["spec"]["x"] = json!(2));
            assert_eq!(
                errors,
                ["spec: Invalid value: {\"x\":2}: field is immutable"],
                "{kind}"
            );
        }
    }

    #[test]
    fn status_is_neither_brought_along_nor_written_with_the_rest() {
        for (group, kind) in [
            ("resource.k8s.io", "DeviceTaintRule"),
            ("resource.k8s.io", "ResourceClaim"),
            ("certificates.k8s.io", "PodCertificateRequest"),
            ("storagemigration.k8s.io", "StorageVersionMigration"),
        ] {
            let object = json!({"metadata": {"name": "a"}, "spec": {}, "status": {"forged": true}});
            let made = create(group, kind, object);
            assert!(made.get("status").is_none(), "{kind}: {made}");
            let written = update(group, kind, &made, |new| {
                new["status"] = json!({"forged": true})
            });
            assert!(written.get("status").is_none(), "{kind}: {written}");
        }
    }
}
