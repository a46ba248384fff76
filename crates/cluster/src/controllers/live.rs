//! The controllers over an API server: what users see, with pods made ready by a stand-in for nodes.
//!
//! Time is tokio's, which is paused: it moves when everybody waits for it.

mod daemonset;
mod deployment;
mod replicaset;
mod settled;
mod statefulset;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_runtime::client::TypedObject;
use kubewright_runtime::environment::VirtualClock;
use kubewright_runtime::{
    Client, Context, Controller, Environment, Error, Key, Manager, Outcome, Query, from_fn,
};
use kubewright_server::Server;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::pods::samples::at;
use crate::pods::{is_finished, is_ready, label};

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A server, the controllers, and nodes that make every pod ready at once.
struct Cluster {
    client: Client,
    stop: CancellationToken,
    task: JoinHandle<()>,
    _server: Server,
}

impl Cluster {
    async fn start() -> Self {
        let server = Server::builder().start().await.expect("a server starts");
        let kube = kube::Client::new(server.service(), "default");
        let clock = VirtualClock::starting_at(at(0));
        let manager = Manager::new(kube.clone())
            .environment(Environment::seeded(clock, 1))
            .controller(super::deployment::controller())
            .controller(super::replicaset::controller())
            .controller(super::statefulset::controller())
            .controller(super::daemonset::controller(&super::Remembered::default()))
            .controller(Controller::of::<Pod>("nodes").reconciler(from_fn(make_ready)));
        let stop = CancellationToken::new();
        let run = manager.run_until(stop.clone());
        let task = tokio::spawn(async move { run.await.expect("the manager ends well") });
        Self {
            client: Client::new(kube),
            stop,
            task,
            _server: server,
        }
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("the manager does not panic");
    }

    /// Creates an object from what a user would write.
    async fn create<K: TypedObject + DeserializeOwned>(&self, text: serde_json::Value) -> K {
        let object: K = serde_json::from_value(text).expect("the test writes valid objects");
        self.client
            .create(&object)
            .await
            .expect("the object is created")
    }

    /// Changes an object of the default namespace.
    async fn change<K: TypedObject>(&self, name: &str, change: impl FnOnce(&mut K)) {
        let object: K = self.get(name).await;
        self.client
            .modify(&object, change)
            .await
            .expect("the object is changed");
    }

    async fn get<K: TypedObject>(&self, name: &str) -> K {
        let object = self.client.live().get(&Key::new("default", name)).await;
        object
            .expect("the server answers")
            .expect("the object exists")
    }

    async fn list<K: TypedObject>(&self) -> Vec<K> {
        self.client
            .live()
            .list(Query::all())
            .await
            .expect("the server answers")
    }

    /// Waits until the objects of a kind are as they should be.
    async fn until<K: TypedObject>(&self, what: &str, good: impl Fn(&[Arc<K>]) -> bool) {
        let changed = Arc::new(Notify::new());
        let signal = changed.clone();
        let informer = self.client.of::<K>().informer();
        let registration = informer.add_handler(move |_| signal.notify_one());
        let registration = registration.expect("the informer runs");
        let wait = async {
            informer
                .synced()
                .await
                .expect("the informer has a first state");
            while !good(&informer.reader().list()) {
                changed.notified().await;
            }
        };
        let done = tokio::time::timeout(PATIENCE, wait).await;
        registration.remove();
        if done.is_err() {
            panic!("{what} does not happen: {:#?}", informer.reader().list());
        }
    }

    /// Waits until the object of a name is as it should be.
    async fn until_one<K: TypedObject>(&self, name: &str, good: impl Fn(&K) -> bool) {
        let is_it = |object: &Arc<K>| object.meta().name.as_deref() == Some(name);
        self.until::<K>(name, |all| {
            all.iter().any(|object| is_it(object) && good(object))
        })
        .await;
    }

    /// Waits until an event says this.
    async fn until_event(&self, reason: &str, message: &str) {
        let is_it = |event: &Arc<Event>| {
            event.reason.as_deref() == Some(reason) && event.message.as_deref() == Some(message)
        };
        self.until::<Event>(message, |all| all.iter().any(is_it))
            .await;
    }
}

/// What a node would do with a pod, unless its labels say that it hangs.
async fn make_ready(pod: Arc<Pod>, cx: Context) -> Result<Outcome, Error> {
    let hangs = label(&pod.metadata, "hangs").is_some();
    if is_ready(&pod) || is_finished(&pod) || hangs {
        return Ok(Outcome::done());
    }
    let now = Time(cx.now());
    let run = |pod: &mut Pod| {
        let status = pod.status.get_or_insert_default();
        status.phase = Some("Running".to_owned());
        status.conditions = Some(vec![PodCondition {
            type_: "Ready".to_owned(),
            status: "True".to_owned(),
            last_transition_time: Some(now),
            ..PodCondition::default()
        }]);
    };
    match cx.client().modify_status(&*pod, run).await {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(Outcome::done()),
    }
}

/// The names of objects, sorted.
fn names<K: TypedObject>(objects: &[K]) -> Vec<String> {
    let mut names: Vec<String> = objects
        .iter()
        .filter_map(|object| object.meta().name.clone())
        .collect();
    names.sort();
    names
}
