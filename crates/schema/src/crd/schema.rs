//! A view of one node of an OpenAPI schema in JSON, with the defaults of absent keywords.
//!
//! Keywords of the wrong JSON type read as absent: the type table has checked the object before it gets here.

use serde_json::Value;

use crate::go::sorted;

/// Deepest nesting of schemas. JSON of 127 levels, the most our decoder reads, holds no more.
pub(super) const MAX_DEPTH: usize = 64;
/// Most nodes in one version's schema, combinators included.
pub(super) const MAX_NODES: usize = 50_000;

/// One node of a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schema<'a>(pub(super) &'a Value);

/// A schema that can be walked safely, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// The schema is nested too deeply.
    #[error("schema is nested more than {MAX_DEPTH} levels deep")]
    Deep,
    /// The schema has too many nodes.
    #[error("schema has more than {MAX_NODES} nodes")]
    Large,
}

/// What `additionalProperties` holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum AdditionalProperties<'a> {
    Absent,
    Allowed,
    Forbidden,
    Schema(Schema<'a>),
}

impl<'a> Schema<'a> {
    pub(super) fn raw(self, keyword: &str) -> Option<&'a Value> {
        self.0.get(keyword).filter(|v| !v.is_null())
    }

    pub(super) fn text(self, keyword: &str) -> &'a str {
        self.raw(keyword).and_then(Value::as_str).unwrap_or("")
    }

    pub(super) fn flag(self, keyword: &str) -> bool {
        self.raw(keyword).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn number(self, keyword: &str) -> Option<f64> {
        self.raw(keyword).and_then(Value::as_f64)
    }

    /// A size; the API server takes negative ones and they hold or fail for every value alike.
    pub(super) fn size(self, keyword: &str) -> Option<i64> {
        self.raw(keyword).and_then(Value::as_i64)
    }

    pub(super) fn list(self, keyword: &str) -> &'a [Value] {
        self.raw(keyword)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    pub(super) fn texts(self, keyword: &str) -> impl Iterator<Item = &'a str> {
        self.list(keyword).iter().filter_map(Value::as_str)
    }

    pub(super) fn ty(self) -> &'a str {
        self.text("type")
    }

    pub(super) fn list_type(self) -> Option<&'a str> {
        self.raw("x-kubernetes-list-type").and_then(Value::as_str)
    }

    pub(super) fn map_type(self) -> Option<&'a str> {
        self.raw("x-kubernetes-map-type").and_then(Value::as_str)
    }

    pub(super) fn preserves_unknown(self) -> bool {
        self.flag("x-kubernetes-preserve-unknown-fields")
    }

    pub(super) fn is_embedded(self) -> bool {
        self.flag("x-kubernetes-embedded-resource")
    }

    pub(super) fn is_int_or_string(self) -> bool {
        self.flag("x-kubernetes-int-or-string")
    }

    /// Properties by name.
    pub(super) fn properties(self) -> Vec<(&'a String, Schema<'a>)> {
        self.members("properties")
    }

    pub(super) fn members(self, keyword: &str) -> Vec<(&'a String, Schema<'a>)> {
        let Some(map) = self.raw(keyword).and_then(Value::as_object) else {
            return Vec::new();
        };
        sorted(map)
            .into_iter()
            .map(|(k, v)| (k, Schema(v)))
            .collect()
    }

    pub(super) fn property(self, name: &str) -> Option<Schema<'a>> {
        self.raw("properties")?.get(name).map(Schema)
    }

    pub(super) fn has_properties(self) -> bool {
        self.raw("properties")
            .and_then(Value::as_object)
            .is_some_and(|map| !map.is_empty())
    }

    /// The schema of items, when it is one schema rather than a list of them.
    pub(super) fn items(self) -> Option<Schema<'a>> {
        self.raw("items").filter(|v| v.is_object()).map(Schema)
    }

    pub(super) fn additional(self) -> AdditionalProperties<'a> {
        match self.raw("additionalProperties") {
            Some(Value::Bool(true)) => AdditionalProperties::Allowed,
            Some(Value::Bool(false)) => AdditionalProperties::Forbidden,
            Some(schema @ Value::Object(_)) => AdditionalProperties::Schema(Schema(schema)),
            _ => AdditionalProperties::Absent,
        }
    }

    pub(super) fn branches(self, keyword: &str) -> impl Iterator<Item = Schema<'a>> {
        self.list(keyword).iter().map(Schema)
    }

    pub(super) fn not(self) -> Option<Schema<'a>> {
        self.raw("not").map(Schema)
    }

    /// Every schema directly below this one.
    pub(super) fn children(self) -> Vec<Schema<'a>> {
        let mut out: Vec<Schema<'a>> = Vec::new();
        for keyword in [
            "properties",
            "patternProperties",
            "definitions",
            "dependencies",
        ] {
            out.extend(self.members(keyword).into_iter().map(|(_, schema)| schema));
        }
        for keyword in ["allOf", "anyOf", "oneOf", "items"] {
            out.extend(self.branches(keyword));
        }
        let singles = ["items", "additionalProperties", "additionalItems", "not"];
        out.extend(singles.iter().filter_map(|k| self.raw(k)).map(Schema));
        out.retain(|schema| schema.0.is_object());
        out
    }

    /// Checks that the schema is small enough for everything else to recurse over it.
    pub(super) fn check_size(self) -> Result<(), SizeError> {
        let mut nodes = 0;
        let mut stack = vec![(self, 1)];
        while let Some((schema, depth)) = stack.pop() {
            nodes += 1;
            if depth > MAX_DEPTH {
                return Err(SizeError::Deep);
            }
            if nodes > MAX_NODES {
                return Err(SizeError::Large);
            }
            stack.extend(schema.children().into_iter().map(|s| (s, depth + 1)));
        }
        Ok(())
    }

    /// Whether a predicate holds for this node or any below it. Only on schemas of checked size.
    pub(super) fn any(self, predicate: &dyn Fn(Schema<'a>) -> bool) -> bool {
        predicate(self) || self.children().into_iter().any(|s| s.any(predicate))
    }
}
