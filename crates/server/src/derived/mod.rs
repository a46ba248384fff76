//! State that follows from the stored objects: cluster IPs and node ports, roles in force, served definitions, compiled
//! webhooks and policies, quota usage.
//!
//! Guarantees
//! - [`Derived::apply`] is the only feeder. The store calls it with every change, in the order of revisions and before
//!   anybody can see the change, so whoever sees an object finds what follows from it in force.
//! - A request has nothing left to do after its commit. Hanging up, a panic or a failing disk cannot leave anything half
//!   done.
//! - A fork, a restore and a restart read the same state from the objects ([`Contents::read`]).
//!
//! The locks in here are leaves: `apply` takes them under the store's lock, so nobody calls the store while holding one.
//! Objects that the server itself has to write because of another write (a definition's status, its tear-down, the
//! rules of an aggregated role, the IPAddress of a Service) are tasks in the [`queue`], which the server works off by itself.

mod addresses;
mod claims;
mod definitions;
mod queue;
mod ranges;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use serde_json::Value;

use crate::access::{Policy, follow};
use crate::admission::{Hooks, Ledger};
use crate::aggregation::{self, Aggregation};
use crate::environment::Environment;
use crate::network::ServiceNetwork;
use crate::registry::{Defined, Registry};
use crate::storage::{At, Change, Event, Observed, Record, RestoreError, Snapshot, Store};

use addresses::{AddressObjects, Addresses};
pub(crate) use addresses::{RangeUse, Refusal, Reservation};
pub(crate) use claims::{AddressClaim, ip_address};
pub(crate) use definitions::Prepared;
use queue::Queue;
pub(crate) use queue::{Outcome, Task};
pub(crate) use ranges::{RANGE_FINALIZER, is_ready};

pub(crate) const SERVICES: &str = "services";
const IP_ADDRESSES: &str = "networking.k8s.io/ipaddresses";
pub(crate) const SERVICE_CIDRS: &str = "networking.k8s.io/servicecidrs";
const QUOTAS: &str = "resourcequotas";
pub(crate) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Everything that a server derives from its objects.
pub(crate) struct Derived {
    pub(crate) registry: Arc<Registry>,
    pub(crate) addresses: Addresses,
    pub(crate) policy: Arc<RwLock<Policy>>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) quotas: Arc<Ledger>,
    pub(crate) aggregation: Arc<Aggregation>,
    pub(crate) queue: Queue,
    /// Collections whose definition is being torn down, and the name of the definition.
    teardowns: Mutex<HashMap<String, String>>,
    /// What the definition that is being committed comes to. Set and taken within one commit, under the store's lock.
    staged: Mutex<Option<Prepared>>,
    /// Another observer of every change.
    observer: OnceLock<Box<Observer>>,
}

type Observer = dyn Fn(&str, &Event) + Send + Sync;

/// What follows from all objects of a store at one moment.
struct Contents {
    addresses: Addresses,
    policy: Policy,
    hooks: Hooks,
    quotas: Ledger,
    aggregation: Aggregation,
    definitions: BTreeMap<String, Arc<Defined>>,
    teardowns: HashMap<String, String>,
    tasks: Vec<Task>,
}

impl Derived {
    /// What follows from the objects of a store, kept in step with it from now on. `known` is a registry that may have
    /// compiled the same definitions already.
    pub(crate) fn follow(
        store: &Store,
        network: ServiceNetwork,
        known: Option<&Registry>,
    ) -> Arc<Self> {
        let registry = match known {
            Some(known) => known.builtin_in(store),
            None => Registry::builtin(store),
        };
        let contents = Contents::read(network, store, store, known);
        let derived = Arc::new(Self {
            registry: Arc::new(registry),
            addresses: Addresses::new(network),
            policy: Arc::default(),
            hooks: Arc::default(),
            quotas: Arc::default(),
            aggregation: Arc::default(),
            queue: Queue::default(),
            teardowns: Mutex::default(),
            staged: Mutex::default(),
            observer: OnceLock::new(),
        });
        derived.replace(contents, store.revision());
        // Weak, because the registry keeps the store alive and the store its observer.
        let follower = Arc::downgrade(&derived);
        let observed = store.observe(move |collection, event| {
            if let Some(derived) = follower.upgrade() {
                derived.apply(collection, event);
            }
        });
        observed.expect("a store has no observer before its server");
        derived
    }

    /// Tells somebody else of every change, after what follows from it is in force.
    pub(crate) fn observe(&self, observer: Box<Observer>) -> Result<(), Observed> {
        self.observer.set(observer).map_err(|_| Observed)
    }

    /// Follows one change. Called under the store's lock.
    fn apply(&self, collection: &str, event: &Event) {
        match collection {
            SERVICES => self.queue.extend(self.addresses.apply(event)),
            SERVICE_CIDRS => self.queue.extend(self.addresses.apply_range(event)),
            IP_ADDRESSES => self.queue.extend(self.addresses.apply_claim(event)),
            DEFINITIONS => self.apply_definition(event),
            aggregation::COLLECTION => self.aggregation.apply(event),
            _ if follow::is_policy_collection(collection) => {
                let outdated = follow::apply(&mut self.policy.write(), collection, event);
                self.queue
                    .extend(outdated.into_iter().map(Task::ClusterRole));
            }
            _ => self.hooks.apply(collection, event),
        }
        self.quotas.apply(collection, event);
        if matches!(event.change(), Change::Deleted { .. }) {
            self.continue_teardown(collection);
        }
        if let Some(observer) = self.observer.get() {
            observer(collection, event);
        }
    }

    /// Puts what follows from other objects in place of everything. `revision` is that of the change of objects.
    fn replace(&self, contents: Contents, revision: u64) {
        self.addresses.replace(&contents.addresses);
        *self.policy.write() = contents.policy;
        self.hooks.replace(&contents.hooks);
        self.quotas.replace(&contents.quotas);
        self.aggregation.replace(&contents.aggregation);
        self.registry
            .replace_definitions(contents.definitions, revision);
        *self.teardowns.lock() = contents.teardowns;
        self.queue.clear();
        self.queue.extend(contents.tasks);
    }

    /// Puts the objects of another server in place of those of this one, and all that follows from them.
    pub(crate) fn restore(
        &self,
        own: &Store,
        from: &Store,
        known: &Registry,
    ) -> Result<(), RestoreError> {
        let contents = Contents::read(self.addresses.network(), from, own, Some(known));
        let before = own.revision();
        own.restore_with(from, || self.replace(contents, before))
    }

    /// Where what is in force differs from what the stored objects come to. Nobody may write meanwhile.
    pub(crate) fn differences(&self, store: &Store, environment: &Environment) -> Vec<String> {
        let contents = Contents::read(self.addresses.network(), store, store, None);
        let mut differences = Vec::new();
        let mut compare = |what: &str, found: String, expected: String| {
            if found != expected {
                differences.push(format!(
                    "{what}: {found} in force, {expected} by the objects"
                ));
            }
        };
        compare(
            "addresses",
            self.addresses.describe(),
            contents.addresses.describe(),
        );
        compare(
            "roles",
            self.policy.read().describe(),
            contents.policy.describe(),
        );
        compare("hooks", self.hooks.describe(), contents.hooks.describe());
        compare(
            "API services",
            self.aggregation.describe(),
            contents.aggregation.describe(),
        );
        let now = environment.now_rfc3339();
        for (quota, used) in self.quotas.describe(&now) {
            let namespace = quota.split('/').next().unwrap_or("");
            contents.quotas.count(namespace, &self.registry.now());
            let expected = contents.quotas.describe(&now).remove(&quota);
            compare(&quota, used, expected.unwrap_or_default());
        }
        compare(
            "definitions",
            describe(self.registry.now().definitions()),
            describe(contents.definitions.values()),
        );
        differences
    }
}

fn describe<'a>(definitions: impl Iterator<Item = &'a Arc<Defined>>) -> String {
    let lines = definitions.map(|defined| defined.describe());
    lines.collect::<Vec<_>>().join(" ")
}

impl Contents {
    /// Reads the objects of one store; what has to refer to a store refers to `home`.
    fn read(
        network: ServiceNetwork,
        objects: &Store,
        home: &Store,
        known: Option<&Registry>,
    ) -> Self {
        let mut policy = Policy::default();
        for collection in follow::COLLECTIONS {
            for record in latest(objects, collection).range("", None) {
                follow::put(&mut policy, collection, record);
            }
        }
        let hooks = Hooks::default();
        for collection in hooks.collections() {
            for record in latest(objects, &collection).range("", None) {
                hooks.put(&collection, record);
            }
        }
        let (addresses, mut tasks) = Addresses::read(
            network,
            &AddressObjects {
                services: &latest(objects, SERVICES),
                ranges: &latest(objects, SERVICE_CIDRS),
                claims: &latest(objects, IP_ADDRESSES),
            },
        );
        tasks.extend(policy.all_outdated().into_iter().map(Task::ClusterRole));
        let mut contents = Self {
            addresses,
            tasks,
            policy,
            hooks,
            quotas: Ledger::read(latest(objects, QUOTAS).range("", None)),
            aggregation: Aggregation::read(
                latest(objects, aggregation::COLLECTION).range("", None),
            ),
            definitions: BTreeMap::new(),
            teardowns: HashMap::new(),
        };
        for record in latest(objects, DEFINITIONS).range("", None) {
            contents.read_definition(record, home, known);
        }
        contents
    }
}

fn latest(store: &Store, collection: &str) -> Snapshot {
    let snapshot = store.collection(collection).snapshot(At::Latest);
    snapshot.expect("the latest revision is always known")
}

/// A stored object. Nothing when it cannot be read, which the server's own writes rule out.
fn body(record: &Record) -> Option<Value> {
    let read = serde_json::from_slice(record.body());
    read.inspect_err(
        |error| tracing::error!(key = record.key(), %error, "a stored object is not JSON"),
    )
    .ok()
}

/// The object after a change; nothing when it was deleted.
fn new_body(event: &Event) -> Option<Value> {
    match event.change() {
        Change::Deleted { .. } => None,
        Change::Created | Change::Updated { .. } => body(event.record()),
    }
}
