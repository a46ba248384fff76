//! Roles compared with what was used of them. Pure: objects of roles in, permissions out.

use std::fmt;

use serde_json::Value;

use crate::access::Access;

/// What requests can be seen to use; `bind`, `escalate` and the like are asked for on the side.
const VERBS: [&str; 8] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];

/// One verb on one resource, as a role grants it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Permission {
    /// The verb, or `*`.
    pub verb: String,
    /// The API group, or `*`.
    pub group: String,
    /// The resource with its subresource, or `*`.
    pub resource: String,
    /// Only objects of these names; an empty list means all.
    pub names: Vec<String>,
    /// Only in this namespace, or everywhere if it is not set.
    pub namespace: Option<String>,
}

/// How a role compares with what an operator did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoleUse {
    /// What is granted, and nothing that was done needed it.
    pub unused: Vec<Permission>,
    /// What was done, or tried, and is not granted.
    pub missing: Vec<Access>,
}

impl Permission {
    /// The permissions of a role that is bound in a namespace, or everywhere.
    pub(crate) fn of_role(role: &Value, namespace: Option<&str>) -> Vec<Self> {
        let rules = role["rules"].as_array().into_iter().flatten();
        rules
            .flat_map(|rule| Self::of_rule(rule, namespace))
            .collect()
    }

    fn of_rule(rule: &Value, namespace: Option<&str>) -> Vec<Self> {
        let mut permissions = Vec::new();
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                permissions.extend(texts(&rule["verbs"]).into_iter().map(|verb| Self {
                    verb,
                    group: group.clone(),
                    resource: resource.clone(),
                    names: texts(&rule["resourceNames"]),
                    namespace: namespace.map(str::to_owned),
                }));
            }
        }
        permissions
    }

    /// Whether it allows this.
    pub fn allows(&self, access: &Access) -> bool {
        let is = |granted: &str, wanted: &str| granted == "*" || granted == wanted;
        let part = access.resource.split_once('/').map(|(_, part)| part);
        let any_resource = |part| self.resource.strip_prefix("*/") == Some(part);
        is(&self.verb, access.verb)
            && is(&self.group, &access.group)
            && (is(&self.resource, &access.resource) || part.is_some_and(any_resource))
            && (self.names.is_empty() || self.names.contains(&access.name))
            && self
                .namespace
                .as_ref()
                .is_none_or(|it| *it == access.namespace)
    }

    /// Whether a request can show that it is needed. Owner references that block a deletion need `finalizers` of the owner,
    /// which no request names.
    fn is_visible(&self) -> bool {
        let known = self.verb == "*" || VERBS.contains(&self.verb.as_str());
        known && !self.resource.ends_with("/finalizers")
    }
}

impl RoleUse {
    /// Compares permissions with what was used.
    pub fn compare(granted: &[Permission], used: &[Access]) -> Self {
        let needed = |it: &&Permission| !it.is_visible() || used.iter().any(|use_| it.allows(use_));
        let unused = granted.iter().filter(|it| !needed(it)).cloned();
        let allowed = |it: &Access| granted.iter().any(|permission| permission.allows(it));
        let missing = used.iter().filter(|it| !allowed(it)).cloned();
        let mut compared = Self {
            unused: unused.collect(),
            missing: missing.collect(),
        };
        compared.unused.sort();
        compared.unused.dedup();
        compared
    }

    /// Whether the role is what the operator needs, no less and no more.
    pub fn is_exact(&self) -> bool {
        self.unused.is_empty() && self.missing.is_empty()
    }
}

/// `get deployments.apps`, `update leases.coordination.k8s.io in namespace a`.
impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if !self.names.is_empty() {
            write!(f, " {}", self.names.join(", "))?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// A line for each permission that is missing, with the attribute that grants it, and for each that is unused.
impl fmt::Display for RoleUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for missing in &self.missing {
            writeln!(f, "missing: {missing}; add {}", missing.attribute())?;
        }
        for unused in &self.unused {
            writeln!(f, "unused: {unused}")?;
        }
        Ok(())
    }
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn access(verb: &'static str, resource: &str, name: &str) -> Access {
        Access {
            verb,
            group: String::new(),
            resource: resource.to_owned(),
            namespace: "a".to_owned(),
            name: name.to_owned(),
        }
    }

    fn role() -> Vec<Permission> {
        let role = json!({"rules": [
            {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "patch"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["x"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["pods/finalizers"], "verbs": ["update"]},
        ]});
        Permission::of_role(&role, None)
    }

    #[test]
    fn what_nothing_needed_is_unused_and_what_is_not_granted_is_missing() {
        let used = [
            access("get", "pods", "p"),
            access("patch", "pods/status", "p"),
            access("get", "secrets", "y"),
        ];
        let text = RoleUse::compare(&role(), &used).to_string();
        let expected = "missing: get secrets a/y; add #[kubewright::rbac(groups = \"\", resources = \"secrets\", verbs = \"get\")]\n\
            unused: get pods/status\nunused: get secrets x\nunused: patch pods\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn stars_allow_everything_of_their_place() {
        let role =
            json!({"rules": [{"apiGroups": ["*"], "resources": ["*/status"], "verbs": ["*"]}]});
        let granted = Permission::of_role(&role, Some("a"));
        let used = [access("patch", "pods/status", "p")];
        assert!(RoleUse::compare(&granted, &used).is_exact());
        let elsewhere = Access {
            namespace: "b".to_owned(),
            ..used[0].clone()
        };
        assert_eq!(RoleUse::compare(&granted, &[elsewhere]).missing.len(), 1);
    }
}
