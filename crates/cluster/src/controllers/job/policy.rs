//! Pod failure policies and success policies: what the end of a pod means for its job. Pure.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{
    JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::{indexes, saturate};

/// What a failed pod means for its job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It counts towards the limit.
    Count,
    /// It does not count towards the limit.
    Ignore,
    /// It counts, and its index has failed.
    FailIndex,
    /// The job has failed, for this reason.
    FailJob(String),
}

/// Judges a failed pod by the first rule that matches.
pub(crate) fn judge(spec: &JobSpec, pod: &Pod) -> Verdict {
    let rules = spec
        .pod_failure_policy
        .iter()
        .flat_map(|policy| &policy.rules);
    for (at, rule) in rules.enumerate() {
        let Some(found) = by_code(rule, pod).or_else(|| by_condition(rule, pod)) else {
            continue;
        };
        return match rule.action.as_str() {
            "Ignore" => Verdict::Ignore,
            "FailIndex" => Verdict::FailIndex,
            "FailJob" => Verdict::FailJob(format!("{found} matching FailJob rule at index {at}")),
            _ => Verdict::Count,
        };
    }
    Verdict::Count
}

/// What a container ended with, in words, if the rule is about that.
fn by_code(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let asked = rule.on_exit_codes.as_ref()?;
    let status = pod.status.as_ref()?;
    let init = status.init_container_statuses.iter().flatten();
    let mut all = status.container_statuses.iter().flatten().chain(init);
    let (container, code) = all.find_map(|container| {
        let code = exit_code(asked, container)?;
        Some((container, code))
    })?;
    Some(format!(
        "Container {} for pod {} failed with exit code {code}",
        container.name,
        shown(pod)
    ))
}

fn exit_code(
    asked: &PodFailurePolicyOnExitCodesRequirement,
    container: &ContainerStatus,
) -> Option<i32> {
    if asked
        .container_name
        .as_ref()
        .is_some_and(|name| *name != container.name)
    {
        return None;
    }
    let code = container.state.as_ref()?.terminated.as_ref()?.exit_code;
    let listed = asked.values.contains(&code);
    let meant = match asked.operator.as_str() {
        "In" => listed,
        _ => !listed,
    };
    (meant && code != 0).then_some(code)
}

/// The condition of a pod, in words, if the rule is about it.
fn by_condition(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let asked = rule.on_pod_conditions.as_ref()?;
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|condition| {
        let is_it =
            |asked: &&k8s_openapi::api::batch::v1::PodFailurePolicyOnPodConditionsPattern| {
                let status = asked.status.as_deref().unwrap_or("True");
                asked.type_ == condition.type_ && status == condition.status
            };
        asked.iter().find(is_it).is_some()
    })?;
    Some(format!("Pod {} has condition {}", shown(pod), found.type_))
}

fn shown(pod: &Pod) -> String {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    format!(
        "{namespace}/{}",
        pod.metadata.name.as_deref().unwrap_or_default()
    )
}

/// The first rule of the success policy that these indexes meet.
pub(crate) fn success(spec: &JobSpec, completed: &BTreeSet<i32>) -> Option<usize> {
    let end = spec.completions.unwrap_or_default();
    let mut rules = spec.success_policy.as_ref()?.rules.iter();
    rules.position(|rule| {
        let wanted = rule
            .succeeded_indexes
            .as_deref()
            .map(|text| indexes::parse(text, end));
        let met = match &wanted {
            Some(wanted) => completed.intersection(wanted).count(),
            None => completed.len(),
        };
        let enough = rule
            .succeeded_count
            .or(wanted.map(|wanted| saturate(wanted.len())));
        enough.is_some_and(|enough| saturate(met) >= enough)
    })
}
