//! What the signers of Kubernetes sign, what is approved without being asked, and when requests are deleted. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_server::CertificateRequest;

/// How long certificates are good at most: `--cluster-signing-duration`.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3_600);
/// How long they are good at least.
const SHORTEST: Duration = Duration::from_secs(600);
/// When requests are deleted that were answered, and those that were not (cleaner.go).
const ANSWERED: Duration = Duration::from_secs(3_600);
const PENDING: Duration = Duration::from_secs(24 * 3_600);

const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// What a signer makes of a request that is approved.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Sign,
    /// It never will be signed, and this is why.
    Refuse(String),
    /// Another signer's, who is not here.
    NotOurs,
}

/// Whether a condition of this type holds.
pub(super) fn has(request: &CertificateSigningRequest, kind: &str) -> bool {
    condition(request, kind).is_some_and(|condition| condition.status == "True")
}

fn condition<'a>(
    request: &'a CertificateSigningRequest,
    kind: &str,
) -> Option<&'a CertificateSigningRequestCondition> {
    let status = request.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == kind)
}

/// Adds a condition.
pub(super) fn add(
    request: &mut CertificateSigningRequest,
    (kind, reason): (&str, &str),
    message: &str,
    now: Timestamp,
) {
    let status = request.status.get_or_insert_default();
    let conditions = status.conditions.get_or_insert_default();
    conditions.push(CertificateSigningRequestCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    });
}

/// Whether a certificate was made.
pub(super) fn is_issued(request: &CertificateSigningRequest) -> bool {
    let status = request.status.as_ref();
    let certificate = status.and_then(|status| status.certificate.as_ref());
    certificate.is_some_and(|certificate| !certificate.0.is_empty())
}

/// Whether a signer signs this (signer.go: `isKubeletServing`, `isKubeletClient`, `isKubeAPIServerClient`, `isLegacyUnknown`).
pub(super) fn verify(signer: &str, asked: &CertificateRequest, usages: &[String]) -> Verdict {
    let checked = match signer {
        "kubernetes.io/kubelet-serving" => kubelet_serving(asked, usages),
        KUBELET_CLIENT => kubelet_client(asked, usages),
        "kubernetes.io/kube-apiserver-client" => api_server_client(usages),
        "kubernetes.io/legacy-unknown" => Ok(()),
        _ => return Verdict::NotOurs,
    };
    match checked {
        Ok(()) => Verdict::Sign,
        Err(why) => Verdict::Refuse(why.0),
    }
}

/// Why a signer refuses a request, in the words of the real one.
struct Refusal(String);

impl From<&str> for Refusal {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// Mirrors `helpers.go: ValidateKubeletServingCSR`.
fn kubelet_serving(asked: &CertificateRequest, usages: &[String]) -> Result<(), Refusal> {
    if asked.organizations != ["system:nodes"] {
        return Err("subject organization is not system:nodes".into());
    }
    if asked.dns_names.is_empty() && asked.ip_addresses.is_empty() {
        return Err("DNS or IP subjectAltName is required".into());
    }
    if !asked.emails.is_empty() {
        return Err("Email subjectAltNames are not allowed".into());
    }
    if !asked.uris.is_empty() {
        return Err("URI subjectAltNames are not allowed".into());
    }
    are_usages_of(usages, "server auth")?;
    is_node(asked)
}

/// Mirrors `helpers.go: ValidateKubeletClientCSR`.
fn kubelet_client(asked: &CertificateRequest, usages: &[String]) -> Result<(), Refusal> {
    if asked.organizations != ["system:nodes"] {
        return Err("subject organization is not system:nodes".into());
    }
    for (found, what) in [
        (!asked.dns_names.is_empty(), "DNS"),
        (!asked.emails.is_empty(), "Email"),
        (!asked.ip_addresses.is_empty(), "IP"),
        (!asked.uris.is_empty(), "URI"),
    ] {
        if found {
            return Err(Refusal(format!("{what} subjectAltNames are not allowed")));
        }
    }
    is_node(asked)?;
    are_usages_of(usages, "client auth")
}

fn is_node(asked: &CertificateRequest) -> Result<(), Refusal> {
    if asked.common_name.starts_with("system:node:") {
        Ok(())
    } else {
        Err("subject common name does not begin with system:node:".into())
    }
}

/// Signatures and this usage; keys may be exchanged as well, which RSA needs.
fn are_usages_of(usages: &[String], role: &str) -> Result<(), Refusal> {
    let found: BTreeSet<&str> = usages.iter().map(String::as_str).collect();
    let few = BTreeSet::from(["digital signature", role]);
    let all = BTreeSet::from(["digital signature", "key encipherment", role]);
    if found == few || found == all {
        return Ok(());
    }
    let wanted: Vec<&str> = all.into_iter().collect();
    Err(Refusal(format!(
        "usages did not match [{}]",
        wanted.join(" ")
    )))
}

/// Mirrors `signer.go: validAPIServerClientUsages`.
fn api_server_client(usages: &[String]) -> Result<(), Refusal> {
    for usage in usages {
        if !matches!(
            usage.as_str(),
            "digital signature" | "key encipherment" | "client auth"
        ) {
            let text = format!("invalid usage for client certificate: {usage}");
            return Err(Refusal(text));
        }
    }
    if usages.iter().any(|usage| usage == "client auth") {
        Ok(())
    } else {
        Err("missing required usage for client certificate: client auth".into())
    }
}

/// How long a certificate is good (signer.go: `duration`).
pub(super) fn lifetime(expiration_seconds: Option<i32>) -> Duration {
    let asked = expiration_seconds.map(|seconds| u64::try_from(seconds).unwrap_or(0));
    asked.map_or(LONGEST, |seconds| {
        Duration::from_secs(seconds).clamp(SHORTEST, LONGEST)
    })
}

/// A permission with which whoever asks gets its certificate without being asked: the subresource of
/// `certificatesigningrequests` that it has to be allowed to create, and the message of the approval.
pub(super) type Permission = (&'static str, &'static str);

/// What may approve a request (sarapprove.go: `recognizers`).
pub(super) fn permissions(
    username: &str,
    signer: &str,
    asked: &CertificateRequest,
    usages: &[String],
) -> Vec<Permission> {
    if signer != KUBELET_CLIENT || kubelet_client(asked, usages).is_err() {
        return Vec::new();
    }
    let own = (
        "selfnodeclient",
        "Auto approving self kubelet client certificate after SubjectAccessReview.",
    );
    let any = (
        "nodeclient",
        "Auto approving kubelet client certificate after SubjectAccessReview.",
    );
    let own = (username == asked.common_name).then_some(own);
    own.into_iter().chain([any]).collect()
}

/// When a request is deleted (cleaner.go: `handle`).
pub(super) fn due(request: &CertificateSigningRequest) -> Option<Timestamp> {
    let after = |kind: &str, wait: Duration| {
        let since = condition(request, kind)?.last_update_time.as_ref()?;
        Some(since.0 + wait)
    };
    let seconds = request.spec.expiration_seconds;
    let approved = if is_issued(request) {
        after("Approved", ANSWERED.min(lifetime(seconds)))
    } else {
        after("Approved", PENDING)
    };
    let status = request.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let created = request.metadata.creation_timestamp.as_ref();
    let unanswered = conditions.is_none_or(Vec::is_empty);
    let pending = created.filter(|_| unanswered).map(|time| time.0 + PENDING);
    let answered = [after("Denied", ANSWERED), after("Failed", ANSWERED)];
    let all = answered.into_iter().chain([approved, pending]);
    all.flatten().min()
}
