//! Reads straight from the server, past the cache.

use kube::core::params::{GetParams, ListParams};
use kube::core::request::Request;
use kube::core::{DynamicObject, ObjectList, Resource};
use kubewright_cache::Key;

use super::{Client, ClientError, IgnoreNotFound, Object, Objects, Query, TypedObject};

/// Reads from the server: always the newest state, each read a request.
#[derive(Debug, Clone, Copy)]
pub struct Live<'a>(pub(super) &'a Client);

impl Live<'_> {
    /// The object as the server has it now.
    ///
    /// # Errors
    /// What the server answers; absence is not an error.
    pub async fn get<K: TypedObject>(self, key: &Key) -> Result<Option<K>, ClientError> {
        self.0.of::<K>().get_live(key).await
    }

    /// Objects as the server has them now.
    ///
    /// # Errors
    /// What the server says, or that the query names an index: those are of the cache.
    pub async fn list<K: TypedObject>(self, query: Query) -> Result<Vec<K>, ClientError> {
        self.0.of::<K>().list_live(query).await
    }
}

impl<K: Object> Objects<K> {
    /// The object as the server has it now.
    ///
    /// # Errors
    /// What the server answers; absence is not an error.
    pub async fn get_live(&self, key: &Key) -> Result<Option<K>, ClientError> {
        let built = self.at(key).get(key.name(), &GetParams::default());
        let answer = self.ask("get", key.as_str(), built).await;
        answer.ignore_not_found()
    }

    /// Objects as the server has them now.
    ///
    /// # Errors
    /// What the server says, or that the query names an index: those are of the cache.
    pub async fn list_live(&self, query: Query) -> Result<Vec<K>, ClientError> {
        if query.index.is_some() {
            return Err(self.problem("cannot be listed live by index: the server has none"));
        }
        let namespace = query.namespace.as_deref();
        let params = ListParams {
            label_selector: query.labels.map(|selector| selector.to_string()),
            limit: query.limit.and_then(|limit| u32::try_from(limit).ok()),
            ..ListParams::default()
        };
        let path = DynamicObject::url_path(self.resource(), namespace);
        let built = Request::new(path).list(&params);
        let list: ObjectList<K> = self
            .ask("list", namespace.unwrap_or_default(), built)
            .await?;
        Ok(list.items)
    }

    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        verb: &'static str,
        name: &str,
        built: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, ClientError> {
        let request =
            built.map_err(|error| self.failed(verb, name, kube::Error::BuildRequest(error)))?;
        let within = self.client.shared.requests.read;
        let (_, answer) = self.call(verb, name, within, request).await?;
        Ok(answer)
    }
}
