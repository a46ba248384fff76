//! Nobody grants what they do not have.

use serde_json::{Value, json};

use crate::host::{Caller, RBAC, rule, server, user};

fn role(name: &str, rules: Value) -> Value {
    json!({ "metadata": { "name": name }, "rules": rules })
}

fn binding(name: &str, kind: &str, role: &str) -> Value {
    json!({
        "metadata": { "name": name }, "subjects": [user("eve")],
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
    })
}

/// Carol may write roles and bindings and read pods in the default namespace.
async fn carol(server: &kubewright_server::Server) -> Caller {
    let rules = json!([
        rule(&["get", "list"], "", &["pods"]),
        rule(
            &["create", "update", "patch"],
            "rbac.authorization.k8s.io",
            &["roles", "rolebindings"]
        ),
    ]);
    Caller::admin(server)
        .grant("carol", "default", user("carol"), rules)
        .await;
    Caller::user(server, "carol")
}

#[tokio::test]
async fn roles_beyond_the_writers_own_are_refused() {
    let server = server().await;
    let carol = carol(&server).await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    carol
        .create(&roles, role("fine", json!([rule(&["get"], "", &["pods"])])))
        .await;
    let more = json!([
        rule(&["get", "delete", "list", "update"], "", &["pods"]),
        { "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"] },
    ]);
    let expected = "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"carol\" \
        (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
        {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"update\"]}\n\
        {APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"s\"], Verbs:[\"get\"]}";
    let text = carol
        .refused(403, "POST", &roles, &role("more", more.clone()))
        .await;
    assert_eq!(text, expected);
    let fine = format!("{roles}/fine");
    let text = carol
        .refused(403, "PATCH", &fine, &json!({ "rules": more }))
        .await;
    assert!(text.contains("attempting to grant"), "{text}");
    let text = carol
        .refused(403, "PUT", &fine, &role("fine", more.clone()))
        .await;
    assert!(text.contains("attempting to grant"), "{text}");
    let text = carol
        .refused(403, "PUT", &format!("{roles}/new"), &role("new", more))
        .await;
    assert!(text.contains("attempting to grant"), "{text}");
    let labelled = json!({ "metadata": { "labels": { "a": "b" } } });
    assert_eq!(carol.status("PATCH", &fine, &labelled).await, 200);
}

#[tokio::test]
async fn the_verb_escalate_lifts_the_check() {
    let server = server().await;
    let carol = carol(&server).await;
    let rules = json!([rule(&["escalate"], "rbac.authorization.k8s.io", &["roles"])]);
    Caller::admin(&server)
        .grant("escalate", "default", user("carol"), rules)
        .await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    carol
        .create(&roles, role("more", json!([rule(&["*"], "*", &["*"])])))
        .await;
}

#[tokio::test]
async fn bindings_to_roles_beyond_the_writers_own_are_refused() {
    let server = server().await;
    let admin = Caller::admin(&server);
    let carol = carol(&server).await;
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let pods = json!([rule(&["list"], "", &["pods"])]);
    admin
        .create(&format!("{RBAC}/clusterroles"), role("pods", pods))
        .await;
    carol
        .create(&bindings, binding("pods", "ClusterRole", "pods"))
        .await;
    let text = carol
        .refused(
            403,
            "POST",
            &bindings,
            &binding("boss", "ClusterRole", "cluster-admin"),
        )
        .await;
    let expected = "rolebindings.rbac.authorization.k8s.io \"boss\" is forbidden: user \"carol\" \
        (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
        {APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}";
    assert_eq!(text, expected);
    let text = carol
        .refused(404, "POST", &bindings, &binding("none", "Role", "none"))
        .await;
    assert_eq!(text, r#"role.rbac.authorization.k8s.io "none" not found"#);
    let bind = json!([{
        "verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
        "resourceNames": ["view"],
    }]);
    admin.grant("bind", "default", user("carol"), bind).await;
    carol
        .create(&bindings, binding("view", "ClusterRole", "view"))
        .await;
    let text = carol
        .refused(
            403,
            "POST",
            &bindings,
            &binding("edit", "ClusterRole", "edit"),
        )
        .await;
    assert!(text.contains("attempting to grant"), "{text}");
}

#[tokio::test]
async fn roles_that_gather_others_need_everything() {
    let server = server().await;
    let admin = Caller::admin(&server);
    let rules = json!([rule(
        &["create"],
        "rbac.authorization.k8s.io",
        &["clusterroles"]
    )]);
    admin.grant("dave", "", user("dave"), rules).await;
    let gather = json!({
        "metadata": { "name": "all" },
        "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] },
    });
    let dave = Caller::user(&server, "dave");
    let text = dave
        .refused(403, "POST", &format!("{RBAC}/clusterroles"), &gather)
        .await;
    assert_eq!(
        text,
        "clusterroles.rbac.authorization.k8s.io \"all\" is forbidden: must have cluster-admin privileges to use the \
         aggregationRule"
    );
    let cluster_admin = json!({
        "metadata": { "name": "dave-admin" }, "subjects": [user("dave")],
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
    });
    admin
        .create(&format!("{RBAC}/clusterrolebindings"), cluster_admin)
        .await;
    dave.create(&format!("{RBAC}/clusterroles"), gather).await;
}

#[tokio::test]
async fn update_that_creates_needs_the_verb_create() {
    let server = server().await;
    let rules = json!([rule(&["update"], "rbac.authorization.k8s.io", &["roles"])]);
    Caller::admin(&server)
        .grant("u", "default", user("ursula"), rules)
        .await;
    let ursula = Caller::user(&server, "ursula");
    let path = format!("{RBAC}/namespaces/default/roles/new");
    let text = ursula
        .refused(403, "PUT", &path, &role("new", json!([])))
        .await;
    assert_eq!(
        text,
        r#"roles.rbac.authorization.k8s.io "new" is forbidden: User "ursula" cannot create resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "default""#
    );
}

#[tokio::test]
async fn rules_with_empty_parts_are_checked_like_others() {
    let server = server().await;
    let carol = carol(&server).await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    let mut all = rule(&["*"], "*", &["*"]);
    all["resourceNames"] = Value::Null;
    all["nonResourceURLs"] = Value::Null;
    let text = carol
        .refused(403, "POST", &roles, &role("all", json!([all])))
        .await;
    assert!(text.contains("attempting to grant"), "{text}");
    carol.create(&roles, role("none", Value::Null)).await;
    let patch = json!({ "rules": [all] });
    let text = carol
        .refused(403, "PATCH", &format!("{roles}/none"), &patch)
        .await;
    assert!(text.contains("attempting to grant"), "{text}");
}

#[tokio::test]
async fn rules_that_multiply_are_refused_before_they_are_compared() {
    let server = server().await;
    let carol = carol(&server).await;
    let many: Vec<String> = (0..400).map(|i| format!("x{i}")).collect();
    let rules = json!([{ "verbs": many, "apiGroups": many, "resources": many }]);
    let roles = format!("{RBAC}/namespaces/default/roles");
    let text = carol
        .refused(403, "POST", &roles, &role("many", rules))
        .await;
    assert!(
        text.ends_with("too many to be compared with those of the user"),
        "{text}"
    );
}
