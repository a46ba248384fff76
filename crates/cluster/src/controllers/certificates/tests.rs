//! Who gets which certificate, and when requests are forgotten.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

/// A request for these names, made by a tool that is not ours (`openssl req`), with a P-256 key.
fn asked(common_name: &str, organizations: &[&str]) -> CertificateRequest {
    let mut asked = CertificateRequest::parse(include_bytes!("request.pem")).expect("a request");
    asked.common_name = common_name.to_owned();
    asked.organizations = organizations
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    asked
}

fn usages(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const CLIENT: [&str; 2] = ["digital signature", "client auth"];
const SERVER: [&str; 2] = ["digital signature", "server auth"];
const NODES: &str = "system:nodes";

/// Mirrors `signer_test.go: TestHandle` and `helpers_test.go: TestIsKubeletServingCSR`, `TestIsKubeletClientCSR`.
#[test]
fn signers_sign_what_they_are_for() {
    let node = || asked("system:node:n", &[NODES]);
    let mut serving = node();
    serving
        .ip_addresses
        .push("192.0.2.1".parse().expect("an address"));
    let refuse = |text: &str| Verdict::Refuse(text.to_owned());
    for (signer, request, wanted, expected) in [
        (
            "kube-apiserver-client",
            asked("jane", &["dev"]),
            &CLIENT[..],
            Verdict::Sign,
        ),
        (
            "kube-apiserver-client",
            asked("jane", &[]),
            &["server auth"],
            refuse("invalid usage for client certificate: server auth"),
        ),
        (
            "kube-apiserver-client",
            asked("jane", &[]),
            &["digital signature"],
            refuse("missing required usage for client certificate: client auth"),
        ),
        (
            "kube-apiserver-client-kubelet",
            node(),
            &CLIENT,
            Verdict::Sign,
        ),
        (
            "kube-apiserver-client-kubelet",
            node(),
            &["client auth", "digital signature", "key encipherment"],
            Verdict::Sign,
        ),
        (
            "kube-apiserver-client-kubelet",
            asked("jane", &[NODES]),
            &CLIENT,
            refuse("subject common name does not begin with system:node:"),
        ),
        (
            "kube-apiserver-client-kubelet",
            asked("system:node:n", &["dev"]),
            &CLIENT,
            refuse("subject organization is not system:nodes"),
        ),
        (
            "kube-apiserver-client-kubelet",
            serving.clone(),
            &CLIENT,
            refuse("IP subjectAltNames are not allowed"),
        ),
        (
            "kube-apiserver-client-kubelet",
            node(),
            &SERVER,
            refuse("usages did not match [client auth digital signature key encipherment]"),
        ),
        ("kubelet-serving", serving.clone(), &SERVER, Verdict::Sign),
        (
            "kubelet-serving",
            node(),
            &SERVER,
            refuse("DNS or IP subjectAltName is required"),
        ),
        (
            "kubelet-serving",
            serving,
            &CLIENT,
            refuse("usages did not match [digital signature key encipherment server auth]"),
        ),
        (
            "legacy-unknown",
            asked("anybody", &[]),
            &["cert sign"],
            Verdict::Sign,
        ),
        ("somebody-elses", node(), &CLIENT, Verdict::NotOurs),
    ] {
        let name = format!("kubernetes.io/{signer}");
        assert_eq!(
            verify(&name, &request, &usages(wanted)),
            expected,
            "{signer} {wanted:?}"
        );
    }
}

/// Mirrors `sarapprove_test.go: TestRecognizers` and `TestHandle`.
#[test]
fn kubelets_may_be_approved_for_themselves_and_for_others() {
    let kubelet = "kubernetes.io/kube-apiserver-client-kubelet";
    for (user, signer, request, expected) in [
        (
            "system:node:n",
            kubelet,
            asked("system:node:n", &[NODES]),
            &["selfnodeclient", "nodeclient"][..],
        ),
        (
            "system:bootstrap:t",
            kubelet,
            asked("system:node:n", &[NODES]),
            &["nodeclient"],
        ),
        (
            "system:node:n",
            kubelet,
            asked("system:node:n", &["dev"]),
            &[],
        ),
        (
            "system:node:n",
            "kubernetes.io/kube-apiserver-client",
            asked("system:node:n", &[NODES]),
            &[],
        ),
    ] {
        let found = permissions(user, signer, &request, &usages(&CLIENT));
        let found: Vec<&str> = found.into_iter().map(|(part, _)| part).collect();
        assert_eq!(found, expected, "{user} {signer}");
    }
}

/// Mirrors `signer_test.go: TestDurationIsValid` and `signer.go: duration`.
#[test]
fn certificates_last_as_long_as_asked_within_bounds() {
    for (asked, seconds) in [
        (None, 365 * 24 * 3_600),
        (Some(1), 600),
        (Some(3_600), 3_600),
        (Some(i32::MAX), 365 * 24 * 3_600),
    ] {
        assert_eq!(lifetime(asked), Duration::from_secs(seconds), "{asked:?}");
    }
}

/// Mirrors `cleaner_test.go: TestCleanerWithApprovedExpiredCSR`.
#[test]
fn requests_are_deleted_after_their_time() {
    let moment = "2030-01-01T00:00:00Z";
    let start: Timestamp = moment.parse().expect("a moment");
    let condition =
        |kind: &str| json!([{"type": kind, "status": "True", "lastUpdateTime": moment}]);
    let issued = |seconds: Value| {
        let status = json!({"conditions": condition("Approved"), "certificate": "eA=="});
        (json!({"expirationSeconds": seconds}), status)
    };
    for ((spec, status), minutes) in [
        ((json!({}), json!({})), 24 * 60),
        ((json!({}), json!({"conditions": condition("Denied")})), 60),
        ((json!({}), json!({"conditions": condition("Failed")})), 60),
        (
            (json!({}), json!({"conditions": condition("Approved")})),
            24 * 60,
        ),
        (issued(json!(null)), 60),
        (issued(json!(600)), 10),
    ] {
        let mut object = json!({"metadata": {"name": "r", "creationTimestamp": moment}, "status": status,
            "spec": {"request": "eA==", "signerName": "example.com/s"}});
        object["spec"]["expirationSeconds"] = spec["expirationSeconds"].clone();
        let request: CertificateSigningRequest =
            serde_json::from_value(object.clone()).expect("a request");
        let expected = start + Duration::from_secs(minutes * 60);
        assert_eq!(due(&request), Some(expected), "{object}");
    }
}
