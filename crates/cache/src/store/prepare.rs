//! What a change will do to the store, worked out before anything is locked: functions of users are called here.

use std::sync::Arc;

use hashbrown::HashSet;

use super::Shared;
use crate::index::Indexers;
use crate::object::{Object, unchanged};

/// The values of one object in each index, in the order of the indexes.
type Values = Vec<Vec<String>>;

/// The index values of one object.
#[derive(Debug)]
pub(crate) struct Entries {
    pub(super) values: Values,
    indexers: Arc<Indexers>,
}

impl Entries {
    /// Whether these are the values of just these indexes.
    pub(super) fn are_of(&self, indexers: &Arc<Indexers>) -> bool {
        Arc::ptr_eq(&self.indexers, indexers)
    }
}

/// An index has come or gone since the values were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stale;

/// What a replacement will do.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) removed: Vec<Arc<Object>>,
    pub(super) put: Vec<(Arc<Object>, Values)>,
    pub(super) indexers: Arc<Indexers>,
}

impl Shared {
    pub(crate) fn indexers(&self) -> Arc<Indexers> {
        self.state.read().indexers.clone()
    }

    pub(crate) fn entries(&self, indexers: &Arc<Indexers>, object: &Arc<Object>) -> Entries {
        Entries {
            values: indexers.values(object, &self.reporter),
            indexers: indexers.clone(),
        }
    }

    /// Compares the new state of everything with the present one. Only the writer may ask: nobody else changes the
    /// present state before the plan is carried out.
    pub(crate) fn plan(&self, indexers: &Arc<Indexers>, objects: Vec<Arc<Object>>) -> Plan {
        let objects = last_of_each_key(objects);
        let present = self.state.read().table.blocks();
        let listed: HashSet<&str> = objects.iter().map(|o| o.key().as_str()).collect();
        let is_gone = |object: &&Arc<Object>| !listed.contains(object.key().as_str());
        let there = present.iter().map(|(_, object)| object);
        let removed = there.filter(is_gone).cloned().collect();
        drop(listed);
        let mut put = Vec::new();
        for object in objects {
            let old = self.state.read().table.get(object.key().as_str()).cloned();
            if !old.is_some_and(|old| unchanged(&old, &object)) {
                let values = indexers.values(&object, &self.reporter);
                put.push((object, values));
            }
        }
        Plan {
            removed,
            put,
            indexers: indexers.clone(),
        }
    }

    /// The same plan for the indexes that there are now.
    pub(crate) fn renew(&self, mut plan: Plan) -> Plan {
        plan.indexers = self.indexers();
        for (object, values) in &mut plan.put {
            *values = plan.indexers.values(object, &self.reporter);
        }
        plan
    }
}

/// Keeps the last object of each key, at its place.
fn last_of_each_key(objects: Vec<Arc<Object>>) -> Vec<Arc<Object>> {
    let mut seen: HashSet<&str> = HashSet::with_capacity(objects.len());
    let mut doubled: Vec<usize> = Vec::new();
    for (place, object) in objects.iter().enumerate().rev() {
        if !seen.insert(object.key().as_str()) {
            doubled.push(place);
        }
    }
    drop(seen);
    if doubled.is_empty() {
        return objects;
    }
    let doubled: HashSet<usize> = doubled.into_iter().collect();
    let places = objects.into_iter().enumerate();
    places
        .filter(|(place, _)| !doubled.contains(place))
        .map(|(_, object)| object)
        .collect()
}
