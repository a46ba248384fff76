//! What pods use of a quota, and which pods a quota is about. Pure.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceQuota, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kubewright_schema::quantity::Quantity;

use super::usage::Tally;

/// Resources whose requests a quota also knows by their bare name.
const BARE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Which side of a container's needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Requests,
    Limits,
}

/// What a pod uses. One that has ended counts as an object alone.
pub(super) fn usage(pod: &Pod, now: Timestamp) -> Tally {
    let mut tally = Tally::default();
    tally.count("count/pods", 1);
    if has_ended(pod, now) {
        return tally;
    }
    tally.count("pods", 1);
    let Some(spec) = &pod.spec else {
        return tally;
    };
    for (name, amount) in needs(spec, Side::Requests).iter() {
        tally.add(format!("requests.{name}"), amount);
        if BARE.contains(&name) || name.starts_with("hugepages-") {
            tally.add(name, amount);
        }
    }
    for (name, amount) in needs(spec, Side::Limits).iter() {
        tally.add(format!("limits.{name}"), amount);
    }
    tally
}

/// A pod has ended when it says so, or when its grace period is over without a report.
fn has_ended(pod: &Pod, now: Timestamp) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    if matches!(phase, Some("Succeeded" | "Failed")) {
        return true;
    }
    let meta = &pod.metadata;
    let (Some(deletion), Some(grace)) =
        (&meta.deletion_timestamp, meta.deletion_grace_period_seconds)
    else {
        return false;
    };
    let end = deletion.0.saturating_add(SignedDuration::from_secs(grace));
    end.is_ok_and(|end| now > end)
}

/// What a pod needs: its containers together, or the largest of those that run before them, and what running it costs.
fn needs(spec: &PodSpec, side: Side) -> Tally {
    let mut running = Tally::default();
    for container in &spec.containers {
        running.add_all(&amounts(container.resources.as_ref(), side));
    }
    let (mut before, mut beside) = (Tally::default(), Tally::default());
    for container in spec.init_containers.iter().flatten() {
        let own = amounts(container.resources.as_ref(), side);
        if is_sidecar(container) {
            running.add_all(&own);
            beside.add_all(&own);
            before.at_least(&beside);
        } else {
            let mut together = beside.clone();
            together.add_all(&own);
            before.at_least(&together);
        }
    }
    running.at_least(&before);
    // What the pod declares as a whole counts instead.
    for (name, amount) in amounts(spec.resources.as_ref(), side).iter() {
        running.set(name, amount.clone());
    }
    let overhead = list(spec.overhead.as_ref());
    match side {
        Side::Requests => running.add_all(&overhead),
        // Overhead counts only for resources that have a limit.
        Side::Limits => {
            for (name, amount) in overhead.iter() {
                if !running.get(name).is_zero() {
                    running.add(name, amount);
                }
            }
        }
    }
    running
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn amounts(resources: Option<&ResourceRequirements>, side: Side) -> Tally {
    list(resources.and_then(|resources| match side {
        Side::Requests => resources.requests.as_ref(),
        Side::Limits => resources.limits.as_ref(),
    }))
}

fn list(amounts: Option<&BTreeMap<String, Text>>) -> Tally {
    let mut tally = Tally::default();
    for (name, amount) in amounts.into_iter().flatten() {
        tally.add_text(name.as_str(), amount);
    }
    tally
}

/// Whether a quota is about some pods only.
pub(super) fn has_scopes(quota: &ResourceQuota) -> bool {
    let spec = quota.spec.as_ref();
    spec.is_some_and(|spec| {
        spec.scopes
            .as_ref()
            .is_some_and(|scopes| !scopes.is_empty())
            || spec.scope_selector.is_some()
    })
}

/// Whether a quota is about this pod.
pub(super) fn in_scope(quota: &ResourceQuota, pod: &Pod) -> bool {
    let Some((spec, pod)) = quota.spec.as_ref().zip(pod.spec.as_ref()) else {
        return true;
    };
    let plain = spec.scopes.iter().flatten();
    let selected = spec
        .scope_selector
        .iter()
        .flat_map(|s| s.match_expressions.iter().flatten());
    let none = Vec::new();
    plain
        .into_iter()
        .all(|scope| matches(scope, "Exists", &none, pod))
        && selected.into_iter().all(|e| {
            let values = e.values.as_ref().unwrap_or(&none);
            matches(&e.scope_name, &e.operator, values, pod)
        })
}

fn matches(scope: &str, operator: &str, values: &[String], pod: &PodSpec) -> bool {
    match scope {
        "Terminating" => pod.active_deadline_seconds.is_some_and(|s| s >= 0),
        "NotTerminating" => pod.active_deadline_seconds.is_none_or(|s| s < 0),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
        "PriorityClass" => {
            let class = pod
                .priority_class_name
                .as_deref()
                .filter(|class| !class.is_empty());
            let named = class.is_some_and(|class| values.iter().any(|value| value == class));
            match operator {
                "In" => named,
                "NotIn" => !named,
                "DoesNotExist" => class.is_none(),
                _ => class.is_some(),
            }
        }
        _ => false,
    }
}

/// Whether no container asks for processor or memory.
fn is_best_effort(pod: &PodSpec) -> bool {
    let asks = |side| {
        let needs = needs(
            &PodSpec {
                overhead: None,
                ..pod.clone()
            },
            side,
        );
        let asked = |name: &str| !Quantity::is_zero(&needs.get(name));
        asked("cpu") || asked("memory")
    };
    !asks(Side::Requests) && !asks(Side::Limits)
}

/// Whether affinity of the pod looks at pods of other namespaces.
fn reaches_other_namespaces(pod: &PodSpec) -> bool {
    let Some(affinity) = &pod.affinity else {
        return false;
    };
    let near = affinity.pod_affinity.iter();
    let near = near.flat_map(|a| {
        let hard = a
            .required_during_scheduling_ignored_during_execution
            .iter()
            .flatten();
        let soft = a
            .preferred_during_scheduling_ignored_during_execution
            .iter()
            .flatten();
        hard.chain(soft.map(|w| &w.pod_affinity_term))
    });
    let far = affinity.pod_anti_affinity.iter();
    let far = far.flat_map(|a| {
        let hard = a
            .required_during_scheduling_ignored_during_execution
            .iter()
            .flatten();
        let soft = a
            .preferred_during_scheduling_ignored_during_execution
            .iter()
            .flatten();
        hard.chain(soft.map(|w| &w.pod_affinity_term))
    });
    near.chain(far).any(|term| {
        term.namespaces.as_ref().is_some_and(|n| !n.is_empty()) || term.namespace_selector.is_some()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).expect("a pod")
    }

    fn container(cpu: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"cpu": "2"}}})
    }

    fn used(pod: &Pod, name: &str) -> String {
        usage(pod, Timestamp::UNIX_EPOCH).get(name).to_string()
    }

    #[test]
    fn pods_use_what_their_containers_ask_for_together() {
        let plain = pod(json!({"containers": [container("500m"), container("1")]}));
        for (name, expected) in [
            ("pods", "1"),
            ("count/pods", "1"),
            ("cpu", "1500m"),
            ("requests.cpu", "1500m"),
            ("memory", "2Gi"),
            ("limits.cpu", "4"),
            ("limits.memory", "0"),
        ] {
            assert_eq!(used(&plain, name), expected, "{name}");
        }
    }

    #[test]
    fn containers_that_run_before_count_when_they_ask_for_more() {
        let mut sidecar = container("250m");
        sidecar["restartPolicy"] = json!("Always");
        let large =
            pod(json!({"containers": [container("1")], "initContainers": [container("3")]}));
        assert_eq!(used(&large, "requests.cpu"), "3");
        let beside = pod(
            json!({"containers": [container("1")], "initContainers": [sidecar, container("1")]}),
        );
        assert_eq!(used(&beside, "requests.cpu"), "1250m");
    }

    #[test]
    fn ended_pods_count_as_objects_alone() {
        let mut ended = pod(json!({"containers": [container("1")]}));
        ended.status.get_or_insert_default().phase = Some("Succeeded".to_owned());
        for (name, expected) in [("count/pods", "1"), ("pods", "0"), ("requests.cpu", "0")] {
            assert_eq!(used(&ended, name), expected, "{name}");
        }
    }

    #[test]
    fn scopes_choose_pods() {
        let quota = |spec: Value| -> ResourceQuota {
            serde_json::from_value(json!({"metadata": {"name": "q"}, "spec": spec}))
                .expect("a quota")
        };
        let burst = pod(json!({"containers": [container("1")], "priorityClassName": "high"}));
        let idle = pod(json!({"containers": [{"name": "c"}], "activeDeadlineSeconds": 5}));
        let class = |operator: &str, values: &[&str]| {
            let expression =
                json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
            json!({"scopeSelector": {"matchExpressions": [expression]}})
        };
        for (spec, first, second) in [
            (json!({}), true, true),
            (json!({"scopes": ["BestEffort"]}), false, true),
            (json!({"scopes": ["NotBestEffort"]}), true, false),
            (
                json!({"scopes": ["Terminating", "BestEffort"]}),
                false,
                true,
            ),
            (json!({"scopes": ["NotTerminating"]}), true, false),
            (class("In", &["high"]), true, false),
            (class("NotIn", &["high"]), false, true),
            (class("Exists", &[]), true, false),
        ] {
            let quota = quota(spec.clone());
            assert_eq!(
                (in_scope(&quota, &burst), in_scope(&quota, &idle)),
                (first, second),
                "{spec}"
            );
        }
    }
}
