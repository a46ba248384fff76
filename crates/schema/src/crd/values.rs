//! Checks values against the rules of their types.

mod branches;
mod scalars;

use serde_json::{Map, Value};

use self::scalars::{check_scalar, check_type, enum_error};

use super::compile::CompiledVersion;
use super::failure::{self, Outcome, invalid};
use super::ratchet;
use super::{path, step};
use crate::field::FieldError;
use crate::rules::{Additional, JsonType, Rules};
use crate::types::{Scalar, Shape, Type, TypeId};

/// A value and where it is.
pub(super) struct Place<'a> {
    path: String,
    /// What specifies the value, and how it correlates with the old one. Branches of combinators may speak of values
    /// that nothing specifies.
    ty: Option<TypeId>,
    value: &'a Value,
    /// The old value that this one correlates with.
    old: Option<&'a Value>,
}

impl<'a> Place<'a> {
    pub(super) fn new(path: &str, ty: TypeId, value: &'a Value, old: Option<&'a Value>) -> Self {
        Self {
            path: path.to_owned(),
            ty: Some(ty),
            value,
            old,
        }
    }
}

/// What to check at a place: a type with all below it, or only the rules of one branch of a combinator.
#[derive(Clone, Copy)]
enum Node<'a> {
    Type(&'a Type),
    Branch(&'a Rules),
}

impl<'a> Node<'a> {
    fn rules(self) -> Option<&'a Rules> {
        match self {
            Node::Type(ty) => ty.rules.as_deref(),
            Node::Branch(rules) => Some(rules),
        }
    }

    fn nullable(self) -> bool {
        matches!(self, Node::Type(ty) if ty.nullable)
    }

    fn types(self) -> &'a [JsonType] {
        if let Some(types) = self.rules().and_then(|rules| rules.types.as_ref()) {
            return types;
        }
        match self {
            Node::Branch(_) => &[],
            Node::Type(ty) => match &ty.shape {
                Shape::Struct(_) | Shape::Map { .. } => &[JsonType::Object],
                Shape::List(_) => &[JsonType::Array],
                Shape::Any => &[],
                Shape::Scalar(scalar) => scalar_types(*scalar),
            },
        }
    }
}

fn scalar_types(scalar: Scalar) -> &'static [JsonType] {
    match scalar {
        Scalar::Bool => &[JsonType::Boolean],
        Scalar::Int32 | Scalar::Int64 => &[JsonType::Integer],
        Scalar::Double => &[JsonType::Number],
        Scalar::IntOrString => &[JsonType::Integer, JsonType::String],
        _ => &[JsonType::String],
    }
}

/// Checks values of one version. Recursion follows the schema, whose depth is limited.
pub(super) struct Values<'a> {
    version: &'a CompiledVersion,
}

impl<'a> Values<'a> {
    pub(super) fn new(version: &'a CompiledVersion) -> Self {
        Self { version }
    }

    /// Checks a value, and forgives what was wrong with it before if it has not changed.
    pub(super) fn check(&self, place: &Place<'_>) -> Outcome {
        let Some(ty) = place.ty else {
            return Outcome::default();
        };
        let out = self.check_node(place, Node::Type(self.version.table.get(ty)));
        self.forgive(place, out)
    }

    fn forgive(&self, place: &Place<'_>, mut out: Outcome) -> Outcome {
        if !out.is_valid()
            && let (Some(ty), Some(old)) = (place.ty, place.old)
            && ratchet::unchanged(self.version, ty, place.value, old)
        {
            out.errors.clear();
        }
        out
    }

    fn check_node(&self, place: &Place<'_>, node: Node<'_>) -> Outcome {
        let mut out = Outcome::default();
        let typed = !node.types().is_empty() || node.rules().is_some_and(|r| r.format.is_some());
        if typed {
            out.merge(check_type(place, node));
        }
        let Some(rules) = node.rules() else {
            self.check_parts(place, node, &mut out);
            return out;
        };
        if place.value.is_null() {
            out.errors.extend(enum_error(place, rules));
            return out;
        }
        out.matches = out.matches.saturating_add(u32::from(typed));
        out.merge(self.check_branches(place, rules));
        out.matched();
        check_scalar(place, node, rules, &mut out);
        self.check_list_size_after_items(place, node, rules, &mut out);
        out.errors.extend(enum_error(place, rules));
        out.matched();
        if let Value::Object(map) = place.value {
            self.check_object(place, node, map, &mut out);
            out.matched();
        }
        out.matched();
        if !(rules.all_of.is_empty() && rules.any_of.is_empty() && rules.one_of.is_empty()) {
            out.remove_repeated();
        }
        out
    }

    /// Items and properties of a value whose type has no rules of its own.
    fn check_parts(&self, place: &Place<'_>, node: Node<'_>, out: &mut Outcome) {
        match place.value {
            Value::Array(items) => self.check_items(place, node, items, out),
            Value::Object(map) => self.check_object(place, node, map, out),
            _ => {}
        }
    }

    fn check_list_size_after_items(
        &self,
        place: &Place<'_>,
        node: Node<'_>,
        rules: &Rules,
        out: &mut Outcome,
    ) {
        let Value::Array(items) = place.value else {
            return;
        };
        self.check_items(place, node, items, out);
        let size = items.len() as u64;
        if let Some(min) = rules.min_items.filter(|min| size < *min) {
            let detail = format!("should have at least {min} items");
            out.add(invalid(&place.path, &Value::from(size), &detail));
        }
        if let Some(max) = rules.max_items.filter(|max| size > *max) {
            out.add(failure::too_many(&place.path, items.len(), max));
        }
        out.matches = out.matches.saturating_add(2);
    }

    fn check_items(&self, place: &Place<'_>, node: Node<'_>, items: &[Value], out: &mut Outcome) {
        let branch = match node {
            Node::Type(ty) if matches!(ty.shape, Shape::List(_)) => None,
            Node::Branch(Rules {
                items: Some(rules), ..
            }) => Some(&**rules),
            _ => return,
        };
        let item_type = place
            .ty
            .and_then(|ty| step::item(self.version.table.get(ty)).known());
        let old = place
            .ty
            .map(|ty| ratchet::OldItems::new(self.version, ty, place.old));
        for (i, value) in items.iter().enumerate() {
            let place = Place {
                path: path::index(&place.path, i),
                ty: item_type,
                value,
                old: old.as_ref().and_then(|old| old.find(value)),
            };
            out.merge(self.check_part(&place, branch));
        }
    }

    fn check_part(&self, place: &Place<'_>, branch: Option<&Rules>) -> Outcome {
        match branch {
            None => self.check(place),
            Some(rules) => self.forgive(place, self.check_node(place, Node::Branch(rules))),
        }
    }

    fn check_object(
        &self,
        place: &Place<'_>,
        node: Node<'_>,
        map: &Map<String, Value>,
        out: &mut Outcome,
    ) {
        if let Some(rules) = node.rules() {
            property_count(place, rules, map.len(), out);
            if rules.additional == Additional::Forbidden {
                forbidden_properties(place, map, out);
            }
        }
        match node {
            Node::Type(ty) => self.check_properties(place, ty, map, out),
            Node::Branch(rules) => {
                for (name, rules) in &rules.properties {
                    if let Some(value) = map.get(&**name) {
                        let part = self.property(place, name, value);
                        out.merge(self.check_part(&part, Some(rules)));
                    }
                }
            }
        }
        for name in node.rules().map_or(&[][..], |rules| &rules.required) {
            if !map.contains_key(&**name) {
                out.add(FieldError::required(path::child(&place.path, name), ""));
            }
        }
    }

    fn check_properties(
        &self,
        place: &Place<'_>,
        ty: &Type,
        map: &Map<String, Value>,
        out: &mut Outcome,
    ) {
        match &ty.shape {
            Shape::Struct(object) => {
                for field in object.fields() {
                    if let Some(value) = map.get(&*field.name) {
                        out.merge(self.check(&self.property(place, &field.name, value)));
                    }
                }
            }
            Shape::Map { .. } => {
                for (name, value) in crate::go::sorted(map) {
                    let mut part = self.property(place, name, value);
                    // Keys of maps follow a dot even at the root of a default value.
                    part.path = format!("{}.{name}", place.path);
                    out.merge(self.check(&part));
                }
            }
            _ => {}
        }
    }

    /// A property with what the schema itself says of it and the old value it correlates with. Versions are converted
    /// before objects get here, so changes of `apiVersion` and `kind` are not visible and never forgiven.
    fn property<'v>(&self, place: &Place<'v>, name: &str, value: &'v Value) -> Place<'v> {
        let parent = place.ty.map(|ty| self.version.table.get(ty));
        let mut ty = parent.and_then(|parent| step::property(parent, name).known());
        let at_root = place.path.is_empty() && place.ty == Some(self.version.root);
        if at_root && name == "metadata" {
            ty = self.version.metadata;
        }
        let type_meta = at_root && matches!(name, "apiVersion" | "kind");
        Place {
            path: path::child(&place.path, name),
            ty: ty.filter(|ty| !self.version.is_imported(*ty)),
            value,
            old: place
                .old
                .and_then(|old| old.get(name))
                .filter(|_| !type_meta),
        }
    }
}

fn property_count(place: &Place<'_>, rules: &Rules, count: usize, out: &mut Outcome) {
    if let Some(min) = rules.min_properties.filter(|min| (count as u64) < *min) {
        let detail = format!("should have at least {min} properties");
        out.add(invalid(&place.path, &Value::from(count), &detail));
    }
    if let Some(max) = rules.max_properties.filter(|max| count as u64 > *max) {
        out.add(failure::too_many(&place.path, count, max));
    }
}

fn forbidden_properties(place: &Place<'_>, map: &Map<String, Value>, out: &mut Outcome) {
    for (name, _) in crate::go::sorted(map) {
        let detail = format!("{}.{name} in body is a forbidden property", place.path);
        out.add(FieldError::invalid(
            &*place.path,
            &Value::from(name.as_str()),
            &detail,
        ));
    }
}
