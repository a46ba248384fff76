//! ClusterRoles that are aggregated from others: which they are, and their rules.

use std::collections::HashSet;

use kubewright_schema::selector::LabelSelector;
use serde_json::Value;

use super::{ClusterRole, Policy};
use crate::access::rule::Rule;
use crate::object::{self, StoredLabels};
use crate::storage::Pairs;

/// The selectors of a ClusterRole's aggregation rule. One that cannot be read selects nothing.
pub(super) fn selectors(object: &Value) -> Vec<LabelSelector> {
    let selectors = object["aggregationRule"]["clusterRoleSelectors"].as_array();
    let selectors = selectors.into_iter().flatten();
    selectors
        .map(|one| LabelSelector::from_object(one).unwrap_or_else(|_| LabelSelector::nothing()))
        .collect()
}

impl Policy {
    /// The rules of an aggregated ClusterRole: those of all others that it selects, by selector and name, each
    /// once. Nothing when it is not aggregated.
    pub(crate) fn aggregated(&self, object: &Value) -> Option<Vec<Rule>> {
        let selectors = selectors(object);
        (!selectors.is_empty()).then(|| self.collect(object::name(object), &selectors))
    }

    /// Of the roles that select any of these labels, and of `name` itself, those whose rules are outdated.
    pub(crate) fn outdated(&self, name: &str, labels: &[&Pairs]) -> Vec<String> {
        let outdated = self.aggregating.iter().filter(|candidate| {
            let Some(role) = self.cluster_roles.get(*candidate) else {
                return false;
            };
            let concerned = *candidate == name || labels.iter().any(|l| selects(role, l));
            concerned && *role.rules != *self.collect(candidate, &role.selectors)
        });
        outdated.cloned().collect()
    }

    /// All aggregated roles whose rules are outdated.
    pub(crate) fn all_outdated(&self) -> Vec<String> {
        let names = self.aggregating.iter();
        names.flat_map(|name| self.outdated(name, &[])).collect()
    }

    /// The labels of a ClusterRole.
    pub(crate) fn labels(&self, name: &str) -> Option<Pairs> {
        Some(self.cluster_roles.get(name)?.labels.clone())
    }

    fn collect(&self, own: &str, selectors: &[LabelSelector]) -> Vec<Rule> {
        let mut seen = HashSet::new();
        let mut rules = Vec::new();
        for selector in selectors {
            let selected = self.cluster_roles.iter();
            let selected = selected.filter(|(name, role)| {
                *name != own && selector.matches(&StoredLabels(&role.labels))
            });
            for rule in selected.flat_map(|(_, role)| role.rules.iter()) {
                if seen.insert(rule) {
                    rules.push(rule.clone());
                }
            }
        }
        rules
    }
}

fn selects(role: &ClusterRole, labels: &Pairs) -> bool {
    role.selectors
        .iter()
        .any(|selector| selector.matches(&StoredLabels(labels)))
}
