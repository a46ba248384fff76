//! Reads of one object by its key.

use std::sync::Arc;

use kubewright_cache::Key;

use super::{ClientError, Object, Objects, ReadSubject};

impl<K: Object> Objects<K> {
    /// The object, from the cache.
    ///
    /// # Errors
    /// When the cache cannot be filled, does not hold the key's namespace, or does not reach this manager's own writes in time;
    /// and when the object exists and does not decode.
    pub async fn get(&self, key: &Key) -> Result<Option<Arc<K>>, ClientError> {
        if self.form.entry.policy.is_read_live() {
            // Apart, so that reads from the cache, which are most, are small futures.
            let live = Box::pin(self.get_live(key)).await?;
            return Ok(live.map(Arc::new));
        }
        self.in_scope(key)?;
        let informers = self.synced().await?;
        self.pass_gate(Some(key)).await?;
        self.caught_up(&informers, key).await?;
        let reader = informers.reader();
        let entry = reader.entry(key);
        self.report_found(key, entry.as_ref(), &reader).await;
        self.note_read(usize::from(entry.is_some()), || {
            ReadSubject::Key(key.clone())
        });
        entry.map(|entry| self.decoded(&entry)).transpose()
    }

    /// Whether the cache holds the namespace of this key.
    pub(crate) fn covers(&self, key: &Key) -> bool {
        self.form.covers(key.namespace())
    }

    fn in_scope(&self, key: &Key) -> Result<(), ClientError> {
        if self.covers(key) {
            Ok(())
        } else {
            Err(self.out_of_scope(key.as_str()))
        }
    }

    pub(super) fn out_of_scope(&self, what: &str) -> ClientError {
        ClientError::OutOfScope {
            resource: self.form.entry.name.clone(),
            what: what.to_owned(),
            namespaces: self.form.namespaces().join(", "),
        }
    }
}
