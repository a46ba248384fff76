//! Roles from permissions, merged as controller-gen merges them, so that both write the same.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use crate::Rule;

/// A role of the cluster or of a namespace.
#[derive(Serialize, Clone, Debug, PartialEq)]
#[serde(untagged)]
#[non_exhaustive]
pub enum RoleDocument {
    /// For all namespaces, and for what has none.
    ClusterRole(ClusterRole),
    /// For what is in one namespace.
    Role(Role),
}

/// The roles that these permissions make: one for each namespace and name, those of the cluster first.
///
/// ```
/// use kubewright_manifests::{Rule, role};
///
/// let may = |resource: &str, verbs: &[&str]| Rule {
///     groups: vec!["apps".into()],
///     resources: vec![resource.into()],
///     verbs: verbs.iter().map(ToString::to_string).collect(),
///     ..Rule::default()
/// };
/// let rules = [may("deployments", &["list", "get"]), may("statefulsets", &["get", "list"])];
/// let roles = role::roles(&rules, "manager-role");
/// let role::RoleDocument::ClusterRole(role) = &roles[0] else { unreachable!() };
/// let rule = &role.rules.as_ref().unwrap()[0];
/// assert_eq!(rule.resources.as_deref().unwrap(), ["deployments", "statefulsets"]);
/// ```
pub fn roles(rules: &[Rule], role_name: &str) -> Vec<RoleDocument> {
    let mut roles: BTreeMap<(&str, &str), Vec<Parts>> = BTreeMap::new();
    for rule in rules {
        let namespace = rule.namespace.as_deref().unwrap_or_default();
        let name = rule.role.as_deref().unwrap_or(role_name);
        roles
            .entry((namespace, name))
            .or_default()
            .extend(Parts::split(rule));
    }
    let documents = roles.into_iter().map(|((namespace, name), parts)| {
        let rules = Some(merge(parts));
        let mut metadata = ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        if namespace.is_empty() {
            return RoleDocument::ClusterRole(ClusterRole {
                metadata,
                rules,
                ..ClusterRole::default()
            });
        }
        metadata.namespace = Some(namespace.to_owned());
        RoleDocument::Role(Role { metadata, rules })
    });
    documents.collect()
}

type Texts = BTreeSet<String>;

/// A permission whose lists are sorted sets.
#[derive(Debug, Clone)]
struct Parts {
    groups: Texts,
    resources: Texts,
    names: Texts,
    urls: Texts,
    verbs: Texts,
}

impl Parts {
    /// One for each resource.
    fn split(rule: &Rule) -> Vec<Self> {
        let set = |list: &[String]| list.iter().cloned().collect::<Texts>();
        // People write the core group by its name.
        let groups = rule.groups.iter().map(|group| match group.as_str() {
            "core" => String::new(),
            other => other.to_owned(),
        });
        let whole = Self {
            groups: groups.collect(),
            resources: Texts::new(),
            names: set(&rule.resource_names),
            urls: set(&rule.urls),
            verbs: set(&rule.verbs),
        };
        if rule.resources.is_empty() {
            return vec![whole];
        }
        let each = rule.resources.iter().map(|resource| Self {
            resources: Texts::from([resource.clone()]),
            ..whole.clone()
        });
        each.collect()
    }

    fn policy(mut self) -> PolicyRule {
        let list = |set: Texts| (!set.is_empty()).then(|| set.into_iter().collect());
        if self.verbs.contains("*") {
            self.verbs = Texts::from(["*".to_owned()]);
        }
        PolicyRule {
            api_groups: list(self.groups),
            resources: list(self.resources),
            resource_names: list(self.names),
            non_resource_urls: list(self.urls),
            verbs: self.verbs.into_iter().collect(),
        }
    }
}

/// Merges verbs of equal subjects, then resources, groups and URLs of what is otherwise equal.
fn merge(parts: Vec<Parts>) -> Vec<PolicyRule> {
    let parts = fold(
        parts,
        |p| [&p.groups, &p.resources, &p.names, &p.urls].map(Clone::clone),
        |p| &mut p.verbs,
    );
    let parts = fold(
        parts,
        |p| [&p.groups, &p.names, &p.urls, &p.verbs].map(Clone::clone),
        |p| &mut p.resources,
    );
    let parts = fold(
        parts,
        |p| [&p.resources, &p.names, &p.urls, &p.verbs].map(Clone::clone),
        |p| &mut p.groups,
    );
    let mut parts = fold(
        parts,
        |p| [&p.groups, &p.resources, &p.names, &p.verbs].map(Clone::clone),
        |p| &mut p.urls,
    );
    parts.sort_by_cached_key(key);
    parts.into_iter().map(Parts::policy).collect()
}

/// Those with the same key become one, with the sets that `merged` chooses united.
fn fold<const N: usize>(
    parts: Vec<Parts>,
    key: impl Fn(&Parts) -> [Texts; N],
    merged: impl Fn(&mut Parts) -> &mut Texts,
) -> Vec<Parts> {
    let mut folded: BTreeMap<[Texts; N], Parts> = BTreeMap::new();
    for mut part in parts {
        match folded.get_mut(&key(&part)) {
            Some(first) => merged(first).append(merged(&mut part)),
            None => {
                folded.insert(key(&part), part);
            }
        }
    }
    folded.into_values().collect()
}

/// What controller-gen sorts by: the lists as text.
fn key(part: &Parts) -> String {
    let join = |set: &Texts| set.iter().map(String::as_str).collect::<Vec<_>>().join("&");
    let (groups, resources) = (join(&part.groups), join(&part.resources));
    format!(
        "{groups} + {resources} + {} + {}",
        join(&part.names),
        join(&part.urls)
    )
}
