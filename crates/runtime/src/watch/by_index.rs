//! Watches that lead to what an index of the cache has: from a Secret to the Pods that mount it.

use kube::core::ApiResource;

use super::{MissingIndex, Watch};
use crate::client::{Client, Object, Objects, TypedObject};

impl<K: Object> Watch<K> {
    /// A change leads to the objects of type `T` that an [index](crate::controller::Builder::index) has under one of these
    /// values. Nothing is decoded but the object that changed. An index that neither a controller of the manager nor
    /// [`Client::add_index`] has added is an error when the watch starts.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{Pod, Secret};
    /// use kubewright_runtime::{Index, Key, Watch};
    ///
    /// // Pods by the Secrets that they mount: given to a controller of Pods with `.index("secrets", mounted)`.
    /// let mounted = Index::of(|pod: &Pod| {
    ///     let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    ///     let names = volumes.filter_map(|volume| volume.secret.as_ref()?.secret_name.clone());
    ///     names.map(|name| Key::of(pod).sibling(&name).to_string()).collect()
    /// });
    /// let secrets = Watch::of::<Secret>().map_by_index::<Pod>("secrets", |secret| vec![Key::of(secret).to_string()]);
    /// # drop((mounted, secrets));
    /// ```
    pub fn map_by_index<T: TypedObject>(
        self,
        index: &str,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.mapped_by_index(index, Client::of::<T>, values)
    }

    /// A change leads to the objects of this resource that an [index](crate::controller::Builder::index_dynamic) has under one of
    /// these values: [`map_by_index`](Self::map_by_index) for kinds that are not known at compile time.
    pub fn map_by_dynamic_index(
        self,
        resource: &ApiResource,
        index: &str,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let resource = resource.clone();
        let objects = move |client: &Client| client.dynamic(&resource);
        self.mapped_by_index(index, objects, values)
    }

    fn mapped_by_index<T: Object>(
        self,
        index: &str,
        objects: impl Fn(&Client) -> Objects<T> + Clone + Send + Sync + 'static,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let (index, needed) = (index.to_owned(), index.to_owned());
        let indexed = objects.clone();
        let mut watch = self.map(move |object, client| {
            let reader = objects(client).reader();
            let keys = |value: &String| match reader.keys_by_index(&index, value) {
                Ok(keys) => keys,
                Err(error) => {
                    tracing::error!(%error, "a watch maps by an index that was not added");
                    Vec::new()
                }
            };
            values(object).iter().flat_map(keys).collect()
        });
        let find = move |client: &Client, watched: &str| {
            let indexed = indexed(client);
            indexed.find_index(&needed).map_err(|known| MissingIndex {
                watched: watched.to_owned(),
                index: needed,
                indexed: indexed.name().to_owned(),
                known,
            })
        };
        watch.index = Some(Box::new(find));
        watch
    }
}
