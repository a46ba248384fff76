//! Create or change: writes that happen only when something is different.

use kubewright_cache::Key;

use super::merge::difference;
use super::{ClientError, Object, Objects};

/// What a create-or-update did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// There was none.
    Created,
    /// It was different.
    Updated,
    /// It was as it should be; nothing was sent.
    Unchanged,
}

impl<K: Object + Default> Objects<K> {
    /// Creates the object if there is none, else changes it if the closure changes anything.
    ///
    /// # Errors
    /// What the server says; a conflict if somebody else was faster.
    pub async fn create_or_update(
        &self,
        key: &Key,
        change: impl FnOnce(&mut K),
    ) -> Result<(K, Change), ClientError> {
        let Some(present) = self.get(key).await? else {
            return self.create_at(key, change).await;
        };
        let mut wanted = (*present).clone();
        change(&mut wanted);
        match difference(&self.value(&present)?, &self.value(&wanted)?) {
            Some(_) => Ok((self.replace(&present, &wanted).await?, Change::Updated)),
            None => Ok((wanted, Change::Unchanged)),
        }
    }

    /// As [`create_or_update`](Objects::create_or_update), but sends only the difference, status included.
    ///
    /// # Errors
    /// What the server says.
    pub async fn create_or_patch(
        &self,
        key: &Key,
        change: impl FnOnce(&mut K),
    ) -> Result<(K, Change), ClientError> {
        let Some(present) = self.get(key).await? else {
            return self.create_at(key, change).await;
        };
        let mut wanted = (*present).clone();
        change(&mut wanted);
        let (old, new) = (self.value(&present)?, self.value(&wanted)?);
        let Some(patch) = difference(&old, &new) else {
            return Ok((wanted, Change::Unchanged));
        };
        let mut patched = wanted.clone();
        let mut fields = patch
            .as_object()
            .into_iter()
            .flat_map(|fields| fields.keys());
        if fields.any(|field| field != "status") {
            patched = self.patch(&present, &wanted).await?;
        }
        if patch.get("status").is_some() {
            patched = self.patch_status(&present, &wanted).await?;
        }
        Ok((patched, Change::Updated))
    }

    async fn create_at(
        &self,
        key: &Key,
        change: impl FnOnce(&mut K),
    ) -> Result<(K, Change), ClientError> {
        let mut object = K::default();
        let meta = object.meta_mut();
        meta.name = Some(key.name().to_owned());
        meta.namespace = key.namespace().map(str::to_owned);
        change(&mut object);
        Ok((self.create(&object).await?, Change::Created))
    }
}
