//! Tokens of service accounts: what they allow, and what ends them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kubewright_server::Server;
use serde_json::{Value, json};

use crate::host::{Caller, Hand, START, builder, rule};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const PODS: &str = "/api/v1/namespaces/default/pods";
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// A server with the service account `robot`, which may list pods in its namespace.
async fn with_robot() -> (Server, Hand) {
    let (builder, clock) = builder();
    let server = builder.start().await.expect("starts");
    let admin = Caller::admin(&server);
    admin
        .create(ACCOUNTS, json!({ "metadata": { "name": "robot" } }))
        .await;
    let robot = json!({ "kind": "ServiceAccount", "name": "robot", "namespace": "default" });
    admin
        .grant(
            "robot",
            "default",
            robot,
            json!([rule(&["list"], "", &["pods"])]),
        )
        .await;
    (server, clock)
}

async fn request(server: &Server, spec: Value) -> Value {
    let path = format!("{ACCOUNTS}/robot/token");
    Caller::admin(server)
        .create(&path, json!({ "spec": spec }))
        .await
}

async fn token(server: &Server, spec: Value) -> String {
    let answer = request(server, spec).await;
    answer["status"]["token"]
        .as_str()
        .expect("a token")
        .to_owned()
}

/// What the pods of its namespace answer to a token.
async fn pods(server: &Server, token: &str) -> u16 {
    Caller::bearer(server, token).get(PODS).await.0
}

fn pod(name: &str, account: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": { "serviceAccountName": account, "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] },
    })
}

fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("three parts");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
}

#[tokio::test]
async fn token_may_do_exactly_what_the_role_says() {
    let (server, _) = with_robot().await;
    let robot = Caller::bearer(&server, &token(&server, json!({})).await);
    assert_eq!(robot.get(PODS).await.0, 200);
    for (method, path) in [
        ("GET", "/api/v1/pods"),
        ("GET", "/api/v1/namespaces/default/secrets"),
        ("DELETE", PODS),
    ] {
        let text = robot.refused(403, method, path, &Value::Null).await;
        assert!(
            text.contains(r#"User "system:serviceaccount:default:robot" cannot"#),
            "{text}"
        );
    }
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/robot";
    Caller::admin(&server)
        .send("DELETE", path, &Value::Null)
        .await;
    assert_eq!(robot.get(PODS).await.0, 403);
}

#[tokio::test]
async fn answer_and_claims_are_those_of_the_api() {
    let (server, _) = with_robot().await;
    let answer = request(
        &server,
        json!({ "audiences": ["a", "b"], "expirationSeconds": 700 }),
    )
    .await;
    assert_eq!(answer["kind"], "TokenRequest");
    assert_eq!(answer["metadata"]["name"], "robot");
    assert_eq!(answer["spec"]["expirationSeconds"], 700);
    assert_eq!(
        answer["status"]["expirationTimestamp"],
        "2027-01-15T08:11:40Z"
    );
    let uid = &answer["metadata"]["uid"];
    let mut claims = claims(answer["status"]["token"].as_str().expect("a token"));
    assert!(claims["jti"].take().is_string());
    assert_eq!(
        claims,
        json!({
            "aud": ["a", "b"], "exp": START + 700, "iat": START, "nbf": START, "iss": ISSUER, "jti": null,
            "sub": "system:serviceaccount:default:robot",
            "kubernetes.io": { "namespace": "default", "serviceaccount": { "name": "robot", "uid": uid } },
        })
    );
}

#[tokio::test]
async fn tokens_end_with_their_time() {
    let (server, clock) = with_robot().await;
    let token = token(&server, json!({ "expirationSeconds": 600 })).await;
    assert_eq!(pods(&server, &token).await, 200);
    clock.advance(660);
    assert_eq!(
        pods(&server, &token).await,
        200,
        "clocks may be a minute apart"
    );
    clock.advance(1);
    assert_eq!(pods(&server, &token).await, 401);
    clock.advance(-3600);
    assert_eq!(pods(&server, &token).await, 401, "not yet");
}

#[tokio::test]
async fn tokens_for_others_and_forged_ones_are_refused() {
    let (server, _) = with_robot().await;
    let elsewhere = token(&server, json!({ "audiences": ["vault"] })).await;
    assert_eq!(pods(&server, &elsewhere).await, 401);
    let good = token(&server, json!({ "audiences": ["vault", ISSUER] })).await;
    assert_eq!(pods(&server, &good).await, 200);
    let (signed, signature) = good.rsplit_once('.').expect("three parts");
    let flipped = if signature.starts_with('A') { "B" } else { "A" };
    let forged = format!("{signed}.{flipped}{}", &signature[1..]);
    let (other, _) = with_robot().await;
    let foreign = token(&other, json!({})).await;
    for bad in [&forged, &foreign, signed, "", "x.y.z"] {
        let (status, answer) = Caller::bearer(&server, bad).get(PODS).await;
        assert_eq!((status, &answer["message"]), (401, &json!("Unauthorized")));
    }
}

#[tokio::test]
async fn tokens_end_with_their_service_account() {
    let (server, _) = with_robot().await;
    let admin = Caller::admin(&server);
    let token = token(&server, json!({})).await;
    let path = format!("{ACCOUNTS}/robot");
    admin.send("DELETE", &path, &Value::Null).await;
    assert_eq!(pods(&server, &token).await, 401);
    admin
        .create(ACCOUNTS, json!({ "metadata": { "name": "robot" } }))
        .await;
    assert_eq!(
        pods(&server, &token).await,
        401,
        "another account of the same name"
    );
}

#[tokio::test]
async fn tokens_end_with_what_they_are_bound_to() {
    let (server, clock) = with_robot().await;
    let admin = Caller::admin(&server);
    let nodes = "/api/v1/nodes";
    let secrets = "/api/v1/namespaces/default/secrets";
    let node = admin
        .create(nodes, json!({ "metadata": { "name": "n1" } }))
        .await;
    admin
        .create(
            secrets,
            json!({ "metadata": { "name": "s", "finalizers": ["ex.io/hold"] } }),
        )
        .await;
    let made = admin.create(PODS, pod("p", "robot")).await;
    let bound = |kind: &str, name: &str| json!({ "boundObjectRef": { "apiVersion": "v1", "kind": kind, "name": name } });
    let by_pod = token(&server, bound("Pod", "p")).await;
    let by_node = token(&server, bound("Node", "n1")).await;
    let by_secret = token(&server, bound("Secret", "s")).await;
    let bound_to = claims(&by_pod)["kubernetes.io"].clone();
    assert_eq!(
        bound_to["pod"],
        json!({ "name": "p", "uid": made["metadata"]["uid"] })
    );
    assert_eq!(
        bound_to["node"],
        json!({ "name": "n1", "uid": node["metadata"]["uid"] })
    );
    for token in [&by_pod, &by_node, &by_secret] {
        assert_eq!(pods(&server, token).await, 200);
    }
    let whoami = Caller::bearer(&server, &by_pod)
        .create(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            json!({}),
        )
        .await;
    let extra = &whoami["status"]["userInfo"]["extra"];
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["p"]));
    assert_eq!(
        extra["authentication.kubernetes.io/node-name"],
        json!(["n1"])
    );
    admin
        .send("DELETE", &format!("{nodes}/n1"), &Value::Null)
        .await;
    assert_eq!(pods(&server, &by_node).await, 401);
    assert_eq!(
        pods(&server, &by_pod).await,
        200,
        "a pod's token does not end with the node"
    );
    admin
        .send(
            "DELETE",
            &format!("{PODS}/p?gracePeriodSeconds=0"),
            &Value::Null,
        )
        .await;
    assert_eq!(pods(&server, &by_pod).await, 401);
    admin
        .send("DELETE", &format!("{secrets}/s"), &Value::Null)
        .await;
    assert_eq!(
        pods(&server, &by_secret).await,
        200,
        "deleted just now and still held"
    );
    clock.advance(62);
    assert_eq!(pods(&server, &by_secret).await, 401);
}

#[tokio::test]
async fn wrong_requests_are_refused() {
    let (server, _) = with_robot().await;
    let admin = Caller::admin(&server);
    admin
        .create(ACCOUNTS, json!({ "metadata": { "name": "other" } }))
        .await;
    admin.create(PODS, pod("p", "other")).await;
    let path = format!("{ACCOUNTS}/robot/token");
    let bound = |kind: &str, name: &str, uid: &str| json!({ "spec": { "boundObjectRef": { "apiVersion": "v1", "kind": kind, "name": name, "uid": uid } } });
    admin
        .create("/api/v1/nodes", json!({ "metadata": { "name": "n1" } }))
        .await;
    for (code, body, expected) in [
        (
            422,
            json!({ "spec": { "expirationSeconds": 599 } }),
            r#"TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"#,
        ),
        (
            422,
            json!({ "spec": { "expirationSeconds": 4294967297_i64 } }),
            r#"TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"#,
        ),
        (
            422,
            json!({ "metadata": { "name": "x" } }),
            r#"TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: "x": must match the service account name if specified"#,
        ),
        (404, bound("Pod", "none", ""), r#"pods "none" not found"#),
        (
            400,
            bound("Pod", "p", ""),
            r#"cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name."#,
        ),
        (
            400,
            bound("ConfigMap", "c", ""),
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            409,
            bound("Node", "n1", "u"),
            r#"Operation cannot be fulfilled on Node "n1": the UID in the bound object reference (u) does not match the UID in record. The object might have been deleted and then recreated"#,
        ),
    ] {
        assert_eq!(admin.refused(code, "POST", &path, &body).await, expected);
    }
    let nobody = format!("{ACCOUNTS}/nobody/token");
    assert_eq!(
        admin.refused(404, "POST", &nobody, &json!({})).await,
        r#"serviceaccounts "nobody" not found"#
    );
}

#[tokio::test]
async fn tokens_are_reviewed_for_an_audience() {
    let (server, clock) = with_robot().await;
    let admin = Caller::admin(&server);
    let vault = token(&server, json!({ "audiences": ["vault"] })).await;
    let review = async |audiences: Value| {
        let review = json!({ "spec": { "token": vault, "audiences": audiences } });
        admin
            .create("/apis/authentication.k8s.io/v1/tokenreviews", review)
            .await["status"]
            .clone()
    };
    let good = review(json!(["vault", "other"])).await;
    assert_eq!(
        (&good["authenticated"], &good["audiences"]),
        (&json!(true), &json!(["vault"]))
    );
    assert_eq!(
        good["user"]["username"],
        "system:serviceaccount:default:robot"
    );
    let bad = review(json!(["other"])).await;
    assert_eq!(
        bad["error"],
        r#"[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["other"]]"#
    );
    clock.advance(4000);
    let old = review(json!(["vault"])).await;
    assert_eq!(
        old,
        json!({ "user": {}, "error": "[invalid bearer token, service account token has expired]" })
    );
}

#[tokio::test]
async fn issuer_describes_itself_to_service_accounts() {
    let (server, _) = with_robot().await;
    let token = token(&server, json!({})).await;
    let robot = Caller::bearer(&server, &token);
    let (status, issuer) = robot.get("/.well-known/openid-configuration").await;
    assert_eq!((status, &issuer["issuer"]), (200, &json!(ISSUER)));
    let (status, keys) = robot.get("/openid/v1/jwks").await;
    assert_eq!(status, 200);
    let header = URL_SAFE_NO_PAD
        .decode(token.split('.').next().expect("a header"))
        .expect("base64");
    let header: Value = serde_json::from_slice(&header).expect("JSON");
    assert_eq!(
        (&keys["keys"][0]["kid"], &keys["keys"][0]["alg"]),
        (&header["kid"], &header["alg"])
    );
    assert_eq!(
        Caller::user(&server, "bob").get("/openid/v1/jwks").await.0,
        403
    );
}
