//! Finds what may select a pod without looking at everything else of the namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::client::TypedObject;
use kubewright_runtime::{Client, Index};

use super::selected::entry;

/// The index by namespace and one of the labels that are asked for.
const BY_ASKED_LABEL: &str = "asked-label";

/// The labels that an object asks pods for; none when it asks for none, or for more than labels.
pub(crate) type Asked<K> = fn(&K) -> Option<&BTreeMap<String, String>>;

/// The objects of a pod's namespace that may select it: those that ask for one of its labels, and those that ask for no
/// label at all.
pub(crate) fn selecting<K: TypedObject>(
    client: &Client,
    pod: &Pod,
    asked: Asked<K>,
) -> Vec<Arc<K>> {
    let index = Index::of(move |object: &K| {
        let namespace = object.meta().namespace.as_deref().unwrap_or_default();
        vec![place(namespace, asked(object))]
    });
    // The first of many callers adds it; for the others it is there already.
    let _ = client.add_index::<K>(BY_ASKED_LABEL, index);
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let labels = pod.metadata.labels.iter().flatten();
    let places = labels.map(|(key, value)| entry(namespace, key, value));
    let reader = client.reader::<K>();
    let found = places.chain([place(namespace, None)]);
    let found = found.filter_map(|place| reader.by_index(BY_ASKED_LABEL, &place).ok());
    found.flatten().collect()
}

/// Where an object is found that asks for these labels.
fn place(namespace: &str, asked: Option<&BTreeMap<String, String>>) -> String {
    // Any of them would do, as all have to match.
    match asked.and_then(BTreeMap::last_key_value) {
        Some((key, value)) => entry(namespace, key, value),
        None => format!("{namespace}/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_is_found_by_one_label_that_it_asks_for_or_by_none() {
        let labels = BTreeMap::from([("app", "web"), ("tier", "front")]);
        let labels = labels
            .into_iter()
            .map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(place("d", Some(&labels.collect())), "d/tier=front");
        assert_eq!(place("d", Some(&BTreeMap::new())), "d/");
        assert_eq!(place("d", None), "d/");
    }
}
