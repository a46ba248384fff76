//! What roles allow is allowed and nothing else is, from the moment the write is answered.

use serde_json::{Value, json};

use crate::host::{Caller, RBAC, builder, config_map, rule, server, user};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn user_may_do_what_the_role_says_and_nothing_else() {
    let server = server().await;
    let admin = Caller::admin(&server);
    let rules = json!([rule(&["get", "list", "create"], "", &["configmaps"])]);
    admin.grant("maps", "default", user("bob"), rules).await;
    let bob = Caller::user(&server, "bob");
    bob.create(MAPS, config_map("a")).await;
    for (method, path, body, expected) in [
        ("GET", MAPS, Value::Null, None),
        ("GET", &format!("{MAPS}/a"), Value::Null, None),
        ("GET", "/api/v1", Value::Null, None),
        ("GET", "/version", Value::Null, None),
        (
            "GET",
            &format!("{MAPS}?watch=1"),
            Value::Null,
            Some(
                r#"configmaps is forbidden: User "bob" cannot watch resource "configmaps" in API group "" in the namespace "default""#,
            ),
        ),
        (
            "GET",
            "/api/v1/configmaps",
            Value::Null,
            Some(
                r#"configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" at the cluster scope"#,
            ),
        ),
        (
            "DELETE",
            &format!("{MAPS}/a"),
            Value::Null,
            Some(
                r#"configmaps "a" is forbidden: User "bob" cannot delete resource "configmaps" in API group "" in the namespace "default""#,
            ),
        ),
        (
            "PUT",
            "/apis/apps/v1/namespaces/default/deployments/x/scale",
            json!({}),
            Some(
                r#"deployments.apps "x" is forbidden: User "bob" cannot update resource "deployments/scale" in API group "apps" in the namespace "default""#,
            ),
        ),
        (
            "GET",
            "/apis/nowhere.io/v1/things",
            Value::Null,
            Some(
                r#"things.nowhere.io is forbidden: User "bob" cannot list resource "things" in API group "nowhere.io" at the cluster scope"#,
            ),
        ),
        (
            "GET",
            "/api/v1/namespaces/default",
            Value::Null,
            Some(
                r#"namespaces "default" is forbidden: User "bob" cannot get resource "namespaces" in API group "" in the namespace "default""#,
            ),
        ),
        (
            "GET",
            "/metrics",
            Value::Null,
            Some(r#"forbidden: User "bob" cannot get path "/metrics""#),
        ),
    ] {
        match expected {
            None => assert_eq!(
                bob.status(method, path, &body).await,
                200,
                "{method} {path}"
            ),
            Some(text) => assert_eq!(bob.refused(403, method, path, &body).await, text),
        }
    }
    let (_, refusal) = bob.get("/api/v1/nodes/n").await;
    assert_eq!(refusal["details"], json!({ "name": "n", "kind": "nodes" }));
    assert_eq!(
        (&refusal["reason"], &refusal["code"]),
        (&json!("Forbidden"), &json!(403))
    );
}

#[tokio::test]
async fn changes_are_in_force_when_they_are_answered() {
    let server = server().await;
    let admin = Caller::admin(&server);
    let bob = Caller::user(&server, "bob");
    let may = async || bob.status("GET", "/api/v1/nodes", &Value::Null).await == 200;
    assert!(!may().await);
    admin
        .grant(
            "nodes",
            "",
            user("bob"),
            json!([rule(&["list"], "", &["nodes"])]),
        )
        .await;
    assert!(may().await);
    let role = format!("{RBAC}/clusterroles/nodes");
    admin
        .send(
            "PATCH",
            &role,
            &json!({ "rules": [rule(&["get"], "", &["nodes"])] }),
        )
        .await;
    assert!(!may().await);
    admin
        .send(
            "PATCH",
            &role,
            &json!({ "rules": [rule(&["*"], "", &["nodes"])] }),
        )
        .await;
    assert!(may().await);
    admin.send("DELETE", &role, &Value::Null).await;
    let text = bob.refused(403, "GET", "/api/v1/nodes", &Value::Null).await;
    assert!(
        text.ends_with(
            r#"at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "nodes" not found"#
        ),
        "{text}"
    );
    admin
        .send(
            "DELETE",
            &format!("{RBAC}/clusterrolebindings/nodes"),
            &Value::Null,
        )
        .await;
    let text = bob.refused(403, "GET", "/api/v1/nodes", &Value::Null).await;
    assert!(text.ends_with("at the cluster scope"), "{text}");
}

#[tokio::test]
async fn name_in_a_field_selector_counts_as_the_name() {
    let server = server().await;
    let admin = Caller::admin(&server);
    let rules = json!([{
        "verbs": ["list", "watch"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"],
    }]);
    admin.grant("one", "default", user("bob"), rules).await;
    let bob = Caller::user(&server, "bob");
    let only = |name: &str| format!("{MAPS}?fieldSelector=metadata.name%3D{name}");
    assert_eq!(bob.status("GET", &only("a"), &Value::Null).await, 200);
    assert_eq!(bob.status("GET", &only("b"), &Value::Null).await, 403);
    assert_eq!(bob.status("GET", MAPS, &Value::Null).await, 403);
}

#[tokio::test]
async fn aggregated_roles_follow_what_they_select() {
    let server = server().await;
    let admin = Caller::admin(&server);
    let widgets = json!({
        "metadata": { "name": "widgets", "labels": { "rbac.authorization.k8s.io/aggregate-to-view": "true" } },
        "rules": [rule(&["get"], "ex.io", &["widgets"])],
    });
    let has = async |role: &str| {
        let (_, role) = admin.get(&format!("{RBAC}/clusterroles/{role}")).await;
        let rules = role["rules"].as_array().expect("rules").clone();
        rules
            .iter()
            .any(|rule| rule["resources"] == json!(["widgets"]))
    };
    for role in ["view", "edit", "admin"] {
        assert!(!has(role).await);
    }
    admin
        .create(&format!("{RBAC}/clusterroles"), widgets.clone())
        .await;
    for role in ["view", "edit", "admin"] {
        assert!(has(role).await, "{role}");
    }
    admin
        .send(
            "DELETE",
            &format!("{RBAC}/clusterroles/widgets"),
            &Value::Null,
        )
        .await;
    for role in ["view", "edit", "admin"] {
        assert!(!has(role).await, "{role}");
    }
    admin.create(&format!("{RBAC}/clusterroles"), widgets).await;
    let own = json!({
        "metadata": { "name": "own" }, "rules": [rule(&["*"], "*", &["*"])],
        "aggregationRule": { "clusterRoleSelectors": [{
            "matchLabels": { "rbac.authorization.k8s.io/aggregate-to-view": "true" },
            "matchExpressions": [{ "key": "kubernetes.io/bootstrapping", "operator": "DoesNotExist" }],
        }] },
    });
    let own = admin.create(&format!("{RBAC}/clusterroles"), own).await;
    assert_eq!(own["rules"], json!([rule(&["get"], "ex.io", &["widgets"])]));
}

#[tokio::test]
async fn roles_that_select_each_other_come_to_an_end() {
    let server = server().await;
    let admin = Caller::admin(&server);
    for (name, label, selects) in [("a", "x", "y"), ("b", "y", "z"), ("c", "z", "x")] {
        let role = json!({
            "metadata": { "name": name, "labels": { (label): "1" } },
            "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { (selects): "1" } }] },
        });
        admin.create(&format!("{RBAC}/clusterroles"), role).await;
    }
    let leaf = json!({
        "metadata": { "name": "leaf", "labels": { "z": "1" } }, "rules": [rule(&["get"], "", &["pods"])],
    });
    admin.create(&format!("{RBAC}/clusterroles"), leaf).await;
    for name in ["a", "b", "c"] {
        let (_, role) = admin.get(&format!("{RBAC}/clusterroles/{name}")).await;
        assert_eq!(
            role["rules"],
            json!([rule(&["get"], "", &["pods"])]),
            "{name}"
        );
    }
}

#[tokio::test]
async fn default_roles_come_back_and_additions_stay() {
    let directory = tempfile::tempdir().expect("a directory");
    let start = async || {
        builder()
            .0
            .data_dir(directory.path())
            .start()
            .await
            .expect("starts")
    };
    let basic = format!("{RBAC}/clusterroles/system:basic-user");
    let monitoring = format!("{RBAC}/clusterroles/system:monitoring");
    let binding = format!("{RBAC}/clusterrolebindings/system:discovery");
    let delegator = format!("{RBAC}/clusterroles/system:auth-delegator");
    {
        let server = start().await;
        let admin = Caller::admin(&server);
        admin.send("DELETE", &basic, &Value::Null).await;
        let own = json!({ "rules": [rule(&["get"], "ex.io", &["own"])] });
        admin.send("PATCH", &monitoring, &own).await;
        let everybody =
            json!({ "subjects": [{ "kind": "Group", "name": "system:unauthenticated" }] });
        admin.send("PATCH", &binding, &everybody).await;
        let protected = json!({
            "metadata": { "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "false" } }, "rules": [],
        });
        admin.send("PATCH", &delegator, &protected).await;
    }
    let server = start().await;
    let admin = Caller::admin(&server);
    assert_eq!(admin.get(&basic).await.0, 200);
    let (_, role) = admin.get(&monitoring).await;
    assert!(
        role["rules"].as_array().expect("rules").len() > 2,
        "{role:#}"
    );
    let (_, binding) = admin.get(&binding).await;
    let subjects: Vec<_> = binding["subjects"]
        .as_array()
        .expect("subjects")
        .iter()
        .map(|s| &s["name"])
        .collect();
    assert_eq!(subjects, ["system:unauthenticated", "system:authenticated"]);
    let (_, role) = admin.get(&delegator).await;
    assert!(role["rules"].as_array().is_none_or(Vec::is_empty));
}

#[tokio::test]
async fn watch_paths_give_nothing_but_watches() {
    let server = server().await;
    let admin = Caller::admin(&server);
    let rules = json!([rule(&["list", "watch"], "*", &["*"])]);
    admin.grant("watcher", "default", user("bob"), rules).await;
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    admin.create("/api/v1/namespaces/default/pods", pod).await;
    admin.create(MAPS, config_map("a")).await;
    let bob = Caller::user(&server, "bob");
    let old = "/api/v1/watch/namespaces/default";
    for who in [&bob, &admin] {
        for (method, path, expected) in [
            ("GET", "pods/p/log", 404),
            ("GET", "pods/p/status", 404),
            ("PUT", "pods/p/status", 404),
            ("DELETE", "configmaps/a", 405),
            ("DELETE", "configmaps", 405),
            ("POST", "configmaps", 405),
            ("PATCH", "configmaps/a", 405),
        ] {
            let body = match method {
                "GET" => Value::Null,
                _ => config_map("a"),
            };
            let path = format!("{old}/{path}");
            assert_eq!(
                who.status(method, &path, &body).await,
                expected,
                "{method} {path}"
            );
        }
        let path = format!("{old}/configmaps/a?timeoutSeconds=1&resourceVersion=0");
        assert_eq!(who.get(&path).await.0, 200, "objects are watched there");
    }
    // A watch of one object is asked for of its collection; this is a read, and authorized as one.
    let text = bob
        .refused(403, "GET", &format!("{MAPS}/a?watch=true"), &Value::Null)
        .await;
    assert!(text.contains("cannot get resource"), "{text}");
    let (_, object) = admin.get(&format!("{MAPS}/a?watch=true")).await;
    assert_eq!(object["metadata"]["name"], "a");
}

#[tokio::test]
async fn health_and_version_are_open_and_nothing_else_is() {
    let server = server().await;
    let nobody = Caller::nobody(&server);
    for (path, expected) in [
        ("/healthz", 200),
        ("/version", 200),
        ("/readyz/ping", 403),
        ("/api/v1/pods", 401),
        ("/metrics", 401),
        ("/openid/v1/jwks", 401),
    ] {
        assert_eq!(nobody.get(path).await.0, expected, "{path}");
    }
}

#[tokio::test]
async fn everything_is_allowed_where_roles_do_not_decide() {
    let server = kubewright_server::Server::builder()
        .start()
        .await
        .expect("starts");
    let bob = Caller::user(&server, "bob");
    bob.create(MAPS, config_map("a")).await;
    let (_, roles) = bob.get(&format!("{RBAC}/clusterroles")).await;
    assert_eq!(roles["items"], json!([]));
    bob.grant("any", "", user("eve"), json!([rule(&["*"], "*", &["*"])]))
        .await;
}
