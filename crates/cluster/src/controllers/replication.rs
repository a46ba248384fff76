//! ReplicationControllers: the predecessor of ReplicaSets, run by the same code.
//!
//! As in Kubernetes (`replication/conversion.go`) a ReplicationController is looked at as a ReplicaSet, and the status of
//! that is written back. Its conditions and pods are the same but for the kind of the owner.

use std::borrow::Cow;

use k8s_openapi::api::apps::v1::{
    ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus,
};
use k8s_openapi::api::core::v1::{
    ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubewright_runtime::Controller;

use super::replicaset::{Replicated, controller_of_kind};
use crate::pods::adopt::Selecting;

/// The controller of ReplicationControllers.
pub(crate) fn controller() -> Controller {
    controller_of_kind::<ReplicationController>("replication-controller")
}

impl Selecting for ReplicationController {
    fn label_selector(&self) -> Option<Cow<'_, LabelSelector>> {
        let labels = self.spec.as_ref()?.selector.clone();
        Some(Cow::Owned(LabelSelector {
            match_labels: labels,
            match_expressions: None,
        }))
    }
}

impl Replicated for ReplicationController {
    fn as_set(&self) -> Cow<'_, ReplicaSet> {
        let spec = self.spec.clone().unwrap_or_default();
        Cow::Owned(ReplicaSet {
            metadata: self.metadata.clone(),
            spec: ReplicaSetSpec {
                min_ready_seconds: spec.min_ready_seconds,
                replicas: spec.replicas,
                selector: self.label_selector().unwrap_or_default().into_owned(),
                template: spec.template,
            },
            status: self.status.as_ref().map(set_status),
        })
    }

    fn set_status(&mut self, status: ReplicaSetStatus) {
        let conditions = status
            .conditions
            .map(|all| all.into_iter().map(condition).collect());
        self.status = Some(ReplicationControllerStatus {
            available_replicas: status.available_replicas,
            conditions,
            fully_labeled_replicas: status.fully_labeled_replicas,
            observed_generation: status.observed_generation,
            ready_replicas: status.ready_replicas,
            replicas: status.replicas,
        });
    }
}

/// The conditions of before: all of a status that the next one is made from.
fn set_status(status: &ReplicationControllerStatus) -> ReplicaSetStatus {
    let conditions = status.conditions.iter().flatten().map(|condition| {
        let condition = condition.clone();
        ReplicaSetCondition {
            last_transition_time: condition.last_transition_time,
            message: condition.message,
            reason: condition.reason,
            status: Some(condition.status),
            type_: Some(condition.type_),
        }
    });
    ReplicaSetStatus {
        conditions: Some(conditions.collect()),
        ..ReplicaSetStatus::default()
    }
}

fn condition(condition: ReplicaSetCondition) -> ReplicationControllerCondition {
    ReplicationControllerCondition {
        last_transition_time: condition.last_transition_time,
        message: condition.message,
        reason: condition.reason,
        status: condition.status.unwrap_or_default(),
        type_: condition.type_.unwrap_or_default(),
    }
}
