//! Rules of roles and uses of them, as far as this lane compares them.

use std::fmt;

use anyhow::Result;
use serde_json::Value;

use super::account;
use super::cluster::Cluster;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// One use of a permission, as the audit log has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    verb: String,
    group: String,
    resource: String,
    namespace: String,
    name: String,
}

/// A rule that the manager's account has, everywhere or in one namespace.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    role: String,
    rule: Value,
    namespace: Option<String>,
}

impl Use {
    /// The use that an audit event shows; requests for documents show none.
    pub(super) fn of(event: &Value) -> Option<Self> {
        let reference = event["objectRef"].as_object()?;
        let text = |name: &str| {
            let value = reference.get(name).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let mut resource = text("resource");
        if !text("subresource").is_empty() {
            resource = format!("{resource}/{}", text("subresource"));
        }
        Some(Self {
            verb: event["verb"].as_str()?.to_owned(),
            group: text("apiGroup"),
            resource,
            namespace: text("namespace"),
            name: text("name"),
        })
    }
}

impl Grant {
    /// Every rule of the roles that are bound to the manager's account.
    pub(super) async fn all(c: &Cluster<'_>) -> Result<Vec<Self>> {
        let mut grants = Vec::new();
        for kind in ["clusterrolebindings", "rolebindings"] {
            let bindings = c.get(&format!("{RBAC}/{kind}")).await?;
            for binding in bindings["items"].as_array().into_iter().flatten() {
                if is_for_manager(binding) {
                    grants.extend(Self::of(c, binding).await?);
                }
            }
        }
        Ok(grants)
    }

    async fn of(c: &Cluster<'_>, binding: &Value) -> Result<Vec<Self>> {
        let namespace = binding["metadata"]["namespace"].as_str();
        let name = binding["roleRef"]["name"].as_str().unwrap_or_default();
        let path = match (binding["roleRef"]["kind"].as_str(), namespace) {
            (Some("Role"), Some(namespace)) => {
                format!("{RBAC}/namespaces/{namespace}/roles/{name}")
            }
            _ => format!("{RBAC}/clusterroles/{name}"),
        };
        let role = c.get(&path).await?;
        let rules = role["rules"].as_array().cloned().unwrap_or_default();
        let grant = |rule| Self {
            role: name.to_owned(),
            rule,
            namespace: namespace.map(str::to_owned),
        };
        Ok(rules.into_iter().map(grant).collect())
    }

    /// Whether it allows a use.
    pub(super) fn allows(&self, it: &Use) -> bool {
        let names = &self.rule["resourceNames"];
        has(&self.rule["verbs"], &it.verb)
            && has(&self.rule["apiGroups"], &it.group)
            && has(&self.rule["resources"], &it.resource)
            && (names.is_null() || has(names, &it.name))
            && self
                .namespace
                .as_ref()
                .is_none_or(|namespace| *namespace == it.namespace)
    }

    /// Its verbs that nothing used.
    pub(super) fn unused_verbs(&self, used: &[Use]) -> Vec<String> {
        let verbs = self.rule["verbs"].as_array().into_iter().flatten();
        let is_used = |verb: &&str| used.iter().any(|it| it.verb == **verb && self.allows(it));
        let unused = verbs
            .filter_map(Value::as_str)
            .filter(|verb| !is_used(verb));
        unused
            .map(|verb| {
                format!(
                    "{verb} {}",
                    self.rule["resources"][0].as_str().unwrap_or_default()
                )
            })
            .collect()
    }
}

fn is_for_manager(binding: &Value) -> bool {
    let subjects = binding["subjects"].as_array().into_iter().flatten();
    let name = |subject: &Value| {
        let text = |field: &str| subject[field].as_str().unwrap_or_default().to_owned();
        format!(
            "system:serviceaccount:{}:{}",
            text("namespace"),
            text("name")
        )
    };
    subjects
        .into_iter()
        .any(|subject| name(subject) == account::user())
}

fn has(list: &Value, wanted: &str) -> bool {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str)
        .any(|it| it == wanted || it == "*")
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.rule, self.role)
    }
}
