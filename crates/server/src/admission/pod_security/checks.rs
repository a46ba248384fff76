//! The checks of the pod security standards, each a function of a pod's metadata and spec.

mod baseline;
mod restricted;

use serde_json::Value;

use super::level::{Level, Standard};
use crate::kinds::value::{items, text};
use baseline::{
    app_armor, baseline_capabilities, baseline_seccomp, host_namespaces, host_path_volumes,
    host_ports, host_probes, privileged, proc_mount, se_linux, sysctls, windows_host_process,
};
use restricted::{
    privilege_escalation, restricted_capabilities, restricted_seccomp, restricted_volumes,
    run_as_non_root, run_as_user,
};

/// What one check found.
pub(super) struct Violation {
    reason: &'static str,
    detail: String,
}

/// What all checks found, in the order of the checks.
pub(super) struct Violations(Vec<Violation>);

impl Violations {
    /// Reasons with details, as a refusal tells them.
    pub(super) fn details(&self) -> Option<String> {
        let each = self
            .0
            .iter()
            .map(|v| format!("{} ({})", v.reason, v.detail));
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| each.join(", "))
    }

    /// Reasons alone, as a namespace's warning tells them.
    pub(super) fn reasons(&self) -> Option<String> {
        let each: Vec<&str> = self.0.iter().map(|v| v.reason).collect();
        (!each.is_empty()).then(|| each.join(", "))
    }
}

/// A pod as checks see it.
struct Pod<'a> {
    metadata: &'a Value,
    spec: &'a Value,
    standard: Standard,
}

type Check = fn(&Pod<'_>) -> Option<Violation>;

/// Sorted by the names that Kubernetes gives them.
const BASELINE: [Check; 12] = [
    app_armor,
    baseline_capabilities,
    host_namespaces,
    host_path_volumes,
    host_ports,
    host_probes,
    privileged,
    proc_mount,
    se_linux,
    baseline_seccomp,
    sysctls,
    windows_host_process,
];

/// Those of the baseline that the restricted level replaces are left out.
const RESTRICTED: [Check; 16] = [
    app_armor,
    host_namespaces,
    host_path_volumes,
    host_ports,
    host_probes,
    privileged,
    proc_mount,
    se_linux,
    sysctls,
    windows_host_process,
    privilege_escalation,
    restricted_capabilities,
    restricted_volumes,
    run_as_non_root,
    run_as_user,
    restricted_seccomp,
];

/// Runs the checks of a standard.
pub(super) fn run(standard: Standard, metadata: &Value, spec: &Value) -> Violations {
    let checks: &[Check] = match standard.level {
        Level::Privileged => &[],
        Level::Baseline => &BASELINE,
        Level::Restricted => &RESTRICTED,
    };
    let pod = Pod {
        metadata,
        spec,
        standard,
    };
    Violations(checks.iter().filter_map(|check| check(&pod)).collect())
}

impl<'a> Pod<'a> {
    fn containers(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        let spec = self.spec;
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(move |list| items(&spec[list]))
    }

    /// The names of containers for whose security context this holds.
    fn where_context(&self, holds: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        let found = self.containers().filter(|c| holds(&c["securityContext"]));
        found.map(|container| text(&container["name"])).collect()
    }

    fn context(&self) -> &'a Value {
        &self.spec["securityContext"]
    }

    fn is_windows(&self, since: u32) -> bool {
        self.standard.since(since) && self.spec["os"]["name"] == "windows"
    }

    /// Users of the pod are not those of the node.
    fn has_own_users(&self) -> bool {
        self.standard.since(35) && self.spec["hostUsers"] == Value::Bool(false)
    }
}

fn violation(reason: &'static str, detail: String) -> Option<Violation> {
    Some(Violation { reason, detail })
}

fn quoted<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let names: Vec<String> = names
        .into_iter()
        .map(|n| format!("\"{}\"", n.as_ref()))
        .collect();
    names.join(", ")
}

fn plural<'a>(one: &'a str, many: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { many }
}

/// `containers "a", "b"`
fn named(names: &[&str]) -> String {
    format!(
        "{} {}",
        plural("container", "containers", names.len()),
        quoted(names)
    )
}

/// `pod and container "a"`: who sets something, if anybody does.
fn setters(pod: bool, containers: &[&str]) -> Option<String> {
    let mut who = Vec::new();
    if pod {
        who.push("pod".to_owned());
    }
    if !containers.is_empty() {
        who.push(named(containers));
    }
    (!who.is_empty()).then(|| who.join(" and "))
}
