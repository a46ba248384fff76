//! Roles proven by tests: what an operator is granted is enough for it, and none of it is too much.
//!
//! [`assert_exact`] runs a scenario with the role of a manifest, and then once without each of its verbs: the first must
//! succeed and the others must not. A verb that was forgotten or that nobody needs any more fails the test by its name.

use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use kubewright_server::{Server, User};
use serde_json::Value;

use crate::{Fault, Wire};

/// A service account, its role and what binds them, as the `rbac.yaml` of an operator has them.
#[derive(Debug, Clone)]
pub struct Grant {
    account: Value,
    role: Value,
    binding: Value,
}

/// Why a manifest is no [`Grant`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// Some text is no YAML.
    #[error("a document cannot be read")]
    Unreadable(#[source] Box<serde_saphyr::Error>),
    /// There is not exactly one of a kind.
    #[error("there is not exactly one {0}")]
    NotOne(&'static str),
    /// A subject of the binding is not the service account.
    #[error("the binding is not for the service account")]
    NotBound,
}

impl Grant {
    /// Reads a manifest of three documents, in whatever order.
    ///
    /// # Errors
    /// When there is not one ServiceAccount, one role and one binding of the two.
    pub fn read(manifest: &str) -> Result<Self, GrantError> {
        let documents = manifest
            .split("---\n")
            .filter(|text| !text.trim().is_empty())
            .map(serde_saphyr::from_str)
            .collect::<Result<Vec<Value>, _>>()
            .map_err(|error| GrantError::Unreadable(Box::new(error)))?;
        let one = |suffix: &'static str| {
            let mut of_kind = documents.iter().filter(|document| {
                let kind = document["kind"].as_str().unwrap_or_default();
                kind.ends_with(suffix)
            });
            match (of_kind.next(), of_kind.next()) {
                (Some(document), None) => Ok(document.clone()),
                _ => Err(GrantError::NotOne(suffix)),
            }
        };
        let grant = Self {
            account: one("ServiceAccount")?,
            role: one("Role")?,
            binding: one("RoleBinding")?,
        };
        let subject = &grant.binding["subjects"][0];
        let bound = subject["name"] == grant.account["metadata"]["name"]
            && subject["namespace"] == grant.account["metadata"]["namespace"];
        bound.then_some(grant).ok_or(GrantError::NotBound)
    }

    /// Creates all three on a server, as its administrator.
    ///
    /// # Errors
    /// When the server refuses one.
    pub async fn install(&self, server: &Server) -> Result<(), kube::Error> {
        let client = kube::Client::new(server.service(), "default");
        for document in [&self.account, &self.role, &self.binding] {
            create(&client, document).await?;
        }
        Ok(())
    }

    /// A line to a server on which everything is asked by the service account.
    ///
    /// The server does not stream lists on it: an operator that may run elsewhere needs the verb `list`.
    pub fn wire(&self, server: &Server) -> Wire {
        let wire = Wire::new(server.service_as(self.user()));
        wire.plan(|call| match call.query.contains("sendInitialEvents") {
            true => Fault::Refuse {
                code: 422,
                reason: "Invalid",
            },
            false => Fault::None,
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
        let rules = self.role["rules"].as_array().into_iter().flatten();
        rules
            .enumerate()
            .flat_map(|(number, rule)| {
                let verbs = rule["verbs"].as_array().into_iter().flatten();
                verbs.map(move |verb| self.without(number, rule, verb))
            })
            .collect()
    }

    fn without(&self, number: usize, rule: &Value, verb: &Value) -> (String, Self) {
        let mut less = self.clone();
        if let Some(rules) = less.role["rules"].as_array_mut() {
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
        assert_eq!(lessened[0].1.role["rules"][0]["verbs"][0], "watch");
        assert_eq!(
            lessened[2].1.role["rules"].as_array().map(Vec::len),
            Some(1)
        );
    }

    #[test]
    fn manifests_without_a_part_are_told() {
        let without = |kind: &str| {
            let documents = MANIFEST.split("---\n");
            let left: Vec<&str> = documents
                .filter(|text| !text.contains(&format!("kind: {kind}\napi")))
                .collect();
            Grant::read(&left.join("---\n")).expect_err("a part is missing")
        };
        for kind in ["ServiceAccount", "Role", "RoleBinding"] {
            assert!(
                matches!(without(kind), GrantError::NotOne(of) if of == kind),
                "{kind}"
            );
        }
        let other = MANIFEST.replace("name: robot, namespace: default}]", "name: other}]");
        assert!(matches!(Grant::read(&other), Err(GrantError::NotBound)));
        assert!(matches!(Grant::read("{"), Err(GrantError::Unreadable(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn verbs_that_nobody_needs_are_told() {
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
        let [list, watch, get] = &grant.lessened()[..] else {
            panic!("three verbs")
        };
        assert!(!reads(&list.1).await);
        assert!(reads(&watch.1).await, "this is too much");
        assert!(reads(&get.1).await, "and so is this");
    }
}
