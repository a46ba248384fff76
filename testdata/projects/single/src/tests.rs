//! What holds for the whole program, and the cluster that its tests run on.

use std::path::Path;
use std::time::Duration;

use kubewright::k8s_openapi::api::core::v1::Event;
use kubewright::kube::Resource;
use kubewright::manifests::{layout, sample};
use kubewright::prelude::*;
use kubewright::registered;
use kubewright::runtime::client::TypedObject;
use kubewright_cluster::Cluster;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

/// How long anything may take; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster in this process that knows the kinds of this program, with its controllers at work.
pub(crate) struct World {
    pub(crate) client: Client,
    _cluster: Cluster,
}

impl World {
    pub(crate) async fn start() -> Self {
        let cluster = Cluster::builder().start().await.expect("a cluster starts");
        let client = Client::new(cluster.client());
        for definition in &registered::inventory().definitions {
            let created = client.create(definition).await;
            created.expect("the definition is accepted");
        }
        let manager = Manager::new(cluster.client());
        let controllers = registered::controllers().into_iter();
        let manager = controllers.fold(manager, Manager::controller);
        tokio::spawn(manager.run());
        Self {
            client,
            _cluster: cluster,
        }
    }

    /// Looks again and again until the object of this key is as it should be; none is `None`.
    #[allow(dead_code, reason = "tests of controllers use it")]
    pub(crate) async fn until<K: TypedObject>(
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
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Looks again and again until there is an event with this reason.
    #[allow(dead_code, reason = "tests of controllers use it")]
    pub(crate) async fn until_event(&self, reason: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let events = self.client.live().list::<Event>(Query::all()).await;
            let events = events.expect("the server answers");
            let told = |event: &Event| event.reason.as_deref() == Some(reason);
            if events.iter().any(told) {
                return;
            }
            assert!(Instant::now() < end, "nobody tells of {reason}");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A valid object of a kind of this program, made from its schema.
#[allow(dead_code, reason = "tests of controllers use it")]
pub(crate) fn sample_of<K>(name: &str) -> K
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

#[test]
fn generated_files_are_those_of_this_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let stale = layout::stale(root, &registered::inventory()).expect("the project can be read");
    assert!(stale.is_empty(), "run `kubewright generate`: {stale:?}");
}

#[tokio::test]
async fn definitions_are_accepted_by_a_server() {
    World::start().await;
}
