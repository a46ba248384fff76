//! The tree of owners around an object: up to its roots, and down to everything that belongs to them. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubewright_cache::{Key, Owner};
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::rows::Row;
use crate::world::World;

/// How far up and down is looked.
const DEEPEST: usize = 12;
/// Objects that a tree has at most; a note says that there are more.
const LARGEST: usize = 400;

/// An object and its kind.
type Found = (Kind, Arc<Row>);

/// The tree of an object, from the topmost owner that exists. Nothing when the object is not known.
pub(crate) fn around(world: &dyn World, kind_id: &str, key: &Key) -> Option<Value> {
    let start = find(world, |kind| kind.id == kind_id, key)?;
    let mut top = start;
    let mut missing = Vec::new();
    for _ in 0..DEEPEST {
        let Some(owner) = principal(&top.1) else {
            break;
        };
        match owner_of(world, &top.1, owner) {
            Some(found) => top = found,
            None => {
                missing.push(json!({"kind": owner.kind, "name": owner.name}));
                break;
            }
        }
    }
    let mut walk = Walk {
        world,
        seen: BTreeSet::new(),
        more: false,
    };
    let tree = walk.down(&top, 0);
    Some(json!({"root": tree, "missing": missing, "more": walk.more}))
}

/// The owner to go up to: the controller, or else the first.
fn principal(row: &Row) -> Option<&Owner> {
    row.owners
        .iter()
        .find(|owner| owner.controller)
        .or(row.owners.first())
}

fn owner_of(world: &dyn World, row: &Row, owner: &Owner) -> Option<Found> {
    let is_kind = |kind: &Kind| kind.is(owner.group(), &owner.kind);
    let near = row
        .key()
        .namespace()
        .map(|namespace| Key::new(namespace, &owner.name));
    let found = near.and_then(|key| find(world, is_kind, &key));
    let found = found.or_else(|| find(world, is_kind, &Key::cluster(&owner.name)));
    // Another object may have the owner's name by now.
    found.filter(|(_, row)| row.uid == owner.uid)
}

fn find(world: &dyn World, is_it: impl Fn(&Kind) -> bool, key: &Key) -> Option<Found> {
    let mut found = None;
    world.each(&mut |collection| {
        if found.is_none() && is_it(collection.kind) {
            found = collection
                .rows
                .get(key)
                .map(|row| (collection.kind.clone(), row.clone()));
        }
    });
    found
}

struct Walk<'a> {
    world: &'a dyn World,
    seen: BTreeSet<String>,
    more: bool,
}

impl Walk<'_> {
    fn down(&mut self, (kind, row): &Found, depth: usize) -> Value {
        self.seen.insert(row.uid.clone());
        let mut children = Vec::new();
        if depth < DEEPEST {
            for child in self.children(&row.uid) {
                if self.seen.contains(&child.1.uid) {
                    continue;
                }
                if self.seen.len() >= LARGEST {
                    self.more = true;
                    break;
                }
                children.push(self.down(&child, depth + 1));
            }
        }
        json!({
            "id": kind.id, "kind": kind.kind, "ns": row.key().namespace(), "name": row.key().name(), "uid": row.uid,
            "health": row.verdict.health, "why": row.verdict.sentence, "created": row.created, "children": children,
        })
    }

    fn children(&self, uid: &str) -> Vec<Found> {
        let mut children: BTreeMap<(String, Key), Found> = BTreeMap::new();
        self.world.each(&mut |collection| {
            if collection.kind.is_noise() {
                return;
            }
            for row in collection.rows.belonging_to(uid) {
                let place = (collection.kind.kind.clone(), row.key().clone());
                children.insert(place, (collection.kind.clone(), row.clone()));
            }
        });
        children.into_values().collect()
    }
}

/// The events about an object, oldest first.
pub(crate) fn events(world: &dyn World, uid: &str) -> Vec<Value> {
    let mut events = Vec::new();
    world.each(&mut |collection| {
        // Both groups serve the same events.
        if !collection.kind.is("", "Event") {
            return;
        }
        for row in collection.rows.belonging_to(uid) {
            let value = row.value(collection.kind);
            let last = ["lastTimestamp", "eventTime"].iter().find_map(|field| value[*field].as_str());
            events.push(json!({
                "type": value["type"], "reason": value["reason"], "message": value["message"], "count": value["count"],
                "last": last.unwrap_or(&row.created),
                "from": value["source"]["component"].as_str().or(value["reportingComponent"].as_str()),
            }));
        }
    });
    events.sort_by(|a, b| a["last"].as_str().cmp(&b["last"].as_str()));
    events
}
