//! What a Deployment writes on its ReplicaSets: their revision, its own annotations, and for which size they were made.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::bounds::Bounds;

/// The number of a template in the Deployment's history.
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The numbers that a set had before it was rolled back to.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The revision that a Deployment shows.
pub(crate) fn shown_revision(deployment: &Deployment) -> Option<i64> {
    get(&deployment.metadata, REVISION)?.parse().ok()
}

/// How many pods the Deployment wanted when the set was last scaled.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The most pods that the Deployment might have then.
const MOST: &str = "deployment.kubernetes.io/max-replicas";

/// Annotations that are not handed down.
const KEPT: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED,
    MOST,
];

/// The longest history of revisions that a set remembers, in characters.
const HISTORY_LIMIT: usize = 2000;

/// The revision of a set; 0 for none or nonsense.
pub(crate) fn revision(set: &ReplicaSet) -> i64 {
    let text = get(&set.metadata, REVISION);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// How many pods the Deployment wanted when the set was last scaled.
pub(crate) fn desired_before(set: &ReplicaSet) -> Option<i32> {
    count(&set.metadata, DESIRED)
}

/// The most pods that the Deployment might have when the set was last scaled.
pub(crate) fn most_before(set: &ReplicaSet) -> Option<i32> {
    count(&set.metadata, MOST)
}

/// Hands the Deployment's annotations down to its new set and numbers it. A set that had a lower number is rolled
/// back to; it remembers the old one.
pub(crate) fn hand_down(deployment: &Deployment, set: &mut ReplicaSet, revision: i64) {
    let annotations = deployment.metadata.annotations.iter().flatten();
    let handed = annotations.filter(|(key, _)| !KEPT.contains(&key.as_str()));
    let annotations = of(set);
    annotations.extend(handed.map(|(key, value)| (key.clone(), value.clone())));
    let before = annotations.get(REVISION).cloned();
    let number = match before.as_deref() {
        None | Some("") => 0,
        Some(text) => match text.parse::<i64>() {
            Ok(number) => number,
            // Somebody wrote something of their own there; it is left alone.
            Err(_) => return,
        },
    };
    if number >= revision {
        return;
    }
    annotations.insert(REVISION.to_owned(), revision.to_string());
    if let Some(before) = before.filter(|text| !text.is_empty()) {
        remember(annotations, &before);
    }
}

/// Notes on a set for which size of the Deployment it was made.
pub(crate) fn note_size(set: &mut ReplicaSet, bounds: &Bounds) {
    let annotations = of(set);
    annotations.insert(DESIRED.to_owned(), bounds.replicas.to_string());
    annotations.insert(MOST.to_owned(), bounds.most().to_string());
}

fn remember(annotations: &mut BTreeMap<String, String>, revision: &str) {
    let history = annotations.entry(REVISION_HISTORY.to_owned()).or_default();
    if !history.is_empty() {
        history.push(',');
    }
    history.push_str(revision);
    while history.len() > HISTORY_LIMIT {
        let first = history.find(',').map_or(history.len(), |at| at + 1);
        history.drain(..first);
    }
}

fn of(set: &mut ReplicaSet) -> &mut BTreeMap<String, String> {
    set.metadata.annotations.get_or_insert_default()
}

fn get<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn count(metadata: &ObjectMeta, key: &str) -> Option<i32> {
    let number: i32 = get(metadata, key)?.parse().ok()?;
    (number >= 0).then_some(number)
}
