//! The registry: which resources are served at this moment. Readers take the whole of it at once, so that a request
//! sees one state from beginning to end.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kubewright_schema::Table;
use kubewright_schema::catalog::{self, Resource, Verb};
use parking_lot::RwLock;

use crate::conversion::{collection_name, conversion};
use crate::http::path::GroupVersion;
use crate::kinds;
use crate::printers::Printer;
use crate::resource::{Builtin, Incarnation, Nature, Served, is_review};
use crate::storage::{At, Store};

/// What is read and never written by clients: the server itself puts it into the store.
const READ_ONLY: &str = "ComponentStatus";

/// The resources that are served, replaced as a whole when they change.
pub(crate) struct Registry(RwLock<Arc<Resources>>);

/// The resources that are served at one moment.
pub(crate) struct Resources {
    /// Grows with each change; names the state for caches.
    pub(crate) generation: u64,
    /// In the order of discovery: built-in ones first, custom ones by group.
    pub(crate) all: Vec<Arc<Served>>,
    by_path: HashMap<GroupVersion, HashMap<Box<str>, Arc<Served>>>,
    /// The definitions of all custom ones, by name.
    pub(crate) definitions: BTreeMap<String, Arc<Defined>>,
}

/// A definition and the versions of it that are served.
pub(crate) struct Defined {
    pub(crate) incarnation: Arc<Incarnation>,
    pub(crate) versions: Vec<Arc<Served>>,
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
        Self(RwLock::new(Arc::new(Resources::new(
            1,
            all,
            BTreeMap::new(),
        ))))
    }

    /// The built-in resources of this registry over another store.
    pub(crate) fn builtin_in(&self, store: &Store) -> Self {
        let now = self.now();
        let builtin = now.all.iter().filter(|served| served.definition.is_none());
        let moved = builtin.map(|served| Arc::new(served.in_store(store)));
        let resources = Resources::new(now.generation, moved.collect(), BTreeMap::new());
        Self(RwLock::new(Arc::new(resources)))
    }

    /// The resources as they are now.
    pub(crate) fn now(&self) -> Arc<Resources> {
        self.0.read().clone()
    }

    /// A definition that is served.
    pub(crate) fn defined(&self, name: &str) -> Option<Arc<Defined>> {
        self.0.read().definitions.get(name).cloned()
    }

    /// Serves a definition, or nothing under its name, from the change at a revision on. Whatever was served there
    /// before ends with that change.
    pub(crate) fn define(&self, name: &str, definition: Option<Arc<Defined>>, revision: u64) {
        let mut current = self.0.write();
        let mut definitions = current.definitions.clone();
        let before = match definition {
            Some(definition) => definitions.insert(name.to_owned(), definition),
            None => definitions.remove(name),
        };
        *current = Arc::new(current.with(definitions));
        drop(current);
        if let Some(before) = before {
            before.incarnation.end(revision);
        }
    }

    /// Serves these definitions and no others, from the change at a revision on.
    pub(crate) fn replace_definitions(
        &self,
        definitions: BTreeMap<String, Arc<Defined>>,
        revision: u64,
    ) {
        let before = {
            let mut current = self.0.write();
            let next = Arc::new(current.with(definitions));
            std::mem::replace(&mut *current, next)
        };
        for definition in before.definitions.values() {
            definition.incarnation.end(revision);
        }
    }
}

impl Defined {
    /// The same with its objects in another store.
    pub(crate) fn in_store(&self, store: &Store) -> Self {
        let incarnation = Arc::new(self.incarnation.copy());
        let versions = self.versions.iter().map(|served| {
            let mut moved = served.in_store(store);
            moved.definition = Some(incarnation.clone());
            Arc::new(moved)
        });
        Self {
            versions: versions.collect(),
            incarnation,
        }
    }

    /// The name of the collection of its objects; empty when no version is served.
    pub(crate) fn collection(&self) -> &str {
        self.versions
            .first()
            .map_or("", |served| served.collection.name())
    }

    /// Since when the schema is what it is, if the other has the same spec.
    pub(crate) fn schema_revision(&self, other: &Incarnation) -> Option<u64> {
        let own = &self.incarnation;
        let same = own.uid == other.uid && own.spec == other.spec;
        let custom = self.versions.first().and_then(|served| served.custom());
        custom.filter(|_| same).map(|custom| custom.schema_revision)
    }

    /// What tells one from another, for tests that compare.
    pub(crate) fn describe(&self) -> String {
        let versions = self.versions.iter().map(|served| &*served.resource.version);
        let Incarnation { uid, spec, .. } = &*self.incarnation;
        format!(
            "{uid}/{spec:x}{}{:?}",
            if self.incarnation.is_terminating() {
                " terminating "
            } else {
                " "
            },
            versions.collect::<Vec<_>>()
        )
    }
}

impl Resources {
    /// The same built-in resources with other custom ones.
    fn with(&self, definitions: BTreeMap<String, Arc<Defined>>) -> Self {
        let builtin = self.all.iter().filter(|served| served.definition.is_none());
        let custom = definitions
            .values()
            .flat_map(|definition| &definition.versions);
        let all = builtin.chain(custom).cloned().collect();
        Self::new(self.generation + 1, all, definitions)
    }

    fn new(
        generation: u64,
        mut all: Vec<Arc<Served>>,
        definitions: BTreeMap<String, Arc<Defined>>,
    ) -> Self {
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
            definitions,
        }
    }

    /// Finds a resource.
    pub(crate) fn find(&self, gv: &GroupVersion, plural: &str) -> Lookup {
        match self.by_path.get(gv).map(|resources| resources.get(plural)) {
            Some(Some(served)) => Lookup::Found(served.clone()),
            Some(None) => Lookup::NoResource,
            None => Lookup::NoGroupVersion,
        }
    }

    /// The resources of a group and version, in no order.
    pub(crate) fn of(&self, gv: &GroupVersion) -> Vec<Arc<Served>> {
        let own = self.by_path.get(gv).into_iter().flat_map(HashMap::values);
        own.cloned().collect()
    }

    /// How many objects a resource has; none when it is not served.
    pub(crate) fn count(&self, gv: &GroupVersion, plural: &str) -> usize {
        let served = self.by_path.get(gv).and_then(|all| all.get(plural));
        let snapshot = served.and_then(|served| served.collection.snapshot(At::Latest).ok());
        snapshot.map_or(0, |snapshot| snapshot.len())
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

/// A built-in resource as it is served. Reviews can be created and are not stored.
fn builtin(store: &Store, resource: &Resource) -> Option<Served> {
    let stored = resource.verbs.contains(&Verb::Get) && resource.verbs.contains(&Verb::Create);
    let (group, version, kind) = (&*resource.group, &*resource.version, &*resource.kind);
    if !stored && !is_review(group, kind) && kind != READ_ONLY {
        return None;
    }
    let ty = Table::builtin().kind(group, version, kind)?;
    let resource = resource.clone();
    Some(Served {
        api_version: resource.api_version(),
        collection: store.collection(&collection_name(group, &resource.plural)),
        printer: Printer::builtin(group, kind),
        definition: None,
        nature: Nature::Builtin(Builtin {
            ty,
            strategy: kinds::strategy(group, kind),
            conversion: conversion(group, version, kind),
        }),
        resource,
    })
}
