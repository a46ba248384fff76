//! The garbage collector: objects whose owners are all gone are deleted, owners that wait for their dependents get them
//! deleted, and dependents of an owner that leaves them behind forget it.
//!
//! Guarantees
//! - It follows every kind that can be listed, watched and deleted, custom ones included, from the moment they are
//!   served; of objects it keeps the metadata. Discovery is asked again until it has every established definition.
//! - A stale view never deletes. The graph only says where to look; before anything is changed the server is asked for the
//!   object and its owners, and what is done names the uid and the version that was looked at.
//! - What an object costs does not grow with the number of objects.
//!
//! As in Kubernetes, a dependent that is created while its owner is being orphaned may be missed and collected, and a
//! reference to an owner of a kind that is not served keeps its object.

mod decide;
mod follow;
mod graph;
mod live;
mod promises;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubewright_cache::Event;
use kubewright_cache::source::BoxFuture;
use kubewright_runtime::manager::Runnable;
use kubewright_runtime::{Client, Environment, Error};
use kubewright_workqueue::{Options, Queue, limiter};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use decide::{Action, Standing, decide, standing};
use graph::{Glance, Graph, Identity, Phase, Propagation, Reference, Uid, Work};
use live::{Found, Kinds};
use promises::Promises;

/// How many objects are looked at at once.
const WORKERS: usize = 20;
/// How long the first state of all kinds may take before work begins without those that are missing.
const FIRST_STATE: Duration = Duration::from_secs(30);

/// Collects garbage as long as the manager runs.
pub(crate) struct GarbageCollector(Arc<Collector>);

struct Collector {
    client: Client,
    environment: Environment,
    graph: Mutex<Graph>,
    queue: Queue<Work>,
    kinds: RwLock<Arc<Kinds>>,
    /// What discovery should have.
    promises: Mutex<Promises>,
    /// Notified when kinds may have come or gone.
    look_for_kinds: Notify,
}

/// What becomes of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Done,
    Again,
}

impl GarbageCollector {
    pub(crate) fn new(client: Client, environment: Environment) -> Self {
        let options = Options::new()
            .name("garbage-collector")
            .limiter(limiter::controller_default());
        Self(Arc::new(Collector {
            client,
            environment,
            graph: Mutex::default(),
            queue: Queue::new(options),
            kinds: RwLock::default(),
            promises: Mutex::default(),
            look_for_kinds: Notify::new(),
        }))
    }
}

impl Runnable for GarbageCollector {
    fn run(self: Box<Self>, stop: CancellationToken) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            let collector = self.0;
            let mut tasks = JoinSet::new();
            let (synced, first_state) = tokio::sync::oneshot::channel();
            tasks.spawn(follow::kinds(collector.clone(), synced));
            tokio::select! { biased; // A stop is worth more than a start.
                () = stop.cancelled() => return Ok(()),
                _ = tokio::time::timeout(FIRST_STATE, first_state) => {}
            }
            for _ in 0..WORKERS {
                tasks.spawn(collector.clone().work());
            }
            stop.cancelled().await;
            collector.queue.shut_down();
            tasks.shutdown().await;
            Ok(())
        })
    }

    fn describe(&self) -> String {
        "the garbage collector".to_owned()
    }
}

impl Collector {
    async fn work(self: Arc<Self>) {
        while let Some(item) = self.queue.get().await {
            match self.handle(item.key()).await {
                Ok(Next::Done) => item.done(),
                Ok(Next::Again) => item.retry(),
                Err(error) => {
                    tracing::debug!(work = ?item.key(), error = error.report(), "will try again");
                    item.retry();
                }
            }
        }
    }

    fn definition_changed(&self, event: &Event<CustomResourceDefinition>) {
        let (key, definition) = (event.object().key(), event.object().object());
        let mut promises = self.promises.lock();
        match event {
            Event::Deleted { .. } => promises.forget(key),
            _ => promises.observe(key, definition.json()),
        }
        drop(promises);
        self.look_for_kinds.notify_one();
    }

    fn add(&self, work: Vec<Work>) {
        for work in work {
            self.queue.add(work);
        }
    }

    async fn handle(&self, work: &Work) -> Result<Next, Error> {
        match work {
            Work::Report { dependent, owner } => {
                live::report(&self.client, &self.environment, dependent, owner).await?;
                Ok(Next::Done)
            }
            Work::Orphan(uid) => self.orphan(uid).await,
            Work::Examine(uid) => {
                let glance = self.graph.lock().glance(uid);
                match glance {
                    Glance::Fine => Ok(Next::Done),
                    Glance::Blocked(by) => Ok(self.push_on(by)),
                    Glance::Released(identity) => {
                        self.remove_finalizer(&identity, live::FOREGROUND).await
                    }
                    Glance::Doubtful(identity) => self.examine(&identity).await,
                }
            }
        }
    }

    /// Looks at those who hold up their owner, but for those who wait themselves.
    fn push_on(&self, blocking: Vec<Uid>) -> Next {
        let waits = |uid: &Uid| {
            let graph = self.graph.lock();
            let node = graph.node(uid);
            node.is_some_and(|node| node.phase == Phase::WaitingForDependents)
        };
        let idle = blocking.into_iter().filter(|uid| !waits(uid));
        self.add(idle.map(Work::Examine).collect());
        Next::Done
    }

    /// The object as the server has it now; nothing when it is gone, which is also recorded in the graph.
    async fn latest(&self, identity: &Identity) -> Result<Option<Found>, Error> {
        let kinds = self.kinds.read().clone();
        let found = match kinds.get(graph::group(&identity.api_version), &identity.kind) {
            Some(kind) => {
                live::get(&self.client, kind, &identity.namespace, &identity.name).await?
            }
            None => None,
        };
        let found = found.filter(|found| found.node.identity.uid == identity.uid);
        if found.is_none() {
            let work = self.graph.lock().remove(&identity.uid);
            self.add(work);
        }
        Ok(found)
    }

    async fn examine(&self, identity: &Identity) -> Result<Next, Error> {
        let Some(latest) = self.latest(identity).await? else {
            return Ok(Next::Done);
        };
        let mut owners = Vec::with_capacity(latest.node.owners.len());
        for owner in &latest.node.owners {
            owners.push(self.standing(&identity.namespace, owner).await?);
        }
        let action = decide(&latest.node, &owners, &self.graph.lock());
        match action {
            Action::Nothing => {}
            Action::LookAgain => return Ok(Next::Again),
            Action::Forget(lost) => live::forget_owners(&self.client, &latest, &lost).await?,
            Action::UnblockAndDelete => {
                if let Some(unblocked) = live::unblock(&self.client, &latest).await? {
                    live::delete(&self.client, &unblocked, Propagation::Foreground).await?;
                }
            }
            Action::Delete(how) => live::delete(&self.client, &latest, how).await?,
        }
        Ok(Next::Done)
    }

    async fn standing(&self, namespace: &str, owner: &Reference) -> Result<Standing, Error> {
        let kinds = self.kinds.read().clone();
        let Some(kind) = kinds.get(owner.group(), &owner.kind) else {
            // The end of a uid is final, whatever has become of its kind since.
            return Ok(if self.graph.lock().is_gone(&owner.uid) {
                Standing::Absent
            } else {
                Standing::Unknown
            });
        };
        if namespace.is_empty() && kind.reach == crate::kinds::Reach::Namespaced {
            return Ok(Standing::Impossible);
        }
        let found = live::get(&self.client, kind, namespace, &owner.name).await?;
        Ok(standing(
            &owner.uid,
            found.as_ref().map(|found| &found.node),
        ))
    }

    /// Lets the dependents of an object forget it, and then the object go.
    async fn orphan(&self, uid: &Uid) -> Result<Next, Error> {
        let (owner, dependents) = {
            let graph = self.graph.lock();
            let identity = |uid: Uid| Some(graph.node(&uid)?.identity.clone());
            let dependents: Vec<_> = graph.dependents_of(uid).filter_map(identity).collect();
            (identity(uid.clone()), dependents)
        };
        let Some(owner) = owner else {
            return Ok(Next::Done);
        };
        for dependent in &dependents {
            let Some(latest) = self.latest(dependent).await? else {
                continue;
            };
            if latest.node.owners.iter().any(|r| r.uid == *uid) {
                live::forget_owners(&self.client, &latest, std::slice::from_ref(uid)).await?;
            }
        }
        self.remove_finalizer(&owner, live::ORPHAN).await
    }

    async fn remove_finalizer(&self, identity: &Identity, finalizer: &str) -> Result<Next, Error> {
        if let Some(latest) = self.latest(identity).await? {
            live::remove_finalizer(&self.client, &latest, finalizer).await?;
        }
        Ok(Next::Done)
    }
}
