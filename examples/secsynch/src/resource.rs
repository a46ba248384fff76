//! The type: which Secret is copied where.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use kubewright::Key;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// SecSynchSpec says which Secret is copied, and where to.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "tutorial.study.dev",
    version = "v1alpha1",
    kind = "SecSynch",
    doc = "SecSynch copies a Secret into other namespaces.",
    plural = "secsynches",
    namespaced,
    status = "SecSynchStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct SecSynchSpec {
    /// The name of the Secret, and of the copies.
    pub secret_name: String,
    /// Where the Secret is.
    pub source_namespace: String,
    /// Where it is copied to.
    pub destination_namespaces: Vec<String>,
}

/// SecSynchStatus defines the observed state of SecSynch.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct SecSynchStatus {
    /// When copies were last made, changed or deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "date_time")]
    pub last_sync_time: Option<Time>,
}

fn date_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time", "nullable": true })
}

impl SecSynchSpec {
    /// The Secret that is copied.
    pub fn source(&self) -> Key {
        Key::new(&self.source_namespace, &self.secret_name)
    }

    /// The Secrets that matter: the source, the copies, and whatever is in the way of one.
    pub fn secrets(&self) -> Vec<String> {
        let copies = self.copies().into_iter();
        let secrets = copies.chain([self.source()]);
        secrets.map(|key| key.to_string()).collect()
    }

    /// Where there should be copies. A Secret is not a copy of itself.
    pub fn copies(&self) -> BTreeSet<Key> {
        let namespaces = self.destination_namespaces.iter();
        let copies = namespaces.map(|namespace| Key::new(namespace, &self.secret_name));
        copies.filter(|copy| *copy != self.source()).collect()
    }
}
