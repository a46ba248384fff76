//! Certificate requests and trust bundles.

use kubewright_schema::duration::human;
use serde_json::Value;

use super::{Entry, entry};
use crate::printers::column::{AGE, Column, NAME, text as column};
use crate::printers::selector;
use crate::printers::view::{View, condition, or, text};

const GROUP: &str = "certificates.k8s.io";

const SIGNING_REQUEST: &[Column] = &[
    NAME,
    AGE,
    column("SignerName"),
    column("Requestor"),
    column("RequestedDuration"),
    column("Condition"),
];

const TRUST_BUNDLE: &[Column] = &[NAME, column("SignerName")];

const POD_REQUEST: &[Column] = &[
    NAME,
    column("PodName"),
    column("ServiceAccountName"),
    column("NodeName"),
    column("SignerName"),
    column("State"),
    column("UnverifiedUserAnnotations"),
];

pub(super) const KINDS: &[Entry] = &[
    entry(
        GROUP,
        "CertificateSigningRequest",
        SIGNING_REQUEST,
        signing_request,
    ),
    entry(GROUP, "ClusterTrustBundle", TRUST_BUNDLE, trust_bundle),
    entry(GROUP, "PodCertificateRequest", POD_REQUEST, pod_request),
];

fn signing_request(view: &View<'_>) -> Vec<Value> {
    let duration = view.at("spec.expirationSeconds").and_then(Value::as_i64);
    cells![
        view.name(),
        view.age(),
        or(view.text("spec.signerName"), "<none>"),
        view.text("spec.username"),
        duration.map_or_else(|| "<none>".to_owned(), human),
        signing_condition(view),
    ]
}

/// `Approved,Issued`
fn signing_condition(view: &View<'_>) -> String {
    let has = |type_| condition(view.list("status.conditions"), type_).is_some();
    let mut text = if has("Denied") {
        "Denied".to_owned()
    } else if has("Approved") {
        "Approved".to_owned()
    } else {
        "Pending".to_owned()
    };
    if has("Failed") {
        text.push_str(",Failed");
    }
    if !view.text("status.certificate").is_empty() {
        text.push_str(",Issued");
    }
    text
}

fn trust_bundle(view: &View<'_>) -> Vec<Value> {
    cells![view.name(), or(view.text("spec.signerName"), "<none>")]
}

fn pod_request(view: &View<'_>) -> Vec<Value> {
    let state = view
        .list("status.conditions")
        .iter()
        .map(|condition| text(condition, "type"))
        .rfind(|type_| matches!(*type_, "Issued" | "Denied" | "Failed"))
        .unwrap_or("Pending");
    cells![
        view.name(),
        view.text("spec.podName"),
        view.text("spec.serviceAccountName"),
        view.text("spec.nodeName"),
        view.text("spec.signerName"),
        state,
        selector::labels(view.object, "spec.unverifiedUserAnnotations"),
    ]
}
