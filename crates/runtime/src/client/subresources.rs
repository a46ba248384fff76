//! Subresources: scale, eviction, binding, token and the like.

use kube::api::PostParams;
use kubewright_cache::Key;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::write::Built;
use super::{ClientError, Object, Objects};

impl<K: Object> Objects<K> {
    /// Reads a subresource such as `scale`.
    ///
    /// # Errors
    /// When the server refuses it.
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
    /// When the server refuses it.
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
    /// When the server refuses it.
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

    /// Sends a write of a subresource. Its answer may be of another kind; a version in it is the object's.
    async fn answered<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        key: &Key,
        built: Built,
    ) -> Result<T, ClientError> {
        let call = self.call(verb, key.as_str());
        let answer = self.client.send_write(call, built).await?;
        let object: Value = call.decode(&answer.body)?;
        if let Some(version) = object["metadata"]["resourceVersion"].as_str() {
            // The answer may be of another kind: it does not say which informers have the object.
            self.note(verb, key, version, Vec::new);
        }
        call.decode(&answer.body)
    }
}
