//! The objects of the cluster as they are at each moment, followed from the store's own changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::core::Resource;
use kubewright_server::storage::{Change, Event, Record};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use crate::generated::Generated;
use crate::target;

/// Which object: its resource, as `deployments.apps`, and its key, as `default/web`.
pub type ObjectId = (String, String);

/// How often objects of one key came into being and went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Count {
    pub(crate) created: u32,
    pub(crate) deleted: u32,
}

/// The objects that were created or changed since the run began, as they are now. Events, leases, nodes and IPAddresses are
/// not among them.
#[derive(Debug, Clone, Default)]
pub struct State {
    objects: BTreeMap<ObjectId, Arc<Record>>,
    counts: BTreeMap<ObjectId, Count>,
    /// Which object a uid belongs or belonged to, and which of those that had its key it was.
    uids: BTreeMap<String, (ObjectId, u32)>,
    generated: Generated,
    last_change: Option<Instant>,
}

impl State {
    /// Takes a change in. Those that say nothing about an operator are left out.
    pub(crate) fn apply(&mut self, collection: &str, event: &Event) -> Option<ObjectId> {
        let resource = target::of_collection(collection);
        if target::is_noise(&resource) {
            return None;
        }
        let record = event.record();
        let id = (resource, record.key().to_owned());
        let count = self.counts.entry(id.clone()).or_default();
        match event.change() {
            Change::Created => count.created += 1,
            Change::Deleted { .. } => count.deleted += 1,
            Change::Updated { .. } => {}
        }
        let incarnation = count.created;
        match event.change() {
            Change::Deleted { .. } => {
                self.objects.remove(&id);
            }
            Change::Created | Change::Updated { .. } => {
                if event.change() == &Change::Created {
                    self.generated.note(&id, record.body());
                }
                let uid = record.uid().to_owned();
                self.uids.entry(uid).or_insert((id.clone(), incarnation));
                self.objects.insert(id.clone(), record.clone());
            }
        }
        self.last_change = Some(Instant::now());
        Some(id)
    }

    /// When anything changed last.
    pub(crate) fn last_change(&self) -> Option<Instant> {
        self.last_change
    }

    pub(crate) fn counts(&self) -> &BTreeMap<ObjectId, Count> {
        &self.counts
    }

    pub(crate) fn uids(&self) -> &BTreeMap<String, (ObjectId, u32)> {
        &self.uids
    }

    /// The names that the server made.
    pub(crate) fn generated(&self) -> &Generated {
        &self.generated
    }

    /// Whether there is an object of this resource and key.
    pub fn has(&self, resource: &str, key: &str) -> bool {
        let id = (resource.to_owned(), key.to_owned());
        self.objects.contains_key(&id)
    }

    /// The names of all objects, as `("deployments.apps", "default/web")`.
    pub fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.objects.keys()
    }

    /// An object as JSON.
    pub fn get(&self, resource: &str, key: &str) -> Option<Value> {
        let id = (resource.to_owned(), key.to_owned());
        self.objects.get(&id).map(|record| value(record))
    }

    /// All objects of a type, ordered by key. One that does not decode is left out.
    pub fn list<K: Resource<DynamicType = ()> + DeserializeOwned>(&self) -> Vec<K> {
        let resource = target::resource(&K::group(&()), &K::plural(&()));
        let all = self.objects.iter().filter(|(id, _)| id.0 == resource);
        all.filter_map(|(_, record)| serde_json::from_slice(record.body()).ok())
            .collect()
    }

    /// All objects as JSON, ordered by resource and key.
    pub(crate) fn values(&self) -> Vec<(ObjectId, Value)> {
        let all = self.objects.iter();
        all.map(|(id, record)| (id.clone(), value(record)))
            .collect()
    }
}

fn value(record: &Record) -> Value {
    // What the store holds is JSON; a test notices if it is not.
    serde_json::from_slice(record.body()).unwrap_or_default()
}
