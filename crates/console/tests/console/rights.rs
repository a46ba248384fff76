//! What restricted users see, and what they learn about the rest.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kubewright_console::{Console, Mode};
use kubewright_server::{Authorization, Server, User};
use kubewright_testing::Wire;
use serde_json::json;

use crate::support::{self, create, operations};

/// A server where user ann may read config maps of the namespace `team`, and nothing else.
async fn server() -> Server {
    let server = Server::builder()
        .authorization(Authorization::Rbac)
        .start()
        .await
        .expect("it starts");
    let admin = Wire::new(server.service()).client();
    create(
        &admin,
        "/api/v1/namespaces",
        json!({"metadata": {"name": "team"}}),
    )
    .await;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]);
    let group = "/apis/rbac.authorization.k8s.io/v1/namespaces/team";
    create(
        &admin,
        &format!("{group}/roles"),
        json!({"metadata": {"name": "reader"}, "rules": rules}),
    )
    .await;
    create(
        &admin,
        &format!("{group}/rolebindings"),
        json!({"metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]}),
    )
    .await;
    for namespace in ["default", "team"] {
        let map: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": format!("of-{namespace}")}}))
                .expect("it is a ConfigMap");
        Api::namespaced(admin.clone(), namespace)
            .create(&PostParams::default(), &map)
            .await
            .expect("it is created");
    }
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn restricted_user_sees_what_they_may_and_learns_why_not_the_rest() {
    let server = server().await;
    let client = Wire::new(server.service_as(User::new("ann", ["system:authenticated"]))).client();
    let (_running, page) = support::open(Console::new(client).namespace("team")).await;
    let mut maps = page
        .stream(json!([{"topic": "table", "kind": "v1/configmaps"}]))
        .await;
    let message = maps
        .until("a table of one namespace", |message| {
            (message["state"]["phase"] == "live").then(|| message.clone())
        })
        .await;
    let names: Vec<String> = operations(&message)
        .iter()
        .filter_map(|row| row["name"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(names, ["of-team"]);
    assert_eq!(message["state"]["namespace"], "team");
    let why = message["state"]["why"].as_str().expect("it says why");
    assert!(why.contains("ann") && why.contains("cannot list"), "{why}");
    let mut secrets = page
        .stream(json!([{"topic": "table", "kind": "v1/secrets"}]))
        .await;
    let why = secrets
        .until("a refusal", |message| {
            message["state"]["message"].as_str().map(str::to_owned)
        })
        .await;
    assert!(why.contains("ann") && why.contains("secrets"), "{why}");
    let (status, answer) = page
        .get("/api/object?kind=v1/secrets&ns=team&name=x&reveal=1")
        .await;
    assert!(
        status == 403
            && answer["message"]
                .as_str()
                .is_some_and(|message| message.contains("ann")),
        "{status} {answer}"
    );
    let mut overview = page
        .stream(json!([{"topic": "kinds"}, {"topic": "overview"}]))
        .await;
    overview
        .until("the overview's list of what is not shown", |message| {
            let refused = message["refused"].as_array()?;
            let has = |id: &str| refused.iter().any(|kind| kind["id"] == id);
            (message["starting"] == 0 && has("v1/secrets") && has("v1/configmaps")).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_console_refuses_to_change_anything() {
    let server = server().await;
    let wire = Wire::new(server.service());
    let (_running, page) = support::open(Console::new(wire.client()).mode(Mode::ReadOnly)).await;
    let about = page.get("/api/about").await.1;
    assert_eq!(about["readOnly"], true);
    let (status, answer) = page
        .post(
            "/api/delete",
            &json!({"kind": "v1/configmaps", "ns": "team", "name": "of-team"}),
        )
        .await;
    assert_eq!(
        (status, &answer["message"]),
        (403, &json!("the console was started read-only"))
    );
}
