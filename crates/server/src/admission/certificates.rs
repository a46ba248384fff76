//! `CertificateApproval`, `CertificateSigning`, `ClusterTrustBundleAttest` and `CertificateSubjectRestriction`: whoever
//! approves or signs a request or publishes the authorities of a signer may do so for that signer, and nobody becomes an
//! administrator by a certificate that was asked for.

use serde_json::Value;

use super::AdmissionChain;
use super::PluginRefusal;
use super::attributes::{AdmissionRequest, Operation};
use crate::access::{Attributes, Resource, Subject};
use crate::kinds::certificates::pem;
use crate::kinds::value::text;

const GROUP: &str = "certificates.k8s.io";
const KIND: &str = "CertificateSigningRequest";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const ADMINISTRATORS: &str = "system:masters";

fn signer_name(object: &Value) -> &str {
    text(&object["spec"]["signerName"])
}

/// Refuses an approval or a denial by somebody who may not `approve` requests of this signer.
pub(super) fn check_approval(
    chain: &AdmissionChain,
    request: &AdmissionRequest<'_>,
    old: &Value,
) -> Result<(), PluginRefusal> {
    if request.subresource != "approval" || !request.is(GROUP, KIND) {
        return Ok(());
    }
    check_signer(chain, request, "approve", signer_name(old))
}

/// Refuses a certificate or a condition by somebody who may not `sign` requests of this signer.
pub(super) fn check_signing(
    chain: &AdmissionChain,
    request: &AdmissionRequest<'_>,
    object: &Value,
    old: &Value,
) -> Result<(), PluginRefusal> {
    let changes = |field: &str| object["status"][field] != old["status"][field];
    if request.subresource != "status"
        || !request.is(GROUP, KIND)
        || !(changes("certificate") || changes("conditions"))
    {
        return Ok(());
    }
    check_signer(chain, request, "sign", signer_name(old))
}

/// Refuses the authorities of a signer by somebody who may not `attest` for it (ctbattest: `Validate`). That a bundle's
/// signer does not change has been checked before.
pub(super) fn check_attestation(
    chain: &AdmissionChain,
    request: &AdmissionRequest<'_>,
    object: &Value,
) -> Result<(), PluginRefusal> {
    let writes = matches!(request.operation, Operation::Create | Operation::Update);
    if !writes || !request.is_whole(GROUP, "ClusterTrustBundle") {
        return Ok(());
    }
    let signer = signer_name(object);
    if signer.is_empty() || is_authorized_for(chain, request, "attest", signer) {
        return Ok(());
    }
    Err(PluginRefusal(format!(
        "user not permitted to attest for signerName {signer:?}"
    )))
}

/// Refuses requests for a client certificate of the administrators' group.
pub(super) fn check_subject(
    request: &AdmissionRequest<'_>,
    object: &Value,
) -> Result<(), PluginRefusal> {
    if request.operation != Operation::Create
        || !request.is_whole(GROUP, KIND)
        || signer_name(object) != CLIENT_SIGNER
    {
        return Ok(());
    }
    let organizations = pem::organizations(&object["spec"]["request"]);
    let organizations = organizations.map_err(|e| format!("failed to parse CSR: {e}"))?;
    if organizations.iter().any(|o| o == ADMINISTRATORS) {
        return Err(PluginRefusal(format!(
            "use of {CLIENT_SIGNER} signer with {ADMINISTRATORS} group is not allowed"
        )));
    }
    Ok(())
}

fn check_signer(
    chain: &AdmissionChain,
    request: &AdmissionRequest<'_>,
    verb: &str,
    signer: &str,
) -> Result<(), PluginRefusal> {
    if is_authorized_for(chain, request, verb, signer) {
        return Ok(());
    }
    Err(PluginRefusal(format!(
        "user not permitted to {verb} requests with signerName {signer:?}"
    )))
}

/// Asks for the verb on the signer, or on all signers of its domain (authorization.go: `IsAuthorizedForSignerName`).
fn is_authorized_for(
    chain: &AdmissionChain,
    request: &AdmissionRequest<'_>,
    verb: &str,
    signer: &str,
) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    let all_of_domain = format!("{domain}/*");
    [signer, &all_of_domain].into_iter().any(|name| {
        let resource = Resource {
            group: GROUP,
            version: "*",
            plural: "signers",
            name: name.to_owned().into(),
            ..Resource::default()
        };
        let question = Attributes {
            verb: verb.to_owned().into(),
            subject: Subject::Resource(resource),
        };
        let decision = chain.access.decide(&request.requester.user, &question);
        decision.allowed
    })
}
