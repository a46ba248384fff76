//! Acting as others, as far as roles allow.

use serde_json::json;

use crate::host::{Caller, rule, server, user};

const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

async fn identity(caller: &Caller) -> serde_json::Value {
    caller.create(WHOAMI, json!({})).await["status"]["userInfo"].clone()
}

#[tokio::test]
async fn masters_become_anybody() {
    let server = server().await;
    let admin = || Caller::admin(&server);
    for (caller, expected) in [
        (
            admin().header("Impersonate-User", "bob"),
            json!({ "username": "bob", "groups": ["system:authenticated"] }),
        ),
        (
            admin()
                .header("Impersonate-User", "bob")
                .header("Impersonate-Group", "a")
                .header("Impersonate-Group", "b")
                .header("Impersonate-Uid", "7")
                .header("Impersonate-Extra-scopes%2Fx", "s"),
            json!({
                "username": "bob", "uid": "7", "groups": ["a", "b", "system:authenticated"],
                "extra": { "scopes/x": ["s"] },
            }),
        ),
        (
            admin().header("Impersonate-User", "system:serviceaccount:a:s"),
            json!({
                "username": "system:serviceaccount:a:s",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"],
            }),
        ),
    ] {
        assert_eq!(identity(&caller).await, expected);
    }
    let caller = admin().header("Impersonate-User", "system:anonymous");
    let text = caller.refused(403, "POST", WHOAMI, &json!({})).await;
    assert!(
        text.contains(r#"User "system:anonymous" cannot create"#),
        "{text}"
    );
}

#[tokio::test]
async fn each_part_is_allowed_for_itself() {
    let server = server().await;
    let rules = json!([
        { "verbs": ["impersonate"], "apiGroups": [""], "resources": ["users", "groups"], "resourceNames": ["bob", "team"] },
        rule(&["impersonate"], "authentication.k8s.io", &["userextras/scopes"]),
    ]);
    Caller::admin(&server)
        .grant("act", "", user("alice"), rules)
        .await;
    let local = json!([rule(&["impersonate"], "", &["serviceaccounts"])]);
    Caller::admin(&server)
        .grant("act", "default", user("alice"), local)
        .await;
    let alice = || Caller::user(&server, "alice");
    let bob = || alice().header("Impersonate-User", "bob");
    for allowed in [
        bob(),
        bob().header("Impersonate-Group", "team"),
        bob().header("Impersonate-Extra-Scopes", "s"),
        alice().header("Impersonate-User", "system:serviceaccount:default:s"),
    ] {
        identity(&allowed).await;
    }
    for (refused, expected) in [
        (
            alice().header("Impersonate-User", "root"),
            r#"users "root" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster scope"#,
        ),
        (
            bob().header("Impersonate-Group", "system:masters"),
            r#"groups "system:masters" is forbidden: User "alice" cannot impersonate resource "groups" in API group "" at the cluster scope"#,
        ),
        (
            bob().header("Impersonate-Uid", "7"),
            r#"uids.authentication.k8s.io "7" is forbidden: User "alice" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope"#,
        ),
        (
            bob().header("Impersonate-Extra-other", "s"),
            r#"userextras.authentication.k8s.io "s" is forbidden: User "alice" cannot impersonate resource "userextras/other" in API group "authentication.k8s.io" at the cluster scope"#,
        ),
        (
            alice().header("Impersonate-User", "system:serviceaccount:kube-system:s"),
            r#"serviceaccounts "s" is forbidden: User "alice" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "kube-system""#,
        ),
    ] {
        assert_eq!(
            refused.refused(403, "POST", WHOAMI, &json!({})).await,
            expected
        );
    }
    let nobody = alice().header("Impersonate-Group", "team");
    let text = nobody.refused(400, "POST", WHOAMI, &json!({})).await;
    assert_eq!(
        text,
        "requested [{Group  team    }] without impersonating a user"
    );
}
