//! The definitions of a document: what its operations refer to, and what those definitions refer to in turn.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::descriptions::Descriptions;
use super::operation::{Answer, GroupVersionKind, Paths};
use super::schema::Definition;
use super::{Described, Dialect, Source, custom};
use crate::types::{Shape, Table, TypeId};

/// Every definition of a document by name; serializes as the map of them.
pub(super) struct Definitions<'a> {
    table: &'a Table,
    dialect: Dialect,
    /// Group and version of the document; absent when it is about all of them.
    about: Option<(&'a str, &'a str)>,
    entries: BTreeMap<Cow<'a, str>, Entry>,
}

enum Entry {
    Table(TypeId),
    Custom(Value),
    /// Referred to, but unknown: any object.
    Unknown,
}

impl<'a> Definitions<'a> {
    pub(super) fn new(
        table: &'a Table,
        dialect: Dialect,
        about: Option<(&'a str, &'a str)>,
        resources: &[Described<'_>],
        paths: &Paths<'a>,
    ) -> Self {
        let mut definitions = Self {
            table,
            dialect,
            about,
            entries: BTreeMap::new(),
        };
        for described in resources {
            if let Source::Custom(schema) = described.source {
                definitions.add_custom(described, schema);
            }
        }
        for operation in paths.values().flat_map(|path| &path.operations) {
            if let Answer::Definition(name) = &operation.answer {
                definitions.require(name.clone());
            }
            if let Some(body) = &operation.body {
                definitions.require(body.definition.clone());
            }
        }
        definitions
    }

    fn add_custom(&mut self, described: &Described<'_>, schema: &Value) {
        let resource = described.resource;
        for (name, schema) in [
            custom::object(resource, schema, self.dialect),
            custom::list(resource, self.dialect),
        ] {
            self.entries.insert(name.into(), Entry::Custom(schema));
        }
        for name in [custom::OBJECT_META, custom::LIST_META] {
            self.require(Cow::Borrowed(name));
        }
    }

    /// Adds a definition and all it refers to.
    fn require(&mut self, name: Cow<'a, str>) {
        if self.entries.contains_key(&name) {
            return;
        }
        let Some(id) = self.table.named(&name) else {
            self.entries.insert(name, Entry::Unknown);
            return;
        };
        self.entries.insert(name, Entry::Table(id));
        let mut pending = vec![id];
        while let Some(id) = pending.pop() {
            for name in references(self.table, id) {
                let Some(id) = self.table.named(name) else {
                    continue;
                };
                let missing = !self.entries.contains_key(name);
                if missing {
                    self.entries.insert(Cow::Borrowed(name), Entry::Table(id));
                    pending.push(id);
                }
            }
        }
    }
}

/// The named types that a type refers to, directly or through lists and maps without a name.
fn references(table: &Table, id: TypeId) -> Vec<&str> {
    let mut names = Vec::new();
    let mut pending = children(&table.get(id).shape);
    while let Some(id) = pending.pop() {
        let ty = table.get(id);
        match &ty.name {
            Some(name) => names.push(&**name),
            None => pending.extend(children(&ty.shape)),
        }
    }
    names
}

fn children(shape: &Shape) -> Vec<TypeId> {
    match shape {
        Shape::Struct(s) => s.fields().iter().map(|field| field.ty).collect(),
        Shape::Map { value, .. } => vec![*value],
        Shape::List(list) => vec![list.item],
        Shape::Scalar(_) | Shape::Any => Vec::new(),
    }
}

impl Definitions<'_> {
    /// The kinds of each type. `DeleteOptions` is a kind of every group; a document names only those of its own
    /// group and of the core group.
    fn kinds(&self) -> HashMap<TypeId, Vec<GroupVersionKind<'_>>> {
        let mut kinds: HashMap<TypeId, Vec<GroupVersionKind<'_>>> = HashMap::new();
        for kind in self.table.kinds() {
            kinds.entry(kind.ty).or_default().push(GroupVersionKind {
                group: &kind.group,
                version: &kind.version,
                kind: &kind.kind,
            });
        }
        if let Some(about) = self.about {
            for many in kinds.values_mut().filter(|kinds| kinds.len() > 1) {
                many.retain(|k| [about, ("", "v1")].contains(&(k.group, k.version)));
            }
        }
        kinds
    }
}

impl Serialize for Definitions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kinds = self.kinds();
        // Readers of version 2 merge and validate; those who explain read version 3.
        let descriptions = (self.dialect == Dialect::V3).then(Descriptions::unpack);
        let mut map = serializer.serialize_map(Some(self.entries.len()))?;
        for (name, entry) in &self.entries {
            match entry {
                Entry::Table(id) => {
                    let definition = Definition {
                        table: self.table,
                        dialect: self.dialect,
                        id: *id,
                        kinds: kinds.get(id).map_or(&[], Vec::as_slice),
                        about: descriptions.as_ref().and_then(|d| d.of(name)),
                    };
                    map.serialize_entry(name, &definition)?;
                }
                Entry::Custom(schema) => map.serialize_entry(name, schema)?,
                Entry::Unknown => map.serialize_entry(name, &custom::any_object())?,
            }
        }
        map.end()
    }
}
