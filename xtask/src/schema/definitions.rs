//! Reads the JSON-schema definitions and lays their fields out in the order of the Go structs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::golang::{Form, Place, Structs};

/// Definitions whose JSON is not an object with fields, and the shape they have in the table.
const SPECIAL: &[(&str, &str)] = &[
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
        "any",
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
        "any JSONSchemaProps []JSONSchemaProps",
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
        "any JSONSchemaProps bool",
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
        "any JSONSchemaProps []string",
    ),
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", "quantity"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "any"),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
        "microtime",
    ),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Patch", "any"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "time"),
    ("io.k8s.apimachinery.pkg.runtime.RawExtension", "any"),
    (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        "intorstring",
    ),
];

/// Types that `omitempty` leaves out when they are zero.
const SCALARS: [&str; 6] = ["string", "bytes", "bool", "int32", "int64", "double"];

/// The usual order of fields, for definitions without a Go struct.
const USUAL: [&str; 6] = ["kind", "apiVersion", "metadata", "spec", "status", "items"];

/// One named type of the table.
pub(super) struct Type {
    pub(super) name: String,
    /// `struct`, or the scalar or `any` that a special type stands for; `any X Y` is an `X` or a `Y`.
    pub(super) shape: &'static str,
    pub(super) atomic: bool,
    /// `apps/v1 Deployment`, sorted.
    pub(super) kinds: Vec<String>,
    pub(super) fields: Vec<Field>,
}

/// One field of a type.
pub(super) struct Field {
    pub(super) name: String,
    /// `int32`, `[]string`, `{}io.k8s.apimachinery.pkg.api.resource.Quantity`.
    pub(super) ty: String,
    /// Protobuf tags from the outermost message to the field; empty when unknown.
    pub(super) tags: Vec<u32>,
    /// Words such as `required`, `always`, `omitzero`, `list=set`, in a fixed order.
    pub(super) words: Vec<String>,
}

/// Reads all definitions, sorted by name.
pub(super) fn read(path: &Path, structs: &Structs) -> Result<Vec<Type>> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let mut document: Value = serde_json::from_str(&text)?;
    let Some(Value::Object(definitions)) = document.get_mut("$defs").map(Value::take) else {
        bail!("{} has no $defs", path.display());
    };
    let definitions: BTreeMap<String, Value> = definitions.into_iter().collect();
    definitions
        .iter()
        .map(|(name, definition)| {
            read_type(name, definition, structs).with_context(|| format!("definition {name}"))
        })
        .collect()
}

fn read_type(name: &str, definition: &Value, structs: &Structs) -> Result<Type> {
    let special = SPECIAL.iter().find(|(special, _)| *special == name);
    let empty = Map::new();
    let properties = definition["properties"].as_object().unwrap_or(&empty);
    let required: Vec<&str> = strings(&definition["required"]);
    let mut fields = Vec::new();
    for (property, place) in order(name, properties, structs) {
        let schema = &properties[property];
        let ty = type_of(schema).with_context(|| format!("field {property}"))?;
        let mut words = Vec::new();
        if required.contains(&property) {
            words.push("required".to_owned());
        }
        if place
            .as_ref()
            .is_some_and(|place| is_always_written(&ty, place.form))
        {
            words.push("always".to_owned());
        }
        if let Some(place) = &place {
            words.extend(form_words(&ty, place));
        }
        words.extend(merge_words(schema));
        fields.push(Field {
            name: property.to_owned(),
            ty,
            tags: place.map_or_else(Vec::new, |place| place.tags),
            words,
        });
    }
    let mut kinds: Vec<String> = definition["x-kubernetes-group-version-kind"]
        .as_array()
        .into_iter()
        .flatten()
        .map(kind_of)
        .collect();
    kinds.sort();
    Ok(Type {
        name: name.to_owned(),
        shape: special.map_or("struct", |(_, shape)| shape),
        atomic: definition["x-kubernetes-map-type"] == "atomic",
        kinds,
        fields,
    })
}

/// Field names in the order the API server writes them: that of the Go struct. A definition without a struct has the
/// usual order.
fn order<'a>(
    name: &str,
    properties: &'a Map<String, Value>,
    structs: &Structs,
) -> Vec<(&'a str, Option<Place>)> {
    let mut ordered = Vec::new();
    for place in structs.places(name) {
        if let Some((property, _)) = properties.get_key_value(&place.name) {
            ordered.push((property.as_str(), Some(place)));
        }
    }
    let mut left: Vec<&str> = properties.keys().map(String::as_str).collect();
    left.retain(|name| !ordered.iter().any(|(placed, _)| placed == name));
    left.sort_by_key(|name| {
        let usual = USUAL.iter().position(|usual| usual == name);
        (usual.unwrap_or(USUAL.len()), *name)
    });
    ordered.extend(left.into_iter().map(|name| (name, None)));
    ordered
}

/// Whether Go writes the field even when it is empty: nothing says that it may be left out, or `omitempty` says so of a
/// struct that is not a pointer, for which it does nothing; a time is a struct. A pointer that is always written is
/// `null` when it is empty, which tells clients nothing.
fn is_always_written(ty: &str, form: Form) -> bool {
    let special = SPECIAL.iter().find(|(special, _)| *special == ty);
    let structure = special.map_or(ty.starts_with("io.k8s."), |(_, shape)| {
        shape.ends_with("time")
    });
    !form.pointer && !form.omit_zero && (structure || !form.omit_empty)
}

/// What only protobuf needs to know: `wrapped` is a list in a message of its own, `omitzero` a value that protobuf
/// always has and that JSON leaves out when it is zero.
fn form_words(ty: &str, place: &Place) -> Vec<String> {
    let Form {
        pointer,
        omit_empty,
        single,
        ..
    } = place.form;
    let mut words = Vec::new();
    if ty.starts_with("{}[]") || (ty.starts_with("[]") && single && !place.tags.is_empty()) {
        words.push("wrapped".to_owned());
    }
    if SCALARS.contains(&ty) && omit_empty && !pointer && !place.tags.is_empty() {
        words.push("omitzero".to_owned());
    }
    words
}

fn type_of(schema: &Value) -> Result<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/$defs/");
        return Ok(name.context("a reference into $defs")?.to_owned());
    }
    let ty = match &schema["type"] {
        Value::String(ty) => ty.as_str(),
        Value::Array(types) => types[0].as_str().unwrap_or_default(),
        _ => "",
    };
    let format = schema["format"].as_str().unwrap_or_default();
    Ok(match (ty, format) {
        ("string", "") => "string".to_owned(),
        ("string", "byte") => "bytes".to_owned(),
        ("boolean", "") => "bool".to_owned(),
        ("integer", "int32" | "int64") => format.to_owned(),
        ("number", "double") => "double".to_owned(),
        ("array", "") => format!("[]{}", type_of(&schema["items"])?),
        ("object", "") => format!("{{}}{}", type_of(&schema["additionalProperties"])?),
        (ty, format) => bail!("no shape for type {ty:?} with format {format:?}"),
    })
}

/// How lists, maps and merges treat the field: `list=set`, `list=map:name`, `map=atomic`, `patch=merge`, `by=name`.
fn merge_words(schema: &Value) -> Vec<String> {
    let mut words = Vec::new();
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => words.push("list=set".to_owned()),
        Some("map") => words.push(format!(
            "list=map:{}",
            strings(&schema["x-kubernetes-list-map-keys"]).join(",")
        )),
        _ => {}
    }
    let plain = [
        ("map", "x-kubernetes-map-type"),
        ("patch", "x-kubernetes-patch-strategy"),
        ("by", "x-kubernetes-patch-merge-key"),
    ];
    for (word, key) in plain {
        if let Some(value) = schema[key].as_str() {
            words.push(format!("{word}={value}"));
        }
    }
    words
}

fn kind_of(entry: &Value) -> String {
    let part = |name: &str| entry[name].as_str().unwrap_or_default();
    match part("group") {
        "" => format!("{} {}", part("version"), part("kind")),
        group => format!("{group}/{} {}", part("version"), part("kind")),
    }
}

fn strings(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
