//! Deletions: of one object, or of all that have some labels.

use kube::core::params::ListParams;
use kube::core::{DynamicObject, ObjectList};
use kubewright_cache::Key;
use serde_json::Value;

use super::{ClientError, Delete, Object, Objects, Query, is_namespaced};

impl<K: Object> Objects<K> {
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

    /// Deletes all objects of a namespace that have these labels and fields, in one call; those of the whole cluster only where the
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
            field_selector: query.fields,
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
            let uid = object.metadata.uid.as_deref().unwrap_or_default();
            self.gone(&Key::of(&object), uid, &Value::Null);
        }
        Ok(())
    }
}
