//! Checks of the restricted level: what a pod has to renounce.

use std::collections::BTreeSet;

use serde_json::Value;

use super::baseline::{adding, bad_seccomp, baseline_capabilities};
use super::{Pod, Violation, named, plural, quoted, setters, violation};
use crate::kinds::value::{entries, items, strings, text};

pub(super) fn privilege_escalation(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows(25) || !pod.standard.since(8) {
        return None;
    }
    let bad = pod.where_context(|c| c["allowPrivilegeEscalation"] != Value::Bool(false));
    if bad.is_empty() {
        return None;
    }
    let detail = format!(
        "{} must set securityContext.allowPrivilegeEscalation=false",
        named(&bad)
    );
    violation("allowPrivilegeEscalation != false", detail)
}

pub(super) fn restricted_capabilities(pod: &Pod<'_>) -> Option<Violation> {
    if !pod.standard.since(22) {
        return baseline_capabilities(pod);
    }
    if pod.is_windows(25) {
        return None;
    }
    let keeps = pod.where_context(|c| !strings(&c["capabilities"]["drop"]).any(|d| d == "ALL"));
    let (bad, added) = adding(pod, |capability| capability == "NET_BIND_SERVICE");
    let mut details = Vec::new();
    if !keeps.is_empty() {
        details.push(format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            named(&keeps)
        ));
    }
    if !bad.is_empty() {
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            named(&bad),
            quoted(&added)
        ));
    }
    if details.is_empty() {
        return None;
    }
    violation("unrestricted capabilities", details.join("; "))
}

pub(super) fn restricted_volumes(pod: &Pod<'_>) -> Option<Violation> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let (mut bad, mut kinds) = (Vec::new(), BTreeSet::new());
    for volume in items(&pod.spec["volumes"]) {
        let mut sources = entries(volume).map(|(source, _)| source.as_str());
        let source = sources
            .find(|source| *source != "name")
            .unwrap_or("unknown");
        if !ALLOWED.contains(&source) {
            bad.push(text(&volume["name"]));
            kinds.insert(source);
        }
    }
    if bad.is_empty() {
        return None;
    }
    let detail = format!(
        "{} {} {} {} {}",
        plural("volume", "volumes", bad.len()),
        quoted(&bad),
        plural("uses", "use", bad.len()),
        plural(
            "restricted volume type",
            "restricted volume types",
            kinds.len()
        ),
        quoted(&kinds)
    );
    violation("restricted volume types", detail)
}

pub(super) fn run_as_non_root(pod: &Pod<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if pod.has_own_users() {
        return None;
    }
    let of_pod = pod.context()["runAsNonRoot"].as_bool();
    let explicit = pod.where_context(|c| c["runAsNonRoot"] == Value::Bool(false));
    if let Some(who) = setters(of_pod == Some(false), &explicit) {
        let detail = format!("{who} must not set securityContext.runAsNonRoot=false");
        return violation(REASON, detail);
    }
    let silent = pod.where_context(|c| c["runAsNonRoot"].is_null());
    if of_pod == Some(true) || silent.is_empty() {
        return None;
    }
    let detail = format!(
        "pod or {} must set securityContext.runAsNonRoot=true",
        named(&silent)
    );
    violation(REASON, detail)
}

pub(super) fn run_as_user(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_own_users() || !pod.standard.since(23) {
        return None;
    }
    let root = |context: &Value| context["runAsUser"].as_i64() == Some(0);
    let who = setters(root(pod.context()), &pod.where_context(root))?;
    violation("runAsUser=0", format!("{who} must not set runAsUser=0"))
}

pub(super) fn restricted_seccomp(pod: &Pod<'_>) -> Option<Violation> {
    if !pod.standard.since(19) || pod.is_windows(25) {
        return None;
    }
    if let Some(found) = bad_seccomp(pod) {
        return Some(found);
    }
    let silent = pod.where_context(|c| c["seccompProfile"].is_null());
    if silent.is_empty() || !pod.context()["seccompProfile"].is_null() {
        return None;
    }
    let detail = format!(
        "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
        named(&silent)
    );
    violation("seccompProfile", detail)
}
