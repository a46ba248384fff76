//! What the server knows of each built-in kind: defaults, preparation, validation, and facts about its verbs.
//!
//! [`strategy`] finds a kind's [`Strategy`]; built-in kinds without one of their own get a plain one, custom
//! resources [`custom_strategy`]. Objects are JSON values that have been decoded against the type table:
//! unknown fields are gone, types are right, nulls are dropped. All functions are pure.

pub(crate) mod meta;
pub(crate) mod scope;
pub(crate) mod selector;

mod checks;
mod custom;
mod name_rule;
mod path;
mod strategy;
pub(crate) mod value;

#[cfg(test)]
mod robustness;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

mod admission;
mod admission_policy;
mod api_service;
mod autoscaling;
mod batch;
pub(crate) mod certificates;
mod claims;
mod config;
mod coordination;
pub(crate) mod discovery;
mod events;
mod flowcontrol;
pub(crate) mod namespace;
mod networking;
mod node;
pub(crate) mod pod;
mod policy;
mod quota;
mod rbac;
mod scheduling;
pub(crate) mod service;
mod storage;
mod workloads;

pub(crate) use custom::custom_strategy;
pub(crate) use strategy::{CreateContext, Deletion, Generation, Propagation, StatusMeta, Strategy};

static PLAIN: Strategy = Strategy::PLAIN;

/// Kinds of which nothing more is known than that their generation counts changes of the spec.
static COUNTED: Strategy = Strategy {
    generation: Generation::Field("spec"),
    ..Strategy::PLAIN
};

/// CustomResourceDefinitions; what stands in them is checked where they are served.
static CUSTOM_RESOURCE_DEFINITION: Strategy = Strategy {
    generation: Generation::Field("spec"),
    has_status: true,
    allow_unconditional_update: false,
    default: kubewright_schema::crd::default_definition,
    ..Strategy::PLAIN
};

/// What the server does with objects of a built-in kind.
pub(crate) fn strategy(group: &str, kind: &str) -> &'static Strategy {
    match group {
        "" => core(kind),
        "apps" => apps(kind),
        "networking.k8s.io" => networking(kind),
        "rbac.authorization.k8s.io" => rbac(kind),
        "storage.k8s.io" => storage(kind),
        _ => small_group(group, kind),
    }
}

fn core(kind: &str) -> &'static Strategy {
    match kind {
        "ConfigMap" => &config::CONFIG_MAP,
        "Endpoints" => &discovery::ENDPOINTS,
        "Event" => &events::CORE_EVENT,
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
        "ServiceAccount" => &rbac::SERVICE_ACCOUNT,
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

fn networking(kind: &str) -> &'static Strategy {
    match kind {
        "Ingress" => &networking::INGRESS,
        "IngressClass" => &networking::INGRESS_CLASS,
        "NetworkPolicy" => &networking::NETWORK_POLICY,
        "IPAddress" => &networking::IP_ADDRESS,
        "ServiceCIDR" => &networking::SERVICE_CIDR,
        _ => &PLAIN,
    }
}

fn rbac(kind: &str) -> &'static Strategy {
    match kind {
        "ClusterRole" => &rbac::CLUSTER_ROLE,
        "ClusterRoleBinding" => &rbac::CLUSTER_ROLE_BINDING,
        "Role" => &rbac::ROLE,
        "RoleBinding" => &rbac::ROLE_BINDING,
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

/// Groups with a handful of kinds.
fn small_group(group: &str, kind: &str) -> &'static Strategy {
    match (group, kind) {
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
            &admission::MUTATING_WEBHOOKS
        }
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
            &admission::VALIDATING_WEBHOOKS
        }
        ("admissionregistration.k8s.io", kind) if kind.ends_with("Binding") => {
            &admission_policy::ADMISSION_POLICY_BINDING
        }
        ("admissionregistration.k8s.io", _) => &admission_policy::ADMISSION_POLICY,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &CUSTOM_RESOURCE_DEFINITION,
        ("apiregistration.k8s.io", "APIService") => &api_service::API_SERVICE,
        ("autoscaling", "HorizontalPodAutoscaler") => &autoscaling::HORIZONTAL_POD_AUTOSCALER,
        ("batch", "CronJob") => &batch::CRON_JOB,
        ("batch", "Job") => &batch::JOB,
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            &certificates::CERTIFICATE_SIGNING_REQUEST
        }
        ("certificates.k8s.io", "ClusterTrustBundle") => &certificates::CLUSTER_TRUST_BUNDLE,
        ("certificates.k8s.io", "PodCertificateRequest") => &claims::POD_CERTIFICATE_REQUEST,
        ("coordination.k8s.io", "Lease") => &coordination::LEASE,
        ("coordination.k8s.io", "LeaseCandidate") => &coordination::LEASE_CANDIDATE,
        ("discovery.k8s.io", "EndpointSlice") => &discovery::ENDPOINT_SLICE,
        ("events.k8s.io", "Event") => &events::EVENT,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => &flowcontrol::FLOW_SCHEMA,
        ("flowcontrol.apiserver.k8s.io", _) => &flowcontrol::PRIORITY_LEVEL,
        ("node.k8s.io", "RuntimeClass") => &node::RUNTIME_CLASS,
        ("policy", "PodDisruptionBudget") => &policy::POD_DISRUPTION_BUDGET,
        ("resource.k8s.io", "DeviceTaintRule") => &claims::DEVICE_TAINT_RULE,
        ("resource.k8s.io", "ResourceClaim") => &claims::RESOURCE_CLAIM,
        ("resource.k8s.io", "DeviceClass" | "ResourceSlice") => &COUNTED,
        ("scheduling.k8s.io", "PriorityClass") => &scheduling::PRIORITY_CLASS,
        ("storagemigration.k8s.io", "StorageVersionMigration") => {
            &claims::STORAGE_VERSION_MIGRATION
        }
        _ => &PLAIN,
    }
}
