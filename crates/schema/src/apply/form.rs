//! What server-side apply sees of a value: a leaf, a list whose items have names, or an object with fields.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::path::PathElement;
use crate::types::{Field, ListKind, Scalar, Shape, Struct, Table, TypeId};

/// A type of a table, or no type: then values say themselves what they are. Scalars and lists without a type are
/// leaves, objects without a type have fields.
#[derive(Debug, Clone, Copy)]
pub struct Typed<'t> {
    table: &'t Table,
    ty: Option<TypeId>,
}

/// How a value is to be taken.
pub(super) enum Form<'t> {
    /// One value: a scalar, or an atomic list or object.
    Leaf,
    List(Items<'t>),
    Object(Members<'t>),
}

/// A list whose items have names.
pub(super) struct Items<'t> {
    kind: &'t ListKind,
    pub(super) item: Typed<'t>,
}

/// The members of an object.
#[derive(Clone, Copy)]
pub(super) enum Members<'t> {
    /// Fields that are declared.
    Declared {
        fields: &'t Struct,
        typed: Typed<'t>,
    },
    /// Whatever keys there are, with values of one type.
    Keys(Typed<'t>),
}

/// Why an item of a list has no name.
#[derive(Debug)]
pub(super) enum NoName<'t> {
    Null,
    NotAnObject,
    WithoutKeys(&'t [Box<str>]),
}

impl<'t> Typed<'t> {
    /// A type of a table.
    pub fn new(table: &'t Table, ty: TypeId) -> Self {
        Self {
            table,
            ty: Some(ty),
        }
    }

    /// Describes values without a type: their shape is deduced from the values themselves.
    pub fn deduced(table: &'t Table) -> Self {
        Self { table, ty: None }
    }

    fn of(self, ty: TypeId) -> Self {
        Self::new(self.table, ty)
    }

    pub(super) fn shape(self) -> Option<&'t Shape> {
        self.ty.map(|ty| &self.table.get(ty).shape)
    }

    /// How a value of this type is to be taken. One that does not fit its type says itself what it is.
    pub(super) fn form(self, value: &Value) -> Form<'t> {
        match (self.shape(), value) {
            (Some(Shape::Scalar(_)), v) if !v.is_array() && !v.is_object() => Form::Leaf,
            (Some(Shape::List(list)), Value::Array(_) | Value::Null) => match &list.kind {
                ListKind::Atomic => Form::Leaf,
                kind => Form::List(Items {
                    kind,
                    item: self.of(list.item),
                }),
            },
            (Some(Shape::Struct(s)), Value::Object(_) | Value::Null) if s.atomic => Form::Leaf,
            (Some(Shape::Struct(fields)), Value::Object(_) | Value::Null) => {
                Form::Object(Members::Declared {
                    fields,
                    typed: self,
                })
            }
            (Some(Shape::Map { atomic: true, .. }), Value::Object(_) | Value::Null) => Form::Leaf,
            (Some(Shape::Map { value, .. }), Value::Object(_) | Value::Null) => {
                Form::Object(Members::Keys(self.of(*value)))
            }
            (_, Value::Object(_) | Value::Null) => {
                Form::Object(Members::Keys(Self::deduced(self.table)))
            }
            _ => Form::Leaf,
        }
    }

    /// The type behind a step of a path.
    pub(super) fn step(self, element: &PathElement) -> Option<Self> {
        match (self.shape()?, element) {
            (Shape::Struct(s), PathElement::Field(name)) => match s.field(name) {
                Some(field) => Some(self.of(field.ty)),
                None => s.preserve_unknown.then(|| Self::deduced(self.table)),
            },
            (Shape::Map { value, .. }, PathElement::Field(_)) => Some(self.of(*value)),
            (Shape::List(list), PathElement::Key(_) | PathElement::Value(_)) => {
                Some(self.of(list.item))
            }
            _ => None,
        }
    }

    /// The value that the field has where it is absent, when it is one of an item's keys.
    fn key_default(self, name: &str) -> Option<Value> {
        let ty = self.table.get(self.ty?);
        let Shape::Struct(s) = &ty.shape else {
            return None;
        };
        let port = matches!(
            ty.name.as_deref(),
            Some("io.k8s.api.core.v1.ContainerPort" | "io.k8s.api.core.v1.ServicePort")
        );
        if port && name == "protocol" {
            return Some(Value::from("TCP"));
        }
        self.table.get(s.field(name)?.ty).default.clone()
    }

    fn is_builtin(self) -> bool {
        self.ty.is_some_and(|ty| self.table.get(ty).name.is_some())
    }
}

impl<'t> Items<'t> {
    /// The name of an item.
    pub(super) fn name(&self, item: &Value) -> Result<PathElement, NoName<'t>> {
        let ListKind::Map(names) = self.kind else {
            return match item {
                Value::Null => Err(NoName::Null),
                value => Ok(PathElement::Value(value.clone())),
            };
        };
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => return Err(NoName::Null),
            _ => return Err(NoName::NotAnObject),
        };
        let mut keys = Vec::with_capacity(names.len());
        for name in names {
            let given = fields.get(&**name).cloned();
            if let Some(value) = given.or_else(|| self.item.key_default(name)) {
                keys.push((name.clone(), value));
            }
        }
        if keys.is_empty() {
            return Err(NoName::WithoutKeys(names));
        }
        keys.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(PathElement::Key(keys.into()))
    }

    pub(super) fn is_set(&self) -> bool {
        *self.kind == ListKind::Set
    }
}

impl<'t> Members<'t> {
    /// The type of a member, and the value that it has in Go where JSON leaves it out, if it is always there.
    pub(super) fn member(self, name: &str) -> (Typed<'t>, Option<&'static Value>) {
        match self {
            Members::Keys(typed) => (typed, None),
            Members::Declared { fields, typed } => match fields.field(name) {
                Some(field) => (typed.of(field.ty), implied(field, typed)),
                None => (Typed::deduced(typed.table), None),
            },
        }
    }

    /// Whether the member is a field that the type declares. Fields come with their object, keys are put into it.
    pub(super) fn declares(self, name: &str) -> bool {
        match self {
            Members::Keys(_) => false,
            Members::Declared { fields, .. } => fields.field(name).is_some(),
        }
    }

    /// Whether these are the fields of a type that is built in.
    pub(super) fn is_builtin(self) -> bool {
        match self {
            Members::Keys(_) => false,
            Members::Declared { typed, .. } => typed.is_builtin(),
        }
    }

    /// All members that are always there: name, type and the value that Go has where JSON leaves them out.
    pub(super) fn implied(self) -> impl Iterator<Item = (&'t str, Typed<'t>, &'static Value)> {
        let (fields, typed) = match self {
            Members::Keys(_) => (&[][..], None),
            Members::Declared { fields, typed } => (fields.fields(), Some(typed)),
        };
        fields.iter().filter_map(move |field| {
            let zero = implied(field, typed?)?;
            Some((&*field.name, typed?.of(field.ty), zero))
        })
    }
}

/// Values that Go has in a new struct. There is nothing to imply in a custom resource.
fn implied(field: &Field, owner: Typed<'_>) -> Option<&'static Value> {
    let there = field.always || (field.required && owner.is_builtin());
    if !there {
        return None;
    }
    let zero = match &owner.table.get(field.ty).shape {
        Shape::Struct(_) if field.always => &ZERO.object,
        Shape::Scalar(Scalar::String | Scalar::Bytes) => &ZERO.text,
        Shape::Scalar(Scalar::Bool) => &ZERO.no,
        Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Double | Scalar::IntOrString) => {
            &ZERO.number
        }
        _ => &Value::Null,
    };
    Some(zero)
}

struct Zero {
    object: Value,
    text: Value,
    number: Value,
    no: Value,
}

static ZERO: LazyLock<Zero> = LazyLock::new(|| Zero {
    object: Value::Object(Map::new()),
    text: Value::String(String::new()),
    number: Value::from(0),
    no: Value::Bool(false),
});
