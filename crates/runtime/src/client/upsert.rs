//! Create or change: writes that happen only when something is different.

use kubewright_cache::Key;

use super::merge::difference;
use super::written::{Change, Mutate, Written};
use super::{Blank, ClientError, Objects};

impl<K: Blank> Objects<K> {
    /// Creates the object if it does not exist, else replaces it if the closure changes anything.
    ///
    /// # Errors
    /// When the closure refuses, in which case nothing is sent, or the server does; a conflict if the object has changed since
    /// the state that the closure was given.
    pub async fn create_or_update(
        &self,
        key: &Key,
        change: impl Mutate<K>,
    ) -> Result<Written<K>, ClientError> {
        let Some(present) = self.present(key).await? else {
            return self.create_at(key, change).await;
        };
        let wanted = self.mutated(&present, change)?;
        match difference(&self.value(&present)?, &self.value(&wanted)?) {
            Some(_) => Ok(Written::since(
                &present,
                self.replace(&present, &wanted).await?,
            )),
            None => Ok(Written::new(wanted, Change::Unchanged)),
        }
    }

    /// As [`create_or_update`](Objects::create_or_update), but sends only the difference, status included.
    ///
    /// # Errors
    /// When the closure refuses, in which case nothing is sent, or the server does.
    pub async fn create_or_patch(
        &self,
        key: &Key,
        change: impl Mutate<K>,
    ) -> Result<Written<K>, ClientError> {
        let Some(present) = self.present(key).await? else {
            return self.create_at(key, change).await;
        };
        let wanted = self.mutated(&present, change)?;
        let (old, new) = (self.value(&present)?, self.value(&wanted)?);
        let Some(patch) = difference(&old, &new) else {
            return Ok(Written::new(wanted, Change::Unchanged));
        };
        let fields = patch.as_object().into_iter().flatten();
        let mut written = Written::new((*present).clone(), Change::Unchanged);
        if fields.clone().any(|(field, _)| field != "status") {
            written = self.patch(&present, &wanted).await?;
        }
        if patch.get("status").is_some() {
            let old = self.reborn(&present, &written.object);
            let status = self.patch_status(&old, &wanted).await?;
            written = Written::since(&present, status.object);
        }
        Ok(written)
    }

    /// An object with nothing but this name.
    pub(super) fn blank(&self, key: &Key) -> K {
        let mut object = K::blank(&self.form.resource);
        let meta = object.meta_mut();
        meta.name = Some(key.name().to_owned());
        meta.namespace = key.namespace().map(str::to_owned);
        object
    }

    async fn create_at(
        &self,
        key: &Key,
        change: impl Mutate<K>,
    ) -> Result<Written<K>, ClientError> {
        let mut object = self.blank(key);
        change
            .mutate(&mut object)
            .map_err(|error| self.refused(key, error))?;
        let created = self.create(&object).await?;
        Ok(Written::new(created, Change::Created))
    }

    /// The state that was read, with the version that it has after the first of two writes.
    fn reborn(&self, read: &K, written: &K) -> K {
        let mut reborn = read.clone();
        reborn.meta_mut().resource_version = written.meta().resource_version.clone();
        reborn
    }
}
