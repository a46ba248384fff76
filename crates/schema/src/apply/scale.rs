//! `managedFields` of objects whose number of replicas is written through `scale`.
//!
//! Such a write manages one field of the object, whatever the object calls it, in the name of the subresource.

use serde_json::Value;

use super::conflict::Conflicts;
use super::entry::{Entry, Managed, Operation};
use super::manager::Force;
use super::path::{Path, PathElement};
use super::set::Set;

/// A write through `scale`.
#[derive(Debug, Clone, Copy)]
pub struct ScaleManager<'a> {
    /// The version of the object, not of the scale.
    pub api_version: &'a str,
    /// The name of the field manager that writes.
    pub manager: &'a str,
    /// By what kind of request.
    pub operation: Operation,
    /// The steps to the field of the object that says how many replicas there are to be.
    pub replicas: &'a [&'a str],
}

impl ScaleManager<'_> {
    /// Sets the `managedFields` of an object after a write through `scale`. When the number has changed, everybody
    /// else loses it.
    pub fn write(&self, live: &Value, new: &mut Value) {
        let path = self.path();
        let changed = number(live, self.replicas) != number(new, self.replicas);
        let mut managed = Managed::of(live).unwrap_or_default();
        if managed.is_empty() {
            return;
        }
        let field: Set = [path].into_iter().collect();
        if changed {
            for entry in &mut managed.0 {
                entry.fields = entry.fields.difference(&field);
            }
        }
        if changed || self.operation == Operation::Apply {
            let mut own = self.entry();
            own.fields = field;
            if let Some(at) = managed.position(&own) {
                managed.0.remove(at);
            }
            managed.0.push(own);
        }
        managed.0.retain(|entry| !entry.fields.is_empty());
        managed.write(new);
    }

    fn path(&self) -> Path {
        let steps = self.replicas.iter();
        steps.map(|name| PathElement::field(name)).collect()
    }

    /// Entries of scale have no time.
    fn entry(&self) -> Entry {
        Entry {
            manager: self.manager.to_owned(),
            operation: self.operation,
            api_version: self.api_version.to_owned(),
            subresource: "scale".to_owned(),
            time: None,
            fields: Set::new(),
        }
    }
}

/// Who else manages the number of replicas, when an apply through `scale` would change it.
///
/// # Errors
/// When somebody does and `force` is not given. The field is named as the scale has it.
pub fn scale_conflicts(
    scale: &ScaleManager<'_>,
    live: &Value,
    wanted: i64,
    force: Force,
) -> Result<(), Conflicts> {
    if force == Force::Yes || number(live, scale.replicas) == Some(wanted) {
        return Ok(());
    }
    let (own, path) = (scale.entry(), scale.path());
    let shown: Set = [vec![
        PathElement::field("spec"),
        PathElement::field("replicas"),
    ]]
    .into_iter()
    .collect();
    let mut conflicts = Conflicts::default();
    for mut entry in Managed::of(live).unwrap_or_default().0 {
        if !entry.is_same_manager(&own) && entry.fields.contains(&path) {
            "autoscaling/v1".clone_into(&mut entry.api_version);
            conflicts.add(&entry, &shown);
        }
    }
    if conflicts.0.is_empty() {
        Ok(())
    } else {
        Err(conflicts)
    }
}

fn number(object: &Value, path: &[&str]) -> Option<i64> {
    let found = path.iter().try_fold(object, |value, name| value.get(name));
    found.and_then(Value::as_i64)
}
