//! The task of all simulated nodes: hears of pods, nodes, commands and time, and sends what follows.

mod live;
mod machines;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::ClusterTrustBundle;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service,
};
use kubewright_cache::{Key, Reader};
use kubewright_runtime::client::Registrations;
use kubewright_runtime::events::EventKind;
use kubewright_runtime::{Client, Environment};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::fleet::{Alarm, Fleet, Look, Outcome, World};
use super::handle::{Command, Found, NodesError, NodesOptions, PodEvents, Reply};
use super::kubelet::eviction::first_victim;
use super::kubelet::sources::{Cached, Sources};
use super::logs::Keep;
use super::news::{News, NodeEar, PodEar};
use super::recorders::Recorders;
use super::runtime::{PodId, Runtime as _};
use super::signal::Signal;
use super::spec::{Network, NodeSpec, Reporting, SIMULATE, lease};
use super::step::{Fate, Note};
use super::writes::{self, PodWrite};
use crate::identity::{self, Acting};

/// How many writes are under way at most.
const WRITES: usize = 64;
/// How many pods are looked at before others have a turn.
const TURN: usize = 128;
/// How much news may wait.
const NEWS: usize = 1_024;
/// When something that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What came of a write.
enum Done {
    Pod(Key, Result<Outcome, kube::Error>),
    /// The name and uid of a node.
    Registered(String, Result<String, kube::Error>, Option<Reply>),
    Removed(Result<(), kube::Error>, Reply),
    /// The status of a node was written.
    Reported(Result<(), kube::Error>),
    /// The name and uid of a node, and its lease as it is now.
    Renewed(String, String, Result<Arc<Lease>, kube::Error>),
}

struct Shell<'a> {
    options: &'a NodesOptions,
    fleet: Fleet,
    client: kube::Client,
    environment: Environment,
    views: Views,
    recorders: Recorders,
    /// Where the runtime reports pods that use too much. It does not keep the channel open.
    news: mpsc::WeakSender<News>,
    writes: JoinSet<Done>,
    /// What the runtime is at.
    live: JoinSet<live::Heard>,
    /// Pods to look at as soon as there is room for their writes.
    stirred: BTreeSet<Key>,
}

/// What informers know.
struct Views {
    pods: Reader<Pod>,
    nodes: Reader<Node>,
    sources: Cached,
}

impl World for Views {
    fn sources(&self) -> &dyn Sources {
        &self.sources
    }

    fn pod(&self, key: &Key) -> Option<Arc<Pod>> {
        self.pods.get(key)
    }

    fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes.get(&Key::cluster(name))
    }
}

/// Runs all nodes until they are cancelled.
///
/// # Errors
/// When pods and nodes cannot be watched.
pub(super) async fn run(
    options: &NodesOptions,
    commands: &mut mpsc::Receiver<Command>,
    client: Client,
    environment: Environment,
    cancel: CancellationToken,
) -> Result<(), NodesError> {
    let (sender, mut news) = mpsc::channel(NEWS);
    let (pods, nodes) = (
        client.of::<Pod>().informer(),
        client.of::<Node>().informer(),
    );
    pods.synced().await.map_err(NodesError::Watch)?;
    nodes.synced().await.map_err(NodesError::Watch)?;
    let sources = sources(&client).await?;
    let (recorders, writer) = Recorders::new(client.kube().clone(), environment.clone());
    let mut background = JoinSet::new();
    background.spawn(writer.run(cancel.clone()));
    let mut shell = Shell {
        options,
        fleet: Fleet::new(options.clone()),
        client: client.kube().clone(),
        environment,
        views: Views {
            pods: pods.reader(),
            nodes: nodes.reader(),
            sources,
        },
        recorders,
        news: sender.downgrade(),
        writes: JoinSet::new(),
        live: JoinSet::new(),
        stirred: BTreeSet::new(),
    };
    for node in options.nodes.clone() {
        if !options.memory.is_removed(node.name()) {
            shell.add(node, None);
        }
    }
    let bundles = client.of::<ClusterTrustBundle>().informer();
    bundles.synced().await.map_err(NodesError::Watch)?;
    let stopped = |_| NodesError::Stopped;
    let heard: [Registrations; 2] = [
        pods.add_handler(PodEar(sender.clone())).map_err(stopped)?,
        nodes.add_handler(NodeEar(sender)).map_err(stopped)?,
    ];
    shell.serve(commands, &mut news, &cancel).await;
    if let Some(other) = &options.engine.other {
        other.shutdown().await;
    }
    for registration in heard {
        registration.remove();
    }
    shell.writes.shutdown().await;
    shell.live.shutdown().await;
    background.shutdown().await;
    Ok(())
}

/// The informers of what pods refer to, filled one after the other.
async fn sources(client: &Client) -> Result<Cached, NodesError> {
    let config_maps = client.of::<ConfigMap>().informer();
    config_maps.synced().await.map_err(NodesError::Watch)?;
    let secrets = client.of::<Secret>().informer();
    secrets.synced().await.map_err(NodesError::Watch)?;
    let claims = client.of::<PersistentVolumeClaim>().informer();
    claims.synced().await.map_err(NodesError::Watch)?;
    let volumes = client.of::<PersistentVolume>().informer();
    volumes.synced().await.map_err(NodesError::Watch)?;
    // Few pods look for one: nodes register meanwhile.
    let bundles = client.of::<ClusterTrustBundle>().informer();
    let services = client.of::<Service>().informer();
    services.synced().await.map_err(NodesError::Watch)?;
    Ok(Cached {
        secrets: secrets.reader(),
        config_maps: config_maps.reader(),
        claims: claims.reader(),
        volumes: volumes.reader(),
        trust_bundles: bundles.reader(),
        services: services.reader(),
    })
}

impl Shell<'_> {
    /// The API server, for the kubelet of a node.
    fn kubelet(&self, node: &str) -> Acting {
        Acting::new(&self.client, identity::node(node))
    }

    async fn serve(
        &mut self,
        commands: &mut mpsc::Receiver<Command>,
        news: &mut mpsc::Receiver<News>,
        cancel: &CancellationToken,
    ) {
        let mut heard = Vec::with_capacity(NEWS);
        loop {
            self.ring();
            self.look_at_stirred();
            let busy = !self.stirred.is_empty() && self.writes.len() < WRITES;
            let pause = (!busy).then(|| self.pause());
            tokio::select! {
                // The end comes first; then commands, which are few; writes before news, because they make room for
                // what news leads to; time last, because it is looked at in every turn.
                biased;
                () = cancel.cancelled() => break,
                Some(command) = commands.recv() => self.obey(command),
                Some(done) = self.writes.join_next() => {
                    // A write that panicked has been reported by the runtime; its pod is looked at when it changes.
                    if let Ok(done) = done {
                        self.done(done);
                    }
                }
                Some(heard) = self.live.join_next() => {
                    // One that panicked has been reported by the runtime; its container keeps its state.
                    if let Ok(heard) = heard {
                        self.hear_live(heard);
                    }
                }
                count = news.recv_many(&mut heard, NEWS) => {
                    if count == 0 {
                        tracing::debug!("the informers of the simulated nodes have ended");
                        break;
                    }
                    for one in heard.drain(..) {
                        self.hear(one);
                    }
                }
                () = rest(pause) => {}
            }
        }
        tracing::debug!("simulated nodes stop");
    }

    fn now(&self) -> Timestamp {
        self.environment.now()
    }

    /// How long to wait when nothing happens.
    fn pause(&self) -> Duration {
        let Some(next) = self.fleet.next() else {
            return Duration::from_secs(3600);
        };
        let left = Duration::try_from(next.duration_since(self.now())).unwrap_or_default();
        // At least a moment, should the clock and the timer disagree.
        left.max(Duration::from_millis(1))
    }

    /// Does what is due.
    fn ring(&mut self) {
        let now = self.now();
        while let Some(alarm) = self.fleet.due(now) {
            match alarm {
                Alarm::Pod(key) => {
                    self.stirred.insert(key);
                }
                Alarm::Lease(name) => self.renew(name, now),
                Alarm::Report(name) => self.report(&name, now),
                Alarm::Evict(name) => self.evict_one(&name),
                Alarm::ShutDown(name) => self.go_on_shutting_down(&name, now),
            }
        }
    }

    fn renew(&mut self, name: String, now: Timestamp) {
        let Some(node) = self.fleet.node(&name) else {
            return;
        };
        let (kubelet, uid) = (self.kubelet(&name), node.uid.clone());
        let wanted = lease(&name, &uid, self.options.lease_duration, now);
        let held = node.lease.clone();
        self.writes.spawn(async move {
            let renewed = writes::renew(kubelet, held, wanted).await;
            Done::Renewed(name, uid, renewed.map(Arc::new))
        });
    }

    /// A node that is low on something lets a pod go.
    fn evict_one(&mut self, name: &str) {
        let Some((pressure, keys)) = self.fleet.tenants(name) else {
            return;
        };
        let pods = keys
            .iter()
            .filter_map(|key| Some((key, self.views.pods.get(key)?)));
        let pods: Vec<(&Key, Arc<Pod>)> = pods
            .filter(|(_, pod)| crate::pods::is_active(pod))
            .collect();
        let victim = first_victim(pods.iter().map(|(key, pod)| (*key, &**pod))).cloned();
        if let Some(key) = victim {
            let message = pressure.message();
            self.fleet.signal(&key, Signal::Evicted { message });
            self.stirred.insert(key);
        }
    }

    fn look_at_stirred(&mut self) {
        let resized = self.fleet.retry_resizes(&self.views);
        self.stirred.extend(resized);
        for _ in 0..TURN {
            if self.writes.len() >= WRITES {
                return;
            }
            let Some(key) = self.stirred.pop_first() else {
                return;
            };
            match self.views.pods.get(&key) {
                Some(pod) => self.look(key, &pod),
                None => self.forget(&key),
            }
        }
    }

    fn look(&mut self, key: Key, pod: &Arc<Pod>) {
        let now = self.now();
        let Some(Look { node, step }) = self.fleet.look(&key, pod, &self.views, now) else {
            return;
        };
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.options
            .logs
            .write(&key, &uid, now, step.output, Keep::Lines);
        for note in step.notes {
            self.record(pod, &node, note);
        }
        for order in step.orders {
            self.carry_out(&key, pod, &node, order);
        }
        if step.status.is_none() && step.fate == Fate::Stays {
            return;
        }
        let write = PodWrite {
            key: key.clone(),
            uid,
            status: step.status,
            gone: step.gone,
            fate: step.fate,
        };
        let kubelet = self.kubelet(&node);
        self.writes
            .spawn(async move { Done::Pod(key, write.send(kubelet).await) });
    }

    fn record(&mut self, pod: &Pod, node: &str, note: Note) {
        if self.options.events == PodEvents::Warnings && note.kind == EventKind::Normal {
            return;
        }
        let about = ObjectReference {
            field_path: note.part,
            ..kube::Resource::object_ref(pod, &())
        };
        let recorder = self.recorders.of(node);
        recorder.event(&about, note.kind, &note.reason, &note.message);
    }

    fn forget(&mut self, key: &Key) {
        if let Some(uid) = self.fleet.forget(key) {
            self.leave(&PodId::new(key.namespace().unwrap_or(""), key.name(), &uid));
        }
        self.options.logs.forget(key);
    }

    /// A pod has left its node: the runtimes hear of it.
    fn leave(&self, pod: &PodId) {
        self.options.engine.simulation.remove(pod);
        if let Some(other) = &self.options.engine.other {
            other.remove(pod);
        }
    }

    /// Takes a node away with everything that runs on it; says whether there was one.
    fn take_away(&mut self, name: &str) -> bool {
        let Some(pods) = self.fleet.remove(name) else {
            return false;
        };
        for pod in &pods {
            self.leave(pod);
        }
        true
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Pod(key) => {
                self.stirred.insert(key);
            }
            // The name may have been taken again by now, which looking at it tells.
            News::PodGone(key) => {
                if self.views.pods.contains(&key) {
                    self.stirred.insert(key);
                } else {
                    self.forget(&key);
                }
            }
            News::Node(key) => self.adopt(&key),
            News::NodeGone(key, uid) => {
                let same = self.fleet.node(key.name()).is_some_and(|n| n.uid == uid);
                if same {
                    self.take_away(key.name());
                }
            }
            News::Excess(key, uid, message) => {
                let same = self.fleet.uid(&key) == Some(&*uid);
                if same && self.fleet.signal(&key, Signal::Evicted { message }) {
                    self.stirred.insert(key);
                }
            }
        }
    }

    /// Takes over a node that somebody made and asked to have simulated.
    fn adopt(&mut self, key: &Key) {
        if self.fleet.node(key.name()).is_some() {
            return;
        }
        let Some(node) = self.views.nodes.get(key) else {
            return;
        };
        let annotations = node.metadata.annotations.as_ref();
        let asked = annotations.and_then(|all| all.get(SIMULATE));
        if asked.is_some_and(|value| value == "true") {
            self.add(NodeSpec::of_object(&node), None);
        }
    }

    fn obey(&mut self, command: Command) {
        let unknown = |known: bool, name: String| {
            if known {
                Ok(())
            } else {
                Err(NodesError::Unknown(name))
            }
        };
        let (answer, reply) = match command {
            Command::Add(node, reply) => return self.add(node, Some(reply)),
            Command::Remove(name, reply) => {
                if self.take_away(&name) {
                    self.recorders.forget(&name);
                    self.options.memory.removed(&name);
                    let kubelet = self.kubelet(&name);
                    self.writes.spawn(async move {
                        Done::Removed(writes::deregister(kubelet, &name).await, reply)
                    });
                    return;
                }
                (Err(NodesError::Unknown(name)), reply)
            }
            Command::Change(name, change, reply) => {
                let known = self.change_node(&name, change);
                (unknown(known, name), reply)
            }
            Command::Signal(key, signal, reply) => {
                let known = self.fleet.signal(&key, signal);
                let answer = if known {
                    Ok(())
                } else {
                    Err(NodesError::NoPod(key.clone()))
                };
                self.stirred.insert(key);
                (answer, reply)
            }
            Command::House(name, reply) => {
                // Whoever asked may have gone.
                let _ = reply.send(self.housed(&name));
                return;
            }
            Command::Find(pod, reply) => {
                // Whoever asked may have gone.
                let _ = reply.send(self.find(&pod));
                return;
            }
        };
        // Whoever asked may have gone.
        let _ = reply.send(answer);
    }

    fn find(&self, pod: &PodId) -> Option<Found> {
        let key = Key::new(&pod.namespace, &pod.name);
        let running = self.fleet.running(pod)?;
        let (address, host) = self.fleet.place(&key)?;
        Some(Found {
            pod: self.views.pods.get(&key)?,
            running,
            address,
            host,
            sources: self.views.sources.clone(),
        })
    }

    fn add(&mut self, spec: NodeSpec, reply: Option<Reply>) {
        let name = spec.name.clone();
        let (existing, now) = (self.views.node(&name), self.now());
        let node = match self.fleet.add(spec, existing.as_deref()) {
            Ok(node) => node,
            Err(error) => {
                match reply {
                    // Whoever asked may have gone.
                    Some(reply) => drop(reply.send(Err(error))),
                    None => tracing::warn!(%error, node = name, "a node cannot be simulated"),
                }
                return;
            }
        };
        let network = Network {
            pods: node.cidr(),
            address: node.address,
        };
        let reporting = Reporting {
            state: &node.state,
            before: existing.as_ref().and_then(|node| node.status.as_ref()),
            now,
        };
        let object = node.spec.object(&node.zone, &network, &reporting);
        let known = existing.and_then(|node| node.metadata.uid.clone());
        if let Some(uid) = known.filter(|_| node.state.is_off()) {
            // It says nothing.
            return self.registered(&name, Ok(uid), reply);
        }
        let kubelet = self.kubelet(&name);
        self.writes.spawn(async move {
            let registered = match reply {
                // Whoever asked has the error, and may ask again.
                Some(_) => writes::register(kubelet, object).await,
                None => writes::register_in_the_end(kubelet, object).await,
            };
            Done::Registered(name, registered, reply)
        });
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Pod(key, Ok(outcome)) => {
                if self.fleet.written(&key, &outcome) {
                    self.stirred.insert(key);
                }
            }
            Done::Pod(key, Err(error)) => {
                tracing::warn!(%key, %error, "the status of a pod could not be written");
                let at = self.now() + RETRY;
                self.fleet.failed(&key, at);
            }
            Done::Registered(name, result, reply) => self.registered(&name, result, reply),
            Done::Removed(result, reply) => {
                let answer = result.map_err(|error| NodesError::Api(Box::new(error)));
                // Whoever asked may have gone.
                let _ = reply.send(answer);
            }
            Done::Renewed(name, uid, Ok(lease)) => self.fleet.renewed(&name, &uid, Some(lease)),
            Done::Renewed(name, uid, Err(error)) => {
                tracing::warn!(%error, node = name, "a node could not renew its lease");
                self.fleet.renewed(&name, &uid, None);
            }
            Done::Reported(Ok(())) => {}
            Done::Reported(Err(error)) => tracing::warn!(%error, "a node could not report"),
        }
    }

    fn registered(
        &mut self,
        name: &str,
        result: Result<String, kube::Error>,
        reply: Option<Reply>,
    ) {
        let answer = match result {
            Ok(uid) => {
                self.fleet.registered(name, &uid, self.now());
                self.stirred.extend(self.fleet.strays(name));
                Ok(())
            }
            Err(error) => {
                tracing::warn!(node = name, %error, "a node could not register");
                self.take_away(name);
                Err(NodesError::Api(Box::new(error)))
            }
        };
        if let Some(reply) = reply {
            // Whoever asked may have gone.
            let _ = reply.send(answer);
        }
    }
}

/// Waits for so long, or only until everybody else had a turn.
async fn rest(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => tokio::task::yield_now().await,
    }
}
