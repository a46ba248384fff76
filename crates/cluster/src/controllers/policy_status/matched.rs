//! Which resources a policy names. Pure.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    NamedRuleWithOperations, ValidatingAdmissionPolicySpec,
};
use kube::core::GroupVersionResource;

/// Most kinds that a rule may name to be checked to its end.
pub(super) const MOST: usize = 10;

/// The resources that each rule names, in order (`typechecking.go: typesToCheck`). A rule with a wildcard in its groups or
/// versions names none; resources with one, and subresources, are passed over.
pub(super) fn resources(spec: &ValidatingAdmissionPolicySpec) -> Vec<Vec<GroupVersionResource>> {
    let constraints = spec.match_constraints.as_ref();
    let rules = constraints.and_then(|constraints| constraints.resource_rules.as_deref());
    rules.unwrap_or_default().iter().map(of_rule).collect()
}

fn of_rule(rule: &NamedRuleWithOperations) -> Vec<GroupVersionResource> {
    let (Some(groups), Some(versions)) = (plain(&rule.api_groups), plain(&rule.api_versions))
    else {
        return Vec::new();
    };
    let resources = rule.resources.as_deref().unwrap_or_default();
    let resources = resources.iter().filter(|name| !name.contains(['*', '/']));
    let resources: BTreeSet<&String> = resources.collect();
    let mut found = Vec::new();
    for group in &groups {
        for version in &versions {
            let named = resources.iter();
            found.extend(named.map(|name| GroupVersionResource::gvr(group, version, name)));
        }
    }
    found
}

/// The names of a list in order, or nothing when one of them is a wildcard.
fn plain(names: &Option<Vec<String>>) -> Option<BTreeSet<&String>> {
    let names = names.as_deref().unwrap_or_default();
    let has_wildcard = names.iter().any(|name| name.contains('*'));
    (!has_wildcard).then(|| names.iter().collect())
}
