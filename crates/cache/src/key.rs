//! Names an object within its kind: namespace and name, in one shared string.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use kube::core::Resource;

use crate::AsObject;

/// The key of an object: `namespace/name`, or `name` for objects without a namespace.
///
/// Cheap to clone. Keys are ordered as strings, so all keys of one namespace are neighbours.
///
/// ```
/// use kubewright_cache::Key;
///
/// let key = Key::new("default", "web-0");
/// assert_eq!((key.namespace(), key.name()), (Some("default"), "web-0"));
/// assert_eq!(key.to_string(), "default/web-0");
/// assert_eq!(Key::parse("node-1"), Some(Key::cluster("node-1")));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// The key of an object in a namespace. An empty namespace means none.
    ///
    /// ```
    /// # use kubewright_cache::Key;
    /// let key = Key::new("default", "web");
    /// assert_eq!((key.namespace(), key.name()), (Some("default"), "web"));
    /// assert_eq!(key.to_string(), "default/web");
    /// ```
    pub fn new(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            return Self::cluster(name);
        }
        let mut text = String::with_capacity(namespace.len() + 1 + name.len());
        text.push_str(namespace);
        text.push('/');
        text.push_str(name);
        Self(text.into())
    }

    /// The key of an object without a namespace.
    ///
    /// ```
    /// # use kubewright_cache::Key;
    /// let node = Key::cluster("node-1");
    /// assert_eq!((node.namespace(), node.as_str()), (None, "node-1"));
    /// ```
    pub fn cluster(name: &str) -> Self {
        Self(name.into())
    }

    /// The key of this object. One that has no name yet has an empty one in its key.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_cache::Key;
    /// let mut map = ConfigMap::default();
    /// map.metadata.name = Some("web".to_owned());
    /// map.metadata.namespace = Some("default".to_owned());
    /// assert_eq!(Key::of(&map), Key::new("default", "web"));
    /// ```
    pub fn of<K: Resource>(object: impl AsObject<K>) -> Self {
        let meta = object.as_object().meta();
        let name = meta.name.as_deref().unwrap_or_default();
        Self::new(meta.namespace.as_deref().unwrap_or_default(), name)
    }

    /// The key of another object beside this one: in the same namespace, or in none.
    ///
    /// ```
    /// use kubewright_cache::Key;
    ///
    /// assert_eq!(Key::new("default", "web").sibling("db"), Key::new("default", "db"));
    /// assert_eq!(Key::cluster("web").sibling("db"), Key::cluster("db"));
    /// ```
    #[must_use]
    pub fn sibling(&self, name: &str) -> Self {
        Self::new(self.namespace().unwrap_or_default(), name)
    }

    /// Reads `namespace/name` or `name`; nothing when a part is empty or there are more than two.
    ///
    /// ```
    /// # use kubewright_cache::Key;
    /// assert_eq!(Key::parse("default/web"), Some(Key::new("default", "web")));
    /// assert_eq!(Key::parse("node-1"), Some(Key::cluster("node-1")));
    /// assert_eq!(Key::parse("a/b/c"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let sound = parts.all(|part| !part.is_empty()) && text.split('/').count() <= 2;
        sound.then(|| Self(text.into()))
    }

    /// The namespace, if the object has one.
    ///
    /// ```
    /// # use kubewright_cache::Key;
    /// assert_eq!(Key::new("default", "web").namespace(), Some("default"));
    /// assert_eq!(Key::cluster("node-1").namespace(), None);
    /// ```
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    /// Returns the object's name, without the namespace.
    ///
    /// ```
    /// # use kubewright_cache::Key;
    /// assert_eq!(Key::new("default", "web").name(), "web");
    /// ```
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// The whole key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_with_an_empty_part_or_three_parts_is_no_key() {
        for text in ["", "/", "a/", "/a", "a/b/c"] {
            assert_eq!(Key::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn key_comes_back_from_its_text() {
        for key in [Key::new("a", "b"), Key::new("", "b"), Key::cluster("c")] {
            assert_eq!(Key::parse(key.as_str()), Some(key));
        }
    }
}
