//! The kind that all operators of the corpus manage, and what they make of it: members, claims and sets are ConfigMaps, so
//! that nothing but the operator changes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use kube::{CustomResource, CustomResourceExt, Resource};
use kubewright_runtime::{
    Context, Controller, Delete, Error, IgnoreNotFound, Key, Outcome, Query, from_fn,
    set_controller_reference,
};
use kubewright_sim::{Campaign, FaultKind, Process, User};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Form;

/// What people ask for.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "corpus.dev",
    version = "v1",
    kind = "Store",
    namespaced,
    status = "StoreStatus",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoreSpec {
    /// How many members the store has.
    pub(crate) members: u32,
    /// How large the volume of each member is.
    pub(crate) volume: u32,
    /// Options of the store.
    #[serde(default)]
    pub(crate) options: BTreeMap<String, String>,
}

/// What the operator noted.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoreStatus {
    /// The phase of what is under way.
    pub(crate) phase: Option<String>,
    /// The number of members that was seen last.
    pub(crate) members: Option<u32>,
    /// When the status was written.
    pub(crate) updated: Option<String>,
    /// The name of what was made outside of the cluster.
    pub(crate) external: Option<String>,
}

/// The name that all workloads use.
pub(crate) const NAME: &str = "db";

pub(crate) fn key(name: &str) -> Key {
    Key::new("default", name)
}

pub(crate) fn store(members: u32, volume: u32) -> Store {
    let mut store = Store::new(
        NAME,
        StoreSpec {
            members,
            volume,
            options: BTreeMap::new(),
        },
    );
    store.metadata.namespace = Some("default".to_owned());
    store
}

pub(crate) fn member(index: u32) -> String {
    format!("{NAME}-{index}")
}

pub(crate) fn claim(index: u32) -> String {
    format!("claim-{NAME}-{index}")
}

/// A child with a role and data.
pub(crate) fn child(name: &str, role: &str, data: &[(&str, String)]) -> ConfigMap {
    let data = data.iter().map(|(k, v)| ((*k).to_owned(), v.clone()));
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("default".to_owned()),
            labels: Some([("role".to_owned(), role.to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: Some(data.collect()),
        ..ConfigMap::default()
    }
}

pub(crate) fn owned(store: &Store, mut child: ConfigMap) -> Result<ConfigMap, Error> {
    set_controller_reference(store, &mut child)?;
    Ok(child)
}

pub(crate) fn name_of(object: &impl Resource) -> String {
    object.meta().name.clone().unwrap_or_default()
}

pub(crate) fn field(map: &ConfigMap, name: &str) -> String {
    let value = map.data.as_ref().and_then(|data| data.get(name));
    value.cloned().unwrap_or_default()
}

pub(crate) async fn get(cx: &Context, name: &str) -> Result<Option<Arc<ConfigMap>>, Error> {
    Ok(cx.client().get(&key(name)).await?)
}

/// All children of a role, by name.
pub(crate) async fn list(cx: &Context, role: &str) -> Result<Vec<Arc<ConfigMap>>, Error> {
    let all = cx
        .client()
        .list::<ConfigMap>(Query::all().namespace("default"));
    let mut all = all.await?;
    all.retain(|map| {
        let labels = map.metadata.labels.as_ref();
        labels
            .and_then(|labels| labels.get("role"))
            .map(String::as_str)
            == Some(role)
    });
    all.sort_by_key(|map| name_of(&**map));
    Ok(all)
}

/// Creates a child that does not exist.
pub(crate) async fn ensure(cx: &Context, child: ConfigMap) -> Result<(), Error> {
    if get(cx, &name_of(&child)).await?.is_none() {
        cx.client().create(&child).await?;
    }
    Ok(())
}

/// Sets a field of a child that exists.
pub(crate) async fn set(cx: &Context, name: &str, field: &str, value: &str) -> Result<(), Error> {
    let Some(present) = get(cx, name).await? else {
        return Ok(());
    };
    let mut changed = (*present).clone();
    let data = changed.data.get_or_insert_default();
    if data.insert(field.to_owned(), value.to_owned()).as_deref() != Some(value) {
        cx.client().update(&changed).await?;
    }
    Ok(())
}

/// Deletes this very object.
pub(crate) async fn remove(cx: &Context, object: &ConfigMap) -> Result<(), Error> {
    let gone = cx.client().delete(object, Delete::background()).await;
    gone.ignore_not_found()?;
    Ok(())
}

/// A campaign over one reconcile function. People who edit and delete children are another subject.
pub(crate) fn campaign<F, R>(name: &str, form: Form, reconcile: F) -> Campaign
where
    F: Fn(Form, Arc<Store>, Context) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    Campaign::new(name, move |process: &Process| {
        let reconcile = reconcile.clone();
        let controller = Controller::of::<Store>("store")
            .owns::<ConfigMap>()
            .reconciler(from_fn(move |store, cx| reconcile(form, store, cx)));
        process.manager().name("corpus").controller(controller)
    })
    .install(&Store::crd())
    .cluster(|cluster| cluster.without_controllers())
    .without(FaultKind::HumanDelete)
    .without(FaultKind::HumanEdit)
}

/// Changes the spec of the store.
pub(crate) async fn change(user: &User, change: impl Fn(&mut StoreSpec)) -> Result<(), Error> {
    user.modify(&key(NAME), |store: &mut Store| change(&mut store.spec))
        .await?;
    Ok(())
}
