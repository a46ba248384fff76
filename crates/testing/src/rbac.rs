//! Roles proven by tests: what an operator is granted is enough for it, and none of it is too much.
//!
//! [`assert_exact`] runs a scenario with the role of a manifest, and then once without each of its verbs: the first must
//! succeed and the others must not. A verb that was forgotten or that nobody needs any more fails the test by its name.

use std::collections::BTreeSet;

use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use kubewright_server::{Server, User};
use serde_json::Value;

use crate::{Fault, Permission, Wire};

/// A service account, its roles and what binds them, as the `rbac.yaml` of an operator has them.
#[derive(Debug, Clone)]
pub struct Grant {
    account: Value,
    roles: Vec<Value>,
    bindings: Vec<Value>,
}

/// Why a manifest is no [`Grant`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// Some text is no YAML.
    #[error("a document cannot be read")]
    Unreadable(#[source] Box<serde_saphyr::Error>),
    /// There is not exactly one service account.
    #[error("there is not exactly one {0}")]
    NotOne(&'static str),
    /// The role is missing, or nothing binds it.
    #[error("there is no {0}")]
    Missing(&'static str),
    /// No binding has the service account for its subject.
    #[error("no binding is for the service account")]
    NotBound,
}

impl Grant {
    /// Reads a manifest with a service account, roles and bindings, in whatever order.
    ///
    /// # Errors
    /// When there is not one ServiceAccount, or no role that is bound to it.
    pub fn read(manifest: &str) -> Result<Self, GrantError> {
        let documents = manifest
            .split("---\n")
            .filter(|text| !text.trim().is_empty())
            .map(serde_saphyr::from_str)
            .collect::<Result<Vec<Value>, _>>()
            .map_err(|error| GrantError::Unreadable(Box::new(error)))?;
        Self::of(&documents)
    }

    /// Takes the service account from objects, with the bindings that are for it and their roles.
    ///
    /// # Errors
    /// As [`Grant::read`].
    pub fn of(objects: &[Value]) -> Result<Self, GrantError> {
        let all = |suffix: &'static str| {
            let of_kind = move |it: &&Value| {
                let kind = it["kind"].as_str().unwrap_or_default();
                kind.strip_suffix(suffix)
                    .is_some_and(|rest| matches!(rest, "" | "Cluster"))
            };
            let found: Vec<Value> = objects.iter().filter(of_kind).cloned().collect();
            let missing = found.is_empty().then_some(GrantError::Missing(suffix));
            missing.map_or(Ok(found), Err)
        };
        let accounts = objects.iter().filter(|it| it["kind"] == "ServiceAccount");
        let accounts: Vec<&Value> = accounts.collect();
        let [account] = accounts[..] else {
            return Err(GrantError::NotOne("ServiceAccount"));
        };
        let (mut roles, mut bindings) = (all("Role")?, all("RoleBinding")?);
        bindings.retain(|binding| is_for(binding, account));
        roles.retain(|role| bindings.iter().any(|binding| binds(binding, role)));
        if bindings.is_empty() {
            return Err(GrantError::NotBound);
        }
        Ok(Self {
            account: account.clone(),
            roles,
            bindings,
        })
    }

    /// Creates all of it on a server, as its administrator.
    ///
    /// # Errors
    /// When the server refuses one.
    pub async fn install(&self, server: &Server) -> Result<(), kube::Error> {
        let client = kube::Client::new(server.service(), "default");
        let objects = std::iter::once(&self.account).chain(&self.roles);
        for document in objects.chain(&self.bindings) {
            create(&client, document).await?;
        }
        Ok(())
    }

    /// The namespaces that its objects are in.
    pub fn namespaces(&self) -> BTreeSet<String> {
        let objects = std::iter::once(&self.account).chain(&self.roles);
        let objects = objects.chain(&self.bindings);
        let named = objects.filter_map(|it| it["metadata"]["namespace"].as_str());
        named.map(str::to_owned).collect()
    }

    /// What its roles allow, verb by verb.
    pub fn permissions(&self) -> Vec<Permission> {
        let mut permissions = Vec::new();
        for binding in &self.bindings {
            let namespace = match binding["kind"].as_str() {
                Some("RoleBinding") => binding["metadata"]["namespace"]
                    .as_str()
                    .or(Some("default")),
                _ => None,
            };
            for role in self.roles.iter().filter(|role| binds(binding, role)) {
                permissions.extend(Permission::of_role(role, namespace));
            }
        }
        permissions
    }

    /// The same without the roles of these names.
    #[must_use]
    pub fn without_roles(&self, names: &[&str]) -> Self {
        let mut less = self.clone();
        let is_left = |name: &Value| !name.as_str().is_some_and(|name| names.contains(&name));
        less.roles.retain(|role| is_left(&role["metadata"]["name"]));
        less
    }

    /// Makes a transport to a server on which every request is the service account's.
    ///
    /// The server does not stream lists on it: an operator that may run elsewhere needs the verb `list`.
    pub fn wire(&self, server: &Server) -> Wire {
        let wire = Wire::new(server.service_as(self.user()));
        wire.plan(|call| {
            if call.query.contains("sendInitialEvents") {
                Fault::Refuse {
                    code: 422,
                    reason: "Invalid",
                }
            } else {
                Fault::None
            }
        });
        wire
    }

    /// Who the service account is.
    pub fn user(&self) -> User {
        let metadata = &self.account["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or("default");
        let name = metadata["name"].as_str().unwrap_or_default();
        User::new(
            format!("system:serviceaccount:{namespace}:{name}"),
            [
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ],
        )
    }

    /// The same without one verb of one rule, for each of them, with its name.
    pub fn lessened(&self) -> Vec<(String, Self)> {
        let mut lessened = Vec::new();
        for (role, document) in self.roles.iter().enumerate() {
            let rules = document["rules"].as_array().into_iter().flatten();
            for (number, rule) in rules.enumerate() {
                let verbs = rule["verbs"].as_array().into_iter().flatten();
                lessened.extend(verbs.map(|verb| self.without((role, number), rule, verb)));
            }
        }
        lessened
    }

    fn without(
        &self,
        (role, number): (usize, usize),
        rule: &Value,
        verb: &Value,
    ) -> (String, Self) {
        let mut less = self.clone();
        if let Some(rules) = less.roles[role]["rules"].as_array_mut() {
            if let Some(verbs) = rules[number]["verbs"].as_array_mut() {
                verbs.retain(|other| other != verb);
            }
            // A rule without verbs is refused.
            rules.retain(|rule| rule["verbs"] != Value::Array(Vec::new()));
        }
        let verb = verb.as_str().unwrap_or_default();
        (format!("{verb} of {}", rule["resources"]), less)
    }
}

/// Whether a binding is for a service account.
fn is_for(binding: &Value, account: &Value) -> bool {
    let mut subjects = binding["subjects"].as_array().into_iter().flatten();
    subjects.any(|subject| {
        subject["kind"] == "ServiceAccount"
            && subject["name"] == account["metadata"]["name"]
            && subject["namespace"] == account["metadata"]["namespace"]
    })
}

/// Whether a binding is of this role.
fn binds(binding: &Value, role: &Value) -> bool {
    let named = &binding["roleRef"];
    let same_place = role["kind"] == "ClusterRole"
        || role["metadata"]["namespace"] == binding["metadata"]["namespace"];
    named["kind"] == role["kind"] && named["name"] == role["metadata"]["name"] && same_place
}

/// Asserts that a scenario succeeds with a grant and fails without any verb of it.
///
/// # Panics
/// When it does not, by the name of the verb that is too much.
pub async fn assert_exact(grant: &Grant, does_its_work: impl AsyncFn(&Grant) -> bool) {
    assert!(does_its_work(grant).await, "the role is not enough");
    for (what, less) in grant.lessened() {
        assert!(!does_its_work(&less).await, "{what} is too much");
    }
}

async fn create(client: &kube::Client, document: &Value) -> Result<(), kube::Error> {
    let text = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
    let types = TypeMeta {
        api_version: text("apiVersion"),
        kind: text("kind"),
    };
    let (group, version) = match types.api_version.split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", types.api_version.as_str()),
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    let object: DynamicObject =
        serde_json::from_value(document.clone()).map_err(kube::Error::SerdeError)?;
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
kind: ServiceAccount
apiVersion: v1
metadata: {name: robot, namespace: default}
---
kind: Role
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: robot, namespace: default}
rules:
- {apiGroups: [''], resources: [pods], verbs: [list, watch]}
- {apiGroups: [''], resources: [secrets], verbs: [get]}
---
kind: RoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: robot, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: robot}
subjects: [{kind: ServiceAccount, name: robot, namespace: default}]
";

    #[test]
    fn every_verb_is_left_out_once() {
        let grant = Grant::read(MANIFEST).expect("a grant");
        let lessened = grant.lessened();
        let names: Vec<&str> = lessened.iter().map(|(name, _)| &**name).collect();
        assert_eq!(
            names,
            [
                r#"list of ["pods"]"#,
                r#"watch of ["pods"]"#,
                r#"get of ["secrets"]"#
            ]
        );
        assert_eq!(lessened[0].1.roles[0]["rules"][0]["verbs"][0], "watch");
        assert_eq!(
            lessened[2].1.roles[0]["rules"].as_array().map(Vec::len),
            Some(1)
        );
    }

    #[test]
    fn manifests_without_a_part_are_reported() {
        let without = |kind: &str| {
            let documents = MANIFEST.split("---\n");
            let left: Vec<&str> = documents
                .filter(|text| !text.contains(&format!("kind: {kind}\napi")))
                .collect();
            Grant::read(&left.join("---\n")).expect_err("a part is missing")
        };
        let account = without("ServiceAccount");
        assert!(matches!(account, GrantError::NotOne("ServiceAccount")));
        for kind in ["Role", "RoleBinding"] {
            let error = without(kind);
            assert!(
                matches!(error, GrantError::Missing(of) if of == kind),
                "{kind}"
            );
        }
        let other = MANIFEST.replace("name: robot, namespace: default}]", "name: other}]");
        assert!(matches!(Grant::read(&other), Err(GrantError::NotBound)));
        assert!(matches!(Grant::read("{"), Err(GrantError::Unreadable(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn verbs_that_nobody_needs_are_reported() {
        let grant = Grant::read(MANIFEST).expect("a grant");
        let reads = async |grant: &Grant| {
            let server = Server::builder()
                .authorization(kubewright_server::Authorization::Rbac)
                .start();
            let server = server.await.expect("a server starts");
            grant.install(&server).await.expect("it is granted");
            let wire = grant.wire(&server);
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
            let pods: Api<DynamicObject> =
                Api::namespaced_with(wire.client(), "default", &resource);
            pods.list(&Default::default()).await.is_ok()
        };
        assert!(reads(&grant).await);
        let lessened = grant.lessened();
        let [list, watch, get] = &lessened[..] else {
            panic!("three verbs")
        };
        assert!(!reads(&list.1).await);
        assert!(reads(&watch.1).await, "this is too much");
        assert!(reads(&get.1).await, "and so is this");
    }
}
