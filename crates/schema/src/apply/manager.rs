//! Keeps `managedFields` right through every write of an object.

use serde_json::{Map, Value};

use super::compare::{Comparison, compare};
use super::conflict::Conflicts;
use super::entry::{Entry, Managed, Operation};
use super::form::Typed;
use super::path::PathElement;
use super::reconcile::reconcile;
use super::reset::Reset;
use super::set::Set;
use super::value::equal;
use super::versions::Versions;

/// Fields of metadata that nobody manages.
const UNMANAGED: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// Whether an apply takes fields that others manage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// It does not: that is a conflict.
    No,
    /// It does.
    Yes,
}

/// Everything about one write that decides who manages what after it.
pub struct FieldManager<'a> {
    /// The versions of the kind.
    pub versions: &'a dyn Versions,
    /// The version that the request speaks.
    pub api_version: &'a str,
    /// The kind of the object.
    pub kind: &'a str,
    /// The subresource that is written to; empty for the object itself.
    pub subresource: &'a str,
    /// Who writes; an empty name is `unknown`.
    pub manager: &'a str,
    /// The present moment as JSON has it.
    pub now: &'a str,
    /// What the endpoint does not let requests change.
    pub reset: &'a Reset,
}

impl FieldManager<'_> {
    /// Sets the `managedFields` of an object that is created, updated or patched. Both objects are of the request's
    /// version; there is no live one when the object is created. The request takes over what it changes.
    ///
    /// An object that exists and has no managers gets none: they were switched off for it.
    pub fn update(&self, live: Option<&Value>, new: &mut Value) {
        let mut managed = self.managed_before(live, new);
        remove_managed(new);
        let is_tracked = !managed.is_empty() || live.is_none_or(|live| uid(live).is_empty());
        if is_tracked {
            self.take(&mut managed, live, new, self.manager);
            managed.cap();
        }
        managed.write(new);
    }

    /// The entries that an update starts from: those that the client sent, or else those of the live object.
    fn managed_before(&self, live: Option<&Value>, new: &Value) -> Managed {
        let of_live = || live.and_then(|live| Managed::of(live).ok());
        // Through a subresource nobody can set entries by hand.
        let sent = if self.subresource.is_empty() {
            if is_reset(new) {
                return Managed::default();
            }
            Managed::of(new).ok().filter(|managed| !managed.is_empty())
        } else {
            None
        };
        sent.or_else(of_live).unwrap_or_default()
    }

    /// Lets the request take over what changes from the live object to the new one.
    pub(super) fn take(
        &self,
        managed: &mut Managed,
        live: Option<&Value>,
        new: &Value,
        manager: &str,
    ) {
        let nothing = Value::Object(Map::new());
        let live = live.unwrap_or(&nothing);
        self.reconcile(managed);
        let Ok(comparison) = self.settle(managed, live, new, None, Force::Yes) else {
            return;
        };
        let fields = strip(&comparison.taken());
        if fields.is_empty() {
            return;
        }
        let mut entry = self.entry(manager, Operation::Update);
        entry.fields = fields;
        match managed.position(&entry) {
            Some(at) => {
                entry.fields = entry.fields.union(&managed.0[at].fields);
                managed.0[at] = entry;
            }
            None => managed.0.push(entry),
        }
    }

    /// Brings all managers in line with a change: they lose what is removed, and what they managed and is now
    /// changed, unless that is a conflict. The entry at `own` is left alone.
    pub(super) fn settle(
        &self,
        managed: &mut Managed,
        live: &Value,
        new: &Value,
        own: Option<usize>,
        force: Force,
    ) -> Result<Comparison, Conflicts> {
        let mut seen: Vec<(String, Option<(Comparison, Set)>)> = Vec::new();
        let home = self.compare_at(self.api_version, live, new);
        seen.push((self.api_version.to_owned(), home));
        let mut conflicts = Conflicts::default();
        for (at, entry) in managed.0.iter().enumerate() {
            if Some(at) == own {
                continue;
            }
            if !seen
                .iter()
                .any(|(version, _)| *version == entry.api_version)
            {
                let comparison = self.compare_at(&entry.api_version, live, new);
                seen.push((entry.api_version.clone(), comparison));
            }
            if force == Force::No
                && let Some((_, taken)) = at_version(&seen, &entry.api_version)
                && entry.fields.intersects(taken)
            {
                conflicts.add(entry, &entry.fields.intersection(taken));
            }
        }
        if !conflicts.0.is_empty() {
            conflicts.0.sort_by(|a, b| a.manager.cmp(&b.manager));
            return Err(conflicts);
        }
        let mut index = 0..;
        managed.0.retain_mut(|entry| {
            if index.next() == own {
                return true;
            }
            let Some((comparison, taken)) = at_version(&seen, &entry.api_version) else {
                return false;
            };
            for lost in [taken, &comparison.removed] {
                if entry.fields.intersects(lost) {
                    entry.fields = entry.fields.difference(lost);
                }
            }
            !entry.fields.is_empty()
        });
        let home = seen.swap_remove(0).1;
        Ok(home.map(|(comparison, _)| comparison).unwrap_or_default())
    }

    /// What changes at a version, and what of it is taken; nothing when there is no such version.
    fn compare_at(
        &self,
        api_version: &str,
        live: &Value,
        new: &Value,
    ) -> Option<(Comparison, Set)> {
        let typed = self.versions.typed(api_version)?;
        let comparison = if api_version == self.api_version {
            compare(typed, live, new)
        } else {
            let live = self.versions.convert(live, api_version)?;
            compare(typed, &live, &self.versions.convert(new, api_version)?)
        };
        let comparison = self.reset.filter_comparison(comparison);
        let taken = comparison.taken();
        Some((comparison, taken))
    }

    pub(super) fn reconcile(&self, managed: &mut Managed) {
        managed.0.retain_mut(|entry| {
            let Some(typed) = self.versions.typed(&entry.api_version) else {
                return false;
            };
            if let Some(fields) = reconcile(typed, &entry.fields) {
                entry.fields = fields;
            }
            true
        });
    }

    pub(super) fn entry(&self, manager: &str, operation: Operation) -> Entry {
        Entry {
            manager: if manager.is_empty() {
                "unknown".to_owned()
            } else {
                manager.to_owned()
            },
            operation,
            api_version: self.api_version.to_owned(),
            subresource: self.subresource.to_owned(),
            time: Some(self.now.to_owned()),
            fields: Set::new(),
        }
    }

    pub(super) fn home(&self) -> Option<Typed<'_>> {
        self.versions.typed(self.api_version)
    }
}

/// What changes at a version, if there is one.
fn at_version<'s>(
    seen: &'s [(String, Option<(Comparison, Set)>)],
    api_version: &str,
) -> Option<&'s (Comparison, Set)> {
    let found = seen.iter().find(|(version, _)| version == api_version)?;
    found.1.as_ref()
}

/// The set without what nobody manages.
pub(super) fn strip(set: &Set) -> Set {
    let mut out = Set::new();
    for node in set.nodes() {
        match node.element.as_field() {
            Some("apiVersion" | "kind") => {
                out.put(node.element.clone(), false, node.below.clone());
            }
            Some("metadata") => {
                let mut below = Set::new();
                for inner in node.below.nodes() {
                    let unmanaged = inner
                        .element
                        .as_field()
                        .is_some_and(|name| UNMANAGED.contains(&name));
                    below.put(
                        inner.element.clone(),
                        inner.member && !unmanaged,
                        inner.below.clone(),
                    );
                }
                out.put(PathElement::field("metadata"), false, below);
            }
            _ => out.put(node.element.clone(), node.member, node.below.clone()),
        }
    }
    out
}

/// Gives `new` the moments of the `managedFields` of `old` when nothing else differs, so that a write that changes
/// nothing stays one.
pub fn keep_times(new: &mut Value, old: &Value) {
    let same = match (entries(new), entries(old)) {
        (Some(new), Some(old)) => {
            new.len() == old.len()
                && new != old
                && new
                    .iter()
                    .zip(old)
                    .all(|(new, old)| same_but(new, old, &["time"]))
        }
        _ => false,
    };
    if !same || !same_content(new, old) {
        return;
    }
    let kept = old["metadata"]["managedFields"].clone();
    if let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("managedFields".to_owned(), kept);
    }
}

fn entries(object: &Value) -> Option<&Vec<Value>> {
    object.get("metadata")?.get("managedFields")?.as_array()
}

fn same_content(new: &Value, old: &Value) -> bool {
    let metadata = |object: &Value| object.get("metadata").cloned().unwrap_or_default();
    same_but(new, old, &["metadata"])
        && same_but(
            &metadata(new),
            &metadata(old),
            &["managedFields", "resourceVersion"],
        )
}

/// Whether two objects are the same but for some members.
fn same_but(a: &Value, b: &Value, but: &[&str]) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
        return equal(a, b);
    };
    let counts = |key: &&String| !but.contains(&key.as_str());
    a.keys().filter(counts).count() == b.keys().filter(counts).count()
        && a.keys()
            .filter(counts)
            .all(|key| b.get(key).is_some_and(|b| equal(&a[key], b)))
}

pub(super) fn uid(object: &Value) -> &str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get("uid"))
        .and_then(Value::as_str)
        .unwrap_or("")
}

pub(super) fn remove_managed(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Whether the client asks for all entries to be dropped: an empty list, or one empty entry.
fn is_reset(object: &Value) -> bool {
    let Some(entries) = entries(object) else {
        return false;
    };
    match &entries[..] {
        [] => true,
        [Value::Object(only)] => only.values().all(Value::is_null),
        _ => false,
    }
}
