//! The cache of one resource: its policy, the informers that fill it, and what was written and they may not show yet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use kube::core::{DynamicObject, PartialObjectMeta};
use kubewright_cache::{Key, Object, Reader, SharedInformer, WeakInformer};
use parking_lot::Mutex;

use super::guard::{Absence, Guard, InformerId, Seen, View};
use super::last_applied::LastApplied;
use crate::cache::{Filter, PolicyError, Resolved};

/// What all who read, watch or write a resource share, whatever the version and the form.
pub(crate) struct Entry {
    /// As in `deployments.apps`.
    pub(crate) name: Arc<str>,
    pub(crate) policy: Resolved,
    /// The selectors of the policy, or why they cannot be read.
    filter: Result<Filter, PolicyError>,
    /// Whether the key is one of this replica's, if caches are kept to those.
    is_own: Box<dyn Fn(&Key) -> bool + Send + Sync>,
    writes: Mutex<Writes>,
    last_applied: Mutex<LastApplied>,
    /// How many things the guard remembers, or did a moment ago. Whoever wrote has stored it before it reads.
    remembered: AtomicUsize,
}

/// `guard` knows exactly the informers in `informers`.
#[derive(Default)]
struct Writes {
    guard: Guard,
    informers: BTreeMap<InformerId, Known>,
    next: u64,
}

/// An informer as the entry knows it.
struct Known {
    informer: WeakInformer,
    /// None for all namespaces.
    namespace: Option<String>,
    watched: Weak<Watched>,
}

/// An informer that somebody reads from. The entry forgets it when this is dropped.
pub(crate) struct Watched {
    pub(super) id: InformerId,
    entry: Arc<Entry>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let gone = self.entry.with(|writes| {
            writes.guard.leave(self.id);
            writes.informers.remove(&self.id)
        });
        drop(gone);
    }
}

impl Entry {
    pub(crate) fn new(
        policy: Resolved,
        is_own: impl Fn(&Key) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            is_own: Box::new(is_own),
            name: policy.name.as_str().into(),
            filter: policy.filter(),
            policy,
            writes: Mutex::default(),
            last_applied: Mutex::default(),
            remembered: AtomicUsize::default(),
        }
    }

    /// Whether the policy can be followed.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        self.filter.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// Whether the selectors of the policy choose the object of a key, where the key says so.
    pub(super) fn selects_key(&self, key: &Key) -> Option<bool> {
        let filter = self.filter.as_ref().ok()?;
        filter.admits_key(key)
    }

    /// Whether the selectors of the policy choose an object.
    pub(super) fn selects(&self, object: &Object) -> bool {
        let filter = self.filter.as_ref();
        filter.is_ok_and(|filter| filter.admits(object))
    }

    /// Whether no read can show the past. Mostly it is so, and to see that takes no lock.
    pub(super) fn is_settled(&self) -> bool {
        self.remembered.load(Ordering::Acquire) == 0
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.remembered.load(Ordering::Acquire)
    }

    fn with<R>(&self, work: impl FnOnce(&mut Writes) -> R) -> R {
        let mut writes = self.writes.lock();
        let outcome = work(&mut writes);
        let remembered = writes.guard.remembered();
        self.remembered.store(remembered, Ordering::Release);
        outcome
    }

    /// Works with what was last applied while nobody else does.
    pub(super) fn last_applied<R>(&self, work: impl FnOnce(&mut LastApplied) -> R) -> R {
        work(&mut self.last_applied.lock())
    }

    /// Works with the guard while nobody else does.
    pub(super) fn guard<R>(&self, work: impl FnOnce(&mut Guard) -> R) -> R {
        self.with(|writes| work(&mut writes.guard))
    }

    /// Takes an informer in, once for all who read from it. From now on writes are remembered until it shows them.
    pub(super) fn watch<K: kubewright_cache::Kind>(
        self: &Arc<Self>,
        informer: &SharedInformer<K>,
        namespace: Option<&str>,
    ) -> Arc<Watched> {
        self.with(|writes| {
            let mut known = writes.informers.values();
            let known = known.find(|known| informer.is(&known.informer));
            if let Some(watched) = known.and_then(|known| known.watched.upgrade()) {
                return watched;
            }
            writes.next += 1;
            let id = InformerId(writes.next);
            let entry = self.clone();
            let watched = Arc::new(Watched { id, entry });
            let known = Known {
                informer: informer.downgrade(),
                namespace: namespace.map(str::to_owned),
                watched: Arc::downgrade(&watched),
            };
            writes.guard.join(id);
            writes.informers.insert(id, known);
            watched
        })
    }

    /// Notes that an object was created or changed. The answer is read where selectors decide who has it.
    pub(super) fn wrote(&self, key: &Key, version: &str, answer: impl FnOnce() -> Vec<u8>) {
        self.with(|writes| {
            let unseen = self.unseen(writes, key, answer);
            writes.guard.wrote(key, version, &unseen);
            writes.sweep();
        });
    }

    /// Notes that the deletion of an object was accepted; with a version, that it was marked.
    pub(super) fn deleted(
        &self,
        key: &Key,
        uid: &str,
        version: Option<&str>,
        answer: impl FnOnce() -> Vec<u8>,
    ) {
        self.with(|writes| {
            let unseen = self.unseen(writes, key, answer);
            writes.guard.deleted(key, uid, version, &unseen);
            writes.sweep();
        });
    }

    /// The informers that can have an object, and whether each has to.
    fn unseen(
        &self,
        writes: &Writes,
        key: &Key,
        answer: impl FnOnce() -> Vec<u8>,
    ) -> Vec<(InformerId, Absence)> {
        let concerned = writes.informers.iter().filter(|(_, known)| {
            known.namespace.is_none() || known.namespace.as_deref() == key.namespace()
        });
        let ids: Vec<InformerId> = concerned.map(|(id, _)| *id).collect();
        let absence = match &self.filter {
            _ if ids.is_empty() => return Vec::new(),
            // Another replica has it.
            _ if !(self.is_own)(key) => Absence::Expected,
            Ok(filter) if filter.admits_all() => Absence::Telling,
            Ok(filter) => {
                let object = Object::parse(&answer(), &self.policy.shape).ok();
                if object.is_some_and(|object| filter.admits(&object)) {
                    Absence::Telling
                } else {
                    Absence::Expected
                }
            }
            Err(_) => Absence::Expected,
        };
        ids.into_iter().map(|id| (id, absence)).collect()
    }
}

impl Writes {
    /// Forgets writes that all informers have reached, if there are many.
    fn sweep(&mut self) {
        if !self.guard.is_full() {
            return;
        }
        let informers = &self.informers;
        self.guard.sweep(|id| {
            let known = informers.get(&id)?;
            let informer = known.informer.upgrade::<PartialObjectMeta<DynamicObject>>();
            informer.map(|informer| informer.reader())
        });
    }
}

impl<K: kubewright_cache::Kind> View for Reader<K> {
    fn reached(&self) -> u64 {
        self.resource_version().parse().unwrap_or_default()
    }

    fn object(&self, key: &Key) -> Option<Seen> {
        self.entry(key).map(|entry| Seen {
            uid: entry.uid().into_owned(),
            version: entry.resource_version().parse().unwrap_or_default(),
            terminating: entry.is_terminating(),
        })
    }
}
