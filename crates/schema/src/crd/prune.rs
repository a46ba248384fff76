//! Pruning: drops what the schema does not specify, and tells what was dropped.
//!
//! `metadata`, at the root and in embedded resources, is pruned by the built-in `ObjectMeta`.

use serde_json::{Map, Value};

use super::compile::CompiledVersion;
use super::path;
use super::step::{self, Step};
use crate::types::{Shape, TypeId};

/// Drops unspecified fields and returns their paths: those of the object's own `metadata`, then those of the body,
/// then those of the metadata of embedded resources, each group sorted.
pub fn prune(version: &CompiledVersion, object: &mut Value) -> Vec<String> {
    let mut pruner = Pruner {
        version,
        unknown: Vec::new(),
        embedded: Vec::new(),
    };
    let mut paths = Vec::new();
    let metadata = root_metadata(version);
    if let (Some(ty), Some(metadata)) = (metadata, object.get_mut("metadata")) {
        prune_builtin(version, metadata, ty, "metadata", &mut paths);
    }
    pruner.walk(object, version.root, &mut Place::default());
    pruner.unknown.sort();
    pruner.embedded.sort();
    paths.append(&mut pruner.unknown);
    paths.append(&mut pruner.embedded);
    paths
}

/// Prunes the default value of a type inside the schema.
pub(super) fn prune_default(version: &CompiledVersion, value: &mut Value, ty: TypeId) {
    let mut pruner = Pruner {
        version,
        unknown: Vec::new(),
        embedded: Vec::new(),
    };
    pruner.walk(value, ty, &mut Place::default());
}

fn root_metadata(version: &CompiledVersion) -> Option<TypeId> {
    match &version.table.get(version.root).shape {
        Shape::Struct(root) => root.field("metadata").map(|f| f.ty),
        _ => None,
    }
}

struct Pruner<'a> {
    version: &'a CompiledVersion,
    unknown: Vec<String>,
    embedded: Vec<String>,
}

/// Where the walk is. Warnings write map keys as `.key`, the metadata of embedded resources as `[key]`.
#[derive(Default)]
struct Place {
    dotted: String,
    bracketed: String,
}

impl Place {
    fn property(&self, name: &str, of_map: bool) -> Self {
        let bracketed = if of_map {
            path::key(&self.bracketed, name)
        } else {
            path::child(&self.bracketed, name)
        };
        Self {
            dotted: path::child(&self.dotted, name),
            bracketed,
        }
    }

    fn index(&self, index: usize) -> Self {
        Self {
            dotted: path::index(&self.dotted, index),
            bracketed: path::index(&self.bracketed, index),
        }
    }
}

impl Pruner<'_> {
    /// Recursion follows the schema, whose depth is limited; below it [`Pruner::clear`] takes over.
    fn walk(&mut self, value: &mut Value, ty: TypeId, place: &mut Place) {
        match value {
            Value::Object(map) => self.walk_object(map, ty, place),
            Value::Array(items) => {
                let step = step::item(self.version.table.get(ty));
                for (i, item) in items.iter_mut().enumerate() {
                    self.follow(step, item, || place.index(i));
                }
            }
            _ => {}
        }
    }

    fn walk_object(&mut self, map: &mut Map<String, Value>, ty: TypeId, place: &Place) {
        let table = &self.version.table;
        let ty = table.get(ty);
        let embedded = matches!(&ty.shape, Shape::Struct(s) if s.embedded_resource);
        let of_map = matches!(ty.shape, Shape::Map { .. });
        let mut drop = Vec::new();
        for (name, value) in map.iter_mut() {
            if embedded && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                if name == "metadata" {
                    self.embedded_metadata(value, place);
                }
                continue;
            }
            match step::property(ty, name) {
                Step::Unknown => drop.push(name.clone()),
                step => self.follow(step, value, || place.property(name, of_map)),
            }
        }
        for name in drop {
            self.unknown.push(path::child(&place.dotted, &name));
            map.remove(&name);
        }
    }

    fn follow(&mut self, step: Step, value: &mut Value, place: impl FnOnce() -> Place) {
        if !value.is_object() && !value.is_array() {
            return;
        }
        match step {
            Step::Known(ty) => self.walk(value, ty, &mut place()),
            Step::Loose => self.clear(value, place().dotted),
            Step::Kept | Step::Unknown => {}
        }
    }

    /// Empties every object in a value that nothing is specified for. Its arrays may be deep, hence the stack.
    fn clear(&mut self, value: &mut Value, place: String) {
        let mut stack = vec![(value, place)];
        while let Some((value, place)) = stack.pop() {
            match value {
                Value::Object(map) => {
                    let names = map.keys().map(|name| path::child(&place, name));
                    self.unknown.extend(names);
                    map.clear();
                }
                Value::Array(items) => {
                    let items = items.iter_mut().enumerate();
                    stack.extend(items.map(|(i, item)| (item, path::index(&place, i))));
                }
                _ => {}
            }
        }
    }

    /// The root's own metadata is done before the walk; its place is the empty path.
    fn embedded_metadata(&mut self, value: &mut Value, place: &Place) {
        let Some(ty) = root_metadata(self.version).filter(|_| !place.bracketed.is_empty()) else {
            return;
        };
        let at = path::child(&place.bracketed, "metadata");
        prune_builtin(self.version, value, ty, &at, &mut self.embedded);
    }
}

/// Drops fields that a built-in struct does not have. Values of another shape are left to the decoder to refuse.
fn prune_builtin(
    version: &CompiledVersion,
    value: &mut Value,
    ty: TypeId,
    place: &str,
    unknown: &mut Vec<String>,
) {
    let mut stack = vec![(value, ty, place.to_owned())];
    while let Some((value, ty, place)) = stack.pop() {
        match (&version.table.get(ty).shape, value) {
            (Shape::Struct(object), Value::Object(map)) => {
                let names: Vec<String> = map.keys().cloned().collect();
                for name in names.iter().filter(|name| object.field(name).is_none()) {
                    unknown.push(path::child(&place, name));
                    map.remove(name);
                }
                for (name, value) in map.iter_mut() {
                    if let Some(field) = object.field(name) {
                        stack.push((value, field.ty, path::child(&place, name)));
                    }
                }
            }
            (Shape::List(list), Value::Array(items)) => {
                let items = items.iter_mut().enumerate();
                stack.extend(items.map(|(i, v)| (v, list.item, path::index(&place, i))));
            }
            _ => {}
        }
    }
    unknown.sort();
}
