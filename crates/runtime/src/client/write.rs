//! Writes: to the server, and noted so that later reads are not older.

use http::StatusCode;
use kube::api::{Patch, PatchParams};
use kube::core::request::{Error as RequestError, Request};
use kube::core::{DynamicObject, Resource};
use kubewright_cache::Key;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::Refusal;
use super::merge::difference;
use super::requests::Call;
use super::written::{Change, Mutate, Written};
use super::{ClientError, Consistency, DryRun, Locking, Object, Objects, Write};
use crate::Error;

pub(super) type Built = Result<http::Request<Vec<u8>>, RequestError>;

impl<K: Object> Objects<K> {
    /// Creates an object and gives it as the server made it.
    ///
    /// # Errors
    /// What the server says.
    pub async fn create(&self, object: &K) -> Result<K, ClientError> {
        let name = self.display_name(object);
        let body = self.body(object)?;
        let request = self.request(object.meta().namespace.as_deref());
        let built = request.create(&self.client.write.post(), body);
        self.written("create", &name, built).await
    }

    /// Replaces an object: a conflict unless it is still in the version that is given.
    ///
    /// # Errors
    /// What the server says, or that the object lacks fields which the cache of this kind drops: they would be removed on the
    /// server.
    pub async fn update(&self, object: &K) -> Result<K, ClientError> {
        if let Some(field) = self.lacking(object)? {
            let problem = format!(
                "are cached without {field}, which a replacement would remove on the server: send what changes with modify or patch"
            );
            return Err(self.problem(&problem));
        }
        let key = self.key(object)?;
        let body = self.body(object)?;
        let post = self.client.write.post();
        let built = self.at(&key).replace(key.name(), &post, body);
        self.written("update", key.as_str(), built).await
    }

    /// Writes the new state of a cached object: replaces it, or sends what is different where the cache lacks fields of it.
    /// Either way it is a conflict unless the object is still in the version that is given.
    pub(super) async fn replace(&self, old: &K, new: &K) -> Result<K, ClientError> {
        if self.lacking(new)?.is_none() {
            return self.update(new).await;
        }
        let Some(mut patch) = difference(&self.value(old)?, &self.value(new)?) else {
            return Ok(new.clone());
        };
        patch["metadata"]["resourceVersion"] = old.meta().resource_version.clone().into();
        self.patch_with(&self.key(old)?, &Patch::Merge(patch)).await
    }

    /// A field that the cache of this kind drops and the object does not have.
    fn lacking(&self, object: &K) -> Result<Option<String>, ClientError> {
        let dropped = self.dropped();
        if dropped.is_empty() {
            return Ok(None);
        }
        let value = self.value(object)?;
        let is_lacking = |field: &String| {
            let path = format!("/{}", field.replace('.', "/"));
            value.pointer(&path).is_none_or(Value::is_null)
        };
        let field = dropped.into_iter().find(is_lacking);
        Ok(field.map(|field| match field.as_str() {
            "*" => "all of their fields".to_owned(),
            _ => field,
        }))
    }

    /// Replaces the status of an object.
    ///
    /// # Errors
    /// What the server says.
    pub async fn update_status(&self, object: &K) -> Result<K, ClientError> {
        let key = self.key(object)?;
        let body = self.body(object)?;
        let post = self.client.write.post();
        let built = self
            .at(&key)
            .replace_subresource("status", key.name(), &post, body);
        self.written("update", key.as_str(), built).await
    }

    /// Sends what is different between two states of an object, as a merge patch; nothing when nothing is.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn patch(&self, old: &K, new: &K) -> Result<Written<K>, ClientError> {
        let Some(mut patch) = difference(&self.value(old)?, &self.value(new)?) else {
            return Ok(Written::new(new.clone(), Change::Unchanged));
        };
        self.lock(&mut patch, old);
        let patch = Patch::Merge(patch);
        let patched = self.patch_with(&self.key(old)?, &patch).await?;
        Ok(Written::since(old, patched))
    }

    /// Sends what is different between two statuses of an object; nothing when nothing is.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn patch_status(&self, old: &K, new: &K) -> Result<Written<K>, ClientError> {
        let status = |value: &Value| value.get("status").cloned().unwrap_or(Value::Null);
        let (old_value, new_value) = (self.value(old)?, self.value(new)?);
        let Some(patch) = difference(&status(&old_value), &status(&new_value)) else {
            return Ok(Written::new(new.clone(), Change::Unchanged));
        };
        let mut patch = serde_json::json!({ "status": patch });
        self.lock(&mut patch, old);
        let (key, patch) = (self.key(old)?, Patch::Merge(patch));
        let patched = self.patch_subresource(&key, "status", &patch).await?;
        Ok(Written::since(old, patched))
    }

    /// Makes a patch a conflict if the object has another version, where this client wants that.
    fn lock(&self, patch: &mut Value, old: &K) {
        if self.client.write.locking == Locking::Optimistic {
            patch["metadata"]["resourceVersion"] = old.meta().resource_version.clone().into();
        }
    }

    /// Changes a copy of an object and sends what is different; nothing when nothing is.
    ///
    /// # Errors
    /// When the closure refuses, in which case nothing is sent, or the server does.
    pub async fn modify(
        &self,
        object: &K,
        change: impl Mutate<K>,
    ) -> Result<Written<K>, ClientError> {
        let changed = self.mutated(object, change)?;
        self.patch(object, &changed).await
    }

    /// Changes the status of a copy of an object and sends what is different; nothing when nothing is.
    ///
    /// # Errors
    /// When the closure refuses, in which case nothing is sent, or the server does.
    pub async fn modify_status(
        &self,
        object: &K,
        change: impl Mutate<K>,
    ) -> Result<Written<K>, ClientError> {
        let changed = self.mutated(object, change)?;
        self.patch_status(object, &changed).await
    }

    /// A changed copy of an object.
    pub(super) fn mutated(&self, object: &K, change: impl Mutate<K>) -> Result<K, ClientError> {
        let mut changed = object.clone();
        match change.mutate(&mut changed) {
            Ok(()) => Ok(changed),
            Err(error) => Err(self.refused(&Key::of(object), error)),
        }
    }

    pub(super) fn refused(&self, key: &Key, error: Error) -> ClientError {
        ClientError::Refused {
            resource: self.form.entry.name.clone(),
            key: key.clone(),
            source: Box::new(Refusal(error)),
        }
    }

    /// Sends a patch of any form.
    ///
    /// # Errors
    /// What the server says.
    pub async fn patch_with<P: Serialize>(
        &self,
        key: &Key,
        patch: &Patch<P>,
    ) -> Result<K, ClientError> {
        let params = self.patch_params(patch);
        let built = self.at(key).patch(key.name(), &params, patch);
        self.written("patch", key.as_str(), built).await
    }

    /// Sends a patch of a subresource such as `status`.
    ///
    /// # Errors
    /// What the server says.
    pub async fn patch_subresource<P: Serialize>(
        &self,
        key: &Key,
        subresource: &str,
        patch: &Patch<P>,
    ) -> Result<K, ClientError> {
        let params = self.patch_params(patch);
        let request = self.at(key);
        let built = request.patch_subresource(subresource, key.name(), &params, patch);
        self.written("patch", key.as_str(), built).await
    }

    fn patch_params<P: Serialize>(&self, patch: &Patch<P>) -> PatchParams {
        match patch {
            Patch::Apply(_) => self.client.write.apply(),
            _ => self.client.write.patch(),
        }
    }

    /// Sends an apply, and says by the code of the answer whether it created the object.
    pub(super) async fn send_apply(
        &self,
        key: &Key,
        body: &Value,
    ) -> Result<(StatusCode, K), ClientError> {
        let patch = Patch::Apply(body);
        let params = self.patch_params(&patch);
        let built = self.at(key).patch(key.name(), &params, &patch);
        let call = self.call("patch", key.as_str());
        let answer = self.client.send_write(call, built).await?;
        Ok((answer.code, self.accepted(call, &answer.body)?))
    }

    async fn written(
        &self,
        verb: &'static str,
        name: &str,
        built: Built,
    ) -> Result<K, ClientError> {
        let call = self.call(verb, name);
        let answer = self.client.send_write(call, built).await?;
        self.accepted(call, &answer.body)
    }

    /// The object that the server has stored, noted so that later reads are not older.
    fn accepted(&self, call: Call<'_>, body: &[u8]) -> Result<K, ClientError> {
        let object: K = call.decode(body)?;
        let meta = object.meta();
        if let (Some(name), Some(version)) = (&meta.name, &meta.resource_version) {
            let key = Key::new(meta.namespace.as_deref().unwrap_or_default(), name);
            self.note(call.verb, &key, version, || body.to_vec());
        }
        Ok(object)
    }

    /// Sends a write and decodes the answer, which need not be an object of this kind.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        name: &str,
        built: Built,
    ) -> Result<T, ClientError> {
        let call = self.call(verb, name);
        let answer = self.client.send_write(call, built).await?;
        call.decode(&answer.body)
    }

    pub(super) fn call<'a>(&'a self, verb: &'static str, name: &'a str) -> Call<'a> {
        Call {
            verb,
            resource: &self.form.entry.name,
            name,
        }
    }

    pub(super) fn note(
        &self,
        verb: &'static str,
        key: &Key,
        version: &str,
        answer: impl FnOnce() -> Vec<u8>,
    ) {
        if self.is_dry() {
            return;
        }
        if self.is_guarded() {
            self.form.entry.wrote(key, version, answer);
        }
        self.leave_trail(verb, key, version);
    }

    pub(super) fn gone(&self, key: &Key, uid: &str, answer: &Value) {
        if self.is_dry() {
            return;
        }
        let meta = &answer["metadata"];
        let marked = meta
            .get("deletionTimestamp")
            .and(meta["resourceVersion"].as_str());
        if self.is_guarded() {
            let answer = || serde_json::to_vec(answer).unwrap_or_default();
            self.form.entry.deleted(key, uid, marked, answer);
        }
        self.leave_trail("delete", key, marked.unwrap_or_default());
    }

    fn leave_trail(&self, verb: &'static str, key: &Key, version: &str) {
        if let Some(trail) = &self.client.trail {
            trail.note(Write {
                verb,
                resource: self.form.entry.name.clone(),
                cluster: self.client.cluster.clone(),
                key: key.clone(),
                resource_version: version.to_owned(),
            });
        }
    }

    /// Whether reads wait for what is written.
    fn is_guarded(&self) -> bool {
        self.client.settings().consistency != Consistency::Eventual
    }

    pub(super) fn is_dry(&self) -> bool {
        self.client.write.dry_run == DryRun::All
    }

    pub(super) fn request(&self, namespace: Option<&str>) -> Request {
        Request::new(DynamicObject::url_path(&self.form.resource, namespace))
    }

    pub(super) fn at(&self, key: &Key) -> Request {
        self.request(key.namespace())
    }

    pub(super) fn key(&self, object: &K) -> Result<Key, ClientError> {
        let meta = object.meta();
        let name = meta.name.as_deref().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| self.problem("has no name"))?;
        Ok(Key::new(
            meta.namespace.as_deref().unwrap_or_default(),
            name,
        ))
    }

    fn display_name(&self, object: &K) -> String {
        let meta = object.meta();
        let name = meta.name.as_deref().or(meta.generate_name.as_deref());
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        Key::new(namespace, name.unwrap_or_default()).to_string()
    }

    pub(super) fn value(&self, object: &K) -> Result<Value, ClientError> {
        serde_json::to_value(object)
            .map_err(|error| self.problem(&format!("cannot be written as JSON: {error}")))
    }

    /// An object as the body of a request. By way of a [`Value`], so that the types of a program are written in one way only: that
    /// is half of the code which they cost.
    fn body(&self, object: &K) -> Result<Vec<u8>, ClientError> {
        self.encode(&self.value(object)?)
    }

    pub(super) fn encode(&self, value: &impl Serialize) -> Result<Vec<u8>, ClientError> {
        serde_json::to_vec(value)
            .map_err(|error| self.problem(&format!("cannot be written as JSON: {error}")))
    }

    pub(super) fn problem(&self, problem: &str) -> ClientError {
        ClientError::Object {
            resource: self.form.entry.name.clone(),
            problem: problem.to_owned(),
        }
    }

    pub(super) fn failed(&self, verb: &'static str, name: &str, error: kube::Error) -> ClientError {
        self.call(verb, name).failed(error)
    }
}
