//! The task of the scheduler: hears of pods, nodes and claims, decides, and binds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kubewright_cache::Key;
use kubewright_runtime::{Client, Environment, Recorder};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::assign::{Done, Waiting};
use super::board::{Board, Changed, Identity};
use super::claimants::Claimants;
use super::decide::decide;
use super::demand::Demand;
use super::nominate::Nominations;
use super::queue::Queue;
use super::stores::{Listening, News, Stores, keys, store};
use super::verdict::refused_everywhere;
use super::volumes::assess;
use super::{SchedulerError, SchedulerOptions};
use crate::events;

/// How many bindings are under way at most.
const BINDINGS: usize = 64;
/// How many pods are decided about before news is heard again.
const TURN: usize = 64;
/// How much news may wait.
const NEWS: usize = 1_024;

/// The state of the task.
pub(super) struct Shell {
    options: SchedulerOptions,
    pub(super) board: Board,
    pub(super) queue: Queue,
    pub(super) client: kube::Client,
    pub(super) environment: Environment,
    pub(super) stores: Stores,
    pub(super) recorder: Recorder,
    pub(super) writes: JoinSet<Done>,
    stirred: BTreeSet<Key>,
    /// Pods that were bound to a node, as long as the informer has not reported it.
    pub(super) assumed: BTreeMap<Key, String>,
    pub(super) waiting: BTreeMap<Key, Waiting>,
    /// Pods with claims that found no node, or that wait for their volumes.
    pub(super) claimants: Claimants,
    /// Pods that found no node and may find one when others are placed.
    hopeful: BTreeSet<Key>,
    pub(super) nominations: Nominations,
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
    let stores = Stores::filled(&client).await?;
    let budgets = store::<PodDisruptionBudget>(&client).await?;
    let mut listening = Listening {
        news: sender,
        heard: Vec::new(),
    };
    listening.follow_surroundings(&client)?;
    let (recorder, writer) = events::recorder(client.kube(), super::NAME, environment.clone());
    let mut background = JoinSet::new();
    background.spawn(writer.run(cancel.clone()));
    let mut shell = Shell {
        options,
        board: Board::default(),
        queue: Queue::default(),
        client: client.kube().clone(),
        environment,
        stores,
        recorder,
        writes: JoinSet::new(),
        stirred: BTreeSet::new(),
        assumed: BTreeMap::new(),
        waiting: BTreeMap::new(),
        claimants: Claimants::default(),
        hopeful: BTreeSet::new(),
        nominations: Nominations::new(budgets),
    };
    shell.begin();
    listening.follow(&client.of::<Pod>().informer(), News::Pod)?;
    shell.serve(&mut news, &cancel).await;
    for registration in listening.heard {
        registration.remove();
    }
    shell.writes.shutdown().await;
    background.shutdown().await;
    Ok(())
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
                More::Now => None,
                More::Later => Some(self.pause()),
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
                () = rest(pause) => {}
            }
        }
        tracing::debug!("the scheduler stops");
    }

    /// Decides about some pods.
    fn turn(&mut self) -> More {
        for key in std::mem::take(&mut self.stirred) {
            self.note_placement(&key);
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
        if self.queue.is_ready() {
            More::Now
        } else {
            More::Later
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
                    self.queue.rouse(self.environment.now());
                }
            }
            News::Namespace(key) => self.namespace(&key),
            News::Claim(key) => self.claim_changed(&key),
            News::Volume(key) => self.volume_changed(&key),
            News::Class => {
                let all = self.claimants.all();
                self.queue.rouse_these(&all, self.environment.now());
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
            self.settled(key);
            if self.board.remove(key) {
                self.queue.stir(self.environment.now());
            }
            return;
        };
        if let Some(node) = node_of(&pod) {
            self.settled(key);
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

    /// A pod needs no node any more.
    fn settled(&mut self, key: &Key) {
        self.queue.remove(key);
        self.waiting.remove(key);
        self.assumed.remove(key);
        self.claimants.remove(key);
    }

    /// Counts a pod where it is.
    fn keep(&mut self, key: &Key, pod: &Pod, node: &str) {
        let identity = identity(key, pod);
        let same = self.board.placed(key).is_some_and(|placed| {
            *placed.node == *node
                && placed.uid == identity.uid
                && placed.generation == identity.generation
                && placed.terminating == pod.metadata.deletion_timestamp.is_some()
                && Some(&placed.labels) == pod.metadata.labels.as_ref().or(Some(&BTreeMap::new()))
        });
        if !same {
            self.board.place(identity, node, &Demand::of(pod));
            self.encourage();
        }
    }

    /// A pod was placed: those who want to be near others may find a node now.
    pub(super) fn encourage(&mut self) {
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
        self.note_nomination(key, &pod, &demand);
        let reserved = self.reserve(key, &demand);
        let answer = match assess(&demand.claims, &self.stores) {
            Ok(volumes) => match decide(&mut self.board, &demand, &volumes) {
                Ok(node) => Ok((node, volumes)),
                Err(refusals) => {
                    let why = refusals.to_string();
                    Err(self.make_room((key, &pod), &demand, &volumes, why))
                }
            },
            Err(why) => {
                let nodes = self.board.nodes().count();
                Err(refused_everywhere(nodes, &why.to_string()))
            }
        };
        self.give_back(reserved);
        match answer {
            Ok((node, volumes)) => {
                self.drop_nomination(key);
                self.assign(key, &pod, &demand, node, volumes);
            }
            Err(message) => {
                let claims = demand.claims.iter().map(|claim| claim.key.clone());
                self.claimants.put(key, claims);
                if !demand.near.is_empty() || !demand.spread.is_empty() {
                    self.hopeful.insert(key.clone());
                }
                self.refuse(key, &pod, message);
            }
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

/// Whether there is more to do at once.
enum More {
    Now,
    Later,
}

/// Who a pod is.
pub(super) fn identity(key: &Key, pod: &Pod) -> Identity {
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
