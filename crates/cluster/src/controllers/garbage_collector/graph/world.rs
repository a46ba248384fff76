//! A small server for tests of the collector: objects with versions, deletion with finalizers, a log for each kind that
//! the graph reads with any delay.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::decide::{Action, Standing, decide, standing};
use super::{Blocking, Glance, Graph, Identity, Node, Phase, Propagation, Reference, Uid, Work};

/// An object of the small server.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) kind: usize,
    pub(super) namespace: &'static str,
    pub(super) name: String,
    pub(super) uid: Uid,
    pub(super) owners: Vec<Reference>,
    pub(super) deleting: bool,
    pub(super) finalizers: BTreeSet<&'static str>,
    pub(super) version: u64,
}

/// A change that the graph has not seen yet.
#[derive(Debug, Clone)]
enum Change {
    Put(Box<Node>),
    Removed(Uid),
}

/// The small server and the collector over it.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) objects: BTreeMap<(usize, &'static str, String), Object>,
    unseen: BTreeMap<usize, VecDeque<Change>>,
    pub(super) graph: Graph,
    pub(super) work: VecDeque<Work>,
    pub(super) reports: usize,
    version: u64,
}

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

impl Object {
    fn node(&self) -> Node {
        let (foreground, orphan) = (
            self.finalizers.contains(FOREGROUND),
            self.finalizers.contains(ORPHAN),
        );
        Node {
            identity: Identity {
                api_version: "v1".into(),
                kind: format!("K{}", self.kind).into(),
                namespace: self.namespace.into(),
                name: self.name.as_str().into(),
                uid: self.uid.clone(),
            },
            owners: self.owners.clone(),
            phase: match (self.deleting, orphan, foreground) {
                (false, ..) => Phase::Alive,
                (true, true, _) => Phase::Orphaning,
                (true, _, true) => Phase::WaitingForDependents,
                (true, ..) => Phase::Going,
            },
            on_delete: match (orphan, foreground) {
                (true, _) => Propagation::Orphan,
                (_, true) => Propagation::Foreground,
                _ => Propagation::Background,
            },
        }
    }

    fn key(&self) -> (usize, &'static str, String) {
        (self.kind, self.namespace, self.name.clone())
    }
}

impl World {
    pub(super) fn create(
        &mut self,
        kind: usize,
        namespace: &'static str,
        name: &str,
        owners: Vec<Reference>,
    ) -> Option<Uid> {
        let key = (kind, namespace, name.to_owned());
        if self.objects.contains_key(&key) {
            return None;
        }
        let uid: Uid = format!("u{}", self.version + 1).into();
        let object = Object {
            kind,
            namespace,
            name: name.to_owned(),
            uid: uid.clone(),
            owners,
            deleting: false,
            finalizers: BTreeSet::new(),
            version: 0,
        };
        self.store(object);
        Some(uid)
    }

    pub(super) fn find(&self, uid: &Uid) -> Option<&Object> {
        self.objects.values().find(|object| object.uid == *uid)
    }

    pub(super) fn reference(&self, uid: &Uid, blocking: Blocking) -> Option<Reference> {
        let object = self.find(uid)?;
        Some(Reference {
            api_version: "v1".into(),
            kind: format!("K{}", object.kind),
            name: object.name.clone(),
            uid: uid.clone(),
            blocking,
        })
    }

    pub(super) fn change(&mut self, uid: &Uid, change: impl FnOnce(&mut Object)) {
        let Some(mut object) = self.find(uid).cloned() else {
            return;
        };
        change(&mut object);
        self.store(object);
    }

    /// Adds a finalizer, unless the object is on its way out.
    pub(super) fn hold(&mut self, uid: &Uid) {
        self.change(uid, |object| {
            if !object.deleting {
                object.finalizers.insert("held");
            }
        });
    }

    pub(super) fn release(&mut self, uid: &Uid, finalizer: &str) {
        self.change(uid, |object| {
            object.finalizers.remove(finalizer);
        });
    }

    /// A second delete with another wish is left out: it races with the collector, in Kubernetes as well.
    pub(super) fn delete(&mut self, uid: &Uid, how: Propagation) {
        if self.find(uid).is_some_and(|object| object.deleting) {
            return;
        }
        self.change(uid, |object| {
            object.finalizers.remove(FOREGROUND);
            object.finalizers.remove(ORPHAN);
            match how {
                Propagation::Background => {}
                Propagation::Foreground => drop(object.finalizers.insert(FOREGROUND)),
                Propagation::Orphan => drop(object.finalizers.insert(ORPHAN)),
            }
            object.deleting = true;
        });
    }

    fn store(&mut self, mut object: Object) {
        self.version += 1;
        object.version = self.version;
        let unseen = self.unseen.entry(object.kind).or_default();
        if object.deleting && object.finalizers.is_empty() {
            unseen.push_back(Change::Removed(object.uid.clone()));
            self.objects.remove(&object.key());
        } else {
            unseen.push_back(Change::Put(Box::new(object.node())));
            self.objects.insert(object.key(), object);
        }
    }

    /// Lets the graph see the next change of a kind.
    pub(super) fn see(&mut self, kind: usize) -> bool {
        let Some(change) = self.unseen.get_mut(&kind).and_then(VecDeque::pop_front) else {
            return false;
        };
        let work = match change {
            Change::Put(node) => self.graph.observe(*node),
            Change::Removed(uid) => self.graph.remove(&uid),
        };
        self.work.extend(work);
        true
    }

    /// The collector forgets all and starts again: it gets all objects, kind by kind.
    pub(super) fn restart(&mut self) {
        self.graph = Graph::default();
        self.work.clear();
        self.unseen.clear();
        for object in self.objects.values() {
            let unseen = self.unseen.entry(object.kind).or_default();
            unseen.push_back(Change::Put(Box::new(object.node())));
        }
    }

    /// Does one piece of work; `meanwhile` happens between looking and acting.
    pub(super) fn work(&mut self, meanwhile: impl FnOnce(&mut Self)) -> bool {
        let Some(work) = self.work.pop_front() else {
            return false;
        };
        match work {
            Work::Report { .. } => self.reports += 1,
            Work::Orphan(uid) => self.orphan(&uid),
            Work::Examine(uid) => match self.graph.glance(&uid) {
                Glance::Fine => {}
                Glance::Blocked(by) => {
                    let going = |uid: &Uid| {
                        let node = self.graph.node(uid);
                        node.is_none_or(|node| node.phase == Phase::WaitingForDependents)
                    };
                    let ask: Vec<_> = by.into_iter().filter(|uid| !going(uid)).collect();
                    self.work.extend(ask.into_iter().map(Work::Examine));
                }
                Glance::Released(_) => {
                    self.release(&uid, FOREGROUND);
                }
                Glance::Doubtful(identity) => self.examine(&identity, meanwhile),
            },
        }
        true
    }

    fn orphan(&mut self, uid: &Uid) {
        for dependent in self.graph.dependents_of(uid).collect::<Vec<_>>() {
            self.change(&dependent, |object| object.owners.retain(|r| r.uid != *uid));
        }
        self.release(uid, ORPHAN);
    }

    fn examine(&mut self, identity: &Identity, meanwhile: impl FnOnce(&mut Self)) {
        let uid = &identity.uid;
        let Some(latest) = self.find(uid).cloned() else {
            let work = self.graph.remove(uid);
            return self.work.extend(work);
        };
        let node = latest.node();
        let owners: Vec<_> = node
            .owners
            .iter()
            .map(|r| self.standing(&node, r))
            .collect();
        let action = decide(&node, &owners, &self.graph);
        meanwhile(self);
        let unchanged = self.find(uid).is_some_and(|o| o.version == latest.version);
        if !unchanged {
            // The server refuses: a version was given.
            return self.work.push_back(Work::Examine(uid.clone()));
        }
        match action {
            Action::Nothing => {}
            Action::LookAgain => self.work.push_back(Work::Examine(uid.clone())),
            Action::Forget(lost) => {
                self.change(uid, |object| {
                    object.owners.retain(|r| !lost.contains(&r.uid))
                });
            }
            Action::UnblockAndDelete => {
                self.change(uid, |object| {
                    object
                        .owners
                        .iter_mut()
                        .for_each(|r| r.blocking = Blocking::No);
                });
                self.delete(uid, Propagation::Foreground);
            }
            Action::Delete(how) => {
                assert!(!self.has_live_owner(uid), "{latest:?} has an owner");
                self.delete(uid, how);
            }
        }
    }

    fn standing(&self, node: &Node, reference: &Reference) -> Standing {
        let kind: usize = reference.kind[1..].parse().expect("kinds are numbers");
        // Kind 0 is of the cluster, all others are in namespaces.
        if kind != 0 && node.identity.namespace.is_empty() {
            return Standing::Impossible;
        }
        let found = self.objects.values().find(|o| {
            o.kind == kind
                && o.name == reference.name
                && (kind == 0 || *o.namespace == *node.identity.namespace)
        });
        standing(&reference.uid, found.map(Object::node).as_ref())
    }

    /// Whether an owner is there, in the right place, and does not itself wait for its dependents to go.
    pub(super) fn has_live_owner(&self, uid: &Uid) -> bool {
        let Some(object) = self.find(uid) else {
            return false;
        };
        let node = object.node();
        let mut owners = node.owners.iter();
        owners.any(|r| self.standing(&node, r) == Standing::Solid)
    }

    /// Everything is seen and done; gives up when that does not end.
    pub(super) fn settle(&mut self) {
        for _ in 0..100_000 {
            let saw = (0..4).any(|kind| self.see(kind));
            if !saw && !self.work(|_| {}) {
                return;
            }
        }
        panic!("the collector does not come to rest: {:?}", self.work);
    }
}
