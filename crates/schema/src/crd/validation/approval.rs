//! Groups of the Kubernetes community need an approval to be named in an annotation.

use serde_json::{Value, json};

use crate::field::FieldError;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

#[derive(PartialEq, Eq)]
enum Approval {
    Missing,
    Invalid,
    Bypassed,
    Approved,
}

/// What is wrong with the approval of a CRD; one that has not changed is not looked at again.
pub(super) fn errors(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    let group = crd["spec"]["group"].as_str().unwrap_or("");
    let protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        let below = group.strip_suffix(domain);
        below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
    });
    let now = approval(crd);
    if !protected || old.is_some_and(|old| approval(old) == now) {
        return None;
    }
    let field = format!("metadata.annotations[{ANNOTATION}]");
    match now {
        Approval::Approved | Approval::Bypassed => None,
        Approval::Missing => {
            let detail =
                format!("protected groups must have approval annotation \"{ANNOTATION}\", {SEE}");
            Some(FieldError::required(field, &detail))
        }
        Approval::Invalid => {
            let detail = format!(
                "protected groups must have approval annotation \"{ANNOTATION}\" with either a URL or a reason \
                 starting with \"unapproved\", {SEE}"
            );
            Some(FieldError::invalid(field, &json!(annotation(crd)), &detail))
        }
    }
}

fn annotation(crd: &Value) -> &str {
    crd["metadata"]["annotations"][ANNOTATION]
        .as_str()
        .unwrap_or("")
}

fn approval(crd: &Value) -> Approval {
    let text = annotation(crd);
    let host = text.split_once("://").map(|(scheme, rest)| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or("");
        !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric()) && !host.is_empty()
    });
    if text.is_empty() {
        Approval::Missing
    } else if text.starts_with("unapproved") {
        Approval::Bypassed
    } else if host == Some(true) {
        Approval::Approved
    } else {
        Approval::Invalid
    }
}
