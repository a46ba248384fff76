//! Server-side apply of one configuration.

use serde_json::{Map, Value};

use super::conflict::Conflicts;
use super::entry::{Entry, Managed, ManagedError, Operation};
use super::form::Typed;
use super::last_applied;
use super::manager::{Claim, FieldManager, Force, UNMANAGED, remove_managed};
use super::merge::merge;
use super::reconcile::with_parents;
use super::remove::remove_items;
use super::set::Set;
use super::to_set::to_field_set;
use super::validate::{TypeErrors, validate};
use super::value::equal;

/// The manager of what was there before anybody applied anything, where nobody kept account.
const BEFORE: &str = "before-first-apply";

/// Why a configuration is not applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// It is of another kind or version than the request.
    #[error("invalid object type: {0}")]
    Kind(String),
    /// It says who manages what.
    #[error("metadata.managedFields must be nil")]
    ManagedFields,
    /// The live object's entries make no sense.
    #[error("failed to decode managed fields: {0}")]
    Live(#[source] ManagedError),
    /// It does not fit the type.
    #[error("failed to create typed patch object ({object}): {errors}")]
    Config {
        /// The object that the configuration names.
        object: String,
        /// What does not fit.
        #[source]
        errors: TypeErrors,
    },
    /// Others manage what it would change.
    #[error("{0}")]
    Conflicts(#[source] Conflicts),
}

impl FieldManager<'_> {
    /// Applies a configuration: merges it into the live object, takes out what the manager applied before and no
    /// longer does and nobody else manages, and sets `managedFields`. Both are of the request's version; without a
    /// live object the result is a new one.
    ///
    /// Nulls may be left in the result where all fields of an object were taken out.
    ///
    /// # Errors
    /// When the configuration cannot be applied, or would change what others manage and `force` is not given.
    pub fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        force: Force,
    ) -> Result<Value, ApplyError> {
        self.check(config)?;
        let nothing = Value::Object(Map::new());
        let live = live.unwrap_or(&nothing);
        let mut managed = Managed::of(live).map_err(ApplyError::Live)?;
        if managed.is_empty() {
            self.take(&mut managed, None, live, BEFORE);
        }
        let applied = self.apply_once(managed.clone(), live, config, force);
        let (mut object, managed) = match applied {
            Err(conflicts) if self.manager == last_applied::MANAGER => {
                let left = self.conflicts_beyond_last_applied(live, conflicts);
                if !left.0.is_empty() {
                    return Err(ApplyError::Conflicts(left));
                }
                self.apply_once(managed, live, config, Force::Yes)
                    .map_err(ApplyError::Conflicts)?
            }
            other => other.map_err(ApplyError::Conflicts)?,
        };
        if self.manager == last_applied::MANAGER {
            last_applied::sync(&mut object, config);
        }
        managed.write(&mut object);
        Ok(object)
    }

    /// Checks what a configuration says of itself.
    fn check(&self, config: &Value) -> Result<(), ApplyError> {
        let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or("");
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version != self.api_version || kind != self.kind {
            return Err(ApplyError::Kind(full_kind(api_version, kind)));
        }
        let metadata = |name: &str| config.get("metadata").and_then(|m| m.get(name));
        if metadata("managedFields").is_some_and(|entries| !entries.is_null()) {
            return Err(ApplyError::ManagedFields);
        }
        let Some(typed) = self.home() else {
            return Ok(());
        };
        validate(typed, config).map_err(|errors| {
            let part = |name| metadata(name).and_then(Value::as_str).unwrap_or("");
            let (namespace, name) = (part("namespace"), part("name"));
            ApplyError::Config {
                object: format!("{namespace}/{name}; {}", full_kind(api_version, kind)),
                errors,
            }
        })
    }

    fn apply_once(
        &self,
        mut managed: Managed,
        live: &Value,
        config: &Value,
        force: Force,
    ) -> Result<(Value, Managed), Conflicts> {
        self.reconcile(&mut managed);
        let Some(typed) = self.home() else {
            return Ok((live.clone(), managed));
        };
        let mut entry = self.entry(self.manager, Operation::Apply);
        entry.fields = to_field_set(typed, config);
        self.reset.filter(&mut entry.fields);
        entry.time = None;
        let last = managed.position(&entry).map(|at| managed.0.remove(at));
        if let Some(last) = &last {
            entry.time.clone_from(&last.time);
        }
        managed.0.push(entry);
        let own = managed.0.len() - 1;
        let merged = merge(typed, live, config);
        let new = match &last {
            Some(last) if !last.fields.is_empty() => self.prune(merged, &managed, last),
            _ => merged,
        };
        self.withdraw(&mut managed, live, &new, Claim::Apply { own, force })?;
        let changed = !equal(live, &new);
        if let Some(entry) = managed.0.last_mut() {
            entry.fields.subtract(&UNMANAGED);
            if changed {
                entry.time = Some(self.now.to_owned());
            }
        }
        managed.0.retain(|entry| !entry.fields.is_empty());
        let mut new = new;
        remove_managed(&mut new);
        Ok((new, managed))
    }

    /// Takes out what the manager applied last time and nobody wants now.
    fn prune(&self, merged: Value, managed: &Managed, last: &Entry) -> Value {
        let version = last.api_version.as_str();
        let (Some(typed), Some(at_last)) = (
            self.versions.typed(version),
            self.at(&merged, self.api_version, version),
        ) else {
            return merged;
        };
        let wanted = with_parents(Some(typed), &last.fields);
        let pruned = remove_items(typed, &at_last, &wanted);
        let pruned = self.add_back_owned(&at_last, pruned, version, managed);
        let Some(pruned) = pruned else {
            return merged;
        };
        let gone = fields_lost(typed, &at_last, &pruned).intersection(&wanted);
        let pruned = remove_items(typed, &at_last, &gone);
        self.at(&pruned, version, self.api_version)
            .unwrap_or(merged)
    }

    /// Adds back what others manage, or what the manager still applies; fields are looked for at each manager's
    /// version, that of the pruned object first, because conversion may need them.
    fn add_back_owned(
        &self,
        merged: &Value,
        mut pruned: Value,
        version: &str,
        managed: &Managed,
    ) -> Option<Value> {
        let mut versions = vec![version];
        for entry in &managed.0 {
            if !versions.contains(&entry.api_version.as_str()) {
                versions.push(&entry.api_version);
            }
        }
        let mut present = version.to_owned();
        for version in versions {
            let Some(typed) = self.versions.typed(version) else {
                continue;
            };
            let owned = managed
                .0
                .iter()
                .filter(|entry| entry.api_version == version)
                .fold(Set::new(), |all, entry| all.union(&entry.fields));
            let merged = self.at(merged, &last_version(merged), version)?;
            let here = self.at(&pruned, &present, version)?;
            let kept = with_parents(Some(typed), &owned);
            let gone = fields_lost(typed, &merged, &here).difference(&kept);
            pruned = remove_items(typed, &merged, &gone);
            version.clone_into(&mut present);
        }
        self.at(&pruned, &present, version)
    }

    /// An object at a version.
    fn at(&self, object: &Value, from: &str, to: &str) -> Option<Value> {
        if from == to {
            Some(object.clone())
        } else {
            self.versions.convert(object, to)
        }
    }
}

/// The fields that an object has and another has not.
fn fields_lost(typed: Typed<'_>, object: &Value, other: &Value) -> Set {
    let fields = |value| with_parents(Some(typed), &to_field_set(typed, value));
    fields(object).difference(&fields(other))
}

fn last_version(object: &Value) -> String {
    let version = object.get("apiVersion").and_then(Value::as_str);
    version.unwrap_or("").to_owned()
}

/// `apps/v1, Kind=Deployment`; the core group is empty.
fn full_kind(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}
