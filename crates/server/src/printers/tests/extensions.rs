//! Access, policy, admission, certificates, devices and the API server's own kinds.

use serde_json::{Value, json};

use super::cells;
use super::{check, now};

#[test]
fn bindings_sort_subjects_by_kind() {
    let binding = json!({
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [
            {"kind": "User", "name": "ann"}, {"kind": "Group", "name": "dev"}, {"kind": "User", "name": "bob"},
            {"kind": "ServiceAccount", "namespace": "ns", "name": "sa"}],
    });
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        check(
            "rbac.authorization.k8s.io",
            kind,
            binding.clone(),
            json!(["x", "ClusterRole/view", "90s", "ann, bob", "dev", "ns/sa"]),
        );
    }
}

#[test]
fn budgets_and_classes_show_their_numbers() {
    check(
        "policy",
        "PodDisruptionBudget",
        json!({"spec": {"minAvailable": 2}, "status": {"disruptionsAllowed": 1}}),
        json!(["x", "2", "N/A", 1, "90s"]),
    );
    check(
        "policy",
        "PodDisruptionBudget",
        json!({"spec": {"maxUnavailable": "25%"}}),
        json!(["x", "N/A", "25%", 0, "90s"]),
    );
    check(
        "scheduling.k8s.io",
        "PriorityClass",
        json!({"value": 1000, "globalDefault": true, "preemptionPolicy": "Never"}),
        json!(["x", 1000, true, "90s", "Never"]),
    );
    check(
        "scheduling.k8s.io",
        "Workload",
        json!({}),
        json!(["x", "90s"]),
    );
    check(
        "node.k8s.io",
        "RuntimeClass",
        json!({"handler": "runc"}),
        json!(["x", "runc", "90s"]),
    );
}

#[test]
fn admission_kinds_count_their_rules() {
    let group = "admissionregistration.k8s.io";
    let hooks = json!({"webhooks": [{}, {}]});
    check(
        group,
        "MutatingWebhookConfiguration",
        hooks.clone(),
        json!(["x", 2, "90s"]),
    );
    check(
        group,
        "ValidatingWebhookConfiguration",
        hooks,
        json!(["x", 2, "90s"]),
    );
    check(
        group,
        "ValidatingAdmissionPolicy",
        json!({"spec": {"validations": [{}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}}),
        json!(["x", 1, "v1/ConfigMap", "90s"]),
    );
    check(
        group,
        "MutatingAdmissionPolicy",
        json!({"spec": {"mutations": [{}, {}]}}),
        json!(["x", 2, "<unset>", "90s"]),
    );
}

#[test]
fn policy_binding_shows_its_parameters() {
    for (reference, expect) in [
        (json!(null), "<unset>"),
        (json!({"name": "p"}), "*/p"),
        (json!({"name": "p", "namespace": "n"}), "n/p"),
        (
            json!({"selector": {"matchLabels": {"a": "b"},
                "matchExpressions": [{"key": "k", "operator": "In", "values": ["v", "w"]}]}}),
            "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement\
             {LabelSelectorRequirement{Key:k,Operator:In,Values:[v w],},},}",
        ),
    ] {
        for kind in [
            "ValidatingAdmissionPolicyBinding",
            "MutatingAdmissionPolicyBinding",
        ] {
            check(
                "admissionregistration.k8s.io",
                kind,
                json!({"spec": {"policyName": "policy", "paramRef": reference}}),
                json!(["x", "policy", expect, "90s"]),
            );
        }
    }
}

#[test]
fn signing_request_shows_how_far_it_is() {
    let group = "certificates.k8s.io";
    let condition = |conditions: Value, certificate: &str| {
        let request = json!({"status": {"conditions": conditions, "certificate": certificate}});
        cells(group, "CertificateSigningRequest", &request, now()).remove(5)
    };
    assert_eq!(condition(json!(null), ""), "Pending");
    assert_eq!(
        condition(json!([{"type": "Approved"}]), "LS0t"),
        "Approved,Issued"
    );
    assert_eq!(
        condition(json!([{"type": "Approved"}, {"type": "Denied"}]), ""),
        "Denied"
    );
    assert_eq!(
        condition(json!([{"type": "Approved"}, {"type": "Failed"}]), ""),
        "Approved,Failed"
    );
    check(
        group,
        "CertificateSigningRequest",
        json!({"spec": {"signerName": "s", "username": "u", "expirationSeconds": 86400}}),
        json!(["x", "90s", "s", "u", "24h", "Pending"]),
    );
    check(
        group,
        "ClusterTrustBundle",
        json!({}),
        json!(["x", "<none>"]),
    );
    check(
        group,
        "PodCertificateRequest",
        json!({"spec": {"podName": "p", "serviceAccountName": "sa", "nodeName": "n", "signerName": "s"},
            "status": {"conditions": [{"type": "Issued", "status": "True"}]}}),
        json!(["x", "p", "sa", "n", "s", "Issued", "<none>"]),
    );
}

#[test]
fn resource_claim_shows_its_states() {
    let group = "resource.k8s.io";
    let claim = |metadata: Value, status: Value| json!({"metadata": metadata, "status": status});
    let deleted = || json!({"deletionTimestamp": "2026-03-01T11:00:00Z"});
    for (object, expect) in [
        (claim(json!({}), json!(null)), "pending"),
        (claim(json!({}), json!({"allocation": {}})), "allocated"),
        (
            claim(json!({}), json!({"allocation": {}, "reservedFor": [{}]})),
            "allocated,reserved",
        ),
        (claim(deleted(), json!({})), "deleted"),
        (
            claim(deleted(), json!({"allocation": {}})),
            "deleted,allocated",
        ),
    ] {
        check(group, "ResourceClaim", object, json!(["x", expect, "90s"]));
    }
}

#[test]
fn device_kinds_show_where_they_are() {
    let group = "resource.k8s.io";
    check(group, "DeviceClass", json!({}), json!(["x", "90s"]));
    check(
        group,
        "ResourceClaimTemplate",
        json!({}),
        json!(["x", "90s"]),
    );
    check(
        group,
        "ResourceSlice",
        json!({"spec": {"nodeName": "n", "driver": "d", "pool": {"name": "p"}}}),
        json!(["x", "n", "d", "p", "90s"]),
    );
    check(
        group,
        "DeviceTaintRule",
        json!({"spec": {"taint": {"key": "k", "effect": "NoExecute", "timeAdded": "2026-03-01T11:59:00Z"}}}),
        json!(["x", "k", "", "NoExecute", "60s", "90s"]),
    );
}

#[test]
fn flow_control_shows_levels_and_queues() {
    let group = "flowcontrol.apiserver.k8s.io";
    check(
        group,
        "FlowSchema",
        json!({"spec": {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 1},
            "status": {"conditions": [{"type": "Dangling", "status": "False"}]}}),
        json!(["x", "exempt", 1, "<none>", "90s", "False"]),
    );
    check(
        group,
        "FlowSchema",
        json!({"spec": {"distinguisherMethod": {"type": "ByUser"}}}),
        json!(["x", "", 0, "ByUser", "90s", "?"]),
    );
    check(
        group,
        "PriorityLevelConfiguration",
        json!({"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 30, "limitResponse": {
            "queuing": {"queues": 64, "handSize": 6, "queueLengthLimit": 50}}}}}),
        json!(["x", "Limited", 30, 64, 6, 50, "90s"]),
    );
    check(
        group,
        "PriorityLevelConfiguration",
        json!({"spec": {"type": "Exempt"}}),
        json!(["x", "Exempt", "<none>", "<none>", "<none>", "<none>", "90s"]),
    );
}

#[test]
fn server_kinds_show_their_state() {
    check(
        "internal.apiserver.k8s.io",
        "StorageVersion",
        json!({"status": {"storageVersions": [{"apiServerID": "a", "encodingVersion": "v1"}]}}),
        json!(["x", "<unset>", "a=v1", "90s"]),
    );
    check(
        "storagemigration.k8s.io",
        "StorageVersionMigration",
        json!({"spec": {"resource": {"group": "apps", "resource": "deployments"}},
            "status": {"conditions": [{"type": "Running", "status": "False"}, {"type": "Succeeded", "status": "True"}]}}),
        json!(["x", "deployments.apps", "Succeeded"]),
    );
    for (object, service, available) in [
        (json!({}), "Local", "Unknown"),
        (
            json!({"status": {"conditions": [{"type": "Available", "status": "True", "reason": "Local"}]}}),
            "Local",
            "True",
        ),
        (
            json!({"spec": {"service": {"namespace": "ns", "name": "s"}}, "status": {"conditions": [
                {"type": "Available", "status": "False", "reason": "MissingEndpoints"}]}}),
            "ns/s",
            "False (MissingEndpoints)",
        ),
    ] {
        check(
            "apiregistration.k8s.io",
            "APIService",
            object,
            json!(["x", service, available, "90s"]),
        );
    }
}
