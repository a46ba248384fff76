use serde_json::{Value, json};

use crate::kinds::testing::{create, create_errors, edit_errors, update, update_errors};

fn template() -> Value {
    json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    })
}

fn controller() -> Value {
    json!({
        "metadata": {"name": "gd", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template()},
    })
}

/// Golden entry "create deployment (full body)".
#[test]
fn deployment_gets_its_defaults() {
    let object = create("apps", "Deployment", controller());
    assert_eq!(object["metadata"]["generation"], 1);
    assert_eq!(object["status"], json!({}));
    assert_eq!(
        object["spec"],
        json!({
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {
                    "containers": [{
                        "name": "c",
                        "image": "nginx",
                        "resources": {},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                        "imagePullPolicy": "Always"
                    }],
                    "restartPolicy": "Always",
                    "terminationGracePeriodSeconds": 30,
                    "dnsPolicy": "ClusterFirst",
                    "securityContext": {},
                    "schedulerName": "default-scheduler"
                }
            },
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}
            },
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600
        })
    );
    assert_eq!(
        create_errors("apps", "Deployment", controller()),
        Vec::<String>::new()
    );
}

/// Golden entry "invalid deployment".
#[test]
fn broken_deployment_is_refused_in_order() {
    let mut object = controller();
    object["metadata"]["name"] = json!("A_b");
    object["spec"]["template"] =
        json!({"metadata": {"labels": {"a": "c"}}, "spec": {"containers": []}});
    assert_eq!(
        create_errors("apps", "Deployment", object),
        [
            "metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            "spec.template.metadata.labels: Invalid value: {\"a\":\"c\"}: `selector` does not match template `labels`",
            "spec.template.spec.containers: Required value",
        ]
    );
}

/// Golden entry "immutable selector".
#[test]
fn selectors_stay() {
    let edit = |new: &mut Value| new["spec"]["selector"]["matchLabels"]["z"] = json!("y");
    let mismatch = "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`";
    let immutable = "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\",\"z\":\"y\"}}: field is immutable";
    for (kind, expect) in [
        ("Deployment", [mismatch, immutable]),
        ("ReplicaSet", [mismatch, immutable]),
        ("DaemonSet", [immutable, mismatch]),
    ] {
        let errors = update_errors("apps", kind, controller(), edit);
        assert_eq!(errors, expect, "{kind}");
    }
    assert_eq!(
        update_errors("apps", "StatefulSet", controller(), edit),
        [
            mismatch,
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        ]
    );
}

#[test]
fn generation_counts_changes_of_the_spec() {
    let generation = |kind: &str, edit: fn(&mut Value)| {
        let old = create("apps", kind, controller());
        update("apps", kind, &old, edit)["metadata"]["generation"].clone()
    };
    let scale: fn(&mut Value) = |new| new["spec"]["replicas"] = json!(3);
    let label: fn(&mut Value) = |new| new["metadata"]["labels"] = json!({"x": "y"});
    let annotate: fn(&mut Value) = |new| new["metadata"]["annotations"] = json!({"x": "y"});
    let forge: fn(&mut Value) = |new| new["metadata"]["generation"] = json!(9);
    let status: fn(&mut Value) = |new| new["status"] = json!({"replicas": 9});
    for (kind, edit, expect) in [
        ("Deployment", scale, 2),
        ("Deployment", annotate, 2),
        ("Deployment", label, 1),
        ("Deployment", forge, 1),
        ("Deployment", status, 1),
        ("StatefulSet", scale, 2),
        ("StatefulSet", annotate, 1),
        ("ReplicaSet", scale, 2),
    ] {
        assert_eq!(generation(kind, edit), json!(expect), "{kind}");
    }
}

#[test]
fn each_kind_has_its_defaults() {
    let object = create("apps", "StatefulSet", controller());
    assert_eq!(object["spec"]["podManagementPolicy"], "OrderedReady");
    assert_eq!(
        object["spec"]["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    );
    assert_eq!(
        object["spec"]["persistentVolumeClaimRetentionPolicy"],
        json!({"whenDeleted": "Retain", "whenScaled": "Retain"})
    );
    assert_eq!(
        object["status"],
        json!({"replicas": 0, "availableReplicas": 0})
    );
    let object = create("apps", "DaemonSet", controller());
    assert_eq!(
        object["spec"]["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}})
    );
    let object = create("apps", "ReplicaSet", controller());
    assert_eq!(
        (&object["spec"]["replicas"], &object["status"]),
        (&json!(1), &json!({"replicas": 0}))
    );
    let mut old = controller();
    old["spec"]["selector"] = json!({});
    let object = create("", "ReplicationController", old);
    assert_eq!(object["spec"]["selector"], json!({"a": "b"}));
    assert_eq!(object["metadata"]["labels"], json!({"a": "b"}));
}

#[test]
fn volume_claim_templates_can_be_mounted() {
    let mut object = controller();
    object["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/d"}]);
    assert_eq!(
        create_errors("apps", "StatefulSet", object.clone()),
        ["spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"data\""]
    );
    object["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }]);
    let stored = create("apps", "StatefulSet", object.clone());
    assert_eq!(
        stored["spec"]["volumeClaimTemplates"][0],
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Pending"},
        })
    );
    assert_eq!(
        create_errors("apps", "StatefulSet", object),
        Vec::<String>::new()
    );
}

#[test]
fn controllers_refuse_what_their_pods_cannot_do() {
    for (kind, edit, expect) in [
        (
            "Deployment",
            json!({"restartPolicy": "Never"}),
            "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
        ),
        (
            "DaemonSet",
            json!({"activeDeadlineSeconds": 5}),
            "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not Supported",
        ),
    ] {
        let mut object = controller();
        let spec = &mut object["spec"]["template"]["spec"];
        for (field, value) in edit.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        assert_eq!(create_errors("apps", kind, object), [expect]);
    }
}

#[test]
fn rolling_updates_must_move() {
    let mut object = controller();
    object["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}});
    assert_eq!(
        create_errors("apps", "Deployment", object.clone()),
        [
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"
        ]
    );
    object["spec"]["strategy"] = json!({"type": "Recreate", "rollingUpdate": {}});
    assert_eq!(
        create_errors("apps", "Deployment", object),
        [
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"
        ]
    );
}

#[test]
fn missing_selectors_are_required() {
    let mut object = controller();
    object["spec"]
        .as_object_mut()
        .map(|spec| spec.remove("selector"));
    assert_eq!(
        create_errors("apps", "Deployment", object),
        [
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`",
        ]
    );
}

#[test]
fn updates_keep_the_status() {
    let mut old = create("apps", "Deployment", controller());
    old["status"] = json!({"replicas": 2});
    let new = update("apps", "Deployment", &old, |new| {
        new["status"] = json!({"replicas": 7})
    });
    assert_eq!(new["status"], json!({"replicas": 2}));
    assert_eq!(
        edit_errors("apps", "Deployment", old, |_| {}),
        Vec::<String>::new()
    );
}

#[test]
fn status_writes_change_the_status_alone() {
    let old = create("apps", "Deployment", controller());
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(9);
    new["metadata"]["labels"] = json!({"x": "y"});
    new["metadata"]["annotations"] = json!({"x": "y"});
    new["status"] = json!({"replicas": 1});
    crate::kinds::strategy("apps", "Deployment").prepare_for_status_update(&mut new, &old);
    assert_eq!(new["spec"], old["spec"]);
    assert!(new["metadata"]["labels"].is_null());
    assert_eq!(new["metadata"]["annotations"], json!({"x": "y"}));
    assert_eq!(new["status"], json!({"replicas": 1}));
}

#[test]
fn unknown_strategies_are_shown_as_the_server_sees_them() {
    let mut object = controller();
    object["spec"]["strategy"] = json!({"type": "Sideways"});
    assert_eq!(
        create_errors("apps", "Deployment", object),
        [
            "spec.strategy: Unsupported value: {\"Type\":\"Sideways\",\"RollingUpdate\":null}: supported values: \"Recreate\", \"RollingUpdate\""
        ]
    );
}

#[test]
fn daemon_sets_count_their_templates() {
    let key = "deprecated.daemonset.template.generation";
    let old = create("apps", "DaemonSet", controller());
    assert_eq!(old["metadata"]["annotations"][key], "1");
    let image = update("apps", "DaemonSet", &old, |new| {
        new["metadata"]["annotations"] = json!({});
        new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    });
    assert_eq!(image["metadata"]["annotations"][key], "2");
    let limit = update("apps", "DaemonSet", &old, |new| {
        new["spec"]["revisionHistoryLimit"] = json!(1)
    });
    assert_eq!(limit["metadata"]["annotations"][key], "1");
    assert_eq!(limit["metadata"]["generation"], 2);
}
