//! What differs between two worlds: two moments of a cluster, or a snapshot and the present. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::kinds::Kind;
use crate::rows::Row;
use crate::table::CELLS;
use crate::world::World;

/// Objects that are named; the rest is counted.
const NAMED: usize = 500;
/// Fields that are named for one object.
const FIELDS: usize = 12;

/// The objects that differ.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Differences {
    pub(crate) added: usize,
    pub(crate) deleted: usize,
    pub(crate) changed: usize,
    pub(crate) objects: Vec<Different>,
}

/// One object that differs.
#[derive(Debug, Serialize)]
pub(crate) struct Different {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) ns: Option<String>,
    pub(crate) name: String,
    pub(crate) change: &'static str,
    /// What differs, as `spec.replicas`.
    pub(crate) fields: Vec<String>,
}

type Objects = BTreeMap<(String, String), (Kind, Arc<Row>)>;

/// Compares two worlds. Kinds that say much and mean little are left out.
pub(crate) fn compare(before: &dyn World, after: &dyn World) -> Differences {
    let (before, after) = (objects(before), objects(after));
    let mut found = Differences::default();
    for (place, (kind, row)) in &after {
        match before.get(place) {
            None => {
                found.added += 1;
                found.name(kind, row, ("added", Vec::new()));
            }
            Some((_, old)) if old.object.json() == row.object.json() => {}
            Some((_, old)) => {
                let fields = differing(&old.value(kind), &row.value(kind));
                if !fields.is_empty() {
                    found.changed += 1;
                    found.name(kind, row, ("changed", fields));
                }
            }
        }
    }
    for (_, (kind, row)) in before
        .iter()
        .filter(|(place, _)| !after.contains_key(*place))
    {
        found.deleted += 1;
        found.name(kind, row, ("deleted", Vec::new()));
    }
    found
}

impl Differences {
    fn name(&mut self, kind: &Kind, row: &Row, (change, fields): (&'static str, Vec<String>)) {
        if self.objects.len() < NAMED {
            self.objects.push(Different {
                id: kind.id.clone(),
                kind: kind.kind.clone(),
                ns: row.key().namespace().map(str::to_owned),
                name: row.key().name().to_owned(),
                change,
                fields,
            });
        }
    }
}

fn objects(world: &dyn World) -> Objects {
    let mut found = Objects::new();
    world.each(&mut |collection| {
        if !collection.kind.is_noise() {
            for row in collection.rows.iter() {
                let place = (collection.kind.id.clone(), row.key().as_str().to_owned());
                found.insert(place, (collection.kind.clone(), row.clone()));
            }
        }
    });
    found
}

/// The paths at which two objects differ, but for what changes with every write.
fn differing(before: &Value, after: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    walk(before, after, String::new(), &mut paths);
    paths
}

fn walk(before: &Value, after: &Value, path: String, paths: &mut Vec<String>) {
    const ALWAYS: [&str; 3] = ["metadata.resourceVersion", "metadata.managedFields", CELLS];
    if before == after || paths.len() == FIELDS || ALWAYS.contains(&path.as_str()) {
        return;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        paths.push(path);
        return;
    };
    let added = new.keys().filter(|name| !old.contains_key(*name));
    for name in old.keys().chain(added) {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let at = |map: &serde_json::Map<String, Value>| map.get(name).cloned().unwrap_or_default();
        walk(&at(old), &at(new), path, paths);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_differ_are_named_but_not_what_every_write_changes() {
        let before = json!({"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}, "spec": {"replicas": 1, "x": [1]}});
        let after = json!({"metadata": {"resourceVersion": "2", "labels": {"a": "c"}}, "spec": {"x": [2], "new": true}});
        let found = differing(&before, &after);
        assert_eq!(
            found,
            ["metadata.labels.a", "spec.replicas", "spec.x", "spec.new"]
        );
        assert!(differing(&before, &before).is_empty());
    }
}
