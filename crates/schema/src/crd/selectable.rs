//! The fields of custom resources that field selectors may name.

use serde_json::Value;

use super::definition::Version;
use super::jsonpath::JsonPath;
use crate::go;

/// The selectable fields of a version.
#[derive(Debug, Clone)]
pub struct SelectableFields {
    fields: Vec<(String, JsonPath)>,
}

impl SelectableFields {
    /// The fields that a version declares; paths that cannot be read are left out.
    pub fn new(version: &Version) -> Self {
        let field = |path: &String| {
            let name = path.strip_prefix('.').unwrap_or(path);
            Some((name.to_owned(), JsonPath::parse(path).ok()?))
        };
        Self {
            fields: version.selectable_fields.iter().filter_map(field).collect(),
        }
    }

    /// The names that selectors use, such as `spec.mode`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_str())
    }

    /// The value of a field as selectors compare it; absent values are empty. `None` when there is no such field.
    pub fn value(&self, name: &str, object: &Value) -> Option<String> {
        let (_, path) = self.fields.iter().find(|(field, _)| field == name)?;
        let value = path
            .find(object)
            .into_iter()
            .next()
            .filter(|value| !value.is_null());
        Some(value.map(go::display).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_have_values_as_text() {
        let version = Version {
            selectable_fields: vec![
                ".spec.mode".to_owned(),
                ".spec.on".to_owned(),
                ".spec.n".to_owned(),
            ],
            ..Version::default()
        };
        let fields = SelectableFields::new(&version);
        assert_eq!(
            fields.names().collect::<Vec<_>>(),
            ["spec.mode", "spec.on", "spec.n"]
        );
        let object = json!({"spec": {"mode": "a", "on": true, "n": 5}});
        let value = |name| fields.value(name, &object);
        assert_eq!(value("spec.mode").as_deref(), Some("a"));
        assert_eq!(value("spec.on").as_deref(), Some("true"));
        assert_eq!(value("spec.n").as_deref(), Some("5"));
        assert_eq!(fields.value("spec.n", &json!({})).as_deref(), Some(""));
        assert_eq!(value("spec.other"), None);
    }
}
