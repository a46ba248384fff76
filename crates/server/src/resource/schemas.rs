//! The schemas of all versions of a definition, served or not: what is stored is of one of them.

use std::sync::Arc;

use kubewright_schema::crd::{self, CompiledVersion, SelectableFields};
use serde_json::Value;

/// What all versions of a definition share: their schemas, and which of them objects are stored at.
pub(crate) struct Schemas {
    /// By the `apiVersion` of their objects.
    pub(crate) versions: Vec<(String, Arc<CompiledVersion>)>,
    /// `apiVersion` of what is written to the store.
    pub(crate) stored_api_version: String,
    /// The selectable fields of that version: those that the store knows of an object.
    pub(crate) selectable: SelectableFields,
}

impl Schemas {
    /// Prunes and defaults an object by the schema of the version it says it has, as everything that is written to the
    /// store or read from it (`customresource_handler.go: crdConversionRESTOptionsGetter`).
    pub(crate) fn settle(&self, value: &mut Value) {
        let api_version = value["apiVersion"].as_str().unwrap_or("");
        let found = self.versions.iter().find(|(known, _)| known == api_version);
        if let Some((_, version)) = found {
            let version = version.clone();
            crd::prune(&version, value);
            crd::default(&version, value);
        }
    }
}
