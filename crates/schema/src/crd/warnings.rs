//! Warnings about a CRD: things that are accepted, but will not do what the author may expect.

use std::collections::BTreeSet;

use serde_json::Value;

use super::schema::Schema;
use kubewright_cel::formats;

/// The warnings that come with creating a CRD, or with updating one: those that the old one had already are left out.
pub fn definition_warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map(Found::of).unwrap_or_default();
    let now = Found::of(new);
    let formats = now
        .formats
        .into_iter()
        .filter(|format| !before.formats.contains(format));
    let sets = now.sets.difference(&before.sets).map(|ty| {
        format!(
            "x-kubernetes-list-type: set for items of type {ty:?} is not supported by server-side apply or CEL \
             validation rules"
        )
    });
    let formats = formats.map(|format| format!("unrecognized format {format:?}"));
    formats.chain(sets).collect()
}

#[derive(Default)]
struct Found {
    /// Unknown formats, once for each place.
    formats: Vec<String>,
    /// Types of the items of sets that are not scalars.
    sets: BTreeSet<String>,
}

impl Found {
    /// Looks at a schema that all versions have in common once.
    fn of(crd: &Value) -> Self {
        let versions = crd["spec"]["versions"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let schemas = versions
            .iter()
            .map(|version| &version["schema"]["openAPIV3Schema"]);
        let mut schemas: Vec<&Value> = schemas.collect();
        if schemas.windows(2).all(|pair| pair[0] == pair[1]) {
            schemas.truncate(1);
        }
        let mut found = Self::default();
        for schema in schemas.into_iter().map(Schema) {
            if schema.check_size().is_ok() {
                found.add(schema);
            }
        }
        found
    }

    /// Recursion over a schema of checked size.
    fn add(&mut self, schema: Schema<'_>) {
        let format = schema.text("format");
        if !format.is_empty() && formats::supported(schema.ty(), format).is_none() {
            self.formats.push(format.to_owned());
        }
        if let (Some("set"), Some(items)) = (schema.list_type(), schema.items())
            && matches!(items.ty(), "object" | "array")
        {
            self.sets.insert(items.ty().to_owned());
        }
        schema
            .children()
            .into_iter()
            .for_each(|child| self.add(child));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(spec: Value) -> Value {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}})
    }

    #[test]
    fn unknown_formats_are_warned_of_once_introduced() {
        let odd = crd(json!({"type": "string", "format": "colour"}));
        assert_eq!(
            definition_warnings(&odd, None),
            ["unrecognized format \"colour\""]
        );
        assert!(definition_warnings(&odd, Some(&odd)).is_empty());
        assert!(
            definition_warnings(&crd(json!({"type": "string", "format": "date"})), None).is_empty()
        );
    }

    #[test]
    fn sets_of_objects_are_warned_of() {
        let set = crd(
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
        );
        assert_eq!(
            definition_warnings(&set, None),
            [
                "x-kubernetes-list-type: set for items of type \"object\" is not supported by server-side apply or CEL \
              validation rules"
            ]
        );
    }
}
