//! A served resource: everything the server knows of one resource at one version.
//!
//! Built-in and custom kinds differ in how objects are decoded, defaulted and validated. The verbs work on a [`Served`] and
//! do not ask which it is; `verbs` has what they ask instead.

mod incarnation;
mod incoming;
pub(crate) mod scale;
mod schemas;
mod stored;
mod verbs;

use std::sync::{Arc, OnceLock};

use kubewright_schema::catalog::{Resource, Scope};
use kubewright_schema::{FieldError, Table, TypeId, crd};
use ring::digest::{Digest, SHA512, digest};
use serde_json::Value;

use crate::conversion::{Conversion, ConversionHook};
use crate::kinds::Strategy;
use crate::printers::Printer;
use crate::status::About;
use crate::storage::{Collection, Store};

pub(crate) use incarnation::Incarnation;
pub(crate) use incoming::Misfit;
pub(crate) use schemas::Schemas;
pub(crate) use stored::{custom_draft, draft_converted};

/// One resource at one version.
pub(crate) struct Served {
    /// As discovery shows it.
    pub(crate) resource: Arc<Resource>,
    /// `apiVersion` of its objects.
    pub(crate) api_version: String,
    /// Where its objects are. Versions of one resource share it.
    pub(crate) collection: Collection,
    /// How it is shown as a table.
    pub(crate) printer: Printer,
    /// The definition that it comes from, if it is not built in.
    pub(crate) definition: Option<Arc<Incarnation>>,
    pub(crate) nature: Nature,
}

/// What differs between built-in and custom kinds.
#[derive(Clone)]
pub(crate) enum Nature {
    Builtin(Builtin),
    Custom(Arc<Custom>),
}

/// A kind that is part of Kubernetes.
#[derive(Clone)]
pub(crate) struct Builtin {
    pub(crate) ty: TypeId,
    pub(crate) strategy: &'static Strategy,
    /// Set when objects are stored at another version than this one.
    pub(crate) conversion: Option<&'static Conversion>,
}

/// A kind that a CustomResourceDefinition defines.
pub(crate) struct Custom {
    pub(crate) version: Arc<crd::CompiledVersion>,
    /// As written, for OpenAPI.
    pub(crate) schema: Value,
    /// Made when first asked for, by [`Custom::openapi_basis`].
    pub(crate) openapi_basis: OnceLock<Digest>,
    pub(crate) scale: Option<crd::Scale>,
    /// Fields that selectors may name besides name and namespace.
    pub(crate) selectable: crd::SelectableFields,
    pub(crate) strategy: Strategy,
    /// Those of all versions of its definition.
    pub(crate) schemas: Arc<Schemas>,
    /// Converts objects between versions; without one they differ in `apiVersion` alone.
    pub(crate) conversion: Option<Arc<ConversionHook>>,
    /// Objects written before this revision may lack what the schema now defaults.
    pub(crate) schema_revision: u64,
    /// Sent with every answer when the version is deprecated.
    pub(crate) deprecation: Option<String>,
}

/// Whether a resource is one of reviews, which are answered and not stored.
pub(crate) fn is_review(group: &str, kind: &str) -> bool {
    matches!(group, "authentication.k8s.io" | "authorization.k8s.io") && kind.ends_with("Review")
}

impl Custom {
    /// A digest of everything that the OpenAPI document says of this version.
    pub(crate) fn openapi_basis(&self, resource: &Resource) -> &Digest {
        self.openapi_basis.get_or_init(|| {
            let basis = format!("{resource:?} {}", self.schema);
            digest(&SHA512, basis.as_bytes())
        })
    }
}

impl Served {
    /// The same resource with its objects in another store.
    pub(crate) fn in_store(&self, store: &Store) -> Self {
        Self {
            resource: self.resource.clone(),
            api_version: self.api_version.clone(),
            collection: store.collection(self.collection.name()),
            printer: self.printer.clone(),
            definition: self.definition.clone(),
            nature: self.nature.clone(),
        }
    }

    /// The same with a schema that is what it is since a revision. For one that nobody shares yet.
    pub(crate) fn since(mut self, revision: u64) -> Self {
        if let Nature::Custom(custom) = &mut self.nature
            && let Some(custom) = Arc::get_mut(custom)
        {
            custom.schema_revision = revision;
        }
        self
    }

    /// Whether its definition is being deleted.
    pub(crate) fn is_terminating(&self) -> bool {
        let definition = self.definition.as_ref();
        definition.is_some_and(|definition| definition.is_terminating())
    }

    /// What refusals about objects name: the plural.
    pub(crate) fn about(&self) -> About<'_> {
        About {
            group: &self.resource.group,
            resource: &self.resource.plural,
        }
    }

    /// What refusals about the content of objects name: the kind.
    pub(crate) fn about_kind(&self) -> About<'_> {
        About {
            group: &self.resource.group,
            resource: &self.resource.kind,
        }
    }

    pub(crate) fn is_namespaced(&self) -> bool {
        self.resource.scope == Scope::Namespaced
    }

    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        &*self.resource.group == group && &*self.resource.kind == kind
    }

    pub(crate) fn strategy(&self) -> &Strategy {
        match &self.nature {
            Nature::Builtin(builtin) => builtin.strategy,
            Nature::Custom(custom) => &custom.strategy,
        }
    }

    pub(crate) fn custom(&self) -> Option<&Custom> {
        match &self.nature {
            Nature::Custom(custom) => Some(custom),
            Nature::Builtin(_) => None,
        }
    }

    /// The type that objects are decoded by.
    pub(crate) fn ty(&self) -> (&Table, TypeId) {
        match &self.nature {
            Nature::Builtin(builtin) => (Table::builtin(), builtin.ty),
            Nature::Custom(custom) => (&custom.version.table, custom.version.root),
        }
    }

    /// The key of an object in the collection.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace {
            Some(namespace) if self.is_namespaced() => format!("{namespace}/{name}"),
            _ => name.to_owned(),
        }
    }

    /// Fills in defaults.
    pub(crate) fn default(&self, value: &mut Value) {
        match &self.nature {
            Nature::Builtin(builtin) => builtin.strategy.default(value),
            Nature::Custom(custom) => crd::default(&custom.version, value),
        }
    }

    /// What is wrong with a new object.
    pub(crate) fn validate(&self, value: &Value) -> Vec<FieldError> {
        let errors = self.strategy().validate(value, self.resource.scope);
        match &self.nature {
            Nature::Builtin(_) => errors,
            Nature::Custom(custom) => crd::validate(&custom.version, value, None, errors),
        }
    }

    /// What is wrong with an updated object.
    pub(crate) fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let errors = self
            .strategy()
            .validate_update(new, old, self.resource.scope);
        match &self.nature {
            Nature::Builtin(_) => errors,
            Nature::Custom(custom) => crd::validate(&custom.version, new, Some(old), errors),
        }
    }

    /// What is wrong with an updated status.
    pub(crate) fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let errors = self
            .strategy()
            .validate_status_update(new, old, self.resource.scope);
        match &self.nature {
            Nature::Builtin(_) => errors,
            Nature::Custom(custom) => crd::validate_status(&custom.version, new, old, errors),
        }
    }

    /// What is wrong with an object after a write through a subresource other than the status.
    pub(crate) fn validate_own_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        match &self.nature {
            Nature::Builtin(builtin) => {
                let scope = self.resource.scope;
                builtin.strategy.validate_own_update(new, old, scope)
            }
            Nature::Custom(_) => self.validate_status_update(new, old),
        }
    }
}
