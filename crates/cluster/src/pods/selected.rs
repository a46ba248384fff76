//! Finds the pods that a selector selects without looking at all others of the namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::{Client, ClientError, Index, Query};

/// The index of pods by namespace and each of their labels.
const BY_LABEL: &str = "label";

/// The pods of a namespace that have a label of this selector, which all that it selects are among; all of the namespace
/// where the selector says nothing.
pub(crate) async fn candidates(
    client: &Client,
    namespace: &str,
    selector: &BTreeMap<String, String>,
) -> Result<Vec<Arc<Pod>>, ClientError> {
    // Labels that come last in the alphabet are not rarer than others, but the choice has to be the same every time.
    let Some((key, value)) = selector.last_key_value() else {
        return client.list(Query::all().namespace(namespace)).await;
    };
    let index = Index::of_metadata(|object| {
        let namespace = object.key().namespace().unwrap_or_default().to_owned();
        let labels = object.labels().into_iter();
        labels
            .map(|(key, value)| entry(&namespace, &key, &value))
            .collect()
    });
    // The first of many callers adds it; for the others it is there already.
    let _ = client.add_index::<Pod>(BY_LABEL, index);
    let value = entry(namespace, key, value);
    client.list(Query::all().index(BY_LABEL, value)).await
}

/// Where a label is in the index.
pub(super) fn entry(namespace: &str, key: &str, value: &str) -> String {
    format!("{namespace}/{key}={value}")
}
