//! Writes: to the server, and noted so that later reads are not older.

use kube::api::{Patch, PatchParams, PostParams};
use kube::core::params::ListParams;
use kube::core::request::{Error as RequestError, Request};
use kube::core::{DynamicObject, ObjectList, Resource};
use kubewright_cache::Key;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::merge::difference;
use super::{
    ClientError, Consistency, Delete, DryRun, Object, Objects, Query, Write, is_namespaced,
};

/// The name under which an apply manages fields where the client has none.
const DEFAULT_OWNER: &str = "kubewright";

type Built = Result<http::Request<Vec<u8>>, RequestError>;

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
        let created: K = self.send("create", &name, built).await?;
        self.wrote("create", &created);
        Ok(created)
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
        self.written("update", &key, built).await
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
        self.written("update", &key, built).await
    }

    /// Sends what is different between two states of an object, as a merge patch; nothing when nothing is.
    ///
    /// # Errors
    /// What the server says.
    pub async fn patch(&self, old: &K, new: &K) -> Result<K, ClientError> {
        match difference(&self.value(old)?, &self.value(new)?) {
            Some(patch) => self.patch_with(&self.key(old)?, &Patch::Merge(patch)).await,
            None => Ok(new.clone()),
        }
    }

    /// Sends what is different between two statuses of an object; nothing when nothing is.
    ///
    /// # Errors
    /// What the server says.
    pub async fn patch_status(&self, old: &K, new: &K) -> Result<K, ClientError> {
        let status = |value: &Value| value.get("status").cloned().unwrap_or(Value::Null);
        let (old_value, new_value) = (self.value(old)?, self.value(new)?);
        let Some(patch) = difference(&status(&old_value), &status(&new_value)) else {
            return Ok(new.clone());
        };
        let key = self.key(old)?;
        let patch = Patch::Merge(serde_json::json!({ "status": patch }));
        self.patch_subresource(&key, "status", &patch).await
    }

    /// Changes a copy of an object and sends what is different; nothing when nothing is.
    ///
    /// # Errors
    /// What the server says.
    pub async fn modify(&self, object: &K, change: impl FnOnce(&mut K)) -> Result<K, ClientError> {
        let mut changed = object.clone();
        change(&mut changed);
        self.patch(object, &changed).await
    }

    /// Changes the status of a copy of an object and sends what is different; nothing when nothing is.
    ///
    /// # Errors
    /// What the server says.
    pub async fn modify_status(
        &self,
        object: &K,
        change: impl FnOnce(&mut K),
    ) -> Result<K, ClientError> {
        let mut changed = object.clone();
        change(&mut changed);
        self.patch_status(object, &changed).await
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
        self.written("patch", key, built).await
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
        self.written("patch", key, built).await
    }

    /// Applies an object on the server's side.
    ///
    /// # Errors
    /// What the server says.
    pub async fn apply(&self, object: &K) -> Result<K, ClientError> {
        let key = self.key(object)?;
        let patch = Patch::Apply(self.applied(object)?);
        self.patch_with(&key, &patch).await
    }

    /// Applies the status of an object on the server's side.
    ///
    /// # Errors
    /// What the server says.
    pub async fn apply_status(&self, object: &K) -> Result<K, ClientError> {
        let key = self.key(object)?;
        let patch = Patch::Apply(self.applied(object)?);
        self.patch_subresource(&key, "status", &patch).await
    }

    /// Reads a subresource such as `scale`.
    ///
    /// # Errors
    /// What the server says.
    pub async fn get_subresource<T: DeserializeOwned>(
        &self,
        key: &Key,
        subresource: &str,
    ) -> Result<T, ClientError> {
        let built = self.at(key).get_subresource(subresource, key.name());
        self.send("get", key.as_str(), built).await
    }

    /// Replaces a subresource such as `scale`.
    ///
    /// # Errors
    /// What the server says.
    pub async fn update_subresource<T: Serialize + DeserializeOwned>(
        &self,
        key: &Key,
        subresource: &str,
        value: &T,
    ) -> Result<T, ClientError> {
        let body = self.encode(value)?;
        let post = self.client.write.post();
        let request = self.at(key);
        let built = request.replace_subresource(subresource, key.name(), &post, body);
        self.answered("update", key, built).await
    }

    /// Posts to a subresource such as `eviction`, `binding` or `token`.
    ///
    /// # Errors
    /// What the server says.
    pub async fn create_subresource<T: DeserializeOwned>(
        &self,
        key: &Key,
        subresource: &str,
        value: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = self.encode(value)?;
        let post: PostParams = self.client.write.post();
        let request = self.at(key);
        let built = request.create_subresource(subresource, key.name(), &post, body);
        self.answered("create", key, built).await
    }

    /// Deletes the very object that is given, not another one of its name.
    ///
    /// # Errors
    /// What the server says.
    pub async fn delete(&self, object: &K, how: Delete) -> Result<(), ClientError> {
        let key = self.key(object)?;
        let meta = object.meta();
        let params = how.params(
            &self.client.write,
            meta.uid.clone(),
            meta.resource_version.clone(),
        );
        let built = self.at(&key).delete(key.name(), &params);
        let answer: Value = self.send("delete", key.as_str(), built).await?;
        self.gone(&key, meta.uid.as_deref().unwrap_or_default(), &answer);
        Ok(())
    }

    /// Deletes all objects of a namespace that have these labels, in one call; those of the whole cluster only where the
    /// kind lives in no namespace.
    ///
    /// # Errors
    /// What the server says, or that the query asks for what a server does not do: an index, a number of objects, a kind
    /// with namespaces in all of them at once. Nothing is deleted then.
    pub async fn delete_all(&self, query: Query, how: Delete) -> Result<(), ClientError> {
        if query.index.is_some() {
            return Err(self.problem("cannot be deleted by index: the server has none"));
        }
        if query.limit.is_some() {
            return Err(self.problem("cannot be deleted up to a limit: the server deletes all"));
        }
        // The server has no such route either: 405, and 404 for custom resources.
        if query.namespace.is_none() && is_namespaced::<K>() {
            return Err(self.problem("are deleted in one namespace at a time: name it"));
        }
        let list = ListParams {
            label_selector: query.labels.map(|selector| selector.to_string()),
            ..ListParams::default()
        };
        let namespace = query.namespace.as_deref();
        let params = how.params(&self.client.write, None, None);
        let built = self.request(namespace).delete_collection(&params, &list);
        let answer: Value = self
            .send("delete", namespace.unwrap_or_default(), built)
            .await?;
        let deleted: Option<ObjectList<DynamicObject>> = serde_json::from_value(answer).ok();
        for object in deleted.into_iter().flat_map(|list| list.items) {
            let meta = &object.metadata;
            let name = meta.name.as_deref().unwrap_or_default();
            let key = key_of(meta.namespace.as_deref(), name);
            self.gone(&key, meta.uid.as_deref().unwrap_or_default(), &Value::Null);
        }
        Ok(())
    }

    fn patch_params<P: Serialize>(&self, patch: &Patch<P>) -> PatchParams {
        match patch {
            Patch::Apply(_) => self.client.write.apply(DEFAULT_OWNER),
            _ => self.client.write.patch(),
        }
    }

    /// The object as an apply takes it: with its kind, without what the server keeps account of.
    fn applied(&self, object: &K) -> Result<Value, ClientError> {
        let mut value = self.value(object)?;
        let resource = &self.form.resource;
        value["apiVersion"] = resource.api_version.clone().into();
        value["kind"] = resource.kind.clone().into();
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in [
                "managedFields",
                "creationTimestamp",
                "generation",
                "selfLink",
            ] {
                meta.remove(field);
            }
        }
        Ok(value)
    }

    async fn written(&self, verb: &'static str, key: &Key, built: Built) -> Result<K, ClientError> {
        let object: K = self.send(verb, key.as_str(), built).await?;
        self.wrote(verb, &object);
        Ok(object)
    }

    /// Sends a write of a subresource. Its answer may be of another kind; a version in it is the object's.
    async fn answered<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        key: &Key,
        built: Built,
    ) -> Result<T, ClientError> {
        let answer: Value = self.send(verb, key.as_str(), built).await?;
        if let Some(version) = answer["metadata"]["resourceVersion"].as_str() {
            // The answer may be of another kind: it does not say which informers have the object.
            self.note(verb, key, version, Vec::new);
        }
        serde_json::from_value(answer)
            .map_err(|error| self.failed(verb, key.as_str(), kube::Error::SerdeError(error)))
    }

    async fn send<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        name: &str,
        built: Built,
    ) -> Result<T, ClientError> {
        let request =
            built.map_err(|error| self.failed(verb, name, kube::Error::BuildRequest(error)))?;
        // Asked by the clock: a process that was held for long finds its lease gone before anybody has told it.
        if self
            .client
            .fence
            .as_ref()
            .is_some_and(|lease| !lease.is_leading())
        {
            return Err(ClientError::LeaseLost {
                verb,
                resource: self.form.entry.name.clone(),
                name: name.to_owned(),
            });
        }
        let within = self.client.shared.requests.write;
        self.call(verb, name, within, request).await
    }

    fn wrote(&self, verb: &'static str, object: &K) {
        let meta = object.meta();
        let (Some(name), Some(version)) = (&meta.name, &meta.resource_version) else {
            return;
        };
        // What cannot be written as JSON cannot have been sent.
        let answer = || self.encode(object).unwrap_or_default();
        let key = key_of(meta.namespace.as_deref(), name);
        self.note(verb, &key, version, answer);
    }

    fn note(&self, verb: &'static str, key: &Key, version: &str, answer: impl FnOnce() -> Vec<u8>) {
        if self.is_dry() {
            return;
        }
        if self.is_guarded() {
            self.form.entry.wrote(key, version, answer);
        }
        self.leave_trail(verb, key, version);
    }

    fn gone(&self, key: &Key, uid: &str, answer: &Value) {
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
                key: key.clone(),
                resource_version: version.to_owned(),
            });
        }
    }

    /// Whether reads wait for what is written.
    fn is_guarded(&self) -> bool {
        self.client.shared.consistency != Consistency::Eventual
    }

    fn is_dry(&self) -> bool {
        self.client.write.dry_run == DryRun::All
    }

    fn request(&self, namespace: Option<&str>) -> Request {
        Request::new(DynamicObject::url_path(&self.form.resource, namespace))
    }

    pub(super) fn at(&self, key: &Key) -> Request {
        self.request(key.namespace())
    }

    fn key(&self, object: &K) -> Result<Key, ClientError> {
        let meta = object.meta();
        let name = meta.name.as_deref().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| self.problem("has no name"))?;
        Ok(key_of(meta.namespace.as_deref(), name))
    }

    fn display_name(&self, object: &K) -> String {
        let meta = object.meta();
        let name = meta.name.as_deref().or(meta.generate_name.as_deref());
        key_of(meta.namespace.as_deref(), name.unwrap_or_default())
            .as_str()
            .to_owned()
    }

    pub(super) fn value(&self, object: &K) -> Result<Value, ClientError> {
        serde_json::to_value(object)
            .map_err(|error| self.problem(&format!("cannot be written as JSON: {error}")))
    }

    fn body(&self, object: &K) -> Result<Vec<u8>, ClientError> {
        self.encode(object)
    }

    fn encode(&self, value: &impl Serialize) -> Result<Vec<u8>, ClientError> {
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
        ClientError::Call {
            verb,
            resource: self.form.entry.name.clone(),
            name: name.to_owned(),
            source: Box::new(error),
        }
    }
}

pub(super) fn key_of(namespace: Option<&str>, name: &str) -> Key {
    match namespace {
        Some(namespace) => Key::new(namespace, name),
        None => Key::cluster(name),
    }
}
