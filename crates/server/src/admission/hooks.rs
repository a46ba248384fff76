//! The webhooks and policies of a server as one part of what follows from its objects.

use std::sync::Arc;

use super::cache::Follow;
use super::policy::Policies;
use super::webhook::Webhooks;
use crate::storage::{Event, Record};

/// The group of all configurations, which their collections begin with.
const GROUP: &str = "admissionregistration.k8s.io/";

/// Webhooks and policies, compiled from their configurations.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    pub(super) webhooks: Webhooks,
    pub(super) policies: Policies,
}

impl Hooks {
    fn caches(&self) -> impl Iterator<Item = &dyn Follow> {
        let webhooks = self.webhooks.caches().into_iter();
        webhooks.chain(self.policies.caches())
    }

    fn cache(&self, collection: &str) -> Option<&dyn Follow> {
        if !collection.starts_with(GROUP) {
            return None;
        }
        let mut caches = self.caches();
        caches.find(|cache| cache.collection() == collection)
    }

    /// The collections that webhooks and policies come from.
    pub(crate) fn collections(&self) -> Vec<String> {
        let caches = self.caches();
        caches.map(|cache| cache.collection().to_owned()).collect()
    }

    /// Takes up a configuration.
    pub(crate) fn put(&self, collection: &str, record: &Arc<Record>) {
        if let Some(cache) = self.cache(collection) {
            cache.put(record);
        }
    }

    /// Follows a change, if it is one of a configuration.
    pub(crate) fn apply(&self, collection: &str, event: &Event) {
        if let Some(cache) = self.cache(collection) {
            cache.apply(event);
        }
    }

    /// Takes over the configurations of another, and nothing else. What was compiled of the old ones is forgotten.
    pub(crate) fn replace(&self, with: &Self) {
        for (own, with) in self.caches().zip(with.caches()) {
            own.clear();
            with.records().iter().for_each(|record| own.put(record));
        }
    }

    /// Which objects they are made of, for tests that compare.
    pub(crate) fn describe(&self) -> String {
        let records = self.caches().flat_map(|cache| cache.records());
        let each = records.map(|r| format!("{}@{}@{} ", r.key(), r.uid(), r.revision()));
        each.collect()
    }
}
