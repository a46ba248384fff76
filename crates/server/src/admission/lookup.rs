//! What plugins look up in the store.

use std::sync::Arc;

use serde_json::Value;

use super::AdmissionChain;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::At;

/// The namespaces.
pub(super) fn namespaces(chain: &AdmissionChain) -> Arc<Served> {
    chain.registry.now().builtin("", "v1", "namespaces")
}

/// A namespace, if it is there.
pub(super) fn namespace(chain: &AdmissionChain, name: &str) -> Result<Option<Value>, ApiError> {
    let served = namespaces(chain);
    let record = served.collection.get(name);
    record.map(|record| served.revive(&record)).transpose()
}

/// The objects of a built-in resource in a namespace, or all of them for an empty one.
pub(super) fn all(
    chain: &AdmissionChain,
    (group, version, plural): (&str, &str, &str),
    namespace: &str,
) -> Result<Vec<Value>, ApiError> {
    let served = chain.registry.now().builtin(group, version, plural);
    let snapshot = served.collection.snapshot(At::Latest);
    let snapshot = snapshot.map_err(ApiError::internal)?;
    let prefix = match namespace {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    let records = snapshot.range(&prefix, None);
    records.map(|record| served.revive(record)).collect()
}

/// One object of a built-in resource.
pub(super) fn one(
    chain: &AdmissionChain,
    (group, version, plural): (&str, &str, &str),
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<Value>, ApiError> {
    let served = chain.registry.now().builtin(group, version, plural);
    let record = served.collection.get(&served.key(namespace, name));
    record.map(|record| served.revive(&record)).transpose()
}
