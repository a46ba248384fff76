//! Walks the fields of a schema, with their paths.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Deeper schemas are not valid; what is below is not checked.
pub(crate) const MAX_DEPTH: usize = 64;
/// Larger ones neither.
const MAX_FIELDS: usize = 50_000;

/// One field of a schema: a property, the item of a list or the value of a map.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    /// Such as `.spec.ports[].name`; the values of a map are `{}`.
    pub(crate) path: String,
    /// The name, if it is a property.
    pub(crate) name: Option<&'a str>,
    /// What it may be.
    pub(crate) schema: &'a JSONSchemaProps,
    /// Whether it must be there.
    pub(crate) required: bool,
    depth: usize,
}

/// Every field of a schema, parents before children. The metadata of objects is everywhere the same and left out.
pub(crate) fn of(schema: &JSONSchemaProps) -> Vec<Field<'_>> {
    let root = Field {
        path: String::new(),
        name: None,
        schema,
        required: true,
        depth: 0,
    };
    let mut found = Vec::new();
    let mut stack = children(&root);
    stack.reverse();
    while let Some(field) = stack.pop() {
        let mut below = children(&field);
        below.reverse();
        stack.extend(below);
        found.push(field);
        if found.len() >= MAX_FIELDS {
            break;
        }
    }
    found
}

/// The fields directly below one.
fn children<'a>(field: &Field<'a>) -> Vec<Field<'a>> {
    if field.depth >= MAX_DEPTH {
        return Vec::new();
    }
    let child = |suffix: String, name, schema, required| Field {
        path: format!("{}{suffix}", field.path),
        name,
        schema,
        required,
        depth: field.depth + 1,
    };
    let mut found = Vec::new();
    for (name, schema) in properties(field.schema) {
        if field.depth > 0 || !matches!(name, "apiVersion" | "kind" | "metadata") {
            found.push(child(
                format!(".{name}"),
                Some(name),
                schema,
                is_required(field.schema, name),
            ));
        }
    }
    found.extend(items(field.schema).map(|schema| child("[]".into(), None, schema, true)));
    found.extend(values(field.schema).map(|schema| child("{}".into(), None, schema, true)));
    found
}

/// The properties of an object, by name.
pub(crate) fn properties(
    schema: &JSONSchemaProps,
) -> impl Iterator<Item = (&str, &JSONSchemaProps)> {
    schema
        .properties
        .iter()
        .flatten()
        .map(|(name, schema)| (name.as_str(), schema))
}

/// One property of an object.
pub(crate) fn property<'a>(schema: &'a JSONSchemaProps, name: &str) -> Option<&'a JSONSchemaProps> {
    schema.properties.as_ref()?.get(name)
}

/// Whether a property of an object must be there.
pub(crate) fn is_required(schema: &JSONSchemaProps, name: &str) -> bool {
    schema
        .required
        .iter()
        .flatten()
        .any(|required| required == name)
}

/// What the items of a list may be.
pub(crate) fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(schema) => Some(schema),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

/// What the values of a map may be.
pub(crate) fn values(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.additional_properties.as_ref()? {
        JSONSchemaPropsOrBool::Schema(schema) => Some(schema),
        JSONSchemaPropsOrBool::Bool(_) => None,
    }
}

/// The type, or nothing when it may be any.
pub(crate) fn type_of(schema: &JSONSchemaProps) -> &str {
    schema.type_.as_deref().unwrap_or("")
}

/// Whether a schema keeps fields that it does not know.
pub(crate) fn preserves_unknown(schema: &JSONSchemaProps) -> bool {
    schema.x_kubernetes_preserve_unknown_fields == Some(true)
}

/// Whether a value may be a whole number or a text.
pub(crate) fn is_int_or_string(schema: &JSONSchemaProps) -> bool {
    schema.x_kubernetes_int_or_string == Some(true)
}
