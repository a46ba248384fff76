//! Reads of one object by its key, and what it means that the cache does not hold it.
//!
//! A cache that is narrowed by selectors or to a replica's shards does not hold everything that exists. What it lacks is then
//! looked up at the server before anybody hears that it is absent; what the cache would never hold is an error.

use std::sync::Arc;

use kubewright_cache::{Key, Object as CachedObject, Shape};

use super::{ClientError, Object, Objects, ReadSubject};

/// What the cache says about a key.
enum Lookup<K> {
    Found(Arc<K>),
    /// The cache would hold it, so it does not exist.
    Absent,
    /// The cache would not hold it, whether it exists or not.
    Outside,
    /// It may exist: whether the cache would hold it depends on more than its key, or on what was not read yet.
    Unknown,
}

impl<K: Object> Objects<K> {
    /// The object, from the cache.
    ///
    /// What a cache with selectors does not hold is looked up at the server: absent is what does not exist.
    ///
    /// # Errors
    /// When the cache cannot be filled, does not hold the object although it exists or may exist
    /// ([`ClientError::is_out_of_scope`]), or does not reach this manager's own writes in time; and when the object exists and
    /// does not decode.
    pub async fn get(&self, key: &Key) -> Result<Option<Arc<K>>, ClientError> {
        if self.form.entry.policy.is_read_live() {
            // Apart, so that reads from the cache, which are most, are small futures.
            let live = Box::pin(self.get_live(key)).await?;
            return Ok(live.map(Arc::new));
        }
        match self.look_up(key).await? {
            Lookup::Found(object) => Ok(Some(object)),
            Lookup::Absent => Ok(None),
            Lookup::Outside => Err(self.not_held(key)),
            Lookup::Unknown => Box::pin(self.get_unknown(key)).await,
        }
    }

    /// The object that a write is about: from the cache, or from the server where the cache does not hold it and it may exist.
    pub(super) async fn present(&self, key: &Key) -> Result<Option<Arc<K>>, ClientError> {
        if !self.form.entry.policy.is_read_live() {
            match self.look_up(key).await? {
                Lookup::Found(object) => return Ok(Some(object)),
                Lookup::Absent => return Ok(None),
                Lookup::Outside | Lookup::Unknown => {}
            }
        }
        let live = Box::pin(self.get_live(key)).await?;
        Ok(live.map(Arc::new))
    }

    async fn look_up(&self, key: &Key) -> Result<Lookup<K>, ClientError> {
        self.in_scope(key)?;
        let informers = self.synced().await?;
        self.pass_gate(Some(key)).await?;
        self.caught_up(&informers, key).await?;
        let reader = informers.reader();
        let entry = reader.entry(key);
        self.report_found(key, entry.as_ref(), &reader).await;
        let looked_up = match &entry {
            Some(entry) => Lookup::Found(self.decoded(entry)?),
            None => self.missing(key),
        };
        // Whoever looks further notes that instead.
        if matches!(looked_up, Lookup::Found(_) | Lookup::Absent) {
            self.note_read(usize::from(entry.is_some()), || {
                ReadSubject::Key(key.clone())
            });
        }
        Ok(looked_up)
    }

    /// What it means that the cache does not hold the object of this key.
    fn missing(&self, key: &Key) -> Lookup<K> {
        let is_sharded = self.is_sharded();
        if is_sharded && !self.is_own_shard(key) {
            return Lookup::Outside;
        }
        match self.form.entry.selects_key(key) {
            Some(false) => Lookup::Outside,
            Some(true) if !is_sharded => Lookup::Absent,
            // A shard may have come before its objects.
            _ => Lookup::Unknown,
        }
    }

    /// Asks the server about an object that the cache does not hold, and may not hold although it exists.
    async fn get_unknown(&self, key: &Key) -> Result<Option<Arc<K>>, ClientError> {
        let Some(body) = self.fetch(key).await? else {
            return Ok(None);
        };
        // As a server looks at it, whatever the cache would drop of it.
        let whole = CachedObject::parse(&body, &Shape::default());
        let is_selected = whole.is_ok_and(|object| self.form.entry.selects(&object));
        if !is_selected || self.is_sharded() && !self.is_own_shard(key) {
            return Err(self.not_held(key));
        }
        let object = self.call("get", key.as_str()).decode(&body)?;
        Ok(Some(Arc::new(object)))
    }

    /// Whether the cache of this kind is kept to the shards of this replica.
    fn is_sharded(&self) -> bool {
        self.client.factory().is_selected(self.resource())
    }

    fn is_own_shard(&self, key: &Key) -> bool {
        self.client.factory().selects(self.resource(), key)
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

    /// The error of a read outside of the namespaces that are cached.
    pub(super) fn out_of_scope(&self, what: &str) -> ClientError {
        ClientError::OutOfScope {
            resource: self.form.entry.name.clone(),
            what: what.to_owned(),
            holds: format!("the namespaces {}", self.form.namespaces().join(", ")),
        }
    }

    /// The error of a read of what selectors or shards leave out.
    fn not_held(&self, key: &Key) -> ClientError {
        let selectors = self.form.entry.policy.selectors();
        ClientError::OutOfScope {
            resource: self.form.entry.name.clone(),
            what: key.as_str().to_owned(),
            holds: match selectors {
                Some(selectors) if self.is_own_shard(key) => format!("objects with {selectors}"),
                _ => "objects of this replica's shards".to_owned(),
            },
        }
    }
}
