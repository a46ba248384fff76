//! Reads straight from the server, past the cache.

use bytes::Bytes;
use kube::core::params::{GetParams, ListParams};
use kube::core::request::Request;
use kube::core::{DynamicObject, ObjectList, ObjectMeta, Resource};
use kubewright_cache::{AsObject, Key};

use super::{
    Client, ClientError, IgnoreNotFound, Object, Objects, Query, ReadSubject, TypedObject,
};

/// Objects that one request of a list asks for, as client-go's pager does.
const PAGE: usize = 500;

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

    /// Objects as the server has them now, read in pages of 500. All are of one moment: should the server forget it between two
    /// pages, they are read once more in one piece.
    ///
    /// # Errors
    /// What the server says, or that the query names an index: those are of the cache.
    pub async fn list<K: TypedObject>(self, query: Query) -> Result<Vec<K>, ClientError> {
        self.0.of::<K>().list_live(query).await
    }

    /// Succeeds if the server still has this object with the same spec: the same uid and generation, and not being deleted.
    /// A kind without a generation, such as a ConfigMap, has to be unchanged.
    ///
    /// Call it before deleting what the spec does not name. A cache may be behind, and what an old spec does not name may be
    /// what the present one asks for.
    ///
    /// # Errors
    /// [`ClientError::Changed`], which is a [conflict](ClientError::is_conflict), if the object is gone, was made again or has
    /// another spec; what the server answers.
    pub async fn ensure_current<K: TypedObject>(
        self,
        object: impl AsObject<K>,
    ) -> Result<(), ClientError> {
        self.0.of().ensure_current(object.as_object()).await
    }
}

impl<K: Object> Objects<K> {
    /// The object as the server has it now.
    ///
    /// # Errors
    /// What the server answers; absence is not an error.
    pub async fn get_live(&self, key: &Key) -> Result<Option<K>, ClientError> {
        let found = self.fetch(key).await?;
        let call = self.call("get", key.as_str());
        found.map(|body| call.decode(&body)).transpose()
    }

    /// The object as the server sends it.
    pub(super) async fn fetch(&self, key: &Key) -> Result<Option<Bytes>, ClientError> {
        let built = self.at(key).get(key.name(), &GetParams::default());
        let call = self.call("get", key.as_str());
        let answer = self
            .client
            .send_read(call, built)
            .await
            .ignore_not_found()?;
        self.note_read(usize::from(answer.is_some()), || {
            ReadSubject::Key(key.clone())
        });
        Ok(answer.map(|answer| answer.body))
    }

    /// Objects as the server has them now, read in pages as by [`Live::list`].
    ///
    /// # Errors
    /// What the server says, or that the query names an index: those are of the cache.
    pub async fn list_live(&self, query: Query) -> Result<Vec<K>, ClientError> {
        if query.index.is_some() {
            return Err(self.problem("cannot be listed live by index: the server has none"));
        }
        let namespace = query.namespace.as_deref();
        let most = query.limit.unwrap_or(usize::MAX);
        let mut params = ListParams {
            label_selector: query.labels.map(|selector| selector.to_string()),
            field_selector: query.fields,
            limit: page_of(most),
            ..ListParams::default()
        };
        let mut found = Vec::new();
        loop {
            let page = match self.page(namespace, &params).await {
                // Pages of two moments do not make a list.
                Err(error) if error.is_expired() && params.continue_token.is_some() => {
                    found.clear();
                    (params.limit, params.continue_token) = (None, None);
                    self.page(namespace, &params).await?
                }
                page => page?,
            };
            found.extend(page.items);
            let next = page.metadata.continue_.filter(|token| !token.is_empty());
            if next.is_none() || found.len() >= most {
                break;
            }
            (params.limit, params.continue_token) = (page_of(most - found.len()), next);
        }
        // A server need not know limits.
        found.truncate(most);
        self.note_read(found.len(), || ReadSubject::of(namespace));
        Ok(found)
    }

    async fn page(
        &self,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> Result<ObjectList<K>, ClientError> {
        let path = DynamicObject::url_path(self.resource(), namespace);
        let built = Request::new(path).list(params);
        let call = self.call("list", namespace.unwrap_or_default());
        let answer = self.client.send_read(call, built).await?;
        call.decode(&answer.body)
    }

    /// Succeeds if the server still has this object with the same spec, as [`Live::ensure_current`] does.
    ///
    /// # Errors
    /// [`ClientError::Changed`] if it has not; what the server answers.
    pub async fn ensure_current(&self, object: &K) -> Result<(), ClientError> {
        let key = Key::of(object);
        let state = |meta: &ObjectMeta| {
            let deleting = meta.deletion_timestamp.is_some();
            // Kinds such as ConfigMaps have no generation; any change of theirs counts.
            let version = match meta.generation {
                Some(_) => None,
                None => meta.resource_version.clone(),
            };
            (meta.uid.clone(), meta.generation, version, deleting)
        };
        let current = self.get_live(&key).await?;
        if current.is_some_and(|current| state(current.meta()) == state(object.meta())) {
            return Ok(());
        }
        let resource = self.form.entry.name.clone();
        Err(ClientError::Changed { resource, key })
    }
}

/// The number of objects to ask for where so many are wanted. None at all is all of them to a server.
fn page_of(objects: usize) -> Option<u32> {
    u32::try_from(objects.clamp(1, PAGE)).ok()
}
