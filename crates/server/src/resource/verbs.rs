//! What the verbs ask of a resource, so that none of them has to know whether its kind is built in.

use kubewright_schema::crd;
use serde_json::Value;

use super::{Nature, Served};
use crate::http::accept::Protobuf;
use crate::printers::{self, MetaVersion};
use crate::status::ApiError;
use crate::storage::Pairs;

impl Served {
    /// What of it can be protobuf.
    pub(crate) fn protobuf(&self) -> Protobuf {
        match &self.nature {
            Nature::Builtin(_) => Protobuf::Objects,
            Nature::Custom(_) => Protobuf::Metadata,
        }
    }

    /// Whether strategic merge patches are taken: they need types that say how lists merge.
    pub(crate) fn merges_strategically(&self) -> bool {
        matches!(self.nature, Nature::Builtin(_))
    }

    /// Whether the items of a list repeat their kind and version, and its fields are in alphabetical order, as untyped
    /// objects have them in Go.
    pub(crate) fn lists_untyped(&self) -> bool {
        matches!(self.nature, Nature::Custom(_))
    }

    /// The metadata alone of an object that is sent.
    pub(crate) fn partial_metadata(
        &self,
        body: &[u8],
        version: MetaVersion,
    ) -> Result<Vec<u8>, ApiError> {
        let partial = match &self.nature {
            Nature::Builtin(_) => printers::metadata_of_bytes(body, version),
            Nature::Custom(_) => serde_json::from_slice(body)
                .map(|object: Value| printers::partial_metadata(&object, version)),
        };
        partial.map_err(ApiError::internal)
    }

    /// The refusal of a request that has to name a namespace and does not.
    pub(crate) fn namespace_required(&self) -> ApiError {
        match &self.nature {
            // customresource_handler.go, ServeHTTP: only list and watch cross namespaces, the rest is not found.
            Nature::Custom(_) => ApiError::no_such_resource(),
            Nature::Builtin(_) => ApiError::method_not_allowed(),
        }
    }

    /// What every answer warns of when the version is deprecated.
    pub(crate) fn deprecation(&self) -> Option<String> {
        self.custom().and_then(|custom| custom.deprecation.clone())
    }

    /// Whether a label of a field selector means another thing at another version.
    pub(crate) fn selects_by_version(&self, label: &str) -> bool {
        let selectable = self.custom().map(|custom| &custom.selectable);
        selectable.is_some_and(|selectable| selectable.names().any(|known| known == label))
    }

    /// What field selectors compare with at this version, besides name and namespace.
    pub(crate) fn selectable_fields(&self, value: &Value) -> Pairs {
        match &self.nature {
            Nature::Builtin(builtin) => {
                let fields = builtin.strategy.selectable_fields(value);
                fields.into_iter().collect()
            }
            Nature::Custom(custom) => selectable_fields(&custom.selectable, value),
        }
    }

    /// Checks the label of a field selector.
    pub(crate) fn check_field_label(&self, label: &str) -> Result<(), ApiError> {
        if self.selects_by_version(label) {
            return Ok(());
        }
        self.strategy()
            .check_field_label(label)
            .map_err(|why| ApiError::bad_request(why.to_string()))
    }
}

/// The selectable fields of a custom object with their values.
pub(super) fn selectable_fields(selectable: &crd::SelectableFields, value: &Value) -> Pairs {
    let field = |name| Some((name, selectable.value(name, value)?));
    selectable.names().filter_map(field).collect()
}
