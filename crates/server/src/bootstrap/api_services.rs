//! The APIServices of the groups that the server itself serves, as kube-aggregator registers them.

use std::collections::BTreeSet;

use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::core::Core;
use crate::status::ApiError;

/// The group of APIServices, which has none itself.
const OWN_GROUP: &str = "apiregistration.k8s.io";

/// How the groups are ordered among each other: the priorities of kube-apiserver (controlplane/apiserver/aggregator.go:
/// `DefaultGenericAPIServicePriorities`).
const GROUPS: [(&str, u32); 21] = [
    ("", 18_000),
    ("apps", 17_800),
    ("events.k8s.io", 17_750),
    ("authentication.k8s.io", 17_700),
    ("authorization.k8s.io", 17_600),
    ("autoscaling", 17_500),
    ("batch", 17_400),
    ("certificates.k8s.io", 17_300),
    ("networking.k8s.io", 17_200),
    ("policy", 17_100),
    ("rbac.authorization.k8s.io", 17_000),
    ("storage.k8s.io", 16_800),
    ("apiextensions.k8s.io", 16_700),
    ("admissionregistration.k8s.io", 16_700),
    ("scheduling.k8s.io", 16_600),
    ("coordination.k8s.io", 16_500),
    ("node.k8s.io", 16_300),
    ("resource.k8s.io", 16_200),
    ("discovery.k8s.io", 16_200),
    ("flowcontrol.apiserver.k8s.io", 16_100),
    ("storagemigration.k8s.io", 15_800),
];

impl Core {
    /// Makes sure that every built-in group and version that is served has its APIService.
    pub(super) async fn ensure_api_services(&self) -> Result<(), ApiError> {
        let resources = self.registry.now();
        let builtin = resources.builtins().iter();
        let versions: BTreeSet<(&str, &str)> = builtin
            .map(|s| (&*s.resource.group, &*s.resource.version))
            .filter(|(group, _)| *group != OWN_GROUP)
            .collect();
        // At once: with a data directory they wait for the disk together.
        let services = versions.into_iter().map(|(group, version)| {
            let service = api_service(group, version);
            self.ensure_api_service(service)
        });
        try_join_all(services).await?;
        Ok(())
    }
}

fn api_service(group: &str, version: &str) -> Value {
    let known = GROUPS.iter().find(|(known, _)| *known == group);
    let group_priority = known.map_or(1_000, |(_, priority)| *priority);
    let version_priority = match (group, version) {
        ("", _) => 1,
        (_, "v2") => 30,
        _ => 15,
    };
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {
            "name": format!("{version}.{group}"),
            "labels": { "kube-aggregator.kubernetes.io/automanaged": "onstart" },
        },
        "spec": {
            "group": group, "version": version,
            "groupPriorityMinimum": group_priority, "versionPriority": version_priority,
        },
    })
}
