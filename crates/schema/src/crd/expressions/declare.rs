//! What expressions see of the types of a schema.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::compile::CompiledVersion;
use super::declared_type;
use crate::cel::{Declaration, Form, MAX_REQUEST, Object};
use crate::rules::{Additional, Rules};
use crate::types::{Scalar, Shape, Struct, Type, TypeId};

/// Longest name of an object.
const NAME_LENGTH: u64 = 253;

/// Declares types of one version, each once: expressions on different levels share the types below them.
pub(super) struct Declarer<'a> {
    version: &'a CompiledVersion,
    declared: HashMap<TypeId, Option<Arc<Declaration>>>,
}

impl<'a> Declarer<'a> {
    pub(super) fn new(version: &'a CompiledVersion) -> Self {
        Self {
            version,
            declared: HashMap::new(),
        }
    }

    /// The declaration of a type, or nothing when the schema leaves its values open. Recursion follows the schema,
    /// whose depth is limited.
    pub(super) fn declare(&mut self, id: TypeId) -> Option<Arc<Declaration>> {
        if self.version.is_imported(id) {
            return None;
        }
        if let Some(known) = self.declared.get(&id) {
            return known.clone();
        }
        let ty = self.version.table.get(id);
        let declaration = self.form(ty).map(|declaration| {
            Arc::new(Declaration {
                nullable: ty.nullable,
                ..declaration
            })
        });
        self.declared.insert(id, declaration.clone());
        declaration
    }

    fn form(&mut self, ty: &Type) -> Option<Declaration> {
        let int_or_string = matches!(ty.shape, Shape::Scalar(Scalar::IntOrString));
        if declared_type(ty).is_empty() && !int_or_string {
            return None;
        }
        let empty = Rules::default();
        let rules = ty.rules.as_deref().unwrap_or(&empty);
        Some(match &ty.shape {
            Shape::Any => return None,
            Shape::Scalar(scalar) => scalar_form(*scalar, rules),
            Shape::List(list) => {
                Declaration::list(self.declare(list.item)?, list.kind.clone(), rules.max_items)
            }
            // Values below `additionalProperties: true` have no type.
            Shape::Map { .. } if rules.additional == Additional::Allowed => {
                object(Object::default(), 2)
            }
            Shape::Map { value, .. } => {
                Declaration::map(self.declare(*value)?, rules.max_properties)
            }
            Shape::Struct(fields) => self.fields(fields),
        })
    }

    fn fields(&mut self, fields: &Struct) -> Declaration {
        let mut all = Vec::new();
        let mut min_size = 2;
        for field in fields.fields() {
            if fields.embedded_resource
                && matches!(&*field.name, "apiVersion" | "kind" | "metadata")
            {
                continue;
            }
            let declaration = self.declare(field.ty);
            let default = self.version.table.get(field.ty).default.is_some();
            if let Some(declaration) = declaration.as_ref().filter(|_| field.required && !default) {
                min_size += field.name.len() as u64 + declaration.min_size + 4;
            }
            let hidden = || Arc::new(Declaration::plain(Form::Hidden));
            all.push((field.name.clone(), declaration.unwrap_or_else(hidden)));
        }
        if fields.embedded_resource {
            all.extend(resource_fields());
        }
        object(Object::new(all), min_size)
    }
}

fn object(object: Object, min_size: u64) -> Declaration {
    Declaration {
        form: Form::Object(Arc::new(object)),
        max_elements: 0,
        min_size,
        nullable: false,
    }
}

/// What expressions see of every resource, whatever its schema says.
fn resource_fields() -> [(Box<str>, Arc<Declaration>); 3] {
    let text = |max: Option<u64>| Arc::new(Declaration::text(max));
    let metadata = Object::new(vec![
        ("name".into(), text(Some(NAME_LENGTH))),
        ("generateName".into(), text(Some(NAME_LENGTH - 1))),
    ]);
    [
        ("apiVersion".into(), text(None)),
        ("kind".into(), text(None)),
        ("metadata".into(), Arc::new(object(metadata, 2))),
    ]
}

fn scalar_form(scalar: Scalar, rules: &Rules) -> Declaration {
    let sized = |form: Form, max_elements: u64, min_size: u64| Declaration {
        form,
        max_elements,
        min_size,
        nullable: false,
    };
    let bytes = rules.max_length.unwrap_or(MAX_REQUEST - 2);
    let characters = rules
        .max_length
        .map_or(MAX_REQUEST - 2, |max| max.saturating_mul(4));
    match scalar {
        Scalar::Bool => Declaration::plain(Form::Bool),
        Scalar::Int32 | Scalar::Int64 => Declaration::plain(Form::Int),
        Scalar::Double => Declaration::plain(Form::Double),
        Scalar::IntOrString => sized(Form::IntOrString, characters, 1),
        _ => match rules.format.as_deref() {
            Some("byte") => sized(Form::Bytes, bytes, 2),
            Some("duration") => sized(Form::Duration, 32, 3),
            Some("date") => sized(Form::Date, 12, 12),
            Some("date-time") => sized(Form::DateTime, 32, 21),
            _ => {
                let longest = rules
                    .one_of_values
                    .as_ref()
                    .filter(|_| rules.max_length.is_none());
                let longest = longest.map(|values| {
                    let lengths = values.iter().filter_map(|v| v.as_str()).map(str::len);
                    lengths.max().unwrap_or(0) as u64
                });
                sized(Form::String, longest.unwrap_or(characters), 2)
            }
        },
    }
}
