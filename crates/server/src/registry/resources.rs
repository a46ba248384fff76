//! The resources that are served at one moment.

use std::sync::Arc;

use imbl::{OrdMap, ordmap};
use kubewright_schema::catalog::Resource;

use super::{Defined, NamesInUse};
use crate::http::path::GroupVersion;
use crate::resource::Served;
use crate::storage::{At, Store};

/// The resources that are served at one moment. A copy shares everything with its original until one of them changes.
#[derive(Clone)]
pub(crate) struct Resources {
    /// Grows with each change; names the state for caches.
    pub(crate) generation: u64,
    builtin: Builtin,
    /// Built-in resources and all versions of all definitions.
    by_path: ByPath,
    /// The definitions that are served, by name.
    definitions: OrdMap<Box<str>, Arc<Defined>>,
    names: NamesInUse,
    /// What other servers answer for. It stands in place of anything that is served here.
    elsewhere: OrdMap<GroupVersion, Arc<[Resource]>>,
}

/// Resources by where they are served.
type ByPath = OrdMap<GroupVersion, OrdMap<Box<str>, Arc<Served>>>;

/// The resources that are part of Kubernetes, kept apart from the others so that changes and forks start from what was
/// once made of them.
#[derive(Clone)]
struct Builtin {
    /// In the order of the catalog.
    served: Arc<[Arc<Served>]>,
    by_path: ByPath,
    names: NamesInUse,
}

/// What a group, version and plural name.
pub(crate) enum Lookup {
    Found(Arc<Served>),
    /// The group and version are served, the resource is not.
    NoResource,
    /// Nothing is served there.
    NoGroupVersion,
}

impl Resources {
    /// The built-in resources and no others.
    pub(super) fn new(generation: u64, builtin: Arc<[Arc<Served>]>) -> Self {
        let mut names = NamesInUse::default();
        for served in &*builtin {
            names.insert(None, &served.resource);
        }
        Self::only(generation, Builtin::new(builtin, names))
    }

    /// The built-in resources of this state and no others.
    pub(super) fn only_builtin(&self, generation: u64) -> Self {
        Self::only(generation, self.builtin.clone())
    }

    /// The same with the objects in another store.
    pub(super) fn builtin_in(&self, store: &Store) -> Self {
        let Builtin { served, names, .. } = &self.builtin;
        let moved = served.iter().map(|served| Arc::new(served.in_store(store)));
        Self::only(
            self.generation,
            Builtin::new(moved.collect(), names.clone()),
        )
    }

    fn only(generation: u64, builtin: Builtin) -> Self {
        Self {
            generation,
            by_path: builtin.by_path.clone(),
            names: builtin.names.clone(),
            builtin,
            definitions: OrdMap::new(),
            elsewhere: OrdMap::new(),
        }
    }

    /// Serves a definition, or nothing under its name. Returns what was served there before.
    pub(super) fn define(
        &mut self,
        name: &str,
        definition: Option<Arc<Defined>>,
    ) -> Option<Arc<Defined>> {
        let before = self.definitions.remove(name);
        for served in before.iter().flat_map(|before| &before.versions) {
            self.withdraw(served);
            self.names.remove(name, &served.resource);
        }
        for served in definition.iter().flat_map(|defined| &defined.versions) {
            serve(&mut self.by_path, served);
            self.names.insert(Some(name), &served.resource);
        }
        if before.is_some() || definition.is_some() {
            self.generation += 1;
        }
        if let Some(definition) = definition {
            self.definitions.insert(name.into(), definition);
        }
        before
    }

    fn withdraw(&mut self, served: &Arc<Served>) {
        let ordmap::Entry::Occupied(mut resources) =
            self.by_path.entry(group_version(&served.resource))
        else {
            return;
        };
        let plural = &served.resource.plural;
        let is_there = |there: &Arc<Served>| Arc::ptr_eq(there, served);
        if resources.get().get(plural).is_some_and(is_there) {
            resources.get_mut().remove(plural);
        }
        if resources.get().is_empty() {
            resources.remove();
        }
    }

    /// Every resource: built-in ones in the order of the catalog, then versions of definitions by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Served>> {
        let custom = self.definitions().flat_map(|defined| &defined.versions);
        self.builtin.served.iter().chain(custom)
    }

    /// The resources that are part of Kubernetes.
    pub(crate) fn builtins(&self) -> &[Arc<Served>] {
        &self.builtin.served
    }

    /// The definitions that are served, by name.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Arc<Defined>> {
        self.definitions.values()
    }

    /// A definition that is served.
    pub(crate) fn definition(&self, name: &str) -> Option<&Arc<Defined>> {
        self.definitions.get(name)
    }

    /// The names that resources of each group have.
    pub(crate) fn names(&self) -> &NamesInUse {
        &self.names
    }

    /// The resource that is served at a group, version and plural.
    pub(crate) fn get(&self, gv: &GroupVersion, plural: &str) -> Option<&Arc<Served>> {
        self.by_path.get(gv)?.get(plural)
    }

    /// Finds a resource by where it is served.
    pub(crate) fn find(&self, gv: &GroupVersion, plural: &str) -> Lookup {
        match self.by_path.get(gv).map(|resources| resources.get(plural)) {
            Some(Some(served)) => Lookup::Found(served.clone()),
            Some(None) => Lookup::NoResource,
            None => Lookup::NoGroupVersion,
        }
    }

    /// The groups and versions that are served, in order.
    pub(crate) fn group_versions(&self) -> impl Iterator<Item = &GroupVersion> {
        self.by_path.keys()
    }

    /// The resources of a group and version, by plural.
    pub(crate) fn of(&self, gv: &GroupVersion) -> impl Iterator<Item = &Arc<Served>> {
        self.by_path.get(gv).into_iter().flat_map(OrdMap::values)
    }

    /// The versions of a group that are served, each with its resources by plural.
    pub(crate) fn of_group(
        &self,
        group: &str,
    ) -> impl Iterator<Item = (&GroupVersion, &OrdMap<Box<str>, Arc<Served>>)> {
        let first = GroupVersion::new(group, "");
        let group = group.to_owned();
        let from_first = self.by_path.range(first..);
        from_first.take_while(move |(gv, _)| gv.group == group)
    }

    /// All versions of the resource that another is a version of, itself included. Objects of all of them are stored
    /// together.
    pub(crate) fn versions_of(&self, served: &Served) -> Vec<Arc<Served>> {
        let together = |other: &&Arc<Served>| other.collection.name() == served.collection.name();
        if served.custom().is_none() {
            return self
                .builtin
                .served
                .iter()
                .filter(together)
                .cloned()
                .collect();
        }
        let Resource { plural, group, .. } = &*served.resource;
        let defined = self.definition(&format!("{plural}.{group}"));
        let versions = defined.map(|defined| defined.versions.iter());
        versions.into_iter().flatten().cloned().collect()
    }

    /// Whether a group and version is in the same memory here and there.
    #[cfg(test)]
    pub(super) fn shares(&self, other: &Self, gv: &GroupVersion) -> bool {
        let (own, others) = (self.by_path.get(gv), other.by_path.get(gv));
        own.zip(others)
            .is_some_and(|(own, others)| own.ptr_eq(others))
    }

    /// How many resources are served.
    pub(crate) fn len(&self) -> usize {
        self.by_path.values().map(OrdMap::len).sum()
    }

    /// How many objects a resource has; none when it is not served.
    pub(crate) fn count(&self, gv: &GroupVersion, plural: &str) -> usize {
        let snapshot = self
            .get(gv, plural)
            .and_then(|served| served.collection.snapshot(At::Latest).ok());
        snapshot.map_or(0, |snapshot| snapshot.len())
    }

    /// Finds a built-in resource that is known to be there.
    ///
    /// # Panics
    /// When the catalog lacks it.
    pub(crate) fn builtin(&self, group: &str, version: &str, plural: &str) -> Arc<Served> {
        match self.get(&GroupVersion::new(group, version), plural) {
            Some(served) => served.clone(),
            None => panic!("the catalog has {plural} in {group}/{version}"),
        }
    }

    /// The resources as discovery takes them.
    pub(crate) fn catalog(&self) -> Vec<&Resource> {
        let here = self.all().map(|served| &*served.resource);
        let elsewhere = self.elsewhere.values().flat_map(|all| all.iter());
        here.filter(|resource| self.is_here(resource))
            .chain(elsewhere)
            .collect()
    }

    /// The resources of a group as discovery takes them.
    pub(crate) fn group_catalog(&self, group: &str) -> Vec<&Resource> {
        let here = self.of_group(group).flat_map(|(_, own)| own.values());
        let here = here.map(|served| &*served.resource);
        let elsewhere = self.elsewhere.iter().filter(|(gv, _)| gv.group == group);
        here.filter(|resource| self.is_here(resource))
            .chain(elsewhere.flat_map(|(_, all)| all.iter()))
            .collect()
    }

    /// Whether this server answers for a resource.
    pub(crate) fn is_here(&self, resource: &Resource) -> bool {
        self.elsewhere.is_empty() || !self.elsewhere.contains_key(&group_version(resource))
    }

    /// Whether another server answers for a version of a group.
    pub(crate) fn has_elsewhere(&self, group: &str) -> bool {
        self.elsewhere.keys().any(|gv| gv.group == group)
    }

    /// Notes what another server answers for; nothing when it does not any more. Says whether that is new.
    pub(super) fn serve_elsewhere(
        &mut self,
        gv: &GroupVersion,
        resources: Option<Vec<Resource>>,
    ) -> bool {
        let known = self.elsewhere.get(gv).map(|known| &**known);
        if known == resources.as_deref() {
            return false;
        }
        match resources {
            Some(resources) => self.elsewhere.insert(gv.clone(), resources.into()),
            None => self.elsewhere.remove(gv),
        };
        self.generation += 1;
        true
    }

    /// The groups and versions that other servers answer for.
    pub(super) fn all_elsewhere(&self) -> Vec<GroupVersion> {
        self.elsewhere.keys().cloned().collect()
    }
}

impl Builtin {
    fn new(served: Arc<[Arc<Served>]>, names: NamesInUse) -> Self {
        let mut by_path = ByPath::new();
        for served in &*served {
            serve(&mut by_path, served);
        }
        Self {
            served,
            by_path,
            names,
        }
    }
}

fn serve(by_path: &mut ByPath, served: &Arc<Served>) {
    let resources = by_path.entry(group_version(&served.resource));
    let plural = served.resource.plural.clone();
    resources.or_default().insert(plural, served.clone());
}

fn group_version(resource: &Resource) -> GroupVersion {
    GroupVersion::new(&resource.group, &resource.version)
}
