use serde_json::{Value, json};

use crate::kinds::strategy;
use crate::kinds::testing::{Edit, create, create_errors, edit_errors, update, update_errors};

fn pod() -> Value {
    json!({
        "metadata": {"name": "gp", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
    })
}

fn with(edit: impl Fn(&mut Value)) -> Value {
    let mut object = pod();
    edit(&mut object["spec"]);
    object
}

/// Golden entry "create pod".
#[test]
fn pod_gets_its_defaults() {
    let object = create("", "Pod", pod());
    assert_eq!(object["metadata"]["generation"], 1);
    assert_eq!(
        object["spec"],
        json!({
            "containers": [{
                "name": "c",
                "image": "nginx:1",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent"
            }],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            ],
            "priority": 0,
            "enableServiceLinks": true,
            "preemptionPolicy": "PreemptLowerPriority"
        })
    );
    assert_eq!(
        object["status"],
        json!({"phase": "Pending", "qosClass": "BestEffort"})
    );
    assert_eq!(create_errors("", "Pod", pod()), Vec::<String>::new());
}

#[test]
fn parts_of_a_pod_get_their_defaults() {
    let object = create(
        "",
        "Pod",
        with(|spec| {
            spec["hostNetwork"] = json!(true);
            spec["tolerations"] = json!([{"operator": "Exists"}]);
            spec["volumes"] = json!([
                {"name": "a"},
                {"name": "b", "secret": {"secretName": "s"}},
                {"name": "c", "hostPath": {"path": "/"}},
                {"name": "d", "projected": {"sources": [
                    {"serviceAccountToken": {"path": "t"}},
                    {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                ]}},
            ]);
            spec["containers"][0]["ports"] = json!([{"containerPort": 80}]);
            spec["containers"][0]["env"] =
                json!([{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]);
            spec["containers"][0]["livenessProbe"] = json!({"httpGet": {"port": 80}});
            spec["containers"][0]["readinessProbe"] =
                json!({"grpc": {"port": 80}, "periodSeconds": 5});
            spec["containers"][0]["resources"] =
                json!({"limits": {"cpu": "1"}, "requests": {"memory": "100u"}});
        }),
    );
    let spec = &object["spec"];
    assert_eq!(spec["tolerations"], json!([{"operator": "Exists"}]));
    assert_eq!(
        spec["volumes"],
        json!([
            {"name": "a", "emptyDir": {}},
            {"name": "b", "secret": {"secretName": "s", "defaultMode": 420}},
            {"name": "c", "hostPath": {"path": "/", "type": ""}},
            {"name": "d", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
                {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels", "apiVersion": "v1"}}]}},
            ]}},
        ])
    );
    let container = &spec["containers"][0];
    assert_eq!(
        container["ports"],
        json!([{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}])
    );
    assert_eq!(
        container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"],
        "v1"
    );
    assert_eq!(
        container["livenessProbe"],
        json!({
            "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
            "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
        })
    );
    assert_eq!(
        container["readinessProbe"],
        json!({
            "grpc": {"port": 80, "service": ""},
            "timeoutSeconds": 1, "periodSeconds": 5, "successThreshold": 1, "failureThreshold": 3,
        })
    );
    assert_eq!(
        container["resources"],
        json!({"limits": {"cpu": "1"}, "requests": {"memory": "1m", "cpu": "1"}})
    );
    assert_eq!(object["status"]["qosClass"], "Burstable");
}

#[test]
fn each_broken_part_is_named() {
    let container = |fields: Value| {
        with(|spec| {
            for (field, value) in fields.as_object().into_iter().flatten() {
                spec["containers"][0][field] = value.clone();
            }
        })
    };
    let path = "spec.containers[0]";
    for (object, expect) in [
        (container(json!({"name": ""})), format!("{path}.name: Required value")),
        (container(json!({"image": ""})), format!("{path}.image: Required value")),
        (container(json!({"name": "a.b"})), format!("{path}.name: Invalid value: \"a.b\": must not contain dots")),
        (container(json!({"ports": [{"containerPort": 0}]})), format!("{path}.ports[0].containerPort: Required value")),
        (
            container(json!({"ports": [{"containerPort": 70000}]})),
            format!("{path}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"),
        ),
        (
            container(json!({"ports": [{"containerPort": 1, "name": "p"}, {"containerPort": 2, "name": "p"}]})),
            format!("{path}.ports[1].name: Duplicate value: \"p\""),
        ),
        (container(json!({"env": [{"value": "x"}]})), format!("{path}.env[0].name: Required value")),
        (
            container(json!({"env": [{"name": "A=B"}]})),
            format!("{path}.env[0].name: Invalid value: \"A=B\": a valid environment variable name must consist only of printable ASCII characters other than '='"),
        ),
        (
            container(json!({"env": [{"name": "A", "value": "x", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]})),
            format!("{path}.env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"),
        ),
        (
            container(json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]})),
            format!("{path}.volumeMounts[0].name: Not found: \"v\""),
        ),
        (
            container(json!({"livenessProbe": {}})),
            format!("{path}.livenessProbe: Required value: must specify a handler type"),
        ),
        (
            container(json!({"livenessProbe": {"exec": {"command": ["x"]}, "successThreshold": 2}})),
            format!("{path}.livenessProbe.successThreshold: Invalid value: 2: must be 1"),
        ),
        (
            container(json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}})),
            format!("{path}.resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"),
        ),
        (
            container(json!({"resources": {"requests": {"cpu": "-1"}}})),
            format!("{path}.resources.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"),
        ),
        (
            container(json!({"resources": {"requests": {"ex.io/gpu": "1"}}})),
            format!("{path}.resources.limits: Required value: Limit must be set for non overcommitable resources"),
        ),
        (
            container(json!({"imagePullPolicy": "Sometimes"})),
            format!("{path}.imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"IfNotPresent\", \"Never\""),
        ),
        (
            with(|spec| spec["restartPolicy"] = json!("Maybe")),
            "spec.restartPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \"OnFailure\", \"Never\"".to_owned(),
        ),
        (
            with(|spec| spec["volumes"] = json!([{"name": "v", "secret": {}}])),
            "spec.volumes[0].secret.secretName: Required value".to_owned(),
        ),
        (
            with(|spec| spec["volumes"] = json!([{"name": "v", "configMap": {"name": "c"}, "emptyDir": {}}])),
            "spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type".to_owned(),
        ),
        (
            with(|spec| spec["volumes"] = json!([{"name": "v"}, {"name": "v"}])),
            "spec.volumes[1].name: Duplicate value: \"v\"".to_owned(),
        ),
        (
            with(|spec| spec["initContainers"] = json!([{"name": "c", "image": "i"}])),
            "spec.initContainers[0].name: Duplicate value: \"c\"".to_owned(),
        ),
        (
            with(|spec| spec["ephemeralContainers"] = json!([{"name": "e", "image": "i"}])),
            "spec.ephemeralContainers: Forbidden: cannot be set on create".to_owned(),
        ),
        (
            with(|spec| spec["tolerations"] = json!([{"key": "k", "operator": "Exists", "value": "v"}])),
            "spec.tolerations[0].operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'".to_owned(),
        ),
    ] {
        assert_eq!(create_errors("", "Pod", object), [expect]);
    }
}

#[test]
fn little_of_a_pod_may_change() {
    let refusal = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    let allowed: [fn(&mut Value); 4] = [
        |new| new["spec"]["containers"][0]["image"] = json!("nginx:2"),
        |new| new["spec"]["activeDeadlineSeconds"] = json!(5),
        |new| new["metadata"]["labels"] = json!({"a": "b"}),
        |new| {
            if let Some(list) = new["spec"]["tolerations"].as_array_mut() {
                list.push(json!({"key": "k", "operator": "Exists"}));
            }
        },
    ];
    for edit in allowed {
        assert_eq!(update_errors("", "Pod", pod(), edit), Vec::<String>::new());
    }
    let refused: [(Edit, &str); 4] = [
        (|new| new["spec"]["nodeName"] = json!("n"), refusal),
        (
            |new| new["spec"]["containers"][0]["command"] = json!(["x"]),
            refusal,
        ),
        (
            |new| new["spec"]["tolerations"] = json!([{"operator": "Exists"}]),
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
        ),
        (
            |new| new["spec"]["schedulingGates"] = json!([{"name": "g"}]),
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'",
        ),
    ];
    for (edit, expect) in refused {
        assert_eq!(update_errors("", "Pod", pod(), edit), [expect]);
    }
    assert_eq!(
        update_errors("", "Pod", pod(), |new| new["spec"]["containers"] = json!([
            {"name": "c", "image": "i"}, {"name": "d", "image": "i"}
        ])),
        ["spec.containers: Forbidden: pod updates may not add or remove containers"]
    );
}

#[test]
fn gated_pods_wait_and_may_be_aimed() {
    let gated = || with(|spec| spec["schedulingGates"] = json!([{"name": "ex.io/g"}]));
    let object = create("", "Pod", gated());
    assert_eq!(
        object["status"]["conditions"][0]["reason"],
        "SchedulingGated"
    );
    let aim = |new: &mut Value| new["spec"]["nodeSelector"] = json!({"zone": "a"});
    assert_eq!(update_errors("", "Pod", gated(), aim), Vec::<String>::new());
    assert_eq!(
        edit_errors("", "Pod", create("", "Pod", pod()), aim).len(),
        1
    );
}

/// Golden entry "delete pod unscheduled", and its relatives.
#[test]
fn grace_is_for_pods_that_run() {
    let mut object = create("", "Pod", pod());
    let strategy = strategy("", "Pod");
    assert_eq!(strategy.grace_period(&object, Some(60)), Some(0));
    object["spec"]["nodeName"] = json!("n");
    assert_eq!(strategy.grace_period(&object, None), Some(30));
    assert_eq!(strategy.grace_period(&object, Some(5)), Some(5));
    assert_eq!(strategy.grace_period(&object, Some(-5)), Some(1));
    object["status"]["phase"] = json!("Succeeded");
    assert_eq!(strategy.grace_period(&object, None), Some(0));
    assert_eq!(
        crate::kinds::strategy("", "ConfigMap").grace_period(&object, None),
        None
    );
}

#[test]
fn generation_counts_and_status_stays() {
    let old = create("", "Pod", pod());
    let new = update("", "Pod", &old, |new| {
        new["spec"]["containers"][0]["image"] = json!("nginx:2");
        new["status"] = json!({"phase": "Running"});
    });
    assert_eq!(new["metadata"]["generation"], 2);
    assert_eq!(new["status"], old["status"]);
}

#[test]
fn field_labels_are_known_or_refused() {
    let strategy = strategy("", "Pod");
    assert_eq!(
        strategy
            .check_field_label("spec.nodeName")
            .map_err(|e| e.to_string()),
        Ok(())
    );
    assert_eq!(
        strategy
            .check_field_label("spec.x")
            .map_err(|e| e.to_string()),
        Err("field label not supported: spec.x".to_owned())
    );
    let fields = strategy.selectable_fields(&create("", "Pod", pod()));
    assert!(fields.contains(&("status.phase", "Pending".to_owned())));
    assert!(fields.contains(&("spec.hostNetwork", "false".to_owned())));
}

#[test]
fn hidden_definitions_are_warned_of() {
    let object = with(|spec| {
        spec["containers"][0]["env"] =
            json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]);
        spec["containers"][0]["ports"] = json!([
            {"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "TCP"}
        ]);
    });
    assert_eq!(
        strategy("", "Pod").warnings(&object),
        [
            "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
            "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
        ]
    );
}

#[test]
fn updates_of_pods_warn_of_nothing() {
    let mut old = create("", "Pod", pod());
    old["metadata"]["name"] = json!("a.b");
    assert_eq!(
        strategy("", "Pod").warnings(&old),
        [
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]"
        ]
    );
    let new = update("", "Pod", &old, |new| {
        new["spec"]["containers"][0]["image"] = json!("i:2")
    });
    assert_eq!(
        strategy("", "Pod").update_warnings(&new, &old),
        Vec::<String>::new()
    );
}

#[test]
fn updates_may_leave_out_what_admission_gave() {
    let errors = update_errors("", "Pod", pod(), |new| {
        new["spec"] = pod()["spec"].clone();
        new["spec"]["containers"][0]["image"] = json!("nginx:2");
    });
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn names_of_sysctls_are_checked() {
    let errors = |name: &str| {
        let mut pod = pod();
        pod["spec"]["securityContext"]["sysctls"] = json!([{"name": name, "value": "1"}]);
        create_errors("", "Pod", pod)
    };
    assert_eq!(errors("kernel.shm_rmid_forced"), Vec::<String>::new());
    assert_eq!(errors("net/ipv4.ip-forward"), Vec::<String>::new());
    for name in ["foo-", "bar..", "safe-and-Unsafe", "/x"] {
        let found = errors(name);
        assert!(
            found
                .iter()
                .any(|e| e.contains("must have at most 253 characters")),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn certificates_of_pods_last_between_an_hour_and_91_days() {
    let errors = |seconds: i64| {
        let mut pod = pod();
        let source = json!({"podCertificate": {
            "signerName": "ex.io/s", "keyType": "ED25519", "credentialBundlePath": "c", "maxExpirationSeconds": seconds,
        }});
        pod["spec"]["volumes"] = json!([{"name": "v", "projected": {"sources": [source]}}]);
        create_errors("", "Pod", pod)
    };
    assert_eq!(errors(3_600), Vec::<String>::new());
    assert!(errors(3_599)[0].ends_with("maxExpirationSeconds must be >= 3600"));
    assert!(errors(7_862_401)[0].ends_with("maxExpirationSeconds must be <= 7862400"));
}
