//! For tests of an operator: the whole program at work on a cluster in the process.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright::prelude::*;
//! use kubewright::testing::World;
//!
//! # async fn test() {
//! let world = World::start().await;
//! let key = Key::new("default", "settings");
//! world.until(&key, |map: Option<&ConfigMap>| map.is_some()).await;
//! # }
//! ```

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::Resource;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kubewright_cluster::Cluster;
use kubewright_manifests::webhook::{Address, configurations, service};
use kubewright_manifests::{layout, sample};
use kubewright_runtime::client::TypedObject;
use kubewright_runtime::serving::{Listener, Tls};
use kubewright_runtime::{CancellationToken, Client, Error, Key, Manager, Query};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::registered;

/// How long anything may take; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often is looked.
const STEP: Duration = Duration::from_millis(10);

/// A cluster in this process that knows the kinds of this program, with its controllers at work and its webhooks asked. All of
/// it ends with this value.
#[derive(Debug)]
pub struct World {
    /// Reads and writes as the program does.
    pub client: Client,
    /// The cluster: what it is made of, and clients of other people.
    pub cluster: Cluster,
    /// Holds the manager, which ends with it.
    _manager: JoinSet<()>,
}

impl World {
    /// Starts a cluster, installs everything that is registered, and runs it.
    ///
    /// # Panics
    /// When a definition or configuration is not accepted.
    pub async fn start() -> Self {
        let cluster = Cluster::builder().start().await.expect("a cluster starts");
        let client = Client::new(cluster.client());
        let manager = install_here(Manager::new(cluster.client())).await;
        let manager = manager.unwrap_or_else(|error| panic!("{error}"));
        let controllers = registered::controllers().into_iter();
        let manager = controllers.fold(manager, Manager::controller);
        let mut tasks = JoinSet::new();
        tasks.spawn(async {
            // Signals are the test program's, not one world's of many.
            if let Err(error) = manager.run_until(CancellationToken::new()).await {
                panic!("the manager ended: {error}");
            }
        });
        Self {
            client,
            cluster,
            _manager: tasks,
        }
    }

    /// Looks again and again until the object of this key is as it should be, and gives it. One that is not there is
    /// `None`.
    ///
    /// # Panics
    /// When it is not within half a minute, or the server does not answer.
    pub async fn until<K: TypedObject>(
        &self,
        key: &Key,
        holds: impl Fn(Option<&K>) -> bool,
    ) -> Option<K> {
        let end = Instant::now() + PATIENCE;
        loop {
            let object = self.client.live().get::<K>(key).await;
            let object = object.expect("the server answers");
            if holds(object.as_ref()) {
                return object;
            }
            assert!(Instant::now() < end, "{} stays as it is", key.as_str());
            sleep(STEP).await;
        }
    }

    /// Looks again and again until there is an event with this reason.
    ///
    /// # Panics
    /// When there is none within half a minute, or the server does not answer.
    pub async fn until_event(&self, reason: &str) {
        let end = Instant::now() + PATIENCE;
        let told = |event: &Event| event.reason.as_deref() == Some(reason);
        loop {
            let events = self.client.live().list::<Event>(Query::all()).await;
            if events.expect("the server answers").iter().any(told) {
                return;
            }
            assert!(Instant::now() < end, "nobody tells of {reason}");
            sleep(STEP).await;
        }
    }
}

/// Installs what is registered in the cluster of a manager, which serves the webhooks at an address of this machine: for
/// clusters that run here.
///
/// # Errors
/// When no port is free, or a definition or configuration is not accepted.
pub async fn install_here(mut manager: Manager) -> crate::Result<Manager> {
    let inventory = registered::inventory();
    let webhooks = registered::webhooks();
    // Before the kinds: what is stored has been judged, from the first object on.
    let mut objects = match webhooks.is_empty() {
        true => Vec::new(),
        false => configurations(&inventory.webhooks, &service()).to_json(),
    };
    objects.extend(inventory.definitions.iter().map(|it| json!(it)));
    if !webhooks.is_empty() {
        let tls = Tls::self_signed(&["127.0.0.1"])?;
        let bound = Listener::bind("127.0.0.1:0").await?;
        let listener = bound.ok_or_else(|| Error::msg("there is no address"))?;
        let address = Address::new(listener.address()?, &tls.certificate_pem());
        objects.iter_mut().for_each(|object| address.lead(object));
        manager = manager.serve_webhooks(listener.tls(tls), webhooks);
    }
    let client = manager.client().kube().clone();
    for object in objects {
        apply(&client, object).await?;
    }
    Ok(manager)
}

/// Applies a definition or a configuration, whoever applied another one before.
async fn apply(client: &kube::Client, object: Value) -> crate::Result {
    let object: DynamicObject = serde_json::from_value(object)?;
    let kind = object.types.as_ref().map(GroupVersionKind::try_from);
    let kind = kind.and_then(std::result::Result::ok);
    let kind = kind.ok_or_else(|| Error::msg("an object does not say its kind"))?;
    let name = object.metadata.name.clone().unwrap_or_default();
    let api = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let how = PatchParams::apply("kubewright").force();
    let applied = api.patch(&name, &how, &Patch::Apply(&object)).await;
    match applied {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::msg(format!(
            "{} {name} is not accepted: {error}",
            kind.kind
        ))),
    }
}

/// A valid object of a registered kind, made from its schema. One of a namespace is in `default`.
///
/// # Panics
/// When the kind is not registered, or its type and its schema contradict each other.
pub fn sample_of<K>(name: &str) -> K
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let inventory = registered::inventory();
    let mut definitions = inventory.definitions.iter();
    let definition = definitions
        .find(|it| it.spec.names.kind == K::kind(&()) && it.spec.group == K::group(&()))
        .expect("the kind is registered");
    let mut object = sample::of(definition, &K::version(&())).expect("a sample can be made");
    object["metadata"]["name"] = name.into();
    if definition.spec.scope == "Namespaced" {
        object["metadata"]["namespace"] = "default".into();
    }
    serde_json::from_value(object).expect("the type and its schema agree")
}

/// Fails when a generated file of the project in this folder is not what this program says.
///
/// # Panics
/// When one is not, with their names and what to do.
pub fn assert_generated(project: impl AsRef<Path>) {
    let stale = layout::stale(project.as_ref(), &registered::inventory());
    let stale = stale.expect("the project can be read");
    assert!(stale.is_empty(), "run `kubewright generate`: {stale:?}");
}
