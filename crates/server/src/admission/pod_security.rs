//! `PodSecurity`: pods keep to the standard that the labels of their namespace name.

mod checks;
mod level;

use std::collections::BTreeMap;

use serde_json::Value;

pub(super) use level::{Policy, Standard};

use super::attributes::{AdmissionRequest, Operation};
use crate::kinds::value::{NULL, items, text};
use crate::object;
use checks::Violations;

/// Parts of pods that do not change what a pod is allowed.
const IGNORED: [&str; 4] = ["binding", "eviction", "status", "log"];
/// Most pods that are looked at when the level of a namespace changes.
const MAX_PODS: usize = 3000;

/// What is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Concern {
    /// A namespace whose labels may change the level.
    Namespace,
    /// A pod, which is refused when it breaks the standard.
    Pod,
    /// A template of pods, which earns a warning.
    Template,
}

/// What it is about, if it is about pods at all.
pub(super) fn concern(
    request: &AdmissionRequest<'_>,
    object: &Value,
    old: &Value,
) -> Option<Concern> {
    if request.operation == Operation::Delete {
        return None;
    }
    if request.is("", "Pod") {
        let same = request.operation == Operation::Update && !is_significant(object, old);
        return (!same && !IGNORED.contains(&request.subresource)).then_some(Concern::Pod);
    }
    if !request.subresource.is_empty() {
        return None;
    }
    if request.is("", "Namespace") {
        return Some(Concern::Namespace);
    }
    let (metadata, spec) = template(&request.kind().kind, object);
    let known = match &*request.served.resource.group {
        "" => matches!(
            &*request.served.resource.kind,
            "PodTemplate" | "ReplicationController"
        ),
        "apps" | "batch" => true,
        _ => false,
    };
    (known && (!metadata.is_null() || !spec.is_null())).then_some(Concern::Template)
}

/// Images are what a pod can change that matters here.
fn is_significant(pod: &Value, old: &Value) -> bool {
    let images = |pod: &Value, list: &str| -> Vec<(String, String)> {
        let containers = items(&pod["spec"][list]).iter();
        containers
            .map(|c| (text(&c["name"]).to_owned(), text(&c["image"]).to_owned()))
            .collect()
    };
    let changes = |list| images(pod, list) != images(old, list);
    changes("containers") || changes("initContainers") || {
        let before = images(old, "ephemeralContainers");
        let mut now = images(pod, "ephemeralContainers").into_iter();
        now.any(|container| !before.contains(&container))
    }
}

/// The metadata and spec of the pods that an object makes.
pub(super) fn template<'a>(kind: &str, object: &'a Value) -> (&'a Value, &'a Value) {
    let template = match kind {
        "Pod" => object,
        "PodTemplate" => &object["template"],
        "CronJob" => &object["spec"]["jobTemplate"]["spec"]["template"],
        _ => &object["spec"]["template"],
    };
    if template.is_object() {
        (&template["metadata"], &template["spec"])
    } else {
        (&NULL, &NULL)
    }
}

/// A verdict on a pod or a template.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Why it is refused.
    pub(super) refusal: Option<String>,
    pub(super) warning: Option<String>,
}

/// Judges a pod, or a template, by the standard of its namespace.
pub(super) fn judge(
    policy: &Policy,
    concern: Concern,
    (metadata, spec): (&Value, &Value),
) -> Verdict {
    let violation = |standard: Standard, verb: &str| {
        let violations = checks::run(standard, metadata, spec);
        let details = violations.details();
        details.map(|details| format!("{verb} PodSecurity \"{standard}\": {details}"))
    };
    if concern == Concern::Pod
        && let Some(refusal) = violation(policy.enforce, "violates")
    {
        return Verdict {
            refusal: Some(refusal),
            warning: None,
        };
    }
    Verdict {
        refusal: None,
        warning: violation(policy.warn, "would violate"),
    }
}

/// The warnings when a namespace becomes stricter than the pods in it.
pub(super) fn judge_namespace(
    name: &str,
    policy: &Policy,
    old: &Policy,
    pods: impl FnOnce() -> Vec<Value>,
) -> Vec<String> {
    let (new, old) = (policy.enforce, old.enforce);
    let relaxed = new.version == old.version && new.level <= old.level;
    if new == old || new.is_privileged() || relaxed {
        return Vec::new();
    }
    let pods = pods();
    let mut broken: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in pods.iter().take(MAX_PODS) {
        let violations: Violations = checks::run(new, &pod["metadata"], &pod["spec"]);
        if let Some(reasons) = violations.reasons() {
            let names = broken.entry(reasons).or_default();
            names.push(object::name(pod).to_owned());
        }
    }
    let mut warnings = Vec::new();
    if pods.len() > MAX_PODS {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MAX_PODS} of {} existing pods",
            pods.len()
        ));
    }
    if !broken.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {name:?} violate the new PodSecurity enforce level \"{new}\""
        ));
    }
    let mut lines: Vec<String> = broken.into_iter().map(line).collect();
    lines.sort();
    warnings.extend(lines);
    warnings
}

fn line((reasons, mut names): (String, Vec<String>)) -> String {
    names.sort();
    let first = names.first().map(String::as_str).unwrap_or_default();
    match names.len() {
        1 => format!("{first}: {reasons}"),
        2 => format!("{first} (and 1 other pod): {reasons}"),
        more => format!("{first} (and {} other pods): {reasons}", more - 1),
    }
}

#[cfg(test)]
mod tests;
