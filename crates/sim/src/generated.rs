//! Names that the server makes, as those of pods, differ between two runs. Plans call their objects by prefix and number instead:
//! `web-<2>` is the second object of the prefix `web-` in its namespace.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

/// A resource and a key.
type Id = (String, String);

/// The names that the server made in a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Generated {
    /// How many objects of a resource have the same namespace and prefix so far.
    counts: BTreeMap<Id, u32>,
    /// What an object of this name is called in plans.
    aliases: BTreeMap<String, String>,
    /// The key of the object that plans call so.
    keys: BTreeMap<Id, String>,
}

#[derive(Deserialize)]
struct Named {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    generate_name: Option<String>,
}

impl Generated {
    /// Takes a new object in, whose name may be one that the server made.
    pub(crate) fn note(&mut self, (resource, key): &Id, body: &[u8]) {
        let Ok(Named { metadata }) = serde_json::from_slice(body) else {
            return;
        };
        let prefix = metadata.generate_name.unwrap_or_default();
        if prefix.is_empty() || !metadata.name.starts_with(&prefix) {
            return;
        }
        let of = |name: &str| match key.rsplit_once('/') {
            Some((namespace, _)) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        };
        let count = self.counts.entry((resource.clone(), of(&prefix)));
        let count = count.or_default();
        *count += 1;
        let alias = format!("{prefix}<{count}>");
        let id = (resource.clone(), of(&alias));
        self.keys.insert(id, key.clone());
        self.aliases.insert(metadata.name, alias);
    }

    /// What plans call a name or a key: itself, unless the server made the name.
    pub(crate) fn alias<'a>(&self, key: &'a str) -> Cow<'a, str> {
        let (namespace, name) = match key.rsplit_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, key),
        };
        match (self.aliases.get(name), namespace) {
            (None, _) => Cow::Borrowed(key),
            (Some(alias), Some(namespace)) => Cow::Owned(format!("{namespace}/{alias}")),
            (Some(alias), None) => Cow::Owned(alias.clone()),
        }
    }

    /// The key of the object that a plan calls so.
    pub(crate) fn key(&self, resource: &str, alias: &str) -> String {
        let id = (resource.to_owned(), alias.to_owned());
        self.keys.get(&id).unwrap_or(&id.1).clone()
    }
}

/// The name that all objects of a prefix have in common, as `default/web-*` for `default/web-<2>`: which of several that are
/// alike is created or deleted has no meaning.
pub(crate) fn family(key: &str) -> Cow<'_, str> {
    match key.strip_suffix('>').and_then(|key| key.rsplit_once('<')) {
        Some((prefix, _)) => Cow::Owned(format!("{prefix}*")),
        None => Cow::Borrowed(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_of_one_prefix_are_numbered_in_the_order_of_their_creation() {
        let mut generated = Generated::default();
        let mut create = |name: &str, prefix: Option<&str>| {
            let id = ("pods".to_owned(), format!("default/{name}"));
            let body = json!({"metadata": {"name": name, "generateName": prefix}});
            generated.note(&id, body.to_string().as_bytes());
        };
        create("web-zzz", Some("web-"));
        create("web-aaa", Some("web-"));
        create("web-0", None);
        create("other", Some("web-"));
        assert_eq!(generated.alias("default/web-zzz"), "default/web-<1>");
        assert_eq!(generated.alias("web-aaa"), "web-<2>");
        assert_eq!(generated.alias("default/web-0"), "default/web-0");
        assert_eq!(generated.alias("default/other"), "default/other");
        assert_eq!(generated.key("pods", "default/web-<2>"), "default/web-aaa");
        assert_eq!(generated.key("pods", "default/web-0"), "default/web-0");
        assert_eq!(family("default/web-<2>"), "default/web-*");
        assert_eq!(family("default/web-0"), "default/web-0");
    }
}
