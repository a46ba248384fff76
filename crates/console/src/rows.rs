//! The objects of one kind as rows: what tables show, and who belongs to whom. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use kubewright_cache::{Key, Object, Owner};
use serde::Serialize;
use serde_json::Value;

use crate::health::{self, Verdict};
use crate::kinds::Kind;
use crate::table::{CELLS, Column};

/// Longest text of a label or a cell in a row; the object's own page has all of it.
const LONGEST: usize = 512;

/// One object, as tables, trees and the overview need it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) object: Arc<Object>,
    pub(crate) uid: String,
    pub(crate) verdict: Verdict,
    pub(crate) created: String,
    pub(crate) owners: Vec<Owner>,
    /// The uid of the object that an event is about.
    pub(crate) about: Option<String>,
    /// The row as it is sent to pages.
    pub(crate) json: Bytes,
}

/// All objects of one kind. `belongings` has exactly the rows that have an owner or are about an object.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: BTreeMap<Key, Arc<Row>>,
    belongings: HashMap<String, BTreeSet<Key>>,
}

#[derive(Serialize)]
struct Shown<'a> {
    key: &'a str,
    ns: Option<&'a str>,
    name: &'a str,
    uid: &'a str,
    cells: Vec<Value>,
    created: &'a str,
    labels: BTreeMap<String, String>,
    health: health::Health,
    why: &'a str,
}

impl Row {
    /// Makes the row of an object of a kind.
    pub(crate) fn new(kind: &Kind, object: Arc<Object>) -> Self {
        let value: Value = serde_json::from_slice(object.json()).unwrap_or_default();
        let verdict = health::of(&kind.group, &kind.kind, &value);
        let created = value["metadata"]["creationTimestamp"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let about = about(kind, &value);
        let (key, uid) = (object.key().clone(), object.uid().into_owned());
        let cells = match value.get(CELLS).and_then(Value::as_array) {
            Some(cells) => cells.iter().map(shorten).collect(),
            None => vec![Value::from(key.name()), Value::from(created.as_str())],
        };
        let labels = object
            .labels()
            .into_iter()
            .map(|(name, value)| (name, clip(&value)));
        let shown = Shown {
            key: key.as_str(),
            ns: key.namespace(),
            name: key.name(),
            uid: &uid,
            cells,
            created: &created,
            labels: labels.collect(),
            health: verdict.health,
            why: &verdict.sentence,
        };
        let json = serde_json::to_vec(&shown).unwrap_or_default().into();
        Self {
            owners: object.owners(),
            uid,
            verdict,
            created,
            about,
            json,
            object,
        }
    }

    pub(crate) fn key(&self) -> &Key {
        self.object.key()
    }

    /// The object, without its cells and with the names of its kind.
    pub(crate) fn value(&self, kind: &Kind) -> Value {
        let mut value: Value = serde_json::from_slice(self.object.json()).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.remove(CELLS);
            let api_version = kind
                .id
                .strip_suffix(&format!("/{}", kind.plural))
                .unwrap_or_default();
            fields
                .entry("apiVersion")
                .or_insert_with(|| api_version.into());
            fields
                .entry("kind")
                .or_insert_with(|| kind.kind.as_str().into());
        }
        value
    }

    fn belongs_to(&self) -> impl Iterator<Item = &str> {
        self.owners
            .iter()
            .map(|owner| owner.uid.as_str())
            .chain(self.about.as_deref())
    }
}

impl Rows {
    pub(crate) fn put(&mut self, row: Arc<Row>) {
        self.remove(row.key());
        for uid in row.belongs_to() {
            self.belongings
                .entry(uid.to_owned())
                .or_default()
                .insert(row.key().clone());
        }
        self.rows.insert(row.key().clone(), row);
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<Row>> {
        let row = self.rows.remove(key)?;
        for uid in row.belongs_to() {
            if let Some(keys) = self.belongings.get_mut(uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.belongings.remove(uid);
                }
            }
        }
        Some(row)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Row>> {
        self.rows.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.rows.values()
    }

    /// The rows that have this object as an owner or are about it.
    pub(crate) fn belonging_to(&self, uid: &str) -> impl Iterator<Item = &Arc<Row>> {
        let keys = self.belongings.get(uid).into_iter().flatten();
        keys.filter_map(|key| self.rows.get(key))
    }
}

/// The columns of a kind whose server prints none.
pub(crate) fn plain_columns() -> Vec<Column> {
    [("Name", "string"), ("Age", "date")]
        .map(|(name, of)| Column {
            name: name.to_owned(),
            of: of.to_owned(),
            priority: 0,
            description: String::new(),
        })
        .into()
}

fn about(kind: &Kind, value: &Value) -> Option<String> {
    if kind.plural != "events" {
        return None;
    }
    let reference = value
        .get("involvedObject")
        .or_else(|| value.get("regarding"))?;
    reference["uid"].as_str().map(str::to_owned)
}

fn shorten(cell: &Value) -> Value {
    match cell {
        Value::String(text) => clip(text).into(),
        Value::Array(_) | Value::Object(_) => clip(&cell.to_string()).into(),
        plain => plain.clone(),
    }
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kubewright_cache::Shape;
    use serde_json::json;

    use super::*;

    fn kind(plural: &str) -> Kind {
        Kind {
            id: format!("v1/{plural}"),
            group: String::new(),
            version: "v1".to_owned(),
            plural: plural.to_owned(),
            kind: "Thing".to_owned(),
            namespaced: true,
            short_names: Vec::new(),
            verbs: Vec::new(),
            subresources: Vec::new(),
        }
    }

    fn row(name: &str, owner: Option<&str>) -> Arc<Row> {
        let owners: Vec<Value> = owner
            .map(|uid| json!({"kind": "Thing", "name": "o", "uid": uid, "apiVersion": "v1"}))
            .into_iter()
            .collect();
        let object = json!({CELLS: [name, "x".repeat(5_000)],
            "metadata": {"name": name, "namespace": "n", "uid": name, "ownerReferences": owners}});
        let object = Object::parse(object.to_string().as_bytes(), &Shape::default())
            .expect("it is an object");
        Arc::new(Row::new(&kind("things"), object))
    }

    #[test]
    fn children_are_found_by_owner_and_forgotten_with_the_reference() {
        let mut rows = Rows::default();
        rows.put(row("a", Some("o1")));
        rows.put(row("b", Some("o1")));
        let names = |rows: &Rows, uid: &str| -> Vec<String> {
            rows.belonging_to(uid)
                .map(|row| row.key().name().to_owned())
                .collect()
        };
        assert_eq!(names(&rows, "o1"), ["a", "b"]);
        rows.put(row("a", Some("o2")));
        assert_eq!(names(&rows, "o1"), ["b"]);
        rows.remove(&Key::new("n", "b"));
        assert!(!rows.belongings.contains_key("o1"));
        assert_eq!(rows.iter().count(), 1);
    }

    #[test]
    fn long_cells_are_cut_and_the_object_has_no_cells() {
        let row = row("a", None);
        assert!(row.json.len() < 1_500, "{} bytes", row.json.len());
        let value = row.value(&kind("things"));
        assert!(value.get(CELLS).is_none());
        assert_eq!(
            (&value["apiVersion"], &value["kind"]),
            (&json!("v1"), &json!("Thing"))
        );
    }
}
