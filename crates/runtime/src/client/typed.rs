//! The client by types: [`Objects`](super::Objects) for each call, so that most programs never name one.

use std::sync::Arc;

use kubewright_cache::{AsObject, Index, IndexExists, Key, Reader};

use super::{Client, ClientError, Delete, Live, Mutate, Query, TypedObject, Written};
use crate::described::Described;

impl Client {
    /// Reads an object from the cache.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// let key = Key::new("default", "a");
    /// assert!(client.get::<ConfigMap>(&key).await?.is_none());
    /// client.create(&map("a")).await?;
    /// assert!(client.get::<ConfigMap>(&key).await?.is_some(), "a read shows the client's own writes");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// What a cache with selectors does not hold is looked up at the server: absent is what does not exist.
    ///
    /// # Errors
    /// When the cache cannot be filled, does not hold the object although it exists or may exist
    /// ([`ClientError::is_out_of_scope`]), or does not reach this manager's own writes in time; and when the object exists and
    /// does not decode.
    pub async fn get<K: TypedObject>(&self, key: &Key) -> Result<Option<Arc<K>>, ClientError> {
        self.of().get(key).await
    }

    /// Reads objects from the cache.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// client.create(&map("a")).await?;
    /// client.create(&map("b")).await?;
    /// let maps = client.list::<ConfigMap>(Query::all().namespace("default")).await?;
    /// assert_eq!(maps.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As of [`get`](Client::get), and when the query names fields or an index that was not added. One object that does not decode
    /// fails the list; [`Objects::list_lossy`](super::Objects::list_lossy) leaves it out.
    pub async fn list<K: TypedObject>(&self, query: Query) -> Result<Vec<Arc<K>>, ClientError> {
        self.of().list(query).await
    }

    /// The cache itself: reads that do not wait. What this manager wrote a moment ago may not be in it yet.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// client.create(&map("a")).await?;
    /// client.get::<ConfigMap>(&Key::new("default", "a")).await?;
    /// assert_eq!(client.reader::<ConfigMap>().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reader<K: TypedObject>(&self) -> Reader<K> {
        self.of().reader()
    }

    /// Adds an index to the cache of a kind, for [`Query::index`]. A controller declares the indexes that it needs with
    /// [`index`](crate::controller::Builder::index).
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// client.add_index::<ConfigMap>("by-namespace", Index::by_namespace())?;
    /// client.create(&map("a")).await?;
    /// let found = client.list::<ConfigMap>(Query::all().index("by-namespace", "default")).await?;
    /// assert_eq!(found.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the name is taken.
    pub fn add_index<K: TypedObject>(
        &self,
        name: &str,
        index: Index<K>,
    ) -> Result<(), IndexExists> {
        self.of().add_index(name, index)
    }

    /// Lets go of this client's informers of a kind. They stop once no controller, watch or reader uses them either; the next
    /// read starts them anew.
    pub fn remove_informer<K: TypedObject>(&self) {
        self.of::<K>().remove_informer();
    }

    /// Reads straight from the server.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// client.create(&map("a")).await?;
    /// let map = client.live().get::<ConfigMap>(&Key::new("default", "a")).await?;
    /// assert!(map.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn live(&self) -> Live<'_> {
        Live(self)
    }

    /// Creates an object and returns it as the server made it.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// let made = client.create(&map("a")).await?;
    /// assert!(made.metadata.uid.is_some());
    /// let error = client.create(&map("a")).await.unwrap_err();
    /// assert!(error.is_already_exists());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the server refuses it, for example because there is already an object of that name
    /// ([`ClientError::is_already_exists`]).
    pub async fn create<K: TypedObject>(&self, object: impl AsObject<K>) -> Result<K, ClientError> {
        self.of().create(object.as_object()).await
    }

    /// Replaces an object (PUT), all of it: fields that the given one lacks are removed. Mostly [`modify`](Client::modify) or
    /// [`apply`](Client::apply) is what you want.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// let old = client.create(&map("a")).await?;
    /// let mut new = old.clone();
    /// new.immutable = Some(true);
    /// client.update(&new).await?;
    /// let error = client.update(&old).await.unwrap_err();
    /// assert!(error.is_conflict(), "it is no longer in that version");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A conflict unless the object is still in the version that is given ([`ClientError::is_conflict`]), or another refusal by
    /// the server.
    pub async fn update<K: TypedObject>(&self, object: impl AsObject<K>) -> Result<K, ClientError> {
        self.of().update(object.as_object()).await
    }

    /// Replaces the status of an object. Mostly [`modify_status`](Client::modify_status) is what you want.
    ///
    /// # Errors
    /// A conflict unless the object is still in the version that is given, or another refusal by the server.
    pub async fn update_status<K: TypedObject>(
        &self,
        object: impl AsObject<K>,
    ) -> Result<K, ClientError> {
        self.of().update_status(object.as_object()).await
    }

    /// Sends what is different between two states of an object, as a merge patch; nothing when nothing is.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn patch<K: TypedObject>(
        &self,
        old: impl AsObject<K>,
        new: impl AsObject<K>,
    ) -> Result<Written<K>, ClientError> {
        self.of().patch(old.as_object(), new.as_object()).await
    }

    /// Sends what is different between two statuses of an object; nothing when nothing is.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn patch_status<K: TypedObject>(
        &self,
        old: impl AsObject<K>,
        new: impl AsObject<K>,
    ) -> Result<Written<K>, ClientError> {
        let objects = self.of();
        objects.patch_status(old.as_object(), new.as_object()).await
    }

    /// Changes a copy of an object and sends what is different, as a merge patch; nothing when nothing is.
    ///
    /// Other fields may have changed meanwhile, and stay; [`optimistic_lock`](Client::optimistic_lock) makes that a conflict.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// let map = client.create(&map("a")).await?;
    /// let written = client.modify(&map, |map: &mut ConfigMap| map.immutable = Some(true)).await?;
    /// assert!(written.is_changed());
    /// let again = client.modify(&written.into_object(), |map: &mut ConfigMap| map.immutable = Some(true)).await?;
    /// assert!(!again.is_changed(), "nothing differs, so nothing is sent");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the closure [refuses](Mutate), in which case nothing is sent, or the server does.
    pub async fn modify<K: TypedObject>(
        &self,
        object: impl AsObject<K>,
        change: impl Mutate<K>,
    ) -> Result<Written<K>, ClientError> {
        self.of().modify(object.as_object(), change).await
    }

    /// Changes the status of a copy of an object and sends what is different; nothing when nothing is.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Client, ClientError};
    /// # async fn example(client: Client, deployment: Arc<Deployment>) -> Result<(), ClientError> {
    /// let written = client
    ///     .modify_status(&deployment, |deployment| {
    ///         deployment.status.get_or_insert_default().observed_generation = deployment.metadata.generation;
    ///     })
    ///     .await?;
    /// if !written.is_changed() {
    ///     tracing::debug!("the status was right already");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the closure [refuses](Mutate), in which case nothing is sent, or the server does.
    pub async fn modify_status<K: TypedObject>(
        &self,
        object: impl AsObject<K>,
        change: impl Mutate<K>,
    ) -> Result<Written<K>, ClientError> {
        self.of().modify_status(object.as_object(), change).await
    }

    /// Applies an object on the server's side: the fields that it has become this operator's, those that it had and has no
    /// more are removed, and the fields of others stay.
    ///
    /// Nothing is sent if the same was applied before and the cache shows that all of its fields are as they were then. That
    /// needs a cache of the kind, which a controller has of what it owns and watches; without one each apply is a request. Fields
    /// that can only be written, as the `stringData` of Secrets, are sent each time: set `data` instead.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// let written = client.apply(&map("a")).await?;
    /// assert!(written.is_changed());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the server refuses it: a conflict where others manage a field, and the client [respects](super::Ownership) that.
    pub async fn apply<K: TypedObject>(
        &self,
        object: impl AsObject<K>,
    ) -> Result<Written<K>, ClientError> {
        self.of().apply(object.as_object()).await
    }

    /// Applies an object that `owner` controls. This is how a controller writes its children: the closure fills in the fields
    /// that the controller is about, on an object that has a name and a controller reference and nothing else.
    ///
    /// An object of that name that `owner` does not control is left alone, whoever made it. Otherwise as
    /// [`apply`](Client::apply).
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Service};
    /// # use kubewright_runtime::{Client, Error, Key};
    /// # async fn example(client: Client, owner: Arc<ConfigMap>) -> Result<(), Error> {
    /// let key = Key::of(&owner).sibling("web");
    /// let service = client.apply_owned(&owner, &key, |service: &mut Service| {
    ///     service.spec.get_or_insert_default().cluster_ip = Some("None".to_owned());
    /// });
    /// println!("{:?}", service.await?.change);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the object exists and `owner` does not control it ([`ClientError::is_not_owned`]) or the closure
    /// [refuses](Mutate), in which cases nothing is sent, or when the server refuses it.
    pub async fn apply_owned<O: Described, K: TypedObject + Default>(
        &self,
        owner: impl AsObject<O>,
        key: &Key,
        fill: impl Mutate<K>,
    ) -> Result<Written<K>, ClientError> {
        let objects = self.of();
        objects.apply_owned(owner.as_object(), key, fill).await
    }

    /// Deletes the very object that is given, not another one of its name.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// let map = client.create(&map("a")).await?;
    /// client.delete(&map, Delete::background()).await?;
    /// assert!(client.get::<ConfigMap>(&Key::new("default", "a")).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the server refuses it. An object that is gone is not found:
    /// [`ignore_not_found`](super::IgnoreNotFound::ignore_not_found) takes that as done.
    pub async fn delete<K: TypedObject>(
        &self,
        object: impl AsObject<K>,
        how: Delete,
    ) -> Result<(), ClientError> {
        self.of().delete(object.as_object(), how).await
    }

    /// Creates the object if it does not exist, else replaces it (PUT) if the closure changes anything.
    ///
    /// The closure gets the object as it is, or a new one with this name. Fields that can only be written, as the `stringData` of
    /// Secrets, always look like a change.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// let key = Key::new("default", "a");
    /// let fill = |map: &mut ConfigMap| map.immutable = Some(true);
    /// assert!(client.create_or_update(&key, fill).await?.is_changed());
    /// assert!(!client.create_or_update(&key, fill).await?.is_changed());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the closure [refuses](Mutate), in which case nothing is sent, or the server does; a conflict if the object has
    /// changed since the state that the closure was given.
    pub async fn create_or_update<K: TypedObject + Default>(
        &self,
        key: &Key,
        change: impl Mutate<K>,
    ) -> Result<Written<K>, ClientError> {
        self.of().create_or_update(key, change).await
    }

    /// As [`create_or_update`](Client::create_or_update), but sends only the difference, so that changes of others to other
    /// fields are not a conflict.
    ///
    /// # Errors
    /// When the closure [refuses](Mutate), in which case nothing is sent, or the server does.
    pub async fn create_or_patch<K: TypedObject + Default>(
        &self,
        key: &Key,
        change: impl Mutate<K>,
    ) -> Result<Written<K>, ClientError> {
        self.of().create_or_patch(key, change).await
    }
}
