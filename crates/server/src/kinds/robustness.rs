//! Whatever stands in an object, no kind fails on it.

use kubewright_schema::catalog::Scope;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::strategy;
use super::testing::{CONTEXT, update};

/// Every built-in kind that has something special, with its group.
const KINDS: [(&str, &str); 40] = [
    ("", "ConfigMap"),
    ("", "Endpoints"),
    ("", "Event"),
    ("", "LimitRange"),
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "ReplicationController"),
    ("", "ResourceQuota"),
    ("", "Secret"),
    ("", "Service"),
    ("", "ServiceAccount"),
    (
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
    ),
    ("apps", "ControllerRevision"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("events.k8s.io", "Event"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("node.k8s.io", "RuntimeClass"),
    ("policy", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "StorageClass"),
];

/// Names that many kinds give meaning to, so that random objects reach deep.
const FIELDS: [&str; 28] = [
    "metadata",
    "name",
    "spec",
    "status",
    "template",
    "containers",
    "volumes",
    "ports",
    "selector",
    "matchLabels",
    "type",
    "port",
    "resources",
    "limits",
    "cpu",
    "rules",
    "webhooks",
    "subsets",
    "strategy",
    "rollingUpdate",
    "jobTemplate",
    "data",
    "stringData",
    "image",
    "policies",
    "behavior",
    "livenessProbe",
    "httpGet",
];

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..70000).prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "a",
            "1Gi",
            "25%",
            "None",
            "ClusterIP",
            "é/--",
            "Always"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 4, |inner| {
        let field = prop::sample::select(FIELDS.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(field, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Whatever stands where, nothing fails, and defaulting twice is defaulting once.
    #[test]
    fn any_object_goes_through(metadata in any_value(), spec in any_value(), rest in any_value()) {
        for (group, kind) in KINDS {
            let mut object = json!({"metadata": metadata, "spec": spec});
            if let (Some(object), Some(rest)) = (object.as_object_mut(), rest.as_object()) {
                for (key, value) in rest {
                    object.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
            let strategy = strategy(group, kind);
            strategy.default(&mut object);
            let once = object.clone();
            strategy.default(&mut object);
            prop_assert_eq!(&object, &once, "{}", kind);
            let mut created = object.clone();
            strategy.prepare_for_create(&mut created, &CONTEXT);
            strategy.validate(&created, Scope::Namespaced);
            strategy.warnings(&created);
            strategy.selectable_fields(&created);
            let new = update(group, kind, &created, |new| new["spec"] = once["metadata"].clone());
            strategy.validate_update(&new, &created, Scope::Cluster);
            let mut status = new.clone();
            strategy.prepare_for_status_update(&mut status, &created);
            strategy.validate_status_update(&status, &created, Scope::Namespaced);
        }
    }
}
