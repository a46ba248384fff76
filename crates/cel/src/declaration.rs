//! What a schema says of a value, as far as expressions see it.

use std::sync::Arc;

use super::escape::{escape, escape_word};

/// Largest request that the API server accepts, in bytes, from which it estimates how large values without a limit can be.
pub const MAX_REQUEST: u64 = 3 * 1024 * 1024;

/// The type of a value in a schema, and how large it can be.
#[derive(Debug)]
pub struct Declaration {
    /// What values look like.
    pub form: Form,
    /// Most items, properties or characters; zero for forms that have nothing to count.
    pub max_elements: u64,
    /// Fewest bytes that a value takes in JSON.
    pub min_size: u64,
    /// Whether values may be null.
    pub nullable: bool,
}

/// How the items of a list are identified (`x-kubernetes-list-type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListKind {
    /// The list is one value.
    Atomic,
    /// Items are unique scalars.
    Set,
    /// Items are objects, unique by these fields.
    Map(Vec<Box<str>>),
}

/// What values look like.
#[derive(Debug)]
pub enum Form {
    /// An integer or a string (`x-kubernetes-int-or-string`).
    IntOrString,
    /// Either `true` or `false`.
    Bool,
    /// A number without a fraction.
    Int,
    /// A number with a fraction.
    Double,
    /// A string without further meaning.
    String,
    /// Bytes, as a string in base64 (`format: byte`).
    Bytes,
    /// A length of time, as a string (`format: duration`).
    Duration,
    /// A day, as a string (`format: date`).
    Date,
    /// A point in time, as a string (`format: date-time`).
    DateTime,
    /// A list with items of one type.
    List {
        /// What its items are.
        item: Arc<Declaration>,
        /// How its items are identified, which decides what `==` and `+` mean.
        kind: ListKind,
    },
    /// A map from strings to values.
    Map(Arc<Declaration>),
    /// An object with known fields.
    Object(Arc<Object>),
    /// A value without a type: it is there, but no expression can reach it.
    Hidden,
    /// Whatever the data is, all the way down.
    Dynamic,
}

/// The declaration of data that nothing is known of.
pub(crate) static DYNAMIC: Declaration = Declaration {
    form: Form::Dynamic,
    max_elements: 0,
    min_size: 0,
    nullable: true,
};

/// The fields of an object.
#[derive(Debug, Default)]
pub struct Object {
    /// Sorted by identifier; fields whose names cannot be escaped are absent.
    fields: Vec<Property>,
    /// The same and those that cannot be reached, sorted by name.
    all: Vec<(Box<str>, Arc<Declaration>)>,
}

/// A field that expressions can reach.
#[derive(Debug)]
pub(crate) struct Property {
    pub(crate) identifier: Box<str>,
    /// The name in JSON.
    pub(crate) name: Box<str>,
    pub(crate) declaration: Arc<Declaration>,
}

/// Objects are equal when they are the same declaration: two schemas never have a common type.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Object {
    /// An object with these fields, by their names in JSON.
    pub fn new(mut all: Vec<(Box<str>, Arc<Declaration>)>) -> Self {
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let visible = all
            .iter()
            .filter(|(_, declaration)| !matches!(declaration.form, Form::Hidden));
        let mut fields: Vec<Property> = visible
            .filter_map(|(name, declaration)| {
                Some(Property {
                    identifier: escape(name)?.into(),
                    name: name.clone(),
                    declaration: Arc::clone(declaration),
                })
            })
            .collect();
        fields.sort_by(|a, b| a.identifier.cmp(&b.identifier));
        Self { fields, all }
    }

    /// The field behind an identifier. A word of the language stands for the field of that name, escaped or not
    /// (types.go: `DeclTypeProvider.FindStructFieldType`).
    pub(crate) fn field(&self, identifier: &str) -> Option<&Property> {
        self.identified(identifier)
            .or_else(|| self.identified(&escape_word(identifier)?))
    }

    fn identified(&self, identifier: &str) -> Option<&Property> {
        let at = self
            .fields
            .binary_search_by(|field| (*field.identifier).cmp(identifier))
            .ok()?;
        Some(&self.fields[at])
    }

    /// The field with a name in JSON, whether expressions can reach it or not.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Declaration>> {
        let at = self.all.binary_search_by(|(known, _)| (**known).cmp(name));
        at.ok().map(|at| &self.all[at].1)
    }
}

impl Declaration {
    /// A value of a form that has no size.
    pub fn plain(form: Form) -> Self {
        let min_size = match form {
            Form::Bool => 4,
            Form::Hidden => 0,
            _ => 1,
        };
        Self {
            form,
            max_elements: 0,
            min_size,
            nullable: false,
        }
    }

    /// A string, of at most so many characters; each may take four bytes.
    pub fn text(max_length: Option<u64>) -> Self {
        Self {
            form: Form::String,
            max_elements: max_length.map_or(MAX_REQUEST - 2, |max| max.saturating_mul(4)),
            min_size: 2,
            nullable: false,
        }
    }

    /// A list; without a limit as many items as fit into a request.
    pub fn list(item: Arc<Declaration>, kind: ListKind, max_items: Option<u64>) -> Self {
        let fit = (MAX_REQUEST - 2) / (item.min_size + 1);
        Self {
            form: Form::List { item, kind },
            max_elements: max_items.unwrap_or(fit),
            min_size: 2,
            nullable: false,
        }
    }

    /// A map; without a limit as many properties as fit into a request.
    pub fn map(value: Arc<Declaration>, max_properties: Option<u64>) -> Self {
        let fit = (MAX_REQUEST - 2) / (value.min_size + 6);
        Self {
            form: Form::Map(value),
            max_elements: max_properties.unwrap_or(fit),
            min_size: 2,
            nullable: false,
        }
    }
}
