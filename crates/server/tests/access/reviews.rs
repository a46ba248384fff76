//! Questions about access, and their answers.

use kubewright_server::{Server, Tokens, User};
use serde_json::{Value, json};

use crate::host::{Caller, builder, rule, server, user};

const AUTHORIZATION: &str = "/apis/authorization.k8s.io/v1";
const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

async fn ask(caller: &Caller, plural: &str, spec: Value) -> Value {
    let path = format!("{AUTHORIZATION}/{plural}");
    caller.create(&path, json!({ "spec": spec })).await["status"].clone()
}

async fn bob_reads_pods() -> Server {
    let server = server().await;
    let rules = json!([rule(&["get"], "", &["pods"])]);
    Caller::admin(&server)
        .grant("pods", "default", user("bob"), rules)
        .await;
    server
}

#[tokio::test]
async fn answers_name_their_grounds() {
    let server = bob_reads_pods().await;
    let (admin, bob) = (Caller::admin(&server), Caller::user(&server, "bob"));
    let pods = json!({ "verb": "get", "resource": "pods", "namespace": "default" });
    let grounds = json!({
        "allowed": true, "reason": r#"RBAC: allowed by RoleBinding "pods/default" of Role "pods" to User "bob""#,
    });
    let no = json!({ "allowed": false });
    let own = "selfsubjectaccessreviews";
    assert_eq!(
        ask(&bob, own, json!({ "resourceAttributes": pods })).await,
        grounds
    );
    let secrets = json!({ "verb": "get", "resource": "secrets", "namespace": "default" });
    assert_eq!(
        ask(&bob, own, json!({ "resourceAttributes": secrets })).await,
        no
    );
    assert_eq!(
        ask(&admin, own, json!({ "resourceAttributes": secrets })).await,
        json!({ "allowed": true })
    );
    let metrics = json!({ "nonResourceAttributes": { "verb": "get", "path": "/metrics" } });
    assert_eq!(ask(&bob, own, metrics).await, no);
    let others = json!({ "user": "bob", "resourceAttributes": pods });
    assert_eq!(
        ask(&admin, "subjectaccessreviews", others.clone()).await,
        grounds
    );
    let path = format!("{AUTHORIZATION}/subjectaccessreviews");
    bob.refused(403, "POST", &path, &json!({ "spec": others }))
        .await;
    let local = "namespaces/default/localsubjectaccessreviews";
    assert_eq!(ask(&admin, local, others).await, grounds);
}

#[tokio::test]
async fn questions_must_be_complete() {
    let server = server().await;
    let admin = Caller::admin(&server);
    for (plural, review, expected) in [
        (
            "selfsubjectaccessreviews",
            json!({ "spec": {} }),
            r#".authorization.k8s.io "" is invalid: spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"#,
        ),
        (
            "subjectaccessreviews",
            json!({ "spec": { "resourceAttributes": { "verb": "get" } } }),
            r#".authorization.k8s.io "" is invalid: spec.user: Invalid value: "": at least one of user or group must be specified"#,
        ),
        (
            "namespaces/default/localsubjectaccessreviews",
            json!({ "spec": { "user": "bob", "resourceAttributes": { "verb": "get", "namespace": "other" } } }),
            r#".authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace"#,
        ),
    ] {
        let text = admin
            .refused(422, "POST", &format!("{AUTHORIZATION}/{plural}"), &review)
            .await;
        assert_eq!(text, expected);
    }
    let rules = format!("{AUTHORIZATION}/selfsubjectrulesreviews");
    assert_eq!(
        admin.refused(400, "POST", &rules, &json!({})).await,
        "no namespace on request"
    );
    assert_eq!(
        admin
            .refused(400, "POST", TOKEN_REVIEWS, &json!({ "spec": {} }))
            .await,
        "token is required for TokenReview in authentication"
    );
    for (method, path) in [("GET", rules.as_str()), ("DELETE", rules.as_str())] {
        assert_eq!(
            admin.status(method, path, &Value::Null).await,
            405,
            "{method}"
        );
    }
}

#[tokio::test]
async fn rules_of_a_user_are_listed() {
    let server = bob_reads_pods().await;
    let bob = Caller::user(&server, "bob");
    let rules = ask(
        &bob,
        "selfsubjectrulesreviews",
        json!({ "namespace": "default" }),
    )
    .await;
    let resources: Vec<_> = rules["resourceRules"]
        .as_array()
        .expect("rules")
        .iter()
        .map(|r| &r["resources"])
        .collect();
    assert_eq!(
        resources,
        [
            &json!(["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
            &json!(["selfsubjectreviews"]),
            &json!(["pods"]),
        ]
    );
    let elsewhere = ask(
        &bob,
        "selfsubjectrulesreviews",
        json!({ "namespace": "kube-system" }),
    )
    .await;
    assert_eq!(
        elsewhere["resourceRules"].as_array().expect("rules").len(),
        2
    );
}

#[tokio::test]
async fn static_tokens_are_reviewed() {
    let mut tokens = Tokens::default();
    tokens.insert("open-sesame", User::new("bob", ["team"]));
    let server = builder().0.tokens(tokens).start().await.expect("starts");
    let admin = Caller::admin(&server);
    let review = async |token: &str| {
        let review = json!({ "spec": { "token": token, "audiences": ["a"] } });
        admin.create(TOKEN_REVIEWS, review).await["status"].clone()
    };
    let user = json!({ "username": "bob", "groups": ["team", "system:authenticated"] });
    let good = json!({ "authenticated": true, "user": user, "audiences": ["a"] });
    assert_eq!(review("open-sesame").await, good);
    assert_eq!(
        review("wrong").await,
        json!({ "user": {}, "error": "invalid bearer token" })
    );
}

#[tokio::test]
async fn everything_is_allowed_where_roles_do_not_decide() {
    let server = Server::builder().start().await.expect("starts");
    let bob = Caller::user(&server, "bob");
    let spec = json!({ "resourceAttributes": { "verb": "delete", "resource": "nodes" } });
    assert_eq!(
        ask(&bob, "selfsubjectaccessreviews", spec).await,
        json!({ "allowed": true })
    );
    let rules = ask(
        &bob,
        "selfsubjectrulesreviews",
        json!({ "namespace": "default" }),
    )
    .await;
    assert_eq!(rules["resourceRules"][0]["verbs"], json!(["*"]));
}

#[tokio::test]
async fn reviews_are_discovered_and_not_stored() {
    let server = server().await;
    let (_, list) = Caller::admin(&server)
        .get("/apis/authorization.k8s.io/v1")
        .await;
    let entries = list["resources"].as_array().expect("resources");
    assert_eq!(entries.len(), 4);
    for entry in entries {
        assert_eq!(entry["verbs"], json!(["create"]));
        assert!(entry["storageVersionHash"].is_null());
    }
    let before = server.revision();
    let spec = json!({ "resourceAttributes": { "verb": "get", "resource": "pods" } });
    ask(&Caller::admin(&server), "selfsubjectaccessreviews", spec).await;
    assert_eq!(server.revision(), before);
}
