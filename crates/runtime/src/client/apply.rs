//! Server-side apply: the fields of an object that this operator is about, and no others.

use kube::api::Patch;
use kubewright_cache::{AsObject, Key};
use serde_json::Value;

use super::last_applied::Fingerprint;
use super::written::{Change, Mutate, Written};
use super::{Blank, ClientError, Locking, Object, Objects};
use crate::described::Described;
use crate::owners::{OwnerError, controller_of, is_controlled_by, set_controller_reference};

/// What the server keeps account of, and no apply may have.
const BOOKKEEPING: [&str; 4] = [
    "managedFields",
    "creationTimestamp",
    "generation",
    "selfLink",
];

impl<K: Object> Objects<K> {
    /// Applies an object on the server's side: the fields that it has become this owner's, those that it had and has no more
    /// are removed, and the fields of others stay.
    ///
    /// Nothing is sent if the same was applied before and the cache shows that all of its fields are as they were then. That
    /// needs a cache of the kind, which a controller has of what it owns and watches; without one each apply is a request.
    ///
    /// # Errors
    /// When the server refuses it: a conflict where others manage a field, and the client [respects](super::Ownership) that.
    pub async fn apply(&self, object: &K) -> Result<Written<K>, ClientError> {
        let key = self.key(object)?;
        let body = self.applied(object)?;
        self.apply_body(&key, body).await
    }

    /// Applies the status of an object on the server's side.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn apply_status(&self, object: &K) -> Result<K, ClientError> {
        let key = self.key(object)?;
        let patch = Patch::Apply(self.applied(object)?);
        self.patch_subresource(&key, "status", &patch).await
    }

    async fn apply_body(&self, key: &Key, body: Value) -> Result<Written<K>, ClientError> {
        let known = self.known(key).await;
        if let Some(present) = &known
            && let Some(fingerprint) = self.fingerprint(&body, present)?
            && self
                .form
                .entry
                .last_applied(|last| last.is(key, fingerprint))
        {
            return Ok(Written::new(present.clone(), Change::Unchanged));
        }
        let (code, object) = match self.send_apply(key, &body).await {
            Ok(answer) => answer,
            Err(error) => {
                // It may have happened all the same.
                self.form.entry.last_applied(|last| last.forget(key));
                return Err(error);
            }
        };
        self.remember_applied(key, &body, &object)?;
        Ok(match known {
            _ if code == http::StatusCode::CREATED => Written::new(object, Change::Created),
            Some(present) => Written::since(&present, object),
            None => Written::new(object, Change::Updated),
        })
    }

    fn remember_applied(&self, key: &Key, body: &Value, object: &K) -> Result<(), ClientError> {
        // Without a cache nothing will be compared.
        let Some(informers) = self.started() else {
            return Ok(());
        };
        if self.is_dry() {
            return Ok(());
        }
        let fingerprint = self.fingerprint(body, object)?;
        let reader = informers.reader();
        self.form.entry.last_applied(|last| match fingerprint {
            Some(fingerprint) => last.remember(key, fingerprint, |key| reader.entry(key).is_some()),
            None => last.forget(key),
        });
        Ok(())
    }

    fn fingerprint(&self, body: &Value, object: &K) -> Result<Option<Fingerprint>, ClientError> {
        let mut fields = body.clone();
        // These name the object and its state, and are not fields of it.
        if let Some(fields) = fields.as_object_mut() {
            fields.remove("apiVersion");
            fields.remove("kind");
        }
        if let Some(meta) = fields["metadata"].as_object_mut() {
            meta.remove("resourceVersion");
            meta.remove("uid");
        }
        let owner = self.client.write.owner();
        Ok(Fingerprint::of(owner, &fields, &self.value(object)?))
    }

    /// The object as the cache has it, this manager's own writes included. A cache is not started for it, and what it cannot
    /// tell is not an error: the apply is sent.
    async fn known(&self, key: &Key) -> Option<K> {
        let informers = self.started().filter(|informers| informers.has_synced())?;
        self.caught_up(&informers, key).await.ok()?;
        let entry = informers.reader().entry(key)?;
        entry.value().map(|object| (*object).clone())
    }

    /// The object as an apply takes it: with its kind, without what the server keeps account of.
    fn applied(&self, object: &K) -> Result<Value, ClientError> {
        let mut value = self.value(object)?;
        let resource = &self.form.resource;
        value["apiVersion"] = resource.api_version.clone().into();
        value["kind"] = resource.kind.clone().into();
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in BOOKKEEPING {
                meta.remove(field);
            }
        }
        Ok(value)
    }
}

impl<K: Blank> Objects<K> {
    /// Applies an object that `owner` controls, on the server's side: see [`Client::apply_owned`](super::Client::apply_owned).
    ///
    /// # Errors
    /// When the object exists and `owner` does not control it, the closure refuses, or the server does.
    pub async fn apply_owned<O: Described>(
        &self,
        owner: impl AsObject<O>,
        key: &Key,
        fill: impl Mutate<K>,
    ) -> Result<Written<K>, ClientError> {
        let owner = owner.as_object();
        let present = self.present(key).await?;
        let refused = |error: OwnerError| self.refused(key, error.into());
        if let Some(present) = present.as_ref().filter(|it| !is_controlled_by(owner, *it)) {
            return Err(refused(not_controlled(owner, key, &**present)));
        }
        let mut object = self.blank(key);
        if let Some(present) = present {
            let (seen, meta) = (present.meta(), object.meta_mut());
            // Not another object of that name, which came since.
            meta.uid = seen.uid.clone();
            if self.client.write.locking == Locking::Optimistic {
                meta.resource_version = seen.resource_version.clone();
            }
        }
        set_controller_reference(owner, &mut object).map_err(refused)?;
        fill.mutate(&mut object)
            .map_err(|error| self.refused(key, error))?;
        let body = self.applied(&object)?;
        self.apply_body(key, body).await
    }
}

fn not_controlled<O: Described, K: Object>(owner: &O, key: &Key, present: &K) -> OwnerError {
    match controller_of(present) {
        Some(other) => OwnerError::AlreadyOwned {
            object: key.to_string(),
            kind: other.kind.clone(),
            name: other.name.clone(),
        },
        None => OwnerError::NotOwned {
            object: key.to_string(),
            kind: owner.type_meta().unwrap_or_default().kind,
        },
    }
}
