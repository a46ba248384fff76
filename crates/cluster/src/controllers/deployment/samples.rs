//! Deployments and their sets for tests.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStrategy, ReplicaSet, ReplicaSetStatus,
    RollingUpdateDeployment,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::annotations::{hand_down, note_size};
use super::bounds::Bounds;
use super::plan::{Observed, Plan, plan};
use super::sets::make;
use crate::pods::samples::*;

/// A Deployment of `image` that rolls within limits such as `"25%"` or `"1"`.
pub(crate) fn deployment(image: &str, replicas: i32, surge: &str, unavailable: &str) -> Deployment {
    Deployment {
        metadata: metadata("web"),
        spec: DeploymentSpec {
            replicas: Some(replicas),
            selector: selector(&[("app", "web")]),
            template: template(image),
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(limit(surge)),
                    max_unavailable: Some(limit(unavailable)),
                }),
            }),
            revision_history_limit: Some(10),
            progress_deadline_seconds: Some(600),
            ..DeploymentSpec::default()
        },
        status: None,
    }
}

/// The Deployment, replacing all pods at once.
pub(crate) fn recreating(mut deployment: Deployment) -> Deployment {
    deployment.spec.strategy = Some(DeploymentStrategy {
        type_: Some("Recreate".to_owned()),
        rolling_update: None,
    });
    deployment
}

/// A number or a percentage.
pub(crate) fn limit(text: &str) -> IntOrString {
    match text.parse() {
        Ok(number) => IntOrString::Int(number),
        Err(_) => IntOrString::String(text.to_owned()),
    }
}

/// The set of `image` as the Deployment would have made it: its revision, its size, and how many pods serve.
pub(crate) fn set(
    deployment: &Deployment,
    image: &str,
    revision: i64,
    desired: i32,
    available: i32,
) -> Arc<ReplicaSet> {
    let mut parent = deployment.clone();
    parent.spec.template = template(image);
    let mut set = make(&parent);
    hand_down(&parent, &mut set, revision);
    note_size(&mut set, &Bounds::of(&parent));
    let name = set.metadata.name.clone().unwrap_or_default();
    set.metadata.uid = Some(format!("uid-{name}"));
    set.metadata.creation_timestamp = Some(Time(at(revision)));
    set.metadata.generation = Some(1);
    set.spec.replicas = Some(desired);
    set.status = Some(status(desired, available));
    Arc::new(set)
}

/// The status of a set whose pods are all there and of which some serve.
pub(crate) fn status(running: i32, available: i32) -> ReplicaSetStatus {
    ReplicaSetStatus {
        replicas: running,
        ready_replicas: Some(available),
        available_replicas: Some(available),
        terminating_replicas: Some(0),
        observed_generation: Some(1),
        ..ReplicaSetStatus::default()
    }
}

/// The plan at second 100, when no old pods are left.
pub(crate) fn plan_of(deployment: &Deployment, sets: &[Arc<ReplicaSet>]) -> Plan {
    plan(&Observed {
        deployment,
        sets,
        pod_owners: &[],
        now: at(100),
    })
}

/// The image of a set.
pub(crate) fn image(set: &ReplicaSet) -> &str {
    let template = set
        .spec
        .template
        .as_ref()
        .and_then(|template| template.spec.as_ref());
    let image = template.and_then(|spec| spec.containers.first()?.image.as_deref());
    image.unwrap_or_default()
}
