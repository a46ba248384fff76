//! FlowSchemas: which requests belong together, and to which priority level.
//!
//! Mirrors `matchesFlowSchema` and its parts in `k8s.io/apiserver/pkg/util/flowcontrol/rule.go`.

use std::sync::Arc;

use serde_json::Value;

use crate::access::{Attributes, Resource, Subject};
use crate::auth::User;
use crate::kinds::value::{is_true, items, strings, text};
use crate::object;

/// Where a schema without a precedence stands.
const DEFAULT_PRECEDENCE: i64 = 1_000;
const EVERYTHING: &str = "*";

/// A FlowSchema as requests are compared with it.
#[derive(Debug)]
pub(super) struct FlowSchema {
    pub(super) name: Arc<str>,
    pub(super) uid: Arc<str>,
    /// Name of its priority level.
    pub(super) level: Arc<str>,
    pub(super) distinguisher: Distinguisher,
    precedence: i64,
    rules: Vec<Rule>,
}

/// What tells the flows of a schema apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Distinguisher {
    /// All requests are one flow.
    Nothing,
    User,
    Namespace,
}

/// Subjects, and what they do.
#[derive(Debug)]
struct Rule {
    subjects: Vec<Who>,
    resources: Vec<ResourceRule>,
    paths: Vec<PathRule>,
}

#[derive(Debug)]
enum Who {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

#[derive(Debug)]
struct ResourceRule {
    verbs: Vec<String>,
    groups: Vec<String>,
    resources: Vec<String>,
    namespaces: Vec<String>,
    cluster_scope: bool,
}

#[derive(Debug)]
struct PathRule {
    verbs: Vec<String>,
    paths: Vec<String>,
}

impl FlowSchema {
    pub(super) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let distinguisher = match text(&spec["distinguisherMethod"]["type"]) {
            "ByUser" => Distinguisher::User,
            "ByNamespace" => Distinguisher::Namespace,
            _ => Distinguisher::Nothing,
        };
        Self {
            name: object::name(object).into(),
            uid: text(&object["metadata"]["uid"]).into(),
            level: text(&spec["priorityLevelConfiguration"]["name"]).into(),
            distinguisher,
            precedence: spec["matchingPrecedence"]
                .as_i64()
                .unwrap_or(DEFAULT_PRECEDENCE),
            rules: items(&spec["rules"]).iter().map(Rule::read).collect(),
        }
    }

    /// Schemas are tried in this order, and the first that matches decides.
    pub(super) fn order(&self) -> (i64, &str) {
        (self.precedence, &self.name)
    }

    pub(super) fn matches(&self, user: &User, asked: &Attributes<'_>) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| rule.subjects.iter().any(|s| s.is(user)) && rule.covers(asked))
    }
}

impl Rule {
    fn read(rule: &Value) -> Self {
        Self {
            subjects: items(&rule["subjects"])
                .iter()
                .filter_map(Who::read)
                .collect(),
            resources: items(&rule["resourceRules"])
                .iter()
                .map(ResourceRule::read)
                .collect(),
            paths: items(&rule["nonResourceRules"])
                .iter()
                .map(PathRule::read)
                .collect(),
        }
    }

    fn covers(&self, asked: &Attributes<'_>) -> bool {
        match &asked.subject {
            Subject::Resource(resource) => self
                .resources
                .iter()
                .any(|rule| rule.covers(&asked.verb, resource)),
            Subject::Path(path) => self.paths.iter().any(|rule| rule.covers(&asked.verb, path)),
        }
    }
}

impl Who {
    fn read(subject: &Value) -> Option<Self> {
        match text(&subject["kind"]) {
            "User" => Some(Self::User(text(&subject["user"]["name"]).to_owned())),
            "Group" => Some(Self::Group(text(&subject["group"]["name"]).to_owned())),
            "ServiceAccount" => Some(Self::ServiceAccount {
                namespace: text(&subject["serviceAccount"]["namespace"]).to_owned(),
                name: text(&subject["serviceAccount"]["name"]).to_owned(),
            }),
            _ => None,
        }
    }

    fn is(&self, user: &User) -> bool {
        match self {
            Self::User(name) => name == EVERYTHING || *name == user.name,
            Self::Group(name) => name == EVERYTHING || user.groups.contains(name),
            Self::ServiceAccount { namespace, name } => {
                let account = user.name.strip_prefix("system:serviceaccount:");
                account
                    .and_then(|account| account.split_once(':'))
                    .is_some_and(|(home, own)| {
                        home == namespace && (name == EVERYTHING || own == name)
                    })
            }
        }
    }
}

impl ResourceRule {
    fn read(rule: &Value) -> Self {
        Self {
            verbs: owned(&rule["verbs"]),
            groups: owned(&rule["apiGroups"]),
            resources: owned(&rule["resources"]),
            namespaces: owned(&rule["namespaces"]),
            cluster_scope: is_true(&rule["clusterScope"]),
        }
    }

    fn covers(&self, verb: &str, asked: &Resource<'_>) -> bool {
        let scope = match asked.namespace {
            "" => self.cluster_scope,
            namespace => lists(&self.namespaces, namespace),
        };
        scope
            && lists(&self.verbs, verb)
            && lists(&self.groups, asked.group)
            && self
                .resources
                .iter()
                .any(|known| known == EVERYTHING || names(known, asked))
    }
}

/// Whether a rule's `pods` or `pods/status` is what is asked for.
fn names(known: &str, asked: &Resource<'_>) -> bool {
    match (known.split_once('/'), asked.subresource) {
        (None, "") => known == asked.plural,
        (None, _) => false,
        (Some((plural, part)), subresource) => plural == asked.plural && part == subresource,
    }
}

impl PathRule {
    fn read(rule: &Value) -> Self {
        Self {
            verbs: owned(&rule["verbs"]),
            paths: owned(&rule["nonResourceURLs"]),
        }
    }

    fn covers(&self, verb: &str, path: &str) -> bool {
        lists(&self.verbs, verb)
            && self
                .paths
                .iter()
                .any(|known| match known.strip_suffix("/*") {
                    _ if known == EVERYTHING => true,
                    Some(_) => path.starts_with(&known[..known.len() - 1]),
                    None => known == path,
                })
    }
}

fn owned(list: &Value) -> Vec<String> {
    strings(list).map(str::to_owned).collect()
}

fn lists(known: &[String], value: &str) -> bool {
    known.iter().any(|k| k == EVERYTHING || k == value)
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;
    use crate::http::path;
    use crate::http::query::Query;
    use crate::request::RequestInfo;

    fn matches(rule: Value, user: &User, request: &str) -> bool {
        let schema =
            FlowSchema::read(&json!({"metadata": {"name": "s"}, "spec": {"rules": [rule]}}));
        let (method, path) = request.split_once(' ').expect("a method and a path");
        let method: Method = method.parse().expect("a method");
        let info = RequestInfo::of(&method, path, path::parse(path), Query::default());
        schema.matches(user, &Attributes::of_request(&info))
    }

    fn account() -> User {
        User::new("system:serviceaccount:team:bot", ["system:serviceaccounts"])
    }

    #[test]
    fn subjects_are_users_groups_and_service_accounts() {
        let everything =
            json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}]);
        for (subject, expected) in [
            (json!({"kind": "User", "user": {"name": "*"}}), true),
            (json!({"kind": "User", "user": {"name": "bob"}}), false),
            (
                json!({"kind": "Group", "group": {"name": "system:serviceaccounts"}}),
                true,
            ),
            (json!({"kind": "Group", "group": {"name": "other"}}), false),
            (
                json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "team", "name": "*"}}),
                true,
            ),
            (
                json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "team", "name": "bot"}}),
                true,
            ),
            (
                json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "te", "name": "*"}}),
                false,
            ),
        ] {
            let rule = json!({"subjects": [subject], "resourceRules": everything});
            let found = matches(rule.clone(), &account(), "GET /api/v1/namespaces/a/pods");
            assert_eq!(found, expected, "{rule}");
        }
    }

    #[test]
    fn rules_are_about_verbs_resources_scopes_and_paths() {
        let rule = json!({
            "subjects": [{"kind": "User", "user": {"name": "*"}}],
            "resourceRules": [
                {"verbs": ["get", "create"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["a"]},
                {"verbs": ["*"], "apiGroups": [""], "resources": ["nodes", "nodes/status"], "clusterScope": true},
            ],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/metrics/*"]}],
        });
        for (request, expected) in [
            (
                "POST /apis/coordination.k8s.io/v1/namespaces/a/leases",
                true,
            ),
            (
                "POST /apis/coordination.k8s.io/v1/namespaces/b/leases",
                false,
            ),
            (
                "DELETE /apis/coordination.k8s.io/v1/namespaces/a/leases/x",
                false,
            ),
            ("GET /apis/coordination.k8s.io/v1/leases", false),
            ("PATCH /api/v1/nodes/n/status", true),
            ("GET /api/v1/nodes/n/proxy", false),
            ("GET /api/v1/nodes", true),
            ("GET /api/v1/pods", false),
            ("GET /healthz", true),
            ("GET /healthz/ping", false),
            ("GET /metrics/cadvisor", true),
            ("POST /healthz", false),
        ] {
            assert_eq!(
                matches(rule.clone(), &account(), request),
                expected,
                "{request}"
            );
        }
    }
}
