//! The live tree of a cluster without a page: for terminals, from the same feeds and judgements.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kubewright_cache::Key;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::cluster::Connection;
use crate::feed::{Phase, Shared};
use crate::feeds::Feeds;
use crate::health::Health;
use crate::kinds::Kind;
use crate::rows::Row;
use crate::world::World;

/// How deep owners are followed.
const DEEPEST: usize = 12;

/// A cluster that is followed. It is left when this is dropped.
pub struct Live {
    feeds: Arc<Feeds>,
    ticks: watch::Receiver<u64>,
    _kinds: JoinHandle<()>,
    _end: DropGuard,
}

/// An object at its place in the tree: below its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leaf {
    /// How many owners are above it.
    pub depth: usize,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// The namespace, for objects that have one.
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
    /// How it is doing.
    pub health: LeafHealth,
    /// Why it fails or is on its way; empty otherwise.
    pub why: String,
}

/// How an object is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeafHealth {
    /// Somebody should look at it.
    Failing,
    /// It is on its way.
    InProgress,
    /// It is as it should be.
    Healthy,
    /// It has no state that could be good or bad.
    Unknown,
}

/// All that is known of a cluster at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Forest {
    /// The objects, owners before what they own, failing trees first.
    pub leaves: Vec<Leaf>,
    /// Kinds that are still being read.
    pub starting: usize,
    /// Why something is not shown, in the server's words.
    pub refused: Vec<String>,
}

impl Live {
    /// Follows a cluster with the rights of a client. Where it may not see all namespaces, it sees this one.
    pub fn new(client: kube::Client, namespace: impl Into<String>) -> Self {
        let stop = CancellationToken::new();
        let ticks = Arc::new(watch::Sender::new(0));
        let shared = Shared {
            connection: Connection::new(client),
            timeline: Arc::default(),
            ticks: ticks.clone(),
            namespace: namespace.into(),
        };
        let feeds = Feeds::new(shared, stop.clone());
        Self {
            _kinds: tokio::spawn(feeds.clone().follow_kinds()),
            feeds,
            ticks: ticks.subscribe(),
            _end: stop.drop_guard(),
        }
    }

    /// Waits until something has changed, or for a while.
    pub async fn changed(&mut self, patience: Duration) {
        let _ = timeout(patience, self.ticks.changed()).await;
    }

    /// Why the cluster cannot be read at all, while it cannot.
    pub fn trouble(&self) -> Option<String> {
        self.feeds.trouble.lock().clone()
    }

    /// The trees of a namespace, or of all of them, as they are now.
    pub fn forest(&self, namespace: Option<&str>) -> Forest {
        self.feeds.open_all();
        let mut forest = grow(&*self.feeds, namespace);
        if self.feeds.kinds().is_empty() {
            forest.starting += 1;
        }
        forest
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Live")
    }
}

type Found = (Kind, Arc<Row>);

fn grow(world: &dyn World, namespace: Option<&str>) -> Forest {
    let mut forest = Forest::default();
    let mut all: Vec<Found> = Vec::new();
    world.each(&mut |collection| {
        if collection.kind.is_noise() {
            return;
        }
        match &collection.phase {
            Phase::Starting => forest.starting += 1,
            Phase::Refused { message } => forest.refused.push(message.clone()),
            _ => {}
        }
        let rows = collection.rows.iter();
        let near = rows.filter(|row| namespace.is_none() || row.key().namespace() == namespace);
        all.extend(near.map(|row| (collection.kind.clone(), row.clone())));
    });
    let wood = Wood::of(&all);
    let mut trees: Vec<Vec<Leaf>> = Vec::new();
    for found in all.iter().filter(|(_, row)| wood.is_root(row)) {
        let mut tree = Vec::new();
        wood.climb(found, 0, &mut tree);
        // What has no state and owns nothing says nothing here.
        if tree.len() > 1 || tree[0].health != LeafHealth::Unknown {
            trees.push(tree);
        }
    }
    trees.sort_by_key(|tree| (worst(tree), place(&tree[0])));
    forest.leaves = trees.into_iter().flatten().collect();
    forest
}

/// All objects, and what each owns. An object is in the list of every owner that it names, whether that exists or not.
struct Wood<'a> {
    uids: BTreeSet<&'a str>,
    owned: HashMap<&'a str, Vec<&'a Found>>,
}

impl<'a> Wood<'a> {
    fn of(all: &'a [Found]) -> Self {
        let mut owned: HashMap<&str, Vec<&Found>> = HashMap::new();
        for found in all {
            for owner in &found.1.owners {
                owned.entry(&owner.uid).or_default().push(found);
            }
        }
        let uids = all.iter().map(|(_, row)| row.uid.as_str()).collect();
        Self { uids, owned }
    }

    fn is_root(&self, row: &Row) -> bool {
        let known = |uid: &str| self.uids.contains(uid);
        !row.owners.iter().any(|owner| known(&owner.uid))
    }

    fn children(&self, row: &Row) -> &[&'a Found] {
        self.owned.get(row.uid.as_str()).map_or(&[], Vec::as_slice)
    }

    fn climb(&self, (kind, row): &Found, depth: usize, tree: &mut Vec<Leaf>) {
        tree.push(leaf(kind, row, depth));
        if depth == DEEPEST {
            return;
        }
        for child in self.children(row) {
            // Old ReplicaSets with nothing in them are the past of a Deployment.
            if !self.is_past(child) {
                self.climb(child, depth + 1, tree);
            }
        }
    }

    fn is_past(&self, (kind, row): &Found) -> bool {
        kind.is("apps", "ReplicaSet")
            && self.children(row).is_empty()
            && row.value(kind)["spec"]["replicas"] == 0
    }
}

fn leaf(kind: &Kind, row: &Row, depth: usize) -> Leaf {
    let key: &Key = row.key();
    Leaf {
        depth,
        kind: kind.kind.clone(),
        namespace: key.namespace().map(str::to_owned),
        name: key.name().to_owned(),
        health: match row.verdict.health {
            Health::Bad => LeafHealth::Failing,
            Health::Busy => LeafHealth::InProgress,
            Health::Good => LeafHealth::Healthy,
            Health::None => LeafHealth::Unknown,
        },
        why: row.verdict.sentence.clone(),
    }
}

/// Failing trees come first, then those under way.
fn worst(tree: &[Leaf]) -> u8 {
    let rank = |leaf: &Leaf| match leaf.health {
        LeafHealth::Failing => 0,
        LeafHealth::InProgress => 1,
        LeafHealth::Healthy | LeafHealth::Unknown => 2,
    };
    tree.iter().map(rank).min().unwrap_or(2)
}

/// Objects of the cluster, such as nodes, come after those of namespaces.
fn place(leaf: &Leaf) -> (bool, Option<String>, String, String) {
    let namespace = leaf.namespace.clone();
    let (kind, name) = (leaf.kind.clone(), leaf.name.clone());
    (namespace.is_none(), namespace, kind, name)
}

#[cfg(test)]
mod tests {
    use kubewright_cache::{Object, Shape};
    use serde_json::{Value, json};

    use super::*;
    use crate::rows::Rows;
    use crate::world::Collection;

    /// Kinds with their objects.
    struct Still(Vec<(Kind, Rows)>);

    impl World for Still {
        fn each(&self, look: &mut dyn FnMut(Collection<'_>)) {
            for (kind, rows) in &self.0 {
                let phase = Phase::Starting;
                look(Collection { kind, rows, phase });
            }
        }
    }

    fn kind(group: &str, name: &str, objects: Vec<Value>) -> (Kind, Rows) {
        let kind = Kind {
            id: format!("{group}/v1/{name}"),
            group: group.to_owned(),
            version: "v1".to_owned(),
            plural: name.to_lowercase(),
            kind: name.to_owned(),
            namespaced: true,
            short_names: Vec::new(),
            verbs: Vec::new(),
            subresources: Vec::new(),
        };
        let mut rows = Rows::default();
        for object in objects {
            let object = Object::parse(object.to_string().as_bytes(), &Shape::default());
            rows.put(Arc::new(Row::new(&kind, object.expect("it is an object"))));
        }
        (kind, rows)
    }

    fn object(name: &str, owner: Option<&str>, more: Value) -> Value {
        let owners: Vec<Value> = owner
            .map(|uid| json!({"kind": "X", "name": uid, "uid": uid, "apiVersion": "v1", "controller": true}))
            .into_iter()
            .collect();
        let mut object = more;
        object["metadata"] =
            json!({"name": name, "namespace": "n", "uid": name, "ownerReferences": owners});
        object
    }

    #[test]
    fn owners_stand_before_what_they_own_and_failing_trees_before_healthy_ones() {
        let ready = json!({"spec": {"replicas": 1}, "status": {"replicas": 1, "readyReplicas": 1}});
        let stuck = json!({"status": {"phase": "Failed"}});
        let world = Still(vec![
            kind("", "Pod", vec![object("bad-pod", Some("bad-set"), stuck)]),
            kind("", "ConfigMap", vec![object("silent", None, json!({}))]),
            kind(
                "apps",
                "ReplicaSet",
                vec![
                    object("bad-set", Some("bad"), ready.clone()),
                    object("old", Some("bad"), json!({"spec": {"replicas": 0}})),
                ],
            ),
            kind(
                "apps",
                "Deployment",
                vec![
                    object("a-good", None, ready.clone()),
                    object("bad", None, ready),
                ],
            ),
        ]);
        let forest = grow(&world, Some("n"));
        let names: Vec<(usize, &str)> = forest
            .leaves
            .iter()
            .map(|leaf| (leaf.depth, leaf.name.as_str()))
            .collect();
        assert_eq!(
            names,
            [(0, "bad"), (1, "bad-set"), (2, "bad-pod"), (0, "a-good")]
        );
        assert!(grow(&world, Some("elsewhere")).leaves.is_empty());
    }
}
