//! Selectors as a test of cached objects, for those who see less than the cache holds.

use kubewright_cache::{Event, Key, Object, Scope, Selector};
use serde_json::Value;

use super::PolicyError;

/// What objects have to be like: labels and fields.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    labels: Option<Selector>,
    fields: Vec<Requirement>,
}

/// One requirement of a field selector, `spec.nodeName=n1` or `status.phase!=Running`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    path: String,
    value: String,
    is_equal: bool,
}

impl Requirement {
    /// Whether a field with this text is as it is required.
    fn holds(&self, text: &str) -> bool {
        (text == self.value) == self.is_equal
    }
}

impl Filter {
    pub(crate) fn new(labels: Option<&str>, fields: Option<&str>) -> Result<Self, PolicyError> {
        let labels = labels.map(Selector::parse).transpose();
        let fields = fields.unwrap_or_default().split(',').map(str::trim);
        let fields = fields.filter(|text| !text.is_empty());
        Ok(Self {
            labels: labels.map_err(PolicyError::new)?,
            fields: fields.map(requirement).collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn of(scope: &Scope) -> Result<Self, PolicyError> {
        Self::new(scope.label_selector(), scope.field_selector())
    }

    /// Whether all objects pass.
    pub(crate) fn admits_all(&self) -> bool {
        self.labels.is_none() && self.fields.is_empty()
    }

    /// Whether an object has to be looked at beyond its metadata.
    pub(crate) fn needs_body(&self) -> bool {
        self.fields.iter().any(|field| !is_in_key(&field.path))
    }

    pub(crate) fn needs_labels(&self) -> bool {
        self.labels.is_some()
    }

    pub(crate) fn admits(&self, object: &Object) -> bool {
        let labelled = |selector: &Selector| selector.matches_by(|name| object.label(name));
        if !self.labels.as_ref().is_none_or(labelled) {
            return false;
        }
        self.has_fields(object)
    }

    /// Whether the object of a key passes, where the key is enough to say so.
    pub(crate) fn admits_key(&self, key: &Key) -> Option<bool> {
        let of_key = self.fields.iter().filter(|field| is_in_key(&field.path));
        let mut of_key = of_key.map(|field| field.holds(text_in_key(key, &field.path)));
        if !of_key.all(|holds| holds) {
            return Some(false);
        }
        (!self.needs_labels() && !self.needs_body()).then_some(true)
    }

    fn has_fields(&self, object: &Object) -> bool {
        let body: Value = if self.needs_body() {
            serde_json::from_slice(object.json()).unwrap_or_default()
        } else {
            Value::Null
        };
        self.fields.iter().all(|field| {
            if is_in_key(&field.path) {
                field.holds(text_in_key(object.key(), &field.path))
            } else {
                field.holds(&text_at(&body, &field.path))
            }
        })
    }
}

/// A part of what the cache of a kind holds: what a controller or a watch with a scope of its own sees.
#[derive(Debug, Clone, Default)]
pub(crate) struct Narrow {
    namespace: Option<String>,
    filter: Filter,
}

impl Narrow {
    pub(crate) fn of(scope: &Scope) -> Result<Self, PolicyError> {
        Ok(Self {
            namespace: scope.only_namespace().map(str::to_owned),
            filter: Filter::of(scope)?,
        })
    }

    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Whether an object with this key can be in it.
    pub(crate) fn covers(&self, key: &Key) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == key.namespace()
    }

    pub(crate) fn admits(&self, object: &Object) -> bool {
        self.covers(object.key()) && self.filter.admits(object)
    }

    /// The event as an informer of this part alone would tell it: what comes in is added, what leaves is deleted.
    pub(crate) fn event<K>(&self, event: Event<K>) -> Option<Event<K>> {
        if self.namespace.is_none() && self.filter.admits_all() {
            return Some(event);
        }
        match event {
            Event::Updated { old, new } => match (self.admits(&old), self.admits(&new)) {
                (true, true) => Some(Event::Updated { old, new }),
                (false, false) => None,
                (false, true) => Some(Event::Added {
                    object: new,
                    initial: false,
                }),
                (true, false) => Some(Event::Deleted {
                    last: new,
                    observed: true,
                }),
            },
            other => self.admits(other.object()).then_some(other),
        }
    }
}

fn is_in_key(path: &str) -> bool {
    matches!(path, "metadata.name" | "metadata.namespace")
}

/// Returns the text of a field that is in the key.
fn text_in_key<'a>(key: &'a Key, path: &str) -> &'a str {
    match path {
        "metadata.name" => key.name(),
        _ => key.namespace().unwrap_or_default(),
    }
}

/// Returns the text of a field, or an empty text where the object lacks the field, as the field sets of kinds do.
fn text_at(body: &Value, path: &str) -> String {
    let mut at = body;
    for name in path.split('.') {
        at = &at[name];
    }
    match at {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn requirement(text: &str) -> Result<Requirement, PolicyError> {
    let parts = text
        .split_once("!=")
        .map(|parts| (parts, false))
        .or_else(|| text.split_once("==").map(|parts| (parts, true)))
        .or_else(|| text.split_once('=').map(|parts| (parts, true)));
    let unreadable = || {
        PolicyError::new(format!(
            "{text:?} is not a field selector: there is no operator"
        ))
    };
    let ((path, value), is_equal) = parts.ok_or_else(unreadable)?;
    Ok(Requirement {
        path: path.trim().to_owned(),
        value: value.trim().to_owned(),
        is_equal,
    })
}

#[cfg(test)]
mod tests {
    use kubewright_cache::Shape;

    use super::*;

    #[track_caller]
    fn check(labels: &str, fields: &str, expected: bool) {
        let json = br#"{"metadata":{"name":"a","namespace":"n","labels":{"app":"web"}},"spec":{"nodeName":"n1","count":3,"on":true}}"#;
        let object = Object::parse(json, &Shape::default()).expect("it is an object");
        let labels = (!labels.is_empty()).then_some(labels);
        let filter = Filter::new(labels, Some(fields)).expect("they are selectors");
        assert_eq!(filter.admits(&object), expected, "{labels:?} {fields}");
    }

    #[test]
    fn selectors_hold_as_a_server_reads_them() {
        check("", "", true);
        check("app=web", "", true);
        check("app in (a,b)", "", false);
        check("!app", "", false);
        check("", "metadata.name=a,metadata.namespace==n", true);
        check("", "metadata.name!=a", false);
        check("app", "spec.nodeName=n1", true);
        check("app", "spec.nodeName=", false);
        check("", "spec.schedulerName=,spec.nodeName!=", true);
        check("", "spec.count=3,spec.on=true", true);
    }

    #[test]
    fn key_says_what_it_can_about_its_object() {
        let key = Key::new("n", "a");
        for (labels, fields, expected) in [
            (None, "", Some(true)),
            (None, "metadata.name=a,metadata.namespace=n", Some(true)),
            (None, "metadata.name=b,spec.nodeName=n1", Some(false)),
            (Some("app"), "metadata.namespace!=n", Some(false)),
            (Some("app"), "metadata.name=a", None),
            (None, "spec.nodeName=n1", None),
        ] {
            let filter = Filter::new(labels, Some(fields)).expect("they are selectors");
            assert_eq!(filter.admits_key(&key), expected, "{labels:?} {fields}");
        }
    }

    #[test]
    fn text_that_is_no_selector_is_refused() {
        assert!(Filter::new(Some("a in"), None).is_err());
        assert!(Filter::new(None, Some("spec.nodeName")).is_err());
    }
}
