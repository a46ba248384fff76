//! What keeps a namespace, as its conditions report it. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;

use crate::kinds::Kind;

/// What was found while a namespace was emptied.
#[derive(Debug, Default)]
pub(super) struct Findings {
    discovery: Option<String>,
    errors: Vec<String>,
    /// How many objects are left, by `plural.group`.
    remaining: BTreeMap<String, usize>,
    /// How many objects each finalizer is on.
    finalizers: BTreeMap<String, usize>,
}

impl Findings {
    /// The kinds could not be asked for.
    pub(super) fn discovery_failed(&mut self, why: &str) {
        self.discovery = Some(why.to_owned());
    }

    /// Objects of a kind could not be deleted.
    pub(super) fn failed(&mut self, why: &str) {
        self.errors.push(why.to_owned());
    }

    /// These objects of a kind are still there.
    pub(super) fn left<K: Resource>(&mut self, kind: &Kind, objects: &[K]) {
        if objects.is_empty() {
            return;
        }
        let name = format!("{}.{}", kind.resource.plural, kind.resource.group);
        self.remaining.insert(name, objects.len());
        let finalizers = objects.iter().filter_map(|o| o.meta().finalizers.as_ref());
        for finalizer in finalizers.flatten() {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }

    /// Whether nothing is left and nothing went wrong.
    pub(super) fn is_empty(&self) -> bool {
        self.discovery.is_none() && self.errors.is_empty() && self.remaining.is_empty()
    }

    /// The number of objects that are left.
    pub(super) fn remain(&self) -> usize {
        self.remaining.values().sum()
    }

    pub(super) fn has_finalizers(&self) -> bool {
        !self.finalizers.is_empty()
    }

    pub(super) fn errors(&self) -> &[String] {
        &self.errors
    }

    /// All conditions with status, reason and message, in the order of Kubernetes.
    fn conditions(&self) -> [(&'static str, Verdict); 5] {
        let listed = |counts: &BTreeMap<String, usize>, verb: &str| {
            let parts = counts
                .iter()
                .map(|(name, n)| format!("{name} {verb} {n} resource instances"));
            parts.collect::<Vec<_>>().join(", ")
        };
        let discovery = self.discovery.clone().map(|why| ("DiscoveryFailed", why));
        let content = (!self.errors.is_empty()).then(|| {
            let mut errors = self.errors.clone();
            errors.sort();
            let (count, errors) = (errors.len(), errors.join(", "));
            (
                "ContentDeletionFailed",
                format!("Failed to delete all resource types, {count} remaining: {errors}"),
            )
        });
        let remaining = (!self.remaining.is_empty()).then(|| {
            let listed = listed(&self.remaining, "has");
            (
                "SomeResourcesRemain",
                format!("Some resources are remaining: {listed}"),
            )
        });
        let finalizers = (!self.finalizers.is_empty()).then(|| {
            let listed = listed(&self.finalizers, "in");
            (
                "SomeFinalizerRemain",
                format!("Some finalizers are remaining: {listed}"),
            )
        });
        [
            (
                "NamespaceDeletionDiscoveryFailure",
                verdict(
                    discovery,
                    "ResourcesDiscovered",
                    "All resources successfully discovered",
                ),
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                verdict(
                    None,
                    "ParsedGroupVersions",
                    "All legacy kube types successfully parsed",
                ),
            ),
            (
                "NamespaceDeletionContentFailure",
                verdict(
                    content,
                    "ContentDeleted",
                    "All content successfully deleted, may be waiting on finalization",
                ),
            ),
            (
                "NamespaceContentRemaining",
                verdict(
                    remaining,
                    "ContentRemoved",
                    "All content successfully removed",
                ),
            ),
            (
                "NamespaceFinalizersRemaining",
                verdict(
                    finalizers,
                    "ContentRemoved",
                    "All content successfully removed",
                ),
            ),
        ]
    }
}

/// What a condition says: status, reason, message.
type Verdict = (&'static str, &'static str, String);

fn verdict(problem: Option<(&'static str, String)>, reason: &'static str, fine: &str) -> Verdict {
    match problem {
        Some((reason, message)) => ("True", reason, message),
        None => ("False", reason, fine.to_owned()),
    }
}

/// Puts the conditions into a namespace. Times change with the status of a condition alone.
pub(super) fn set_conditions(namespace: &mut Namespace, findings: &Findings, now: Timestamp) {
    let status = namespace.status.get_or_insert_default();
    let conditions = status.conditions.get_or_insert_default();
    for (type_, (status, reason, message)) in findings.conditions() {
        let place = conditions.iter().position(|c| c.type_ == type_);
        let since = place
            .map(|place| &conditions[place])
            .filter(|c| c.status == status)
            .and_then(|c| c.last_transition_time.clone());
        let condition = NamespaceCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message),
            last_transition_time: Some(since.unwrap_or(Time(now))),
        };
        match place {
            Some(place) => conditions[place] = condition,
            None => conditions.push(condition),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::discovery::{ApiCapabilities, ApiResource, Scope};

    use super::*;

    fn kind() -> Kind {
        let capabilities = ApiCapabilities {
            scope: Scope::Namespaced,
            subresources: Vec::new(),
            operations: Vec::new(),
        };
        Kind::new(ApiResource::erase::<ConfigMap>(&()), &capabilities)
    }

    fn held(finalizer: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.finalizers = Some(vec![finalizer.to_owned()]);
        object
    }

    fn condition(namespace: &Namespace, type_: &str) -> (String, String, String) {
        let conditions = namespace
            .status
            .as_ref()
            .and_then(|s| s.conditions.as_ref());
        let found = conditions.into_iter().flatten().find(|c| c.type_ == type_);
        let found = found.expect("all conditions are there").clone();
        (
            found.status,
            found.reason.unwrap_or_default(),
            found.message.unwrap_or_default(),
        )
    }

    #[test]
    fn conditions_speak_as_kubernetes_does() {
        let mut findings = Findings::default();
        findings.left(&kind(), &[held("a/b"), held("a/b"), ConfigMap::default()]);
        findings.failed("second");
        findings.failed("first");
        let mut namespace = Namespace::default();
        set_conditions(&mut namespace, &findings, Timestamp::UNIX_EPOCH);
        for (type_, status, reason, message) in [
            (
                "NamespaceDeletionDiscoveryFailure",
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            (
                "NamespaceDeletionContentFailure",
                "True",
                "ContentDeletionFailed",
                "Failed to delete all resource types, 2 remaining: first, second",
            ),
            (
                "NamespaceContentRemaining",
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 3 resource instances",
            ),
            (
                "NamespaceFinalizersRemaining",
                "True",
                "SomeFinalizerRemain",
                "Some finalizers are remaining: a/b in 2 resource instances",
            ),
        ] {
            let expected = (status.to_owned(), reason.to_owned(), message.to_owned());
            assert_eq!(condition(&namespace, type_), expected);
        }
    }

    #[test]
    fn time_of_a_condition_changes_with_its_status_alone() {
        let mut namespace = Namespace::default();
        let mut findings = Findings::default();
        let times = |namespace: &Namespace| -> Vec<i64> {
            let status = namespace.status.as_ref().expect("set");
            let conditions = status.conditions.iter().flatten();
            conditions
                .filter_map(|c| Some(c.last_transition_time.as_ref()?.0.as_second()))
                .collect()
        };
        let at = |second| Timestamp::from_second(second).expect("in range");
        set_conditions(&mut namespace, &findings, at(1));
        findings.left(&kind(), &[ConfigMap::default()]);
        set_conditions(&mut namespace, &findings, at(2));
        findings.left(&kind(), &[ConfigMap::default(), ConfigMap::default()]);
        set_conditions(&mut namespace, &findings, at(3));
        assert_eq!(times(&namespace), [1, 1, 1, 2, 1]);
    }
}
