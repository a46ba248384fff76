//! Who may do this: the subjects that roles and bindings allow a request to, and by which rule. Pure but for the lists.

use http::{Method, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster::{Call, ClusterError, Connection};
use crate::http::{Body, Problem, json_of};
use crate::query::Query;
use crate::read;
use crate::state::State;

const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A request that somebody might make.
#[derive(Debug)]
struct Wanted<'a> {
    verb: &'a str,
    group: &'a str,
    resource: String,
    /// The namespace; all of them where it has no name.
    namespace: Option<&'a str>,
    name: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
struct List<T> {
    items: Vec<T>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Role {
    metadata: Metadata,
    #[serde(default)]
    rules: Option<Vec<Rule>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Binding {
    metadata: Metadata,
    role_ref: RoleRef,
    #[serde(default)]
    subjects: Option<Vec<Subject>>,
}

#[derive(Debug, Deserialize)]
struct RoleRef {
    kind: String,
    name: String,
}

#[derive(Debug, Deserialize)]
struct Subject {
    kind: String,
    name: String,
    #[serde(default)]
    namespace: Option<String>,
}

/// All roles and bindings that the user may see.
#[derive(Debug, Default)]
struct Policy {
    roles: Vec<Role>,
    cluster_roles: Vec<Role>,
    bindings: Vec<Binding>,
    cluster_bindings: Vec<Binding>,
}

impl Rule {
    fn allows(&self, wanted: &Wanted<'_>) -> bool {
        let has = |list: &[String], text: &str| list.iter().any(|item| item == "*" || item == text);
        let subresource = wanted.resource.split_once('/');
        let any = subresource.map(|(_, subresource)| format!("*/{subresource}"));
        let named = self.resources.iter().any(|item| {
            item == "*" || *item == wanted.resource || any.as_ref().is_some_and(|any| item == any)
        });
        // A rule for one name does not allow requests that name none, such as a list.
        let is_name = self.resource_names.is_empty()
            || wanted
                .name
                .is_some_and(|name| self.resource_names.iter().any(|known| known == name));
        has(&self.verbs, wanted.verb) && has(&self.api_groups, wanted.group) && named && is_name
    }

    fn text(&self) -> String {
        let resources = self.resources.join(", ");
        let names = if self.resource_names.is_empty() {
            String::new()
        } else {
            format!(" named {}", self.resource_names.join(", "))
        };
        format!("{} of {resources}{names}", self.verbs.join(", "))
    }
}

impl Policy {
    /// The first rule of a bound role that allows the request.
    fn rule(
        &self,
        reference: &RoleRef,
        namespace: Option<&str>,
        wanted: &Wanted<'_>,
    ) -> Option<&Rule> {
        let is_role = |role: &&Role| {
            let near =
                reference.kind == "ClusterRole" || role.metadata.namespace.as_deref() == namespace;
            role.metadata.name == reference.name && near
        };
        let roles = if reference.kind == "ClusterRole" {
            &self.cluster_roles
        } else {
            &self.roles
        };
        let rules = roles.iter().find(is_role)?.rules.as_ref()?;
        rules.iter().find(|rule| rule.allows(wanted))
    }

    /// Everybody who may make the request, with the binding and the rule that allow it.
    fn who(&self, wanted: &Wanted<'_>) -> Vec<Value> {
        let everywhere = self
            .cluster_bindings
            .iter()
            .map(|binding| (binding, "ClusterRoleBinding"));
        let near = self
            .bindings
            .iter()
            .filter(|binding| {
                wanted.namespace.is_some()
                    && binding.metadata.namespace.as_deref() == wanted.namespace
            })
            .map(|binding| (binding, "RoleBinding"));
        let mut found = Vec::new();
        for (binding, kind) in everywhere.chain(near) {
            let namespace = binding.metadata.namespace.as_deref();
            let Some(rule) = self.rule(&binding.role_ref, namespace, wanted) else {
                continue;
            };
            for subject in binding.subjects.iter().flatten() {
                found.push(json!({
                    "kind": subject.kind, "name": subject.name, "namespace": subject.namespace,
                    "binding": {"kind": kind, "name": binding.metadata.name, "ns": namespace},
                    "role": {"kind": binding.role_ref.kind, "name": binding.role_ref.name},
                    "rule": rule.text(),
                }));
            }
        }
        found
    }
}

/// Answers who may make a request, as roles and bindings say.
pub(crate) async fn access(state: &State, query: &Query) -> Result<Response<Body>, Problem> {
    let kind = read::kind(state, query).await?;
    let verb = query.need("verb")?;
    let resource = match query.get("subresource") {
        Some(subresource) => format!("{}/{subresource}", kind.plural),
        None => kind.plural.clone(),
    };
    let wanted = Wanted {
        verb,
        group: &kind.group,
        resource,
        namespace: query.get("ns").filter(|_| kind.namespaced),
        name: query.get("name"),
    };
    let connection = &state.feeds.shared.connection;
    let (mut refused, mut policy) = (Vec::new(), Policy::default());
    let namespace = wanted.namespace;
    policy.roles = listed(connection, "roles", namespace, &mut refused).await;
    policy.cluster_roles = listed(connection, "clusterroles", None, &mut refused).await;
    policy.bindings = listed(connection, "rolebindings", namespace, &mut refused).await;
    policy.cluster_bindings = listed(connection, "clusterrolebindings", None, &mut refused).await;
    Ok(json_of(
        &json!({"who": policy.who(&wanted), "notRead": refused}),
    ))
}

/// Reads a kind of the group. One that the user may not see is noted and counts as empty.
async fn listed<T: for<'a> Deserialize<'a>>(
    connection: &Connection,
    plural: &str,
    namespace: Option<&str>,
    refused: &mut Vec<Value>,
) -> Vec<T> {
    let path = match namespace {
        Some(namespace) => {
            format!(
                "{GROUP}/namespaces/{}/{plural}",
                crate::cluster::escape(namespace)
            )
        }
        None => format!("{GROUP}/{plural}"),
    };
    let read = connection.call(Call::new(Method::GET, path)).await;
    let read = read
        .and_then(|body| serde_json::from_slice::<List<T>>(&body).map_err(ClusterError::malformed));
    match read {
        Ok(list) => list.items,
        Err(error) => {
            refused.push(json!({"plural": plural, "why": error.message}));
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        let roles = json!([{"metadata": {"name": "reader", "namespace": "a"},
            "rules": [{"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]}]}]);
        let cluster_roles = json!([{"metadata": {"name": "admin"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]},
            {"metadata": {"name": "one"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"], "verbs": ["delete"]}]}]);
        let bindings = json!([{"metadata": {"name": "r", "namespace": "a"}, "roleRef": {"kind": "Role", "name": "reader"},
            "subjects": [{"kind": "User", "name": "ann"}]},
            {"metadata": {"name": "o", "namespace": "a"}, "roleRef": {"kind": "ClusterRole", "name": "one"},
            "subjects": [{"kind": "ServiceAccount", "name": "sa", "namespace": "a"}]}]);
        let cluster_bindings = json!([{"metadata": {"name": "root"}, "roleRef": {"kind": "ClusterRole", "name": "admin"},
            "subjects": [{"kind": "Group", "name": "system:masters"}]}]);
        fn read<T: for<'a> Deserialize<'a>>(value: Value) -> Vec<T> {
            serde_json::from_value(value).expect("they are objects of the group")
        }
        Policy {
            roles: read(roles),
            cluster_roles: read(cluster_roles),
            bindings: read(bindings),
            cluster_bindings: read(cluster_bindings),
        }
    }

    /// Verb, resource, namespace and name of a request, and who may make it.
    type Case<'a> = (
        &'a str,
        &'a str,
        Option<&'a str>,
        Option<&'a str>,
        &'a [&'a str],
    );

    #[test]
    fn subjects_are_found_through_bindings_of_the_namespace_and_of_the_cluster() {
        let policy = policy();
        let cases: &[Case<'_>] = &[
            ("get", "pods", Some("a"), None, &["system:masters", "ann"]),
            (
                "get",
                "pods/log",
                Some("a"),
                None,
                &["system:masters", "ann"],
            ),
            ("get", "pods/exec", Some("a"), None, &["system:masters"]),
            ("get", "pods", Some("b"), None, &["system:masters"]),
            ("get", "pods", None, None, &["system:masters"]),
            (
                "delete",
                "pods",
                Some("a"),
                Some("x"),
                &["system:masters", "sa"],
            ),
            ("delete", "pods", Some("a"), Some("y"), &["system:masters"]),
            ("delete", "pods", Some("a"), None, &["system:masters"]),
        ];
        for (verb, resource, namespace, name, expected) in cases {
            let wanted = Wanted {
                verb,
                group: "",
                resource: (*resource).to_owned(),
                namespace: *namespace,
                name: *name,
            };
            let who = policy.who(&wanted);
            let names: Vec<&str> = who.iter().filter_map(|one| one["name"].as_str()).collect();
            assert_eq!(names, *expected, "{wanted:?}");
        }
    }
}
