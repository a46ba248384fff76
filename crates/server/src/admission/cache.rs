//! Configurations that are read once and kept until they change.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::Value;

use crate::core::Core;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::At;

/// What was made of the objects of one resource, by name and revision.
pub(super) struct Cache<T> {
    plural: &'static str,
    /// Built-in resources stay what they are, so they are looked up once.
    served: OnceLock<Arc<Served>>,
    known: Mutex<BTreeMap<String, (u64, Arc<T>)>>,
}

impl<T> Cache<T> {
    /// Of a resource in `admissionregistration.k8s.io/v1`.
    pub(super) fn of(plural: &'static str) -> Self {
        Self {
            plural,
            served: OnceLock::new(),
            known: Mutex::default(),
        }
    }

    /// All of them, by name. What has changed is read anew.
    pub(super) fn all(
        &self,
        core: &Core,
        read: impl Fn(&Value) -> T,
    ) -> Result<Vec<Arc<T>>, ApiError> {
        let served = self.served.get_or_init(|| {
            let resources = core.registry.now();
            resources.builtin("admissionregistration.k8s.io", "v1", self.plural)
        });
        let snapshot = served.collection.snapshot(At::Latest);
        let snapshot = snapshot.map_err(ApiError::internal)?;
        if snapshot.is_empty() {
            return Ok(Vec::new());
        }
        let mut known = self.known.lock();
        known.retain(|name, _| snapshot.get(name).is_some());
        let mut all = Vec::new();
        for record in snapshot.range("", None) {
            let kept = known.get(record.key()).cloned();
            let made = match kept.filter(|(revision, _)| *revision == record.revision()) {
                Some((_, made)) => made,
                None => {
                    let made = Arc::new(read(&served.revive(record)?));
                    let entry = (record.revision(), made.clone());
                    known.insert(record.key().to_owned(), entry);
                    made
                }
            };
            all.push(made);
        }
        Ok(all)
    }
}

impl<T> fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.known.lock().len(), self.plural)
    }
}
