//! The type table: every type of a schema in one arena, referred to by [`TypeId`].
//!
//! Built-in kinds and CRD schemas have the same shape here. What only CRDs have (defaults, value rules, nullable)
//! is absent on built-in types; what only built-ins have (protobuf tags, merge strategies) is absent on CRDs.

mod form;
pub(crate) mod message;
mod places;

use std::collections::HashMap;

pub use kubewright_cel::ListKind;
use serde_json::Value;

use crate::rules::Rules;
pub(crate) use form::{Form, Outline};
use message::Message;
use places::Places;

/// A type in a [`Table`]. Only meaningful together with the table that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(crate) u32);

/// An arena of types. Types may refer to each other in cycles (`JSONSchemaProps` does).
#[derive(Debug, Default)]
pub struct Table {
    types: Vec<Type>,
    by_name: HashMap<Box<str>, TypeId>,
    /// Sorted by group, version and kind.
    kinds: Vec<Kind>,
    /// Types of shape [`Shape::Any`] that are one of some types; there are very few.
    forms: Vec<(TypeId, Vec<TypeId>)>,
}

/// A kind of object and its type. One type may have many kinds: every group has its own `DeleteOptions`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: Box<str>,
    /// API version within the group.
    pub version: Box<str>,
    /// Name of the kind.
    pub kind: Box<str>,
    /// The type of its objects.
    pub ty: TypeId,
}

/// One type: its shape, and what a CRD author may attach to it.
#[derive(Debug, Clone)]
pub struct Type {
    /// The definition's name for built-in types (`io.k8s.api.apps.v1.Deployment`), absent on CRD types.
    pub name: Option<Box<str>>,
    /// What values look like.
    pub shape: Shape,
    /// CRD only: an explicit `null` is kept rather than dropped.
    pub nullable: bool,
    /// CRD only: the value that an absent field takes.
    pub default: Option<Value>,
    /// CRD only: rules on the value (ranges, patterns, enums, combinators).
    pub rules: Option<Box<Rules>>,
}

/// What the values of a type look like.
#[derive(Debug, Clone)]
pub enum Shape {
    /// An object with named fields.
    Struct(Struct),
    /// An object with arbitrary keys and values of one type.
    Map {
        /// The type of every value.
        value: TypeId,
        /// Replaced as a whole by server-side apply.
        atomic: bool,
    },
    /// An array with items of one type.
    List(List),
    /// A single value, such as a string or a number.
    Scalar(Scalar),
    /// Any JSON value, kept as it is (`RawExtension`, `JSON`, `x-kubernetes-preserve-unknown-fields` without a type).
    Any,
}

/// An object with named fields.
#[derive(Debug, Clone, Default)]
pub struct Struct {
    /// In the order the API server writes them. Built-in structs follow the Go struct, CRDs are sorted by name.
    fields: Vec<Field>,
    /// Finds the positions of `fields` by name.
    places: Places,
    /// What protobuf does differently, by position in `fields`, sorted. Only few fields have an entry.
    wires: Vec<(u16, Wire)>,
    /// The fields by their protobuf numbers; follows from `fields` and `wires`.
    message: Message,
    /// Replaced as a whole by server-side apply (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// CRD only: fields that are not listed are kept.
    pub preserve_unknown: bool,
    /// CRD only: the object is itself a Kubernetes object with `apiVersion`, `kind` and `metadata`.
    pub embedded_resource: bool,
}

/// A named field of a [`Struct`].
#[derive(Debug, Clone)]
pub struct Field {
    /// The name of the field in JSON.
    pub name: Box<str>,
    /// The type of the value.
    pub ty: TypeId,
    /// Must be present (the `required` list of the schema).
    pub required: bool,
    /// Written even when absent, as Go does with structs that are not pointers and with what has no `omitempty`:
    /// `status: {}` of a Deployment, `lastProbeTime: null` of a condition, `ready: false` of a container.
    pub always: bool,
    /// In Go the field is a scalar rather than a pointer, which protobuf always carries and JSON leaves out when it is
    /// zero. Other fields of protobuf messages are there because they were set. Built-ins only.
    pub omit_zero: bool,
    /// Protobuf field number in the message that holds it, built-ins only; see [`Struct::wire`] for inlined messages.
    pub tag: Option<u32>,
    /// How strategic merge patch treats the field, built-ins only.
    pub patch: Option<Patch>,
}

/// Where protobuf differs from JSON in more than the tag of a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wire {
    /// The field lies in messages that JSON inlines: their tags, outermost first. `Volume.emptyDir` is in message 2.
    pub outer: Vec<u32>,
    /// A list that is wrapped in a message of its own, with the items in field 1.
    pub wrapped: bool,
}

/// Strategic-merge behaviour of a field: `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patch {
    /// Lists merge instead of being replaced.
    pub merge: bool,
    /// Keys that the patch's `$retainKeys` does not name are dropped.
    pub retain_keys: bool,
    /// The field that identifies an item of a merged list of objects; absent for lists of scalars.
    pub merge_key: Option<Box<str>>,
}

/// The type of an array: what its items are, and how they merge.
#[derive(Debug, Clone)]
pub struct List {
    /// The type of every item.
    pub item: TypeId,
    /// How items are identified.
    pub kind: ListKind,
}

/// The type of a single value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scalar {
    /// A string without further meaning.
    String,
    /// Base64 in a JSON string.
    Bytes,
    /// Either `true` or `false`.
    Bool,
    /// An integer of 32 bits.
    Int32,
    /// An integer of 64 bits.
    Int64,
    /// Any number that JSON can hold.
    Double,
    /// A resource quantity such as `500m` or `1Gi`; numbers are accepted and become strings.
    Quantity,
    /// An integer or a string.
    IntOrString,
    /// RFC 3339 with seconds.
    Time,
    /// RFC 3339 with microseconds.
    MicroTime,
}

impl Table {
    /// A table without types.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a type. Named types can be found again by [`Table::named`].
    ///
    /// # Panics
    /// When the table would hold more than `u32::MAX` types.
    pub fn add(&mut self, ty: Type) -> TypeId {
        let id =
            TypeId(u32::try_from(self.types.len()).expect("a table holds at most u32::MAX types"));
        if let Some(name) = &ty.name {
            self.by_name.insert(name.clone(), id);
        }
        self.types.push(ty);
        id
    }

    /// Replaces a type that was added as a place holder, so that types can refer to each other in cycles.
    pub fn set(&mut self, id: TypeId, ty: Type) {
        if let Some(name) = &ty.name {
            self.by_name.insert(name.clone(), id);
        }
        self.types[id.0 as usize] = ty;
    }

    /// The type behind an id of this table.
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// Finds a built-in type by its definition name.
    pub fn named(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// Finds the type of a kind.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<TypeId> {
        let at = self
            .kinds
            .binary_search_by(|k| (&*k.group, &*k.version, &*k.kind).cmp(&(group, version, kind)))
            .ok()?;
        Some(self.kinds[at].ty)
    }

    /// All kinds, sorted by group, version and kind.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    pub(crate) fn set_kinds(&mut self, mut kinds: Vec<Kind>) {
        kinds.sort();
        self.kinds = kinds;
    }

    /// Adds a type without making it the one that [`Table::named`] finds.
    pub(crate) fn add_variant(&mut self, ty: Type) -> TypeId {
        let name = ty.name.clone();
        let id = self.add(Type { name: None, ..ty });
        self.types[id.0 as usize].name = name;
        id
    }

    pub(crate) fn get_mut(&mut self, id: TypeId) -> &mut Type {
        &mut self.types[id.0 as usize]
    }

    /// How many types there are.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Returns whether the table has no types.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Copies a type and all it refers to from another table, so that a CRD can use the built-in `ObjectMeta`.
    pub fn import(&mut self, from: &Table, id: TypeId) -> TypeId {
        let mut seen = HashMap::new();
        self.import_into(from, id, &mut seen)
    }

    fn import_into(
        &mut self,
        from: &Table,
        id: TypeId,
        seen: &mut HashMap<TypeId, TypeId>,
    ) -> TypeId {
        if let Some(done) = seen.get(&id) {
            return *done;
        }
        let mut ty = from.get(id).clone();
        let copy = self.add(Type::of(Shape::Any));
        seen.insert(id, copy);
        match &mut ty.shape {
            Shape::Struct(s) => {
                for field in &mut s.fields {
                    field.ty = self.import_into(from, field.ty, seen);
                }
            }
            Shape::Map { value, .. } => *value = self.import_into(from, *value, seen),
            Shape::List(list) => list.item = self.import_into(from, list.item, seen),
            Shape::Any => {
                let forms: Vec<TypeId> = from
                    .forms(id)
                    .iter()
                    .map(|form| self.import_into(from, *form, seen))
                    .collect();
                if !forms.is_empty() {
                    self.set_forms(copy, forms);
                }
            }
            Shape::Scalar(_) => {}
        }
        self.set(copy, ty);
        copy
    }
}

impl Type {
    /// A type with this shape and nothing attached.
    pub fn of(shape: Shape) -> Self {
        Self {
            name: None,
            shape,
            nullable: false,
            default: None,
            rules: None,
        }
    }
}

impl Struct {
    /// A struct with these fields, written in this order.
    pub fn new(fields: Vec<Field>) -> Self {
        Self {
            message: Message::new(&fields, &[]),
            places: Places::of(&fields),
            fields,
            ..Self::default()
        }
    }

    /// The fields in the order they are written.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// What protobuf does differently with the field at a position of [`Struct::fields`].
    pub fn wire(&self, position: usize) -> Option<&Wire> {
        let at = self
            .wires
            .binary_search_by_key(&position, |(at, _)| *at as usize)
            .ok()?;
        Some(&self.wires[at].1)
    }

    pub(crate) fn set_wires(&mut self, wires: Vec<(u16, Wire)>) {
        self.message = Message::new(&self.fields, &wires);
        self.wires = wires;
    }

    /// Whether protobuf has the list at a position, or the lists in the map there, in messages of their own.
    pub(crate) fn is_wrapped(&self, position: u16) -> bool {
        self.wire(usize::from(position))
            .is_some_and(|wire| wire.wrapped)
    }

    pub(crate) fn message(&self) -> &Message {
        &self.message
    }

    pub(crate) fn fields_mut(&mut self) -> &mut [Field] {
        &mut self.fields
    }

    /// The position of a field in [`Struct::fields`].
    pub fn position(&self, name: &str) -> Option<usize> {
        self.places.find(&self.fields, name)
    }

    /// Finds a field by its JSON name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.position(name).map(|i| &self.fields[i])
    }
}

impl Field {
    /// Whether Go leaves a value out: an empty map or list that may be absent. Go does so with empty strings, zeroes
    /// and `false` as well unless they are pointers, which the type does not tell; those are kept.
    pub(crate) fn is_left_out(&self, table: &Table, value: &Value) -> bool {
        if self.required || self.always {
            return false;
        }
        match (&table.get(self.ty).shape, value) {
            (Shape::Map { .. }, Value::Object(map)) => map.is_empty(),
            (Shape::List(_), Value::Array(items)) => items.is_empty(),
            _ => false,
        }
    }

    /// An optional field without merge behaviour.
    pub fn new(name: &str, ty: TypeId) -> Self {
        Self {
            name: name.into(),
            ty,
            required: false,
            always: false,
            omit_zero: false,
            tag: None,
            patch: None,
        }
    }
}
