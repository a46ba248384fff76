//! What established definitions promise to be served, and what of it discovery does not show yet. Pure.
//!
//! Discovery may be behind the event of a definition: it is rendered by somebody else. Whoever looked once and
//! went to sleep would never follow that kind, and the dependents of its objects would stay for ever.

use std::collections::BTreeMap;

use kubewright_cache::Key;
use serde::Deserialize;

use crate::kinds::Kind;

/// The resources that established definitions promise.
#[derive(Debug, Default)]
pub(super) struct Promises(BTreeMap<Key, Resource>);

/// A resource without its version: which of the served ones is followed is discovery's choice.
#[derive(Debug, PartialEq, Eq)]
struct Resource {
    group: String,
    plural: String,
}

impl Promises {
    /// Takes up a definition as it is now, as JSON.
    pub(super) fn observe(&mut self, key: &Key, definition: &[u8]) {
        match promised(definition) {
            Some(resource) => drop(self.0.insert(key.clone(), resource)),
            None => self.forget(key),
        }
    }

    /// Forgets a definition that is gone.
    pub(super) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// The names of definitions whose resource is not among these.
    pub(super) fn missing(&self, served: &[Kind]) -> Vec<String> {
        let is_served = |resource: &Resource| {
            let mut served = served.iter();
            served.any(|kind| kind.is(&resource.group, &resource.plural))
        };
        let missing = self.0.iter().filter(|(_, resource)| !is_served(resource));
        missing.map(|(key, _)| key.name().to_owned()).collect()
    }
}

/// What is read of a definition: schemas are large, and of no interest here.
#[derive(Debug, Deserialize)]
struct Definition {
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Deserialize)]
struct Spec {
    group: String,
    names: Names,
    versions: Vec<Version>,
}

#[derive(Debug, Deserialize)]
struct Names {
    plural: String,
}

#[derive(Debug, Deserialize)]
struct Version {
    served: bool,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

fn promised(definition: &[u8]) -> Option<Resource> {
    let definition: Definition = serde_json::from_slice(definition).ok()?;
    let conditions = definition.status.conditions.unwrap_or_default();
    let is_established =
        |condition: &Condition| condition.type_ == "Established" && condition.status == "True";
    let served = definition.spec.versions.iter().any(|v| v.served);
    (served && conditions.iter().any(is_established)).then_some(Resource {
        group: definition.spec.group,
        plural: definition.spec.names.plural,
    })
}

#[cfg(test)]
mod tests {
    use kube::discovery::{ApiCapabilities, ApiResource, Scope};
    use serde_json::{Value, json};

    use super::*;

    fn definition(served: bool, established: &str) -> Vec<u8> {
        let definition = json!({
            "spec": {"group": "example.com", "names": {"plural": "fruits"}, "versions": [{"name": "v1", "served": served}]},
            "status": {"conditions": [{"type": "Established", "status": established, "lastTransitionTime": Value::Null}]},
        });
        definition.to_string().into_bytes()
    }

    fn kind(group: &str, plural: &str) -> Kind {
        let resource = ApiResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            api_version: format!("{group}/v1"),
            kind: "Fruit".to_owned(),
            plural: plural.to_owned(),
        };
        let capabilities = ApiCapabilities {
            scope: Scope::Namespaced,
            subresources: Vec::new(),
            operations: Vec::new(),
        };
        Kind::new(resource, &capabilities)
    }

    #[test]
    fn established_definition_is_missing_until_discovery_has_its_resource() {
        let mut promises = Promises::default();
        let key = Key::cluster("fruits.example.com");
        promises.observe(&key, &definition(true, "False"));
        assert!(promises.missing(&[]).is_empty(), "not established");
        promises.observe(&key, &definition(true, "True"));
        assert_eq!(promises.missing(&[]), ["fruits.example.com"]);
        assert_eq!(
            promises.missing(&[kind("other.com", "fruits")]),
            ["fruits.example.com"]
        );
        assert!(
            promises
                .missing(&[kind("example.com", "fruits")])
                .is_empty()
        );
        promises.observe(&key, &definition(false, "True"));
        assert!(promises.missing(&[]).is_empty(), "no version is served");
        promises.observe(&key, &definition(true, "True"));
        promises.forget(&key);
        assert!(promises.missing(&[]).is_empty(), "deleted");
    }
}
