//! Finds what may select a pod without looking at everything else of the namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubewright_cache::NAMESPACE_INDEX;
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
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let reader = client.reader::<K>();
    let without_labels = place(namespace, None);
    let mut found = reader.by_index(BY_ASKED_LABEL, &without_labels);
    if found.is_err() {
        let index = Index::of(move |object: &K| {
            let namespace = object.meta().namespace.as_deref().unwrap_or_default();
            vec![place(namespace, asked(object))]
        });
        // The first of many callers adds it.
        let _ = client.add_index::<K>(BY_ASKED_LABEL, index);
        found = reader.by_index(BY_ASKED_LABEL, &without_labels);
    }
    let Ok(mut found) = found else {
        // Another caller is still filling it.
        let all = reader.by_index(NAMESPACE_INDEX, namespace);
        return all.unwrap_or_default();
    };
    for (key, value) in pod.metadata.labels.iter().flatten() {
        let more = reader.by_index(BY_ASKED_LABEL, &entry(namespace, key, value));
        found.extend(more.unwrap_or_default());
    }
    found
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
