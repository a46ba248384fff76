//! The task of the scheduler: hears of pods, nodes and claims, decides, and binds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kubewright_cache::{Event, Handler, Key, Reader, Registration, SharedInformer};
use kubewright_runtime::{Client, Environment};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::bind::{self, Bound};
use super::board::{Board, Changed, Identity, NodeName};
use super::decide::decide;
use super::demand::Demand;
use super::queue::Queue;
use super::verdict::refused_everywhere;
use super::volumes::{Storage, Volumes, assess, is_bound};
use super::{SchedulerError, SchedulerOptions};
use crate::announce::{Announcer, Told};

/// How many bindings are under way at most.
const BINDINGS: usize = 64;
/// How many pods are decided about before news is heard again.
const TURN: usize = 64;
/// How much news may wait.
const NEWS: usize = 1_024;
/// How long volumes may take until a pod is put elsewhere.
const VOLUME_PATIENCE: Duration = Duration::from_secs(600);

/// What informers tell.
#[derive(Debug)]
pub(super) enum News {
    Pod(Key),
    Node(Key),
    Namespace(Key),
    /// A claim, a volume or a class changed.
    Storage,
}

/// What came of a write.
pub(super) enum Done {
    Bound(Key, Result<Bound, kube::Error>),
    Told(Key, Result<(), kube::Error>),
}

/// A pod that has a node and waits for its volumes.
#[derive(Debug)]
struct Waiting {
    node: NodeName,
    claims: Vec<Key>,
    until: Timestamp,
}

struct Shell {
    options: SchedulerOptions,
    board: Board,
    queue: Queue,
    client: kube::Client,
    environment: Environment,
    stores: Stores,
    announcer: Announcer,
    writes: JoinSet<Done>,
    stirred: BTreeSet<Key>,
    /// Pods that were given a node of which the informer has not told yet.
    assumed: BTreeMap<Key, String>,
    waiting: BTreeMap<Key, Waiting>,
    /// Pods that found no node and may find one when others are placed.
    hopeful: BTreeSet<Key>,
}

/// What is looked up.
struct Stores {
    pods: Reader<Pod>,
    nodes: Reader<Node>,
    namespaces: Reader<Namespace>,
    claims: Reader<PersistentVolumeClaim>,
    volumes: Reader<PersistentVolume>,
    classes: Reader<StorageClass>,
}

impl Storage for Stores {
    fn claim(&self, key: &Key) -> Option<Arc<PersistentVolumeClaim>> {
        self.claims.get(key)
    }

    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
        self.volumes.get(&Key::cluster(name))
    }

    fn class(&self, name: &str) -> Option<Arc<StorageClass>> {
        self.classes.get(&Key::cluster(name))
    }
}

/// Passes keys on.
struct Ear<F> {
    news: mpsc::Sender<News>,
    make: F,
}

impl<K: Send + Sync + 'static, F> Handler<K> for Ear<F>
where
    F: Fn(Key) -> News + Send + Sync + 'static,
{
    async fn handle(&mut self, event: Event<K>) {
        let news = (self.make)(event.object().key().clone());
        // An error means that the scheduler has stopped.
        let _ = self.news.send(news).await;
    }
}

/// Informers, and who listens to them.
struct Listening {
    news: mpsc::Sender<News>,
    heard: Vec<Registration>,
}

impl Listening {
    fn to<K: kubewright_cache::Kind>(
        &mut self,
        informer: &SharedInformer<K>,
        make: fn(Key) -> News,
    ) -> Result<(), SchedulerError> {
        let ear = Ear {
            news: self.news.clone(),
            make,
        };
        let registration = informer.add_handler(ear);
        self.heard
            .push(registration.map_err(|_| SchedulerError::Stopped)?);
        Ok(())
    }
}

/// Schedules pods until it is cancelled.
///
/// # Errors
/// When pods or nodes cannot be watched.
pub(super) async fn run(
    options: SchedulerOptions,
    client: Client,
    environment: Environment,
    cancel: CancellationToken,
) -> Result<(), SchedulerError> {
    let (sender, mut news) = mpsc::channel(NEWS);
    let stores = stores(&client).await?;
    let mut listening = Listening {
        news: sender,
        heard: Vec::new(),
    };
    // Nodes first: whoever hears of pods before nodes thinks that there is no room.
    listening.to(&client.of::<Node>().informer(), News::Node)?;
    listening.to(&client.of::<Namespace>().informer(), News::Namespace)?;
    listening.to(&client.of::<PersistentVolumeClaim>().informer(), |_| {
        News::Storage
    })?;
    listening.to(&client.of::<PersistentVolume>().informer(), |_| {
        News::Storage
    })?;
    listening.to(&client.of::<StorageClass>().informer(), |_| News::Storage)?;
    let (announcer, writer) =
        Announcer::new(client.kube().clone(), environment.clone(), super::NAME);
    let mut background = JoinSet::new();
    background.spawn(writer.run(cancel.clone()));
    let mut shell = Shell {
        options,
        board: Board::default(),
        queue: Queue::default(),
        client: client.kube().clone(),
        environment,
        stores,
        announcer,
        writes: JoinSet::new(),
        stirred: BTreeSet::new(),
        assumed: BTreeMap::new(),
        waiting: BTreeMap::new(),
        hopeful: BTreeSet::new(),
    };
    shell.begin();
    listening.to(&client.of::<Pod>().informer(), News::Pod)?;
    shell.serve(&mut news, &cancel).await;
    for registration in listening.heard {
        registration.remove();
    }
    shell.writes.shutdown().await;
    background.shutdown().await;
    Ok(())
}

async fn stores(client: &Client) -> Result<Stores, SchedulerError> {
    async fn store<K: kubewright_runtime::client::TypedObject + kubewright_cache::Kind>(
        client: &Client,
    ) -> Result<Reader<K>, SchedulerError> {
        let informer = client.of::<K>().informer();
        informer.synced().await.map_err(SchedulerError::Watch)?;
        Ok(informer.reader())
    }
    Ok(Stores {
        pods: store(client).await?,
        nodes: store(client).await?,
        namespaces: store(client).await?,
        claims: store(client).await?,
        volumes: store(client).await?,
        classes: store(client).await?,
    })
}

impl Shell {
    /// Takes up what is there before anything is decided: who is placed already counts.
    fn begin(&mut self) {
        let nodes: Vec<Key> = keys(&self.stores.nodes);
        for key in &nodes {
            self.node(key);
        }
        let namespaces = keys(&self.stores.namespaces);
        namespaces.iter().for_each(|key| self.namespace(key));
        let pods = keys(&self.stores.pods);
        pods.iter().for_each(|key| self.pod(key));
    }

    async fn serve(&mut self, news: &mut mpsc::Receiver<News>, cancel: &CancellationToken) {
        let mut heard = Vec::with_capacity(NEWS);
        loop {
            let pause = match self.turn() {
                More::Now => Duration::ZERO,
                More::Later => self.pause(),
            };
            tokio::select! {
                // The end comes first; writes before news, because they make room for what news leads to; then time,
                // which is looked at in every turn.
                biased;
                () = cancel.cancelled() => break,
                Some(done) = self.writes.join_next() => {
                    // A write that panicked has been reported by the runtime.
                    if let Ok(done) = done {
                        self.done(done);
                    }
                }
                count = news.recv_many(&mut heard, NEWS) => {
                    if count == 0 {
                        tracing::debug!("the informers of the scheduler have ended");
                        break;
                    }
                    for one in heard.drain(..) {
                        self.hear(one);
                    }
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
        tracing::debug!("the scheduler stops");
    }

    /// Decides about some pods.
    fn turn(&mut self) -> More {
        for key in std::mem::take(&mut self.stirred) {
            self.pod(&key);
        }
        self.give_up_on_volumes();
        for _ in 0..TURN {
            if self.writes.len() >= BINDINGS {
                return More::Later;
            }
            let Some(key) = self.queue.pop(self.environment.now()) else {
                return More::Later;
            };
            self.schedule(&key);
        }
        match self.queue.is_ready() {
            true => More::Now,
            false => More::Later,
        }
    }

    fn pause(&self) -> Duration {
        let volumes = self.waiting.values().map(|waiting| waiting.until).min();
        let next = self.queue.next().into_iter().chain(volumes).min();
        let Some(next) = next else {
            return Duration::from_secs(3600);
        };
        let left = next.duration_since(self.environment.now());
        // At least a moment, should the clock and the timer disagree.
        let left = Duration::try_from(left).unwrap_or_default();
        left.max(Duration::from_millis(1))
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Pod(key) => {
                self.stirred.insert(key);
            }
            News::Node(key) => {
                if self.node(&key) == Changed::Yes {
                    self.queue.stir(self.environment.now());
                }
            }
            News::Namespace(key) => self.namespace(&key),
            News::Storage => {
                self.bind_those_with_volumes();
                self.queue.stir(self.environment.now());
            }
        }
    }

    fn node(&mut self, key: &Key) -> Changed {
        match self.stores.nodes.get(key) {
            Some(node) => self.board.put_node(&node),
            None => {
                self.board.remove_node(key.name());
                Changed::Yes
            }
        }
    }

    fn namespace(&mut self, key: &Key) {
        let namespace = self.stores.namespaces.get(key);
        let labels = namespace.map(|n| n.metadata.labels.clone().unwrap_or_default());
        self.board.put_namespace(key.name(), labels);
    }

    /// Takes up a pod as it is now: placed, waiting, or nothing to do with us.
    fn pod(&mut self, key: &Key) {
        let pod = self.stores.pods.get(key);
        let Some(pod) = pod.filter(|pod| !is_over(pod)) else {
            self.queue.remove(key);
            self.waiting.remove(key);
            self.assumed.remove(key);
            if self.board.remove(key) {
                self.queue.stir(self.environment.now());
            }
            return;
        };
        if let Some(node) = node_of(&pod) {
            self.queue.remove(key);
            self.waiting.remove(key);
            self.assumed.remove(key);
            return self.keep(key, &pod, node);
        }
        let uid = pod.metadata.uid.as_deref().unwrap_or("");
        if self.assumed.get(key).is_some_and(|assumed| assumed == uid) {
            return;
        }
        // A pod of the same name that was placed is another one.
        self.assumed.remove(key);
        self.board.remove(key);
        let spec = pod.spec.as_ref();
        let gated = spec.and_then(|s| s.scheduling_gates.as_ref());
        let ours = spec
            .and_then(|s| s.scheduler_name.as_deref())
            .unwrap_or(super::NAME)
            == self.options.name;
        let leaving = pod.metadata.deletion_timestamp.is_some();
        if !ours || leaving || gated.is_some_and(|gates| !gates.is_empty()) {
            self.queue.remove(key);
            return;
        }
        let priority = spec.and_then(|s| s.priority).unwrap_or(0);
        let generation = pod.metadata.generation.unwrap_or(0);
        self.queue.add(key, priority, generation);
    }

    /// Counts a pod where it is.
    fn keep(&mut self, key: &Key, pod: &Pod, node: &str) {
        let identity = identity(key, pod);
        let same = self.board.placed(key).is_some_and(|placed| {
            *placed.node == *node
                && placed.uid == identity.uid
                && placed.generation == identity.generation
                && Some(&placed.labels) == pod.metadata.labels.as_ref().or(Some(&BTreeMap::new()))
        });
        if !same {
            self.board.place(identity, node, &Demand::of(pod));
            self.encourage();
        }
    }

    /// A pod was placed: those who want to be near others may find a node now.
    fn encourage(&mut self) {
        if !self.hopeful.is_empty() {
            let hopeful = std::mem::take(&mut self.hopeful);
            self.queue.stir_these(&hopeful, self.environment.now());
        }
    }

    fn schedule(&mut self, key: &Key) {
        let Some(pod) = self.stores.pods.get(key) else {
            return self.queue.remove(key);
        };
        let demand = Demand::of(&pod);
        let answer = match assess(&demand.claims, &self.stores) {
            Ok(volumes) => decide(&mut self.board, &demand, volumes.affinities.clone())
                .map(|node| (node, volumes)),
            Err(why) => Err(refused_everywhere(self.board.nodes().count(), &why)),
        };
        match answer {
            Ok((node, volumes)) => self.assign(key, &pod, &demand, node, volumes),
            Err(message) => {
                if !demand.near.is_empty() || !demand.spread.is_empty() {
                    self.hopeful.insert(key.clone());
                }
                self.refuse(key, &pod, message);
            }
        }
    }

    /// Counts the pod on its node from now on, and puts it there.
    fn assign(
        &mut self,
        key: &Key,
        pod: &Arc<Pod>,
        demand: &Demand,
        node: NodeName,
        volumes: Volumes,
    ) {
        self.board.place(identity(key, pod), &node, demand);
        self.encourage();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.assumed.insert(key.clone(), uid);
        if volumes.waiting.is_empty() {
            return self.bind(key, node);
        }
        let (client, at, pod_key) = (self.client.clone(), node.clone(), key.clone());
        let claims = volumes.waiting.clone();
        self.writes.spawn(async move {
            Done::Told(pod_key, bind::select_node(client, claims, &at).await)
        });
        let waiting = Waiting {
            node,
            claims: volumes.waiting,
            until: self.environment.now() + VOLUME_PATIENCE,
        };
        self.waiting.insert(key.clone(), waiting);
    }

    fn bind(&mut self, key: &Key, node: NodeName) {
        let Some(pod) = self.stores.pods.get(key) else {
            return self.forget(key);
        };
        let (client, key) = (self.client.clone(), key.clone());
        self.writes.spawn(async move {
            let bound = bind::bind(client, &pod, &node).await;
            Done::Bound(key, bound.map(|()| Bound { pod, node }))
        });
    }

    fn bind_those_with_volumes(&mut self) {
        let bound = |key: &Key| self.stores.claim(key).is_some_and(|claim| is_bound(&claim));
        let ready: Vec<Key> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.claims.iter().all(bound))
            .map(|(key, _)| key.clone())
            .collect();
        for key in ready {
            if let Some(waiting) = self.waiting.remove(&key) {
                self.bind(&key, waiting.node);
            }
        }
    }

    fn give_up_on_volumes(&mut self) {
        let now = self.environment.now();
        let late = self.waiting.iter().filter(|(_, w)| w.until <= now);
        let late: Vec<Key> = late.map(|(key, _)| key.clone()).collect();
        for key in late {
            self.waiting.remove(&key);
            self.forget(&key);
            self.queue.failed_for_now(&key);
        }
    }

    /// Tells why a pod has no node, once for each answer.
    fn refuse(&mut self, key: &Key, pod: &Arc<Pod>, message: String) {
        let now = self.environment.now();
        self.queue.failed(key, now);
        self.announcer.tell(Told {
            about: kube::Resource::object_ref(&**pod, &()),
            kind: "Warning",
            reason: "FailedScheduling",
            message: message.clone(),
            host: None,
            at: now,
        });
        if bind::says(pod, &message) {
            return;
        }
        let (client, key, pod) = (self.client.clone(), key.clone(), pod.clone());
        self.writes.spawn(async move {
            Done::Told(key, bind::unschedulable(client, &pod, &message, now).await)
        });
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Bound(_, Ok(Bound { pod, node })) => {
                let meta = &pod.metadata;
                let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref());
                self.announcer.tell(Told {
                    message: format!(
                        "Successfully assigned {}/{} to {node}",
                        namespace.unwrap_or(""),
                        name.unwrap_or("")
                    ),
                    about: kube::Resource::object_ref(&*pod, &()),
                    kind: "Normal",
                    reason: "Scheduled",
                    host: None,
                    at: self.environment.now(),
                });
            }
            Done::Bound(key, Err(error)) => {
                tracing::debug!(%key, %error, "a pod could not be bound");
                self.forget(&key);
                self.queue.failed_for_now(&key);
            }
            Done::Told(_, Ok(())) => {}
            Done::Told(key, Err(error)) => {
                tracing::debug!(%key, %error, "a pod could not be told of its scheduling");
                if self.waiting.remove(&key).is_some() {
                    self.forget(&key);
                    self.queue.failed_for_now(&key);
                }
            }
        }
    }

    /// Counts a pod no more that was to be put somewhere.
    fn forget(&mut self, key: &Key) {
        if self.assumed.remove(key).is_some() {
            self.board.remove(key);
        }
    }
}

/// Whether there is more to do at once.
enum More {
    Now,
    Later,
}

fn keys<K: kubewright_cache::Kind>(reader: &Reader<K>) -> Vec<Key> {
    let snapshot = reader.snapshot();
    snapshot.iter().map(|entry| entry.key().clone()).collect()
}

fn identity(key: &Key, pod: &Pod) -> Identity {
    Identity {
        key: key.clone(),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        generation: pod.metadata.generation.unwrap_or(0),
    }
}

fn node_of(pod: &Pod) -> Option<&str> {
    let node = pod.spec.as_ref()?.node_name.as_deref();
    node.filter(|node| !node.is_empty())
}

/// Whether a pod takes nothing from its node any more.
fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}
