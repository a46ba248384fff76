//! The registry: which resources are served at this moment. Readers take the whole of it at once, so that a request
//! sees one state from beginning to end.
//!
//! It changes under the store's lock, so a change has to be cheap however many definitions there are: [`Resources`] is
//! made of persistent maps, and the next state shares all but a few nodes with the one before.

mod names;
mod resources;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubewright_schema::Table;
use kubewright_schema::catalog::{self, Resource, Verb};
use parking_lot::RwLock;

use crate::conversion::{collection_name, conversion};
use crate::http::path::GroupVersion;
use crate::kinds;
use crate::printers::Printer;
use crate::resource::{Builtin, Incarnation, Nature, Served, is_review};
use crate::storage::Store;

pub(crate) use names::{NameClass, NamesInUse};
pub(crate) use resources::{Lookup, Resources};

/// What is read and never written by clients: the server itself puts it into the store.
const READ_ONLY: &str = "ComponentStatus";

/// The resources that are served, replaced as a whole when they change.
pub(crate) struct Registry(RwLock<Arc<Resources>>);

/// A definition and the versions of it that are served, the preferred one first.
pub(crate) struct Defined {
    pub(crate) incarnation: Arc<Incarnation>,
    pub(crate) versions: Vec<Arc<Served>>,
}

impl Registry {
    /// The built-in resources over a store.
    pub(crate) fn builtin(store: &Store) -> Self {
        let all = catalog::builtin()
            .iter()
            .filter_map(|resource| builtin(store, resource))
            .map(Arc::new)
            .collect();
        Self::of(Resources::new(1, all))
    }

    /// The built-in resources of this registry over another store.
    pub(crate) fn builtin_in(&self, store: &Store) -> Self {
        Self::of(self.now().builtin_in(store))
    }

    fn of(resources: Resources) -> Self {
        Self(RwLock::new(Arc::new(resources)))
    }

    /// The resources as they are now.
    pub(crate) fn now(&self) -> Arc<Resources> {
        self.0.read().clone()
    }

    /// A definition that is served.
    pub(crate) fn defined(&self, name: &str) -> Option<Arc<Defined>> {
        self.0.read().definition(name).cloned()
    }

    /// Serves a definition, or nothing under its name, from the change at a revision on. Whatever was served there
    /// before ends with that change.
    pub(crate) fn define(&self, name: &str, definition: Option<Arc<Defined>>, revision: u64) {
        let mut current = self.0.write();
        let mut next = Resources::clone(&current);
        let before = next.define(name, definition);
        *current = Arc::new(next);
        drop(current);
        if let Some(before) = before {
            before.incarnation.end(revision);
        }
    }

    /// Lists what another server answers for in discovery.
    pub(crate) fn serve_elsewhere(&self, gv: &GroupVersion, resources: Vec<Resource>) {
        self.change_elsewhere(gv, Some(resources));
    }

    /// Forgets what other servers answered for, except for these groups and versions.
    pub(crate) fn keep_elsewhere<'a>(&self, kept: impl Iterator<Item = &'a GroupVersion>) {
        let kept: BTreeSet<&GroupVersion> = kept.collect();
        for gv in self.now().all_elsewhere() {
            if !kept.contains(&gv) {
                self.change_elsewhere(&gv, None);
            }
        }
    }

    fn change_elsewhere(&self, gv: &GroupVersion, resources: Option<Vec<Resource>>) {
        let mut current = self.0.write();
        let mut next = Resources::clone(&current);
        if next.serve_elsewhere(gv, resources) {
            *current = Arc::new(next);
        }
    }

    /// Serves these definitions and no others, from the change at a revision on.
    pub(crate) fn replace_definitions(
        &self,
        definitions: BTreeMap<String, Arc<Defined>>,
        revision: u64,
    ) {
        let mut current = self.0.write();
        let mut next = current.only_builtin(current.generation + 1);
        for (name, definition) in definitions {
            next.define(&name, Some(definition));
        }
        let before = std::mem::replace(&mut *current, Arc::new(next));
        drop(current);
        for definition in before.definitions() {
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
            "{}={uid}/{spec:x}{}{:?}",
            self.collection(),
            if self.incarnation.is_terminating() {
                " terminating "
            } else {
                " "
            },
            versions.collect::<Vec<_>>()
        )
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
    let resource = Arc::new(resource.clone());
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
