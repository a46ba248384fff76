//! Types of expressions, and when one can stand for another.

use std::fmt;
use std::sync::Arc;

use super::declaration::{Declaration, Form, Object};

/// The type of an expression or a variable.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Type {
    /// Known only when evaluated.
    Dyn,
    /// The type of what has failed to check; fits everywhere, so that one mistake is reported once.
    Error,
    /// The type of `null`.
    Null,
    /// The type of `true` and `false`.
    Bool,
    /// A signed integer of 64 bits.
    Int,
    /// An unsigned integer of 64 bits.
    Uint,
    /// A floating-point number of 64 bits.
    Double,
    /// A text of Unicode characters.
    String,
    /// A sequence of bytes.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A length of time.
    Duration,
    /// A type itself, as `type(x)` gives it.
    Type,
    /// A list of items of one type.
    List(Arc<Type>),
    /// A map from keys to values.
    Map(Arc<Type>, Arc<Type>),
    /// An object with known fields.
    Object(Arc<Object>),
    /// A value that may be missing.
    Optional(Arc<Type>),
    /// A type of a Kubernetes library.
    Opaque(Opaque),
    /// A type that is still to be found out: of the items of `[]`, or of the parameters of a function.
    Variable(u32),
}

/// The types that Kubernetes adds to the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opaque {
    /// An IP address, as `ip()` makes it.
    Ip,
    /// A network with its prefix length, as `cidr()` makes it.
    Cidr,
    /// A URL, as `url()` makes it.
    Url,
    /// A resource quantity, as `quantity()` makes it.
    Quantity,
    /// A semantic version, as `semver()` makes it.
    Semver,
    /// A named format that texts are validated against, as `format.named()` finds it.
    Format,
    /// Who may do what.
    Authorizer,
    /// A question about a path.
    PathCheck,
    /// A question about a group.
    GroupCheck,
    /// A question about a resource.
    ResourceCheck,
    /// The answer to a question.
    Decision,
}

impl Opaque {
    /// The name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Opaque::Ip => "net.IP",
            Opaque::Cidr => "net.CIDR",
            Opaque::Url => "kubernetes.URL",
            Opaque::Quantity => "kubernetes.Quantity",
            Opaque::Semver => "kubernetes.Semver",
            Opaque::Format => "kubernetes.NamedFormat",
            Opaque::Authorizer => "kubernetes.authorization.Authorizer",
            Opaque::PathCheck => "kubernetes.authorization.PathCheck",
            Opaque::GroupCheck => "kubernetes.authorization.GroupCheck",
            Opaque::ResourceCheck => "kubernetes.authorization.ResourceCheck",
            Opaque::Decision => "kubernetes.authorization.Decision",
        }
    }
}

impl Type {
    pub(crate) fn list(item: Type) -> Self {
        Type::List(Arc::new(item))
    }

    /// A map. Only scalars can be keys, so other key types are not recorded; that also keeps types from growing without
    /// bound when maps are nested in keys and values alike.
    pub(crate) fn map(key: Type, value: Type) -> Self {
        let key = match key {
            Type::List(_) | Type::Map(..) | Type::Object(_) | Type::Optional(_) => Type::Dyn,
            other => other,
        };
        Type::Map(Arc::new(key), Arc::new(value))
    }

    pub(crate) fn optional(value: Type) -> Self {
        Type::Optional(Arc::new(value))
    }

    /// Whether everything about the type is left to evaluation.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Type::Dyn | Type::Error)
    }

    /// Whether values have a constant size.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Type::Optional(inner) => inner.is_scalar(),
            other => matches!(
                other,
                Type::Bool
                    | Type::Double
                    | Type::Duration
                    | Type::Int
                    | Type::Timestamp
                    | Type::Uint
            ),
        }
    }
}

impl From<&Declaration> for Type {
    fn from(declaration: &Declaration) -> Self {
        match &declaration.form {
            Form::IntOrString | Form::Hidden | Form::Dynamic => Type::Dyn,
            Form::Bool => Type::Bool,
            Form::Int => Type::Int,
            Form::Double => Type::Double,
            Form::String => Type::String,
            Form::Bytes => Type::Bytes,
            Form::Duration => Type::Duration,
            Form::Date | Form::DateTime => Type::Timestamp,
            Form::List { item, .. } => Type::list(Type::from(&**item)),
            Form::Map(value) => Type::map(Type::String, Type::from(&**value)),
            Form::Object(object) => Type::Object(Arc::clone(object)),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Dyn => "dyn",
            Type::Error => "!error!",
            Type::Null => "null",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Timestamp => "timestamp",
            Type::Duration => "duration",
            Type::Type => "type",
            Type::Object(_) => "object",
            Type::Opaque(opaque) => opaque.name(),
            Type::List(item) => return write!(f, "list({item})"),
            Type::Map(key, value) => return write!(f, "map({key}, {value})"),
            Type::Optional(value) => return write!(f, "optional_type({value})"),
            Type::Variable(id) => return write!(f, "_var{id}"),
        })
    }
}

/// What is known of type variables.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    /// By the number of the variable.
    bound: Vec<Option<Type>>,
    /// The variables that have been bound, in that order.
    trail: Vec<u32>,
}

/// A state of [`Bindings`] to go back to.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    variables: usize,
    bound: usize,
}

impl Bindings {
    /// A variable that nothing is known of.
    pub(crate) fn fresh(&mut self) -> Type {
        self.bound.push(None);
        Type::Variable(self.bound.len() as u32 - 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.bound.len()
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            variables: self.bound.len(),
            bound: self.trail.len(),
        }
    }

    /// Forgets variables and what was learned since.
    pub(crate) fn undo(&mut self, mark: Mark) {
        for id in self.trail.drain(mark.bound..) {
            self.bound[id as usize] = None;
        }
        self.bound.truncate(mark.variables);
    }

    /// The type with all that is known filled in.
    pub(crate) fn resolve(&self, ty: &Type) -> Type {
        match ty {
            Type::Variable(id) => match self.bound.get(*id as usize) {
                Some(Some(known)) => self.resolve(known),
                _ => ty.clone(),
            },
            Type::List(item) => Type::list(self.resolve(item)),
            Type::Map(key, value) => Type::map(self.resolve(key), self.resolve(value)),
            Type::Optional(value) => Type::optional(self.resolve(value)),
            other => other.clone(),
        }
    }

    /// [`Bindings::resolve`], with nothing left open.
    pub(crate) fn settle(&self, ty: &Type) -> Type {
        match self.resolve(ty) {
            Type::Variable(_) => Type::Dyn,
            Type::List(item) => Type::list(self.settle(&item)),
            Type::Map(key, value) => Type::map(self.settle(&key), self.settle(&value)),
            Type::Optional(value) => Type::optional(self.settle(&value)),
            other => other,
        }
    }

    /// Whether all types fit.
    pub(crate) fn assign_all(&mut self, given: &[Type], wanted: &[Type]) -> bool {
        given.len() == wanted.len()
            && given
                .iter()
                .zip(wanted)
                .all(|(given, wanted)| self.assign(given, wanted))
    }

    /// Whether a value of one type can be used where the other is wanted.
    pub(crate) fn assign(&mut self, given: &Type, wanted: &Type) -> bool {
        let (given, wanted) = (self.resolve(given), self.resolve(wanted));
        match (&given, &wanted) {
            (Type::Variable(a), Type::Variable(b)) if a == b => true,
            (other, Type::Variable(id)) | (Type::Variable(id), other) => self.bind(*id, other),
            _ if given.is_open() || wanted.is_open() => true,
            (Type::Null, other) | (other, Type::Null) => nullable(other),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.assign(a, b)
            }
            (Type::Map(a, b), Type::Map(c, d)) => self.assign(a, c) && self.assign(b, d),
            _ => given == wanted,
        }
    }

    fn bind(&mut self, id: u32, ty: &Type) -> bool {
        if self.mentions(ty, id) {
            return false;
        }
        self.bound[id as usize] = Some(ty.clone());
        self.trail.push(id);
        true
    }

    fn mentions(&self, ty: &Type, id: u32) -> bool {
        match ty {
            Type::Variable(other) => *other == id,
            Type::List(item) | Type::Optional(item) => self.mentions(item, id),
            Type::Map(key, value) => self.mentions(key, id) || self.mentions(value, id),
            _ => false,
        }
    }

    /// The type of items that are of both types, if there is one.
    pub(crate) fn join(&mut self, first: &Type, second: &Type) -> Option<Type> {
        if !self.assign(first, second) {
            return None;
        }
        let first_is_wider = first.is_open() || matches!(second, Type::Null);
        Some(if first_is_wider || !second.is_open() {
            first.clone()
        } else {
            second.clone()
        })
    }
}

fn nullable(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Null
            | Type::Object(_)
            | Type::Opaque(_)
            | Type::Optional(_)
            | Type::Duration
            | Type::Timestamp
    )
}

/// The type that a name stands for, as in `type(x) == int`.
pub(crate) fn type_named(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 14] = [
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "type",
        "null_type",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
        "optional_type",
        "dyn",
    ];
    const OPAQUE: [Opaque; 6] = [
        Opaque::Ip,
        Opaque::Cidr,
        Opaque::Url,
        Opaque::Quantity,
        Opaque::Semver,
        Opaque::Format,
    ];
    NAMES
        .into_iter()
        .chain(OPAQUE.map(Opaque::name))
        .find(|known| *known == name)
}
