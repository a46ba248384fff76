//! The registry: which resources are served at this moment. Readers take the whole of it at once, so that a request
//! sees one state from beginning to end.

use std::collections::HashMap;
use std::sync::Arc;

use kubewright_schema::Table;
use kubewright_schema::catalog::{self, Resource, Verb};
use parking_lot::RwLock;

use crate::access::review;
use crate::conversion::{collection_name, conversion};
use crate::http::path::GroupVersion;
use crate::kinds;
use crate::printers::Printer;
use crate::resource::{Builtin, Nature, Served};
use crate::storage::Store;

/// Parts of built-in resources that need a node, which this server does not have.
const UNSERVED: [&str; 5] = ["attach", "exec", "portforward", "proxy", "log"];

/// The resources that are served, replaced as a whole when they change.
pub(crate) struct Registry(RwLock<Arc<Resources>>);

/// The resources that are served at one moment.
pub(crate) struct Resources {
    /// Grows with each change; names the state for caches.
    pub(crate) generation: u64,
    /// In the order of discovery: built-in ones first, custom ones by group.
    pub(crate) all: Vec<Arc<Served>>,
    by_path: HashMap<GroupVersion, HashMap<Box<str>, Arc<Served>>>,
}

/// What a group, version and plural name.
pub(crate) enum Lookup {
    Found(Arc<Served>),
    /// The group and version are served, the resource is not.
    NoResource,
    /// Nothing is served there.
    NoGroupVersion,
}

impl Registry {
    /// The built-in resources.
    pub(crate) fn builtin(store: &Store) -> Self {
        let all = catalog::builtin()
            .iter()
            .filter_map(|resource| builtin(store, resource))
            .map(Arc::new)
            .collect();
        Self(RwLock::new(Arc::new(Resources::new(1, all))))
    }

    /// The same resources over another store.
    pub(crate) fn fork(&self, store: &Store) -> Self {
        let now = self.now();
        let resources = Resources::new(now.generation, now.in_store(store));
        Self(RwLock::new(Arc::new(resources)))
    }

    /// Serves what another registry serves, with the objects of `store`.
    pub(crate) fn restore(&self, from: &Self, store: &Store) {
        let all = from.now().in_store(store);
        let mut current = self.0.write();
        *current = Arc::new(Resources::new(current.generation + 1, all));
    }

    /// The resources as they are now.
    pub(crate) fn now(&self) -> Arc<Resources> {
        self.0.read().clone()
    }

    /// Replaces the custom resources of one group and plural; an empty list removes them.
    pub(crate) fn replace_custom(&self, group: &str, plural: &str, versions: Vec<Served>) {
        let mut current = self.0.write();
        let is_it = |s: &Served| {
            s.custom().is_some() && &*s.resource.group == group && &*s.resource.plural == plural
        };
        let mut all: Vec<Arc<Served>> = current.all.iter().filter(|s| !is_it(s)).cloned().collect();
        all.extend(versions.into_iter().map(Arc::new));
        *current = Arc::new(Resources::new(current.generation + 1, all));
    }
}

impl Resources {
    fn new(generation: u64, mut all: Vec<Arc<Served>>) -> Self {
        // Built-in resources come in the catalog's order, custom ones behind them by group, version and name.
        let order = |s: &Served| {
            s.custom()
                .map(|_| (s.resource.group.clone(), s.resource.plural.clone()))
        };
        all.sort_by(|a, b| {
            order(a)
                .cmp(&order(b))
                .then_with(|| match (a.custom(), b.custom()) {
                    (Some(_), Some(_)) => kubewright_schema::discovery::version_order(
                        &a.resource.version,
                        &b.resource.version,
                    ),
                    _ => std::cmp::Ordering::Equal,
                })
        });
        let mut by_path: HashMap<GroupVersion, HashMap<Box<str>, Arc<Served>>> = HashMap::new();
        for served in &all {
            let gv = GroupVersion {
                group: served.resource.group.to_string(),
                version: served.resource.version.to_string(),
            };
            by_path
                .entry(gv)
                .or_default()
                .insert(served.resource.plural.clone(), served.clone());
        }
        Self {
            generation,
            all,
            by_path,
        }
    }

    fn in_store(&self, store: &Store) -> Vec<Arc<Served>> {
        let moved = self.all.iter().map(|served| served.in_store(store));
        moved.map(Arc::new).collect()
    }

    /// Finds a resource.
    pub(crate) fn find(&self, gv: &GroupVersion, plural: &str) -> Lookup {
        match self.by_path.get(gv).map(|resources| resources.get(plural)) {
            Some(Some(served)) => Lookup::Found(served.clone()),
            Some(None) => Lookup::NoResource,
            None => Lookup::NoGroupVersion,
        }
    }

    /// Finds a built-in resource that is known to be there.
    ///
    /// # Panics
    /// When the catalog lacks it.
    pub(crate) fn builtin(&self, group: &str, version: &str, plural: &str) -> Arc<Served> {
        let gv = GroupVersion {
            group: group.to_owned(),
            version: version.to_owned(),
        };
        match self.find(&gv, plural) {
            Lookup::Found(served) => served,
            _ => panic!("the catalog has {plural} in {group}/{version}"),
        }
    }

    /// The resources as discovery takes them.
    pub(crate) fn catalog(&self) -> Vec<&Resource> {
        self.all.iter().map(|served| &served.resource).collect()
    }
}

/// A built-in resource as it is served, without the parts that this server does not have. Reviews can be created and
/// are not stored.
fn builtin(store: &Store, resource: &Resource) -> Option<Served> {
    let stored = resource.verbs.contains(&Verb::Get) && resource.verbs.contains(&Verb::Create);
    let (group, version, kind) = (&*resource.group, &*resource.version, &*resource.kind);
    if !stored && !review::is_review(group, kind) {
        return None;
    }
    let ty = Table::builtin().kind(group, version, kind)?;
    let mut resource = resource.clone();
    resource
        .subresources
        .retain(|s| !UNSERVED.contains(&&*s.name));
    Some(Served {
        api_version: resource.api_version(),
        collection: store.collection(&collection_name(group, &resource.plural)),
        printer: Printer::builtin(group, kind),
        nature: Nature::Builtin(Builtin {
            ty,
            strategy: kinds::strategy(group, kind),
            conversion: conversion(group, version, kind),
        }),
        resource,
    })
}
