//! StatefulSets and their pods for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{
    RollingUpdateStatefulSetStrategy, StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::identity::{Revision, make};
use super::plan::{Observed, Plan, plan};
use crate::controllers::deployment::samples::limit;
use crate::pods::samples::*;

/// A set that moves one pod at a time.
pub(crate) fn set(replicas: i32) -> StatefulSet {
    StatefulSet {
        metadata: metadata("web"),
        spec: StatefulSetSpec {
            replicas: Some(replicas),
            service_name: Some("headless".to_owned()),
            selector: selector(&[("app", "web")]),
            template: template("new"),
            update_strategy: Some(rolling(0, "1")),
            revision_history_limit: Some(10),
            ..StatefulSetSpec::default()
        },
        status: None,
    }
}

/// An update from the highest ordinal to the partition, within a limit.
pub(crate) fn rolling(partition: i32, unavailable: &str) -> StatefulSetUpdateStrategy {
    StatefulSetUpdateStrategy {
        type_: Some("RollingUpdate".to_owned()),
        rolling_update: Some(RollingUpdateStatefulSetStrategy {
            partition: Some(partition),
            max_unavailable: Some(limit(unavailable)),
        }),
    }
}

/// The set, moving all pods at once.
pub(crate) fn parallel(mut set: StatefulSet) -> StatefulSet {
    set.spec.pod_management_policy = Some("Parallel".to_owned());
    set
}

/// The set with a claim `data` for each pod.
pub(crate) fn with_claims(mut set: StatefulSet) -> StatefulSet {
    set.spec.volume_claim_templates = Some(vec![PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some("data".to_owned()),
            ..ObjectMeta::default()
        },
        ..PersistentVolumeClaim::default()
    }]);
    set
}

/// The revision `old` or `new`.
pub(crate) fn revision(name: &str) -> Revision {
    Revision {
        name: name.to_owned(),
        template: template(name),
    }
}

/// A pod of the set as it was made with a revision; it runs and is not ready.
pub(crate) fn pod(set: &StatefulSet, ordinal: i32, revision_name: &str) -> Pod {
    let mut pod = in_phase(make(set, &revision(revision_name), ordinal), "Running");
    pod.metadata.uid = pod.metadata.name.as_ref().map(|name| format!("uid-{name}"));
    pod
}

/// The same, and it serves.
pub(crate) fn good(set: &StatefulSet, ordinal: i32, revision_name: &str) -> Pod {
    ready(pod(set, ordinal, revision_name), at(0))
}

/// Claims by name.
pub(crate) type Claims = BTreeMap<String, Arc<PersistentVolumeClaim>>;

/// The plan at second 100, from revision `old` to `new`.
pub(crate) fn plan_of(set: &StatefulSet, pods: Vec<Pod>, claims: &Claims) -> Plan {
    let pods: Vec<Arc<Pod>> = pods.into_iter().map(Arc::new).collect();
    plan(&Observed {
        set,
        current: &revision("old"),
        update: &revision("new"),
        collisions: 0,
        pods: &pods,
        claims,
        now: at(100),
    })
}
