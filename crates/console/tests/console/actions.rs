//! Changes from the page: checked before they are written, refused at the field, offered by the user's rights.

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, PostParams};
use kubewright_cluster::Cluster;
use kubewright_console::Console;
use kubewright_server::{Authorization, Server, User};
use kubewright_testing::{Wire, until};
use serde_json::{Value, json};

use crate::support::{self, Page, create, read_object};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment(name: &str, replicas: i32) -> Value {
    let labels = json!({"app": name});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}})
}

async fn console() -> (kubewright_console::Running, Page, kube::Client) {
    let server = Server::builder().start().await.expect("it starts");
    let client = Wire::new(server.service()).client();
    let (running, page) = support::open(Console::new(client.clone())).await;
    (running, page, client)
}

fn target(kind: &str, name: &str) -> Value {
    json!({"kind": kind, "ns": "default", "name": name})
}

/// A request with the fields of an object and more.
fn with(mut body: Value, more: Value) -> Value {
    let fields = more.as_object().expect("it is an object").clone();
    body.as_object_mut()
        .expect("it is an object")
        .extend(fields);
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_is_checked_first_and_what_is_refused_names_its_field() {
    let (_running, page, client) = console().await;
    create(&client, DEPLOYMENTS, deployment("web", 1)).await;
    let path = format!("{DEPLOYMENTS}/web");
    let mut object = read_object(&client, &path).await;
    let own = target("apps/v1/deployments", "web");
    let edit = async |object: &Value, dry_run: bool| {
        let more = json!({"yaml": object.to_string(), "dryRun": dry_run});
        page.post("/api/edit", &with(own.clone(), more)).await
    };
    object["spec"]["replicas"] = json!(3);
    let (status, answer) = edit(&object, true).await;
    assert_eq!((status, &answer["spec"]["replicas"]), (200, &json!(3)));
    let still = read_object(&client, &path).await;
    assert_eq!(still["spec"]["replicas"], 1, "a dry run writes nothing");
    let (status, _) = edit(&object, false).await;
    let written = read_object(&client, &path).await;
    assert_eq!((status, &written["spec"]["replicas"]), (200, &json!(3)));
    let managers = written["metadata"]["managedFields"].to_string();
    assert!(managers.contains("kubewright-console"), "{managers}");
    let (status, answer) = edit(&object, false).await;
    assert_eq!(status, 409, "it was changed meanwhile: {answer}");
    let mut wrong = written.clone();
    wrong["spec"]["replicas"] = json!(-1);
    wrong["spec"]["template"]["spec"]["containers"][0]["image"] = json!("");
    let (status, answer) = edit(&wrong, true).await;
    let fields: Vec<&str> = answer["causes"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|cause| cause["field"].as_str())
        .collect();
    assert_eq!(status, 422, "{answer}");
    assert!(
        fields.contains(&"spec.replicas")
            && fields.contains(&"spec.template.spec.containers[0].image"),
        "{fields:?}"
    );
    let mut unknown = written.clone();
    unknown["spec"]["replicsa"] = json!(1);
    let (status, answer) = edit(&unknown, true).await;
    assert_eq!(
        (status, &answer["causes"][0]["field"]),
        (400, &json!("spec.replicsa")),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_refuses_text_that_is_not_about_this_object() {
    let (_running, page, client) = console().await;
    create(
        &client,
        "/api/v1/namespaces/default/secrets",
        json!({"metadata": {"name": "s"}, "stringData": {"k": "hunter2"}}),
    )
    .await;
    let edit = async |yaml: &str| {
        let more = json!({"yaml": yaml, "dryRun": false});
        page.post("/api/edit", &with(target("v1/secrets", "s"), more))
            .await
    };
    let (status, answer) = edit("a: 1\nb: [1\nc: 2\n").await;
    assert!(
        status == 400 && answer["line"].as_u64() >= Some(2),
        "{status} {answer}"
    );
    let (status, answer) = edit("{kind: Secret, metadata: {name: other}}").await;
    assert!(
        status == 400 && answer["message"].to_string().contains("cannot be changed"),
        "{answer}"
    );
    let masked = page
        .get("/api/object?kind=v1/secrets&ns=default&name=s")
        .await
        .1;
    let (status, answer) = edit(&masked.to_string()).await;
    assert!(
        status == 400 && answer["message"].to_string().contains("masked"),
        "{answer}"
    );
    let kept = read_object(&client, "/api/v1/namespaces/default/secrets/s").await;
    assert_eq!(kept["data"]["k"], "aHVudGVyMg==");
}

#[tokio::test(flavor = "multi_thread")]
async fn scale_restart_cordon_and_delete_change_what_they_name() {
    let (_running, page, client) = console().await;
    create(&client, DEPLOYMENTS, deployment("web", 1)).await;
    create(&client, "/api/v1/nodes", json!({"metadata": {"name": "n"}})).await;
    let web = target("apps/v1/deployments", "web");
    let (status, answer) = page
        .post("/api/scale", &with(web.clone(), json!({"replicas": 4})))
        .await;
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = page.post("/api/restart", &web).await;
    assert_eq!(status, 200, "{answer}");
    let now = read_object(&client, &format!("{DEPLOYMENTS}/web")).await;
    assert_eq!(now["spec"]["replicas"], 4);
    assert!(
        now["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"]
            .is_string()
    );
    for unschedulable in [true, false] {
        let node = json!({"kind": "v1/nodes", "name": "n", "unschedulable": unschedulable});
        assert_eq!(page.post("/api/cordon", &node).await.0, 200);
        let node = read_object(&client, "/api/v1/nodes/n").await;
        assert_eq!(node["spec"]["unschedulable"] == true, unschedulable);
    }
    // Another object of the same name is not the one that the page showed.
    let (status, answer) = page
        .post("/api/delete", &with(web.clone(), json!({"uid": "other"})))
        .await;
    assert_eq!(status, 409, "{answer}");
    let (status, answer) = page
        .post(
            "/api/delete",
            &with(web, json!({"uid": now["metadata"]["uid"]})),
        )
        .await;
    assert_eq!(status, 200, "{answer}");
    let (status, _) = page
        .get("/api/object?kind=apps/v1/deployments&ns=default&name=web")
        .await;
    assert_eq!(status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_names_what_goes_with_it_and_drain_empties_a_node() {
    let cluster = Cluster::builder()
        .nodes(1)
        .start()
        .await
        .expect("it starts");
    cluster.ready().await.expect("it is ready");
    let client = cluster.client();
    let (running, page) = support::open(Console::new(client.clone())).await;
    create(&client, DEPLOYMENTS, deployment("web", 2)).await;
    let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
    until("two ready pods", async || {
        let found = deployments.get("web").await.ok()?;
        (found.status?.ready_replicas == Some(2)).then_some(())
    })
    .await;
    let dependents = until("what goes with the deployment", async || {
        let found = page
            .get("/api/dependents?kind=apps/v1/deployments&ns=default&name=web")
            .await
            .1;
        (found["count"] == 3).then_some(found)
    })
    .await;
    assert_eq!(dependents["counts"], json!({"Pod": 2, "ReplicaSet": 1}));
    let inside = page
        .get("/api/dependents?kind=v1/namespaces&name=default")
        .await
        .1;
    assert!(
        inside["counts"]["Deployment"] == 1 && inside["counts"]["Pod"] == 2,
        "{inside}"
    );
    let nodes = read_object(&client, "/api/v1/nodes").await;
    let node = nodes["items"][0]["metadata"]["name"].clone();
    let mut steps = page
        .post_lines("/api/drain", &json!({"kind": "v1/nodes", "name": node}))
        .await;
    let mut evicted = 0;
    let done = steps
        .until("the end of the drain", |step| {
            evicted += usize::from(step["step"] == "evicted");
            (step["step"] == "done").then(|| step.clone())
        })
        .await;
    assert_eq!(
        (evicted, &done["evicted"], &done["failed"]),
        (2, &json!(2), &json!(0))
    );
    let path = format!("/api/v1/nodes/{}", node.as_str().expect("it has a name"));
    assert_eq!(
        read_object(&client, &path).await["spec"]["unschedulable"],
        true
    );
    running.stop().await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_are_offered_as_the_rights_of_the_user_allow() {
    let server = Server::builder()
        .authorization(Authorization::Rbac)
        .start()
        .await
        .expect("it starts");
    let admin = Wire::new(server.service()).client();
    let group = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let rules = json!([{"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["patch"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch"]}]);
    create(
        &admin,
        &format!("{group}/roles"),
        json!({"metadata": {"name": "scaler"}, "rules": rules}),
    )
    .await;
    create(
        &admin,
        &format!("{group}/rolebindings"),
        json!({"metadata": {"name": "scaler"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "scaler"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]}),
    )
    .await;
    Api::<Deployment>::namespaced(admin.clone(), "default")
        .create(
            &PostParams::default(),
            &serde_json::from_value(deployment("web", 1)).expect("it is a Deployment"),
        )
        .await
        .expect("it is created");
    let query = "/api/rights?kind=apps/v1/deployments&ns=default&name=web";
    let (_admin, page) = support::open(Console::new(admin)).await;
    assert_eq!(
        page.get(query).await.1["actions"],
        json!(["edit", "scale", "restart", "delete"])
    );
    let ann = Wire::new(server.service_as(User::new("ann", ["system:authenticated"]))).client();
    let (_ann, page) = support::open(Console::new(ann)).await;
    assert_eq!(page.get(query).await.1["actions"], json!(["scale"]));
    let (status, answer) = page
        .post("/api/restart", &target("apps/v1/deployments", "web"))
        .await;
    assert!(
        status == 403 && answer["message"].to_string().contains("ann"),
        "{status} {answer}"
    );
    let scale = with(target("apps/v1/deployments", "web"), json!({"replicas": 2}));
    assert_eq!(page.post("/api/scale", &scale).await.0, 200);
}
