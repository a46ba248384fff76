//! Reads from the cache as from the API: by namespace and name, by label selector, with the API's own errors.

use std::sync::Arc;

use kube::core::ApiResource;
use kube::core::response::{Status, StatusDetails, StatusSummary};

use crate::Key;
use crate::cached::{Cached, Kind};
use crate::index::{Index, NAMESPACE_INDEX};
use crate::reader::Reader;
use crate::selector::Selector;

/// Reads the objects of one resource from the cache.
#[derive(Debug)]
pub struct Lister<K> {
    reader: Reader<K>,
    group: Arc<str>,
    plural: Arc<str>,
    namespace: Option<Arc<str>>,
}

impl<K: Kind> Lister<K> {
    /// A lister over a store of this resource.
    pub fn new(reader: Reader<K>, resource: &ApiResource) -> Self {
        // An index that is there already is as good.
        let _ = reader.add_index(NAMESPACE_INDEX, Index::by_namespace());
        Self {
            reader,
            group: resource.group.as_str().into(),
            plural: resource.plural.as_str().into(),
            namespace: None,
        }
    }

    /// The same within one namespace.
    #[must_use]
    pub fn namespaced(&self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.into()),
            ..self.clone()
        }
    }

    /// An object by name: in the lister's namespace, or `namespace/name`.
    ///
    /// # Errors
    /// 404 NotFound, with the words of the API server.
    pub fn get(&self, name: &str) -> Result<Arc<K>, kube::Error> {
        let key = match &self.namespace {
            Some(namespace) => Key::new(namespace, name),
            None => Key::parse(name).unwrap_or_else(|| Key::cluster(name)),
        };
        let found = self.reader.get(&key);
        found.ok_or_else(|| self.not_found(key.name()))
    }

    /// The objects that a label selector chooses. An empty selector chooses all.
    pub fn list(&self, selector: &Selector) -> Vec<Arc<K>> {
        let chosen = self.entries(selector);
        chosen.iter().filter_map(Cached::value).collect()
    }

    /// The same, not decoded.
    pub fn entries(&self, selector: &Selector) -> Vec<Cached<K>> {
        let mut entries: Vec<Cached<K>> = match &self.namespace {
            None => self.reader.snapshot().iter().collect(),
            Some(namespace) => {
                let found = self.reader.entries_by_index(NAMESPACE_INDEX, namespace);
                found.map_or_else(|_| Vec::new(), |found| found.iter().collect())
            }
        };
        if !selector.selects_all() {
            entries.retain(|object| selector.matches_by(|name| object.label(name)));
        }
        entries
    }

    fn not_found(&self, name: &str) -> kube::Error {
        let resource = if self.group.is_empty() {
            self.plural.to_string()
        } else {
            format!("{}.{}", self.plural, self.group)
        };
        let details = StatusDetails {
            name: name.to_owned(),
            group: self.group.to_string(),
            kind: self.plural.to_string(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: 0,
        };
        kube::Error::Api(Box::new(Status {
            status: Some(StatusSummary::Failure),
            code: 404,
            message: format!("{resource} {name:?} not found"),
            metadata: Some(Default::default()),
            reason: "NotFound".to_owned(),
            details: Some(details),
        }))
    }
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self {
            reader: self.reader.clone(),
            group: self.group.clone(),
            plural: self.plural.clone(),
            namespace: self.namespace.clone(),
        }
    }
}
