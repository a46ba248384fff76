//! Who owns whom: every object that was seen, by uid, and every reference to an owner, whether the owner was seen or
//! not. Pure: changes go in, objects to look at come out.
//!
//! Guarantees
//! - One change costs as much as the object has owners, and what comes out is as much as it has dependents at most.
//! - Nothing here decides over a life. The graph may be behind the server; it says where to look, and
//!   [`decide`](super::decide) decides on what the server says.
//!
//! An owner that was never seen needs no node: references to it are kept under its uid, and are found when it is seen
//! or its absence is proven.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Identifies an object over its life; never used again.
pub(crate) type Uid = Arc<str>;

/// How many of the uids are remembered that are known to be gone for good.
const GONE: usize = 1024;

/// What an object is and where.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) api_version: Arc<str>,
    pub(crate) kind: Arc<str>,
    /// Empty for objects of the cluster.
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) uid: Uid,
}

/// A reference to an owner. The namespace is that of the dependent, or none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reference {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: Uid,
    pub(crate) blocking: Blocking,
}

/// Whether a dependent holds up the deletion of its owner in the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Blocking {
    Yes,
    No,
}

/// Where an object is in its life, as far as others depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Alive,
    /// On its way out, and nothing is to be done about it.
    Going,
    /// On its way out once its dependents are gone.
    WaitingForDependents,
    /// On its way out once its dependents have forgotten it.
    Orphaning,
}

/// What becomes of the dependents of an object that is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Propagation {
    #[default]
    Background,
    Foreground,
    Orphan,
}

/// An object as the collector sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) identity: Identity,
    pub(crate) owners: Vec<Reference>,
    pub(crate) phase: Phase,
    /// What its finalizers ask for when it is deleted.
    pub(crate) on_delete: Propagation,
}

/// What a change asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    /// See whether this object may stay.
    Examine(Uid),
    /// Let the dependents of this object forget it.
    Orphan(Uid),
    /// Tell of a dependent in another namespace than its owner.
    Report {
        dependent: Identity,
        owner: Reference,
    },
}

/// What the graph alone says about an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Glance {
    /// Nothing is to be done.
    Fine,
    /// The server has to be asked.
    Doubtful(Identity),
    /// It waits, and nobody is in its way.
    Released(Identity),
    /// It waits for these.
    Blocked(Vec<Uid>),
}

/// Who owns whom.
///
/// A uid is in `dependents` exactly while some node refers to it; the two maps are otherwise independent.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: HashMap<Uid, Node>,
    dependents: HashMap<Uid, BTreeSet<Uid>>,
    gone: Gone,
}

/// The last uids whose end was seen.
#[derive(Debug, Default)]
struct Gone {
    order: VecDeque<Uid>,
    uids: HashSet<Uid>,
}

impl Graph {
    /// Takes up an object that is new or has changed.
    pub(crate) fn observe(&mut self, new: Node) -> Vec<Work> {
        let uid = new.identity.uid.clone();
        let mut work = Vec::new();
        let old = self.nodes.remove(&uid);
        match &old {
            None => self.check_dependents(&new, &mut work),
            Some(old) => self.unlink_lost(old, &new, &mut work),
        }
        let known = |r: &Reference| {
            let old = old.as_ref();
            old.is_some_and(|old| old.owners.contains(r))
        };
        for owner in new.owners.iter().filter(|r| !known(r)) {
            self.link(&new, owner, &mut work);
        }
        let before = old.map_or(Phase::Alive, |old| old.phase);
        self.transition(&uid, before, new.phase, &mut work);
        self.nodes.insert(uid, new);
        work
    }

    /// Forgets an object that is gone, as a watch or the server itself has reported.
    pub(crate) fn remove(&mut self, uid: &Uid) -> Vec<Work> {
        self.gone.insert(uid);
        let mut work: Vec<_> = self.dependents_of(uid).map(Work::Examine).collect();
        let Some(node) = self.nodes.remove(uid) else {
            return work;
        };
        for owner in &node.owners {
            self.unlink(uid, &owner.uid);
            self.examine_waiting(&owner.uid, &mut work);
        }
        work
    }

    /// The objects that were seen of a kind, when it is not served any more.
    pub(crate) fn of_kind(&self, group_name: &str, kind: &str) -> Vec<Uid> {
        let is_it = |node: &&Node| {
            group(&node.identity.api_version) == group_name && &*node.identity.kind == kind
        };
        let found = self.nodes.values().filter(is_it);
        let mut found: Vec<Uid> = found.map(|node| node.identity.uid.clone()).collect();
        found.sort();
        found
    }

    /// Looks again at the objects with an owner that was never seen and is of one of these kinds.
    pub(crate) fn with_unseen_owners(&self, is_one: impl Fn(&str, &str) -> bool) -> Vec<Work> {
        let unseen = |owner: &Reference| {
            !self.nodes.contains_key(&owner.uid) && is_one(owner.group(), &owner.kind)
        };
        let doubtful = self
            .nodes
            .values()
            .filter(|node| node.owners.iter().any(unseen));
        let mut uids: Vec<&Uid> = doubtful.map(|node| &node.identity.uid).collect();
        uids.sort();
        uids.into_iter().cloned().map(Work::Examine).collect()
    }

    /// What the graph alone says about an object.
    pub(crate) fn glance(&self, uid: &Uid) -> Glance {
        let Some(node) = self.nodes.get(uid) else {
            return Glance::Fine;
        };
        match node.phase {
            Phase::Going | Phase::Orphaning => Glance::Fine,
            Phase::WaitingForDependents => match self.blocking(uid) {
                blocking if blocking.is_empty() => Glance::Released(node.identity.clone()),
                blocking => Glance::Blocked(blocking),
            },
            Phase::Alive if node.owners.iter().all(|owner| self.is_sound(node, owner)) => {
                Glance::Fine
            }
            Phase::Alive => Glance::Doubtful(node.identity.clone()),
        }
    }

    /// An object that was seen.
    pub(crate) fn node(&self, uid: &Uid) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// Whether the end of an object was seen lately.
    pub(crate) fn is_gone(&self, uid: &Uid) -> bool {
        self.gone.uids.contains(uid)
    }

    /// The objects that refer to one as their owner.
    pub(crate) fn dependents_of(&self, uid: &Uid) -> impl Iterator<Item = Uid> + '_ {
        self.dependents.get(uid).into_iter().flatten().cloned()
    }

    /// Whether a dependent of this object itself waits for its dependents: there may be a circle.
    pub(crate) fn has_waiting_dependent(&self, uid: &Uid) -> bool {
        let phase = |uid: Uid| self.nodes.get(&uid).map(|node| node.phase);
        self.dependents_of(uid)
            .any(|uid| phase(uid) == Some(Phase::WaitingForDependents))
    }

    /// The number of objects.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the owner was seen, is what the reference says, and does not wait for the dependent to go.
    fn is_sound(&self, node: &Node, reference: &Reference) -> bool {
        self.nodes.get(&reference.uid).is_some_and(|owner| {
            owner.phase != Phase::WaitingForDependents && matches(owner, node, reference)
        })
    }

    /// Dependents that hold up an owner: not itself, and not those in another namespace, which it does not own.
    fn blocking(&self, uid: &Uid) -> Vec<Uid> {
        let Some(owner) = self.nodes.get(uid) else {
            return Vec::new();
        };
        let blocks = |dependent: &Uid| {
            let Some(node) = self.nodes.get(dependent).filter(|_| dependent != uid) else {
                return false;
            };
            let mut owners = node.owners.iter();
            shares_namespace(owner, node)
                && owners.any(|r| r.uid == *uid && r.blocking == Blocking::Yes)
        };
        self.dependents_of(uid).filter(blocks).collect()
    }

    /// A new owner may turn out not to be what those who refer to it think.
    fn check_dependents(&self, owner: &Node, work: &mut Vec<Work>) {
        for uid in self.dependents_of(&owner.identity.uid) {
            let Some(dependent) = self.nodes.get(&uid) else {
                continue;
            };
            let references = dependent.owners.iter();
            for reference in references.filter(|r| r.uid == owner.identity.uid) {
                self.check(owner, dependent, reference, work);
            }
        }
    }

    fn check(&self, owner: &Node, dependent: &Node, reference: &Reference, work: &mut Vec<Work>) {
        if !shares_namespace(owner, dependent) {
            work.push(Work::Report {
                dependent: dependent.identity.clone(),
                owner: reference.clone(),
            });
        }
        if !matches(owner, dependent, reference) {
            work.push(Work::Examine(dependent.identity.uid.clone()));
        }
    }

    fn link(&mut self, node: &Node, owner: &Reference, work: &mut Vec<Work>) {
        let uid = &node.identity.uid;
        let set = self.dependents.entry(owner.uid.clone()).or_default();
        set.insert(uid.clone());
        match self.nodes.get(&owner.uid) {
            Some(found) => self.check(found, node, owner, work),
            None if owner.uid == *uid => {}
            None => work.push(Work::Examine(uid.clone())),
        }
    }

    fn unlink(&mut self, dependent: &Uid, owner: &Uid) {
        if let Some(set) = self.dependents.get_mut(owner) {
            set.remove(dependent);
            if set.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }

    /// Takes away references that an object no longer has. Owners that waited for it may have waited long enough.
    fn unlink_lost(&mut self, old: &Node, new: &Node, work: &mut Vec<Work>) {
        for before in &old.owners {
            let after = new.owners.iter().find(|r| r.uid == before.uid);
            if after.is_none() {
                self.unlink(&old.identity.uid, &before.uid);
            }
            let blocks_no_more = after.is_none_or(|r| r.blocking == Blocking::No);
            if before.blocking == Blocking::Yes && blocks_no_more {
                self.examine_waiting(&before.uid, work);
            }
        }
    }

    fn examine_waiting(&self, owner: &Uid, work: &mut Vec<Work>) {
        let node = self.nodes.get(owner);
        if node.is_some_and(|node| node.phase == Phase::WaitingForDependents) {
            work.push(Work::Examine(owner.clone()));
        }
    }

    fn transition(&self, uid: &Uid, before: Phase, after: Phase, work: &mut Vec<Work>) {
        if before == after {
            return;
        }
        match after {
            Phase::Orphaning => work.push(Work::Orphan(uid.clone())),
            Phase::WaitingForDependents => {
                work.extend(self.dependents_of(uid).map(Work::Examine));
                work.push(Work::Examine(uid.clone()));
            }
            Phase::Alive | Phase::Going => {}
        }
    }
}

impl Gone {
    fn insert(&mut self, uid: &Uid) {
        if !self.uids.insert(uid.clone()) {
            return;
        }
        self.order.push_back(uid.clone());
        if self.order.len() > GONE
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }
}

impl Reference {
    /// The group of the owner's kind.
    pub(crate) fn group(&self) -> &str {
        group(&self.api_version)
    }
}

/// The group of an `apiVersion`.
pub(crate) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Owners are in the namespace of their dependents, or in none.
fn shares_namespace(owner: &Node, dependent: &Node) -> bool {
    let namespace = &owner.identity.namespace;
    namespace.is_empty() || *namespace == dependent.identity.namespace
}

/// Whether a reference means this owner. Versions may differ: they are the one that the writer of the reference spoke.
fn matches(owner: &Node, dependent: &Node, reference: &Reference) -> bool {
    shares_namespace(owner, dependent)
        && *owner.identity.name == *reference.name
        && *owner.identity.kind == *reference.kind
        && group(&owner.identity.api_version) == reference.group()
}
