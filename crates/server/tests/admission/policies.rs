//! Admission policies, through requests.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kubewright_server::{Authorization, Server, User};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::server::{
    CONFIG_MAPS, PODS, config_map, create, delete, patch, pod, post, refused, server, warned,
};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

fn rules(group: &str, resource: &str) -> Value {
    json!({"resourceRules": [
        {"operations": ["CREATE", "UPDATE"], "apiGroups": [group], "apiVersions": ["*"], "resources": [resource]},
    ]})
}

/// Makes a policy and a binding of the same name.
pub(crate) async fn policy(server: &Server, sort: &str, name: &str, spec: Value, binding: Value) {
    let object = |kind: String, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let lower = sort.to_lowercase();
    let path = format!("{GROUP}/{lower}admissionpolicies");
    create(
        server,
        &path,
        object(format!("{sort}AdmissionPolicy"), spec),
    )
    .await;
    let mut binding = binding;
    binding["policyName"] = json!(name);
    let path = format!("{GROUP}/{lower}admissionpolicybindings");
    create(
        server,
        &path,
        object(format!("{sort}AdmissionPolicyBinding"), binding),
    )
    .await;
}

#[tokio::test]
async fn a_policy_denies_what_its_expression_does_not_allow() {
    let server = server().await;
    let spec = json!({
        "matchConstraints": rules("", "configmaps"),
        "variables": [{"name": "size", "expression": "has(object.data) ? size(object.data) : 0"}],
        "validations": [{
            "expression": "variables.size <= 1", "messageExpression": "'has ' + string(variables.size) + ' entries'",
        }],
    });
    policy(
        &server,
        "Validating",
        "small",
        spec,
        json!({"validationActions": ["Deny"]}),
    )
    .await;
    create(&server, CONFIG_MAPS, config_map("a", json!({"x": "1"}))).await;
    let (status, answer) = post(
        &server,
        CONFIG_MAPS,
        config_map("b", json!({"x": "1", "y": "2"})),
    )
    .await;
    assert_eq!(status, 422);
    assert_eq!(answer["reason"], "Invalid");
    let message =
        "ValidatingAdmissionPolicy 'small' with binding 'small' denied request: has 2 entries";
    assert_eq!(
        answer["message"],
        format!("configmaps \"b\" is forbidden: {message}")
    );
    assert_eq!(answer["details"]["causes"], json!([{"message": message}]));
    // The binding puts the policy to use, and without it nothing is denied.
    delete(
        &server,
        &format!("{GROUP}/validatingadmissionpolicybindings/small"),
    )
    .await;
    create(
        &server,
        CONFIG_MAPS,
        config_map("b", json!({"x": "1", "y": "2"})),
    )
    .await;
}

#[tokio::test]
async fn a_policy_can_warn_and_give_its_reason() {
    let server = server().await;
    let spec = json!({
        "matchConstraints": rules("", "configmaps"),
        "validations": [{"expression": "namespaceObject.metadata.name != 'default'", "message": "not here", "reason": "Forbidden"}],
    });
    policy(
        &server,
        "Validating",
        "p",
        spec,
        json!({"validationActions": ["Warn"]}),
    )
    .await;
    let (status, warnings) = warned(&server, CONFIG_MAPS, config_map("a", json!({}))).await;
    assert_eq!(status, 201);
    assert_eq!(
        warnings,
        [
            "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': not here\""
        ]
    );
    let path = format!("{GROUP}/validatingadmissionpolicybindings/p");
    patch(
        &server,
        &path,
        json!({"spec": {"validationActions": ["Deny"]}}),
    )
    .await;
    assert_eq!(
        refused(&server, CONFIG_MAPS, config_map("b", json!({})))
            .await
            .0,
        403
    );
}

#[tokio::test]
async fn parameters_are_objects_of_the_cluster() {
    let server = server().await;
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": rules("apps", "deployments"),
        "validations": [{"expression": "object.spec.replicas <= int(params.data.most)"}],
    });
    let binding = json!({
        "validationActions": ["Deny"],
        "paramRef": {"name": "limits", "namespace": "kube-system", "parameterNotFoundAction": "Deny"},
    });
    policy(&server, "Validating", "p", spec, binding).await;
    let deployment = |name: &str, replicas: u32| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": pod("x", json!({}))["spec"],
            }},
        })
    };
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let (_, message) = refused(&server, path, deployment("a", 1)).await;
    assert!(
        message.ends_with("denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"),
        "{message}"
    );
    let limits = config_map("limits", json!({"most": "2"}));
    create(&server, "/api/v1/namespaces/kube-system/configmaps", limits).await;
    create(&server, path, deployment("a", 2)).await;
    let (_, message) = refused(&server, path, deployment("b", 3)).await;
    assert!(
        message.ends_with(
            "denied request: failed expression: object.spec.replicas <= int(params.data.most)"
        ),
        "{message}"
    );
}

#[tokio::test]
async fn a_policy_changes_objects_by_configuration_and_patch() {
    let server = server().await;
    let apply = "Object{metadata: Object.metadata{labels: {'team': object.metadata.namespace}}, spec: Object.spec{\
                 initContainers: [Object.spec.initContainers{name: 'first', image: 'x'}]}}";
    let patch = "has(object.metadata.annotations) ? [] : [JSONPatch{op: 'add', path: '/metadata/annotations', value: {'seen': 'yes'}}]";
    let spec = json!({
        "matchConstraints": rules("", "pods"), "reinvocationPolicy": "IfNeeded",
        "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": apply}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}},
        ],
    });
    policy(&server, "Mutating", "p", spec, json!({})).await;
    let made = create(&server, PODS, pod("a", json!({}))).await;
    assert_eq!(made["metadata"]["labels"], json!({"team": "default"}));
    assert_eq!(made["metadata"]["annotations"], json!({"seen": "yes"}));
    assert_eq!(made["spec"]["initContainers"][0]["name"], "first");
    assert_eq!(
        made["spec"]["initContainers"].as_array().map(Vec::len),
        Some(1)
    );
}

#[tokio::test]
async fn a_mutation_that_fails_is_reported() {
    let server = server().await;
    let spec = json!({
        "matchConstraints": rules("", "pods"), "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {
            "expression": "Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}",
        }}],
    });
    policy(&server, "Mutating", "p", spec, json!({})).await;
    let (status, message) = refused(&server, PODS, pod("a", json!({}))).await;
    assert_eq!(status, 403);
    assert_eq!(
        message,
        "policy 'p' with binding 'p' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.nodeSelector"
    );
}

#[tokio::test]
async fn a_policy_asks_who_may_do_what() {
    let builder = Server::builder().authorization(Authorization::Rbac);
    let server = builder.start().await.expect("starts");
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [rule]});
    create(&server, &format!("{roles}/clusterroles"), role).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
    });
    create(&server, &format!("{roles}/clusterrolebindings"), binding).await;
    let spec = json!({
        "matchConstraints": rules("", "configmaps"),
        "validations": [{"expression": "authorizer.requestResource.check('breakglass').allowed()", "message": "no glass"}],
    });
    policy(
        &server,
        "Validating",
        "p",
        spec,
        json!({"validationActions": ["Deny"]}),
    )
    .await;
    create(&server, CONFIG_MAPS, config_map("by-admin", json!({}))).await;
    let request = http::Request::builder()
        .method("POST")
        .uri(format!("https://localhost{CONFIG_MAPS}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(
            config_map("by-bob", json!({})).to_string(),
        )))
        .expect("a request");
    let bob = server.service_as(User::new("bob", [""; 0]));
    let answer = bob.oneshot(request).await.expect("never fails");
    assert_eq!(answer.status().as_u16(), 422);
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("never fails")
        .to_bytes();
    let body: Value = serde_json::from_slice(&body).expect("a status");
    let message = body["message"].as_str().unwrap_or("");
    assert!(message.ends_with("denied request: no glass"), "{message}");
}
