//! What the server knows of each built-in kind: defaults, preparation, validation, and facts about its verbs.
//!
//! [`strategy`] finds a kind's [`Strategy`]; kinds without one of their own, custom resources among them, get a
//! plain one. Objects are JSON values that have been decoded against the type table: unknown fields are gone,
//! types are right, nulls are dropped. All functions are pure.

pub(crate) mod meta;
pub(crate) mod names;
pub(crate) mod quantity;
pub(crate) mod selector;

mod checks;
mod custom;
mod path;
mod strategy;
mod value;

#[cfg(test)]
mod testing;

mod batch;
mod config;
pub(crate) mod namespace;
mod node;
mod pod;
mod quota;
pub(crate) mod service;
mod storage;
mod workloads;

pub(crate) use custom::custom_strategy;
pub(crate) use strategy::{
    CreateContext, Deletion, FieldLabels, Generation, Propagation, StatusMeta, Strategy,
};

static PLAIN: Strategy = Strategy::PLAIN;

/// What the server does with objects of a kind.
pub(crate) fn strategy(group: &str, kind: &str) -> &'static Strategy {
    match group {
        "" => core(kind),
        "apps" => apps(kind),
        "batch" => batch(kind),
        "node.k8s.io" if kind == "RuntimeClass" => &node::RUNTIME_CLASS,
        "storage.k8s.io" => storage(kind),
        _ => &PLAIN,
    }
}

fn core(kind: &str) -> &'static Strategy {
    match kind {
        "ConfigMap" => &config::CONFIG_MAP,
        "LimitRange" => &quota::LIMIT_RANGE,
        "Namespace" => &namespace::NAMESPACE,
        "Node" => &node::NODE,
        "PersistentVolume" => &storage::PERSISTENT_VOLUME,
        "PersistentVolumeClaim" => &storage::PERSISTENT_VOLUME_CLAIM,
        "Pod" => &pod::POD,
        "PodTemplate" => &workloads::POD_TEMPLATE,
        "ReplicationController" => &workloads::REPLICATION_CONTROLLER,
        "ResourceQuota" => &quota::RESOURCE_QUOTA,
        "Secret" => &config::SECRET,
        "Service" => &service::SERVICE,
        _ => &PLAIN,
    }
}

fn apps(kind: &str) -> &'static Strategy {
    match kind {
        "ControllerRevision" => &workloads::CONTROLLER_REVISION,
        "DaemonSet" => &workloads::DAEMON_SET,
        "Deployment" => &workloads::DEPLOYMENT,
        "ReplicaSet" => &workloads::REPLICA_SET,
        "StatefulSet" => &workloads::STATEFUL_SET,
        _ => &PLAIN,
    }
}

fn batch(kind: &str) -> &'static Strategy {
    match kind {
        "CronJob" => &batch::CRON_JOB,
        "Job" => &batch::JOB,
        _ => &PLAIN,
    }
}

fn storage(kind: &str) -> &'static Strategy {
    match kind {
        "CSIDriver" => &storage::CSI_DRIVER,
        "CSINode" => &storage::CSI_NODE,
        "CSIStorageCapacity" => &storage::CSI_STORAGE_CAPACITY,
        "StorageClass" => &storage::STORAGE_CLASS,
        "VolumeAttachment" => &storage::VOLUME_ATTACHMENT,
        "VolumeAttributesClass" => &storage::VOLUME_ATTRIBUTES_CLASS,
        _ => &PLAIN,
    }
}
