//! What another server says that it serves.

use std::collections::HashMap;

use kubewright_schema::catalog::{Resource, Scope, Subresource, Verb};
use serde::Deserialize;

use crate::http::path::GroupVersion;

/// Most resources that one group and version may have.
const MAX_RESOURCES: usize = 10_000;

/// An APIResourceList as another server writes it.
#[derive(Deserialize)]
struct ForeignList {
    kind: String,
    #[serde(default)]
    resources: Vec<ForeignResource>,
}

/// One resource of another server, or a part of one: `gauges`, `gauges/scale`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ForeignResource {
    name: String,
    singular_name: String,
    namespaced: bool,
    group: String,
    version: String,
    kind: String,
    verbs: Vec<String>,
    short_names: Vec<String>,
    categories: Vec<String>,
}

/// The resources of an APIResourceList; nothing when it is another document.
pub(crate) fn resources(gv: &GroupVersion, list: &[u8]) -> Option<Vec<Resource>> {
    let mut list: ForeignList = serde_json::from_slice(list).ok()?;
    if list.kind != "APIResourceList" {
        return None;
    }
    list.resources.truncate(MAX_RESOURCES);
    let (mut found, mut parts) = (Vec::new(), HashMap::<_, Vec<_>>::new());
    for entry in &list.resources {
        match entry.name.split_once('/') {
            None => found.push(entry.resource(gv)),
            Some((whole, name)) => {
                let part = entry.subresource(gv, name);
                parts.entry(whole).or_default().push(part);
            }
        }
    }
    for resource in &mut found {
        resource.subresources = parts.remove(&*resource.plural).unwrap_or_default();
    }
    Some(found)
}

impl ForeignResource {
    fn resource(&self, gv: &GroupVersion) -> Resource {
        let scope = if self.namespaced {
            Scope::Namespaced
        } else {
            Scope::Cluster
        };
        let boxed = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect();
        Resource {
            group: gv.group.as_str().into(),
            version: gv.version.as_str().into(),
            plural: self.name.as_str().into(),
            singular: self.singular_name.as_str().into(),
            kind: self.kind.as_str().into(),
            list_kind: format!("{}List", self.kind).into(),
            scope,
            short_names: boxed(&self.short_names),
            categories: boxed(&self.categories),
            verbs: self.verbs(),
            subresources: Vec::new(),
        }
    }

    fn subresource(&self, gv: &GroupVersion, name: &str) -> Subresource {
        let or_own = |given: &str, own: &str| if given.is_empty() { own } else { given }.into();
        Subresource {
            name: name.into(),
            group: or_own(&self.group, &gv.group),
            version: or_own(&self.version, &gv.version),
            kind: self.kind.as_str().into(),
            verbs: self.verbs(),
        }
    }

    fn verbs(&self) -> Vec<Verb> {
        let known = self.verbs.iter().filter_map(|verb| Verb::named(verb));
        known.collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn resources_have_their_parts() {
        let gv = GroupVersion::new("metrics.example.com", "v1");
        let list = json!({"kind": "APIResourceList", "resources": [
            {"name": "gauges", "singularName": "gauge", "namespaced": true, "kind": "Gauge", "verbs": ["get", "list"]},
            {"name": "gauges/scale", "namespaced": true, "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get"]},
        ]});
        let found = resources(&gv, list.to_string().as_bytes()).expect("a list");
        let [gauges] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(gauges.scope, Scope::Namespaced);
        assert_eq!(gauges.verbs, [Verb::Get, Verb::List]);
        assert_eq!(&*gauges.subresources[0].group, "autoscaling");
        for other in [&br#"{"kind": "Status"}"#[..], b"[]", b"nothing"] {
            assert_eq!(resources(&gv, other), None);
        }
    }
}
