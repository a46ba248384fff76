//! The entries of `metadata.managedFields`: who manages which fields, since when, and by what kind of request.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet, hash_map};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::fields::{FieldsError, from_fields, to_fields};
use super::set::Set;

/// Most entries of updates; the oldest are put together beyond it.
const MAX_UPDATERS: usize = 10;
/// The manager of entries that were put together.
const ANCIENT: &str = "ancient-changes";

/// The kind of request by which a manager got its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// The manager wrote by server-side apply.
    Apply,
    /// The manager wrote by any other request: a create, an update or another kind of patch.
    Update,
}

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// One manager and its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name of the field manager.
    pub manager: String,
    /// By what kind of request.
    pub operation: Operation,
    /// The version that the fields belong to.
    pub api_version: String,
    /// The subresource that was written to; empty for the object itself.
    pub subresource: String,
    /// Since when, as in JSON.
    pub time: Option<String>,
    /// The fields that the manager owns.
    pub fields: Set,
}

/// All entries of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Managed(pub Vec<Entry>);

/// Why `managedFields` cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagedError {
    /// Not a list of objects.
    #[error("managedFields is a list of objects")]
    NotEntries,
    /// An entry without a known operation.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// An entry without a version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// An entry without a known kind of fields.
    #[error("{}", fields_type(.0, *.1))]
    FieldsType(String, usize),
    /// An entry whose fields make no sense.
    #[error("error decoding set: {0}")]
    Fields(#[source] FieldsError),
}

fn fields_type(given: &str, entry: usize) -> String {
    match given {
        "" => format!("missing fieldsType in managed fields entry {entry}"),
        _ => format!("invalid fieldsType {given:?} in managed fields entry {entry}"),
    }
}

impl Entry {
    /// Whether two entries are of the same manager. One that applies is the same at every version.
    pub(super) fn is_same_manager(&self, other: &Entry) -> bool {
        self.operation == other.operation
            && self.manager == other.manager
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// What entries of the same manager have in common, and no others.
    fn identity(&self) -> (Operation, String, String, Option<String>) {
        let version = (self.operation == Operation::Update).then(|| self.api_version.clone());
        let (manager, subresource) = (self.manager.clone(), self.subresource.clone());
        (self.operation, manager, subresource, version)
    }

    fn seconds(&self) -> i64 {
        let time = self.time.as_ref().and_then(|t| t.parse::<Timestamp>().ok());
        time.map_or(0, |time| time.as_second())
    }

    fn order(&self, other: &Entry) -> Ordering {
        (self.operation.cmp(&other.operation))
            .then_with(|| self.seconds().cmp(&other.seconds()))
            .then_with(|| self.manager.cmp(&other.manager))
            .then_with(|| self.api_version.cmp(&other.api_version))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }

    fn read(value: &Value, index: usize) -> Result<Self, ManagedError> {
        let entry = value.as_object().ok_or(ManagedError::NotEntries)?;
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or("");
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(ManagedError::Operation),
        };
        if text("apiVersion").is_empty() {
            return Err(ManagedError::ApiVersion);
        }
        let fields_type = text("fieldsType");
        if fields_type != "FieldsV1" {
            return Err(ManagedError::FieldsType(fields_type.to_owned(), index));
        }
        let fields = entry.get("fieldsV1").map(from_fields).transpose();
        Ok(Entry {
            manager: text("manager").to_owned(),
            operation,
            api_version: text("apiVersion").to_owned(),
            subresource: text("subresource").to_owned(),
            time: Some(text("time").to_owned()).filter(|time| !time.is_empty()),
            fields: fields.map_err(ManagedError::Fields)?.unwrap_or_default(),
        })
    }

    fn write(self) -> Value {
        let mut entry = Map::new();
        let mut put = |name: &str, value: Value| drop(entry.insert(name.to_owned(), value));
        put("manager", self.manager.into());
        put("operation", self.operation.text().into());
        put("apiVersion", self.api_version.into());
        if let Some(time) = self.time {
            put("time", time.into());
        }
        put("fieldsType", "FieldsV1".into());
        put("fieldsV1", to_fields(&self.fields));
        if !self.subresource.is_empty() {
            put("subresource", self.subresource.into());
        }
        Value::Object(entry)
    }
}

impl Managed {
    /// Reads the `managedFields` of an object; if it has none, the result is empty.
    ///
    /// # Errors
    /// When an entry makes no sense.
    pub fn of(object: &Value) -> Result<Self, ManagedError> {
        let list = object
            .get("metadata")
            .and_then(|metadata| metadata.get("managedFields"));
        let list = match list {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(ManagedError::NotEntries),
        };
        // There may be any number, as on a real server; a request can name some ten thousand. Each is looked up by
        // its identity, so that reading them takes no longer than they are long.
        let mut managed = Managed(Vec::with_capacity(list.len() + 1));
        let mut positions = HashMap::with_capacity(list.len());
        for (index, entry) in list.iter().enumerate() {
            let entry = Entry::read(entry, index)?;
            match positions.entry(entry.identity()) {
                hash_map::Entry::Occupied(at) => managed.0[*at.get()] = entry,
                hash_map::Entry::Vacant(free) => {
                    free.insert(managed.0.len());
                    managed.0.push(entry);
                }
            }
        }
        Ok(managed)
    }

    /// Whether nobody manages anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn position(&self, like: &Entry) -> Option<usize> {
        self.0.iter().position(|entry| entry.is_same_manager(like))
    }

    /// Sets the `managedFields` of an object, sorted; no entries leave none.
    pub fn write(mut self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else {
            return;
        };
        if self.0.is_empty() {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            return;
        }
        self.0.sort_by(Entry::order);
        let list = self.0.into_iter().map(Entry::write).collect();
        let metadata = object
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("managedFields".to_owned(), Value::Array(list));
        }
    }

    /// Puts the oldest entries of updates together until there are few enough. Entries of one version alone can be.
    /// Upstream: `capManagersManager` of structured-merge-diff's `fieldmanager`.
    pub(super) fn cap(&mut self) {
        let is_update = |entry: &&Entry| entry.operation == Operation::Update;
        let mut updaters = self.0.iter().filter(is_update).count();
        if updaters <= MAX_UPDATERS {
            return;
        }
        self.0.sort_by(Entry::order);
        let mut entries: Vec<Option<Entry>> = self.0.drain(..).map(Some).collect();
        let mut oldest: HashSet<String> = HashSet::new();
        for at in 0..entries.len() {
            if updaters <= MAX_UPDATERS {
                break;
            }
            let is_update = |entry: &mut Entry| entry.operation == Operation::Update;
            let Some(entry) = entries[at].take_if(is_update) else {
                continue;
            };
            if oldest.insert(entry.api_version.clone()) {
                entries[at] = Some(entry);
            } else {
                merge_ancient(&mut entries, entry);
                updaters -= 1;
            }
        }
        self.0.extend(entries.into_iter().flatten());
    }
}

/// Moves the fields of an entry to the entry of old changes, which the oldest entry of that version becomes.
fn merge_ancient(entries: &mut [Option<Entry>], merged: Entry) {
    let is_update = |entry: &Entry| {
        entry.operation == Operation::Update && entry.api_version == merged.api_version
    };
    let is_ancient = |entry: &Entry| {
        is_update(entry) && entry.manager == ANCIENT && entry.subresource.is_empty()
    };
    let find = |like: &dyn Fn(&Entry) -> bool| {
        let mut there = entries.iter();
        there.position(|entry| entry.as_ref().is_some_and(like))
    };
    let found = find(&is_ancient).or_else(|| find(&is_update));
    let Some(ancient) = found.and_then(|at| entries[at].as_mut()) else {
        unreachable!("the oldest entry of the version is there");
    };
    ancient.manager = ANCIENT.to_owned();
    ancient.subresource = String::new();
    ancient.fields.absorb(merged.fields);
    ancient.time = merged.time;
}
