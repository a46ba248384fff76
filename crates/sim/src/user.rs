//! Whoever uses the cluster in a workload: a person with kubectl.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, Resource};
use kubewright_cluster::Cluster;
use kubewright_runtime::{Error, Key};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::external::{AnyExternal, ExternalSystem};
use crate::state::ObjectId;
use crate::target;

/// An object that users create and change.
pub trait UserObject:
    Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug
{
}

impl<K> UserObject for K where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug
{
}

/// What a step of a workload works with: an administrator's access to the cluster, without faults.
#[derive(Clone)]
pub struct User {
    cluster: Arc<Cluster>,
    external: Option<Arc<dyn AnyExternal>>,
    /// What was created through this user and its clones.
    made: Arc<Mutex<BTreeSet<ObjectId>>>,
}

impl Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("User")
    }
}

impl User {
    pub(crate) fn new(cluster: Arc<Cluster>, external: Option<Arc<dyn AnyExternal>>) -> Self {
        Self {
            cluster,
            external,
            made: Arc::default(),
        }
    }

    pub(crate) fn made(&self) -> BTreeSet<ObjectId> {
        self.made.lock().clone()
    }

    pub(crate) fn external_state(&self) -> Option<Value> {
        self.external.as_ref().map(|external| external.state())
    }

    /// Notes an object that was created for the workload.
    pub(crate) fn note(&self, id: ObjectId) {
        self.made.lock().insert(id);
    }

    fn note_made<K: UserObject>(&self, object: &K) {
        let resource = target::resource(&K::group(&()), &K::plural(&()));
        let meta = object.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        let key = match &meta.namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        };
        self.note((resource, key));
    }

    /// A client of the administrator's.
    pub fn client(&self) -> kube::Client {
        self.cluster.client()
    }

    /// The cluster: its nodes can be stopped, its measurements changed.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The external system of the run, if there is one of this type.
    pub fn external<E: ExternalSystem>(&self) -> Option<Arc<E>> {
        self.external.clone()?.as_any().downcast().ok()
    }

    fn api<K: UserObject>(&self, namespace: Option<&str>) -> Api<DynamicObject> {
        dynamic(&self.client(), &ApiResource::erase::<K>(&()), namespace)
    }

    /// Creates an object.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn create<K: UserObject>(&self, object: &K) -> Result<K, Error> {
        let namespace = object.meta().namespace.as_deref();
        let api = self.api::<K>(namespace);
        let object = converted(object)?;
        let created = api.create(&PostParams::default(), &object).await?;
        let created = converted(&created)?;
        self.note_made::<K>(&created);
        Ok(created)
    }

    /// Applies an object as `kubectl apply --server-side` does.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn apply<K: UserObject>(&self, object: &K) -> Result<K, Error> {
        let resource = ApiResource::erase::<K>(&());
        let mut object: DynamicObject = converted(object)?;
        object.types = Some(kube::core::TypeMeta {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
        });
        object.metadata.managed_fields = None;
        let api = self.api::<K>(object.metadata.namespace.as_deref());
        let name = object.metadata.name.clone().unwrap_or_default();
        let how = PatchParams::apply("user").force();
        let applied = api.patch(&name, &how, &Patch::Apply(&object)).await?;
        let applied = converted(&applied)?;
        self.note_made::<K>(&applied);
        Ok(applied)
    }

    /// Reads an object.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn get<K: UserObject>(&self, key: &Key) -> Result<Option<K>, Error> {
        let found = self.api::<K>(key.namespace()).get_opt(key.name()).await?;
        found.map(|object| converted(&object)).transpose()
    }

    /// Lists the objects of a namespace.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn list<K: UserObject>(&self, namespace: &str) -> Result<Vec<K>, Error> {
        let api = self.api::<K>(Some(namespace));
        let list = api.list(&ListParams::default()).await?;
        list.items.iter().map(converted).collect()
    }

    /// Reads an object, changes it and writes it back.
    ///
    /// # Errors
    /// When it is not there or the server refuses it.
    pub async fn modify<K: UserObject>(
        &self,
        key: &Key,
        change: impl Fn(&mut K),
    ) -> Result<K, Error> {
        let api = self.api::<K>(key.namespace());
        loop {
            let mut object: K = converted(&api.get(key.name()).await?)?;
            change(&mut object);
            let changed = converted(&object)?;
            let how = PostParams::default();
            let written = api.replace(key.name(), &how, &changed).await;
            match written {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                written => return converted(&written?),
            }
        }
    }

    /// Deletes an object and does not wait until it is gone.
    ///
    /// # Errors
    /// When it is not there or the server refuses.
    pub async fn delete<K: UserObject>(&self, key: &Key) -> Result<(), Error> {
        let api = self.api::<K>(key.namespace());
        api.delete(key.name(), &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits in virtual time.
    pub async fn wait(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// The API of a resource, in a namespace or in none.
pub(crate) fn dynamic(
    client: &kube::Client,
    resource: &ApiResource,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

fn converted<A: Serialize, B: DeserializeOwned>(object: &A) -> Result<B, Error> {
    Ok(serde_json::from_value(serde_json::to_value(object)?)?)
}
