//! Keeps `managedFields` right through every write of an object.

use std::cell::OnceCell;
use std::sync::LazyLock;

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

/// Fields that nobody manages.
pub(super) static UNMANAGED: LazyLock<Set> = LazyLock::new(|| {
    let metadata = [
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
    let path = |name| vec![PathElement::field("metadata"), PathElement::field(name)];
    let top = ["apiVersion", "kind", "metadata"].map(|name| vec![PathElement::field(name)]);
    metadata.into_iter().map(path).chain(top).collect()
});

/// Whether an apply takes fields that others manage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// It does not: that is a conflict.
    No,
    /// It takes them over, without a conflict.
    Yes,
}

/// Whose fields a change takes away from others.
#[derive(Clone, Copy)]
pub(super) enum Claim {
    /// An update takes whatever it changes.
    Update,
    /// An apply takes what others manage only by force. Its own entry is already among the managers.
    Apply { own: usize, force: Force },
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
        let Ok(comparison) = self.withdraw(managed, live, new, Claim::Update) else {
            return;
        };
        let mut fields = comparison.into_taken();
        fields.subtract(&UNMANAGED);
        if fields.is_empty() {
            return;
        }
        let mut entry = self.entry(manager, Operation::Update);
        entry.fields = fields;
        match managed.position(&entry) {
            Some(at) => {
                let before = std::mem::replace(&mut managed.0[at], entry);
                managed.0[at].fields.absorb(before.fields);
            }
            None => managed.0.push(entry),
        }
    }

    /// Brings all managers in line with a change: they lose what is removed, and what they managed and is now
    /// changed, unless that is a conflict. The entry of an apply itself is left alone.
    pub(super) fn withdraw(
        &self,
        managed: &mut Managed,
        live: &Value,
        new: &Value,
        claim: Claim,
    ) -> Result<Comparison, Conflicts> {
        let (own, force) = match claim {
            Claim::Update => (None, Force::Yes),
            Claim::Apply { own, force } => (Some(own), force),
        };
        let mut seen = Seen::new(
            self.api_version,
            self.compare_at(self.api_version, live, new),
        );
        let mut conflicts = Conflicts::default();
        for (at, entry) in managed.0.iter().enumerate() {
            if Some(at) == own {
                continue;
            }
            let compare = || self.compare_at(&entry.api_version, live, new);
            let Some(change) = seen.at(&entry.api_version, compare) else {
                continue;
            };
            if force == Force::No && entry.fields.intersects(change.taken()) {
                conflicts.add(entry, &entry.fields.intersection(change.taken()));
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
            let Some(change) = seen.at(&entry.api_version, || None) else {
                return false;
            };
            entry.fields.subtract(&change.comparison.added);
            entry.fields.subtract(&change.comparison.modified);
            entry.fields.subtract(&change.comparison.removed);
            !entry.fields.is_empty()
        });
        Ok(seen.into_first())
    }

    /// What changes at a version; nothing when there is no such version.
    fn compare_at(&self, api_version: &str, live: &Value, new: &Value) -> Option<Comparison> {
        let typed = self.versions.typed(api_version)?;
        let mut comparison = if api_version == self.api_version {
            compare(typed, live, new)
        } else {
            let live = self.versions.convert(live, api_version)?;
            compare(typed, &live, &self.versions.convert(new, api_version)?)
        };
        self.reset.filter_comparison(&mut comparison);
        Some(comparison)
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

/// What changes at each version that was looked at; nothing where there is no such version.
struct Seen(Vec<(String, Option<Change>)>);

struct Change {
    comparison: Comparison,
    /// Added and modified fields together, made when first asked for.
    taken: OnceCell<Set>,
}

impl Change {
    fn new(comparison: Comparison) -> Self {
        Self {
            comparison,
            taken: OnceCell::new(),
        }
    }

    fn taken(&self) -> &Set {
        self.taken.get_or_init(|| self.comparison.taken())
    }
}

impl Seen {
    fn new(api_version: &str, first: Option<Comparison>) -> Self {
        Self(vec![(api_version.to_owned(), first.map(Change::new))])
    }

    fn at(
        &mut self,
        api_version: &str,
        compare: impl FnOnce() -> Option<Comparison>,
    ) -> Option<&Change> {
        let found = self
            .0
            .iter()
            .position(|(version, _)| version == api_version);
        let at = found.unwrap_or_else(|| {
            self.0
                .push((api_version.to_owned(), compare().map(Change::new)));
            self.0.len() - 1
        });
        self.0[at].1.as_ref()
    }

    fn into_first(mut self) -> Comparison {
        let first = self.0.swap_remove(0).1;
        first.map(|change| change.comparison).unwrap_or_default()
    }
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
