//! What operators do: their reconciles, queues, hot loops, what a write changed, and Services that lead to them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kubewright_console::{Console, LocalOperator};
use kubewright_server::Server;
use kubewright_testing::Wire;
use serde_json::{Value, json};

use crate::support::{self, create};

#[tokio::test(flavor = "multi_thread")]
async fn operator_is_shown_with_its_queue_and_hot_loop_and_one_behind_a_service_is_found() {
    let server = Server::builder().start().await.expect("it starts");
    let client = Wire::new(server.service()).client();
    create(&client, "/api/v1/namespaces/default/services", json!({
        "metadata": {"name": "metrics", "labels": {"app.kubernetes.io/managed-by": "kubewright", "control-plane": "controller-manager"}},
        "spec": {"ports": [{"name": "https", "port": 8443}]}})).await;
    let runs: Vec<Value> = (0..6)
        .map(|n| json!({"id": n, "key": "default/a", "started": format!("2026-01-01T00:00:0{n}Z"), "microseconds": 5, "ended": "done",
            "causes": [{"trigger": "updated", "fields": [], "resourceVersion": n.to_string()}], "writes": [],
            "written": [{"verb": "patch", "resource": "configmaps", "key": "default/a", "resourceVersion": (n + 1).to_string()}]}))
        .collect();
    let operator = LocalOperator::new("mine", Arc::new(move || json!({"web": runs})))
        .metrics(Arc::new(|| "workqueue_depth{name=\"web\"} 7\n".to_owned()));
    let (_running, page) = support::open(Console::new(client).operator(operator)).await;
    let mut mind = page.stream(json!([{"topic": "mind"}])).await;
    let operators = mind
        .until("the operators", |message| {
            (message["t"] == "mind").then(|| message["operators"].clone())
        })
        .await;
    assert_eq!(operators[0]["queues"]["web"]["depth"], 7.0);
    assert_eq!(operators[0]["hot"][0]["key"], "default/a");
    assert_eq!(operators[1]["name"], "default/metrics");
    assert!(
        operators[1]["error"].to_string().contains("Service"),
        "nothing answers there: {operators}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn change_shows_an_object_before_and_after_a_write_and_all_that_differs_between_moments() {
    let server = Server::builder().start().await.expect("it starts");
    let client = Wire::new(server.service()).client();
    let (_running, page) = support::open(Console::new(client.clone())).await;
    let created = create(
        &client,
        "/api/v1/namespaces/default/configmaps",
        json!({"metadata": {"name": "a"}, "data": {"k": "1"}}),
    )
    .await;
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    let patched = maps
        .patch(
            "a",
            &PatchParams::default(),
            &Patch::Merge(json!({"data": {"k": "2"}})),
        )
        .await
        .expect("it is changed");
    let (before, after) = (
        created["metadata"]["resourceVersion"]
            .as_str()
            .expect("a version")
            .to_owned(),
        patched.metadata.resource_version.expect("a version"),
    );
    let change = page
        .get(&format!(
            "/api/change?kind=v1/configmaps&ns=default&name=a&to={after}"
        ))
        .await
        .1;
    assert_eq!(
        (
            &change["before"]["data"]["k"],
            &change["after"]["data"]["k"]
        ),
        (&json!("1"), &json!("2")),
        "{change}"
    );
    let first = page
        .get(&format!(
            "/api/change?kind=v1/configmaps&ns=default&name=a&to={before}"
        ))
        .await
        .1;
    assert!(
        first["before"].is_null() && first["after"].is_object(),
        "{first}"
    );
    create(
        &client,
        "/api/v1/namespaces/default/configmaps",
        json!({"metadata": {"name": "b"}}),
    )
    .await;
    let newest = page.get("/api/time").await.1["newest"].clone();
    let found = page
        .get(&format!("/api/changes?from={before}&to={newest}"))
        .await
        .1;
    assert_eq!(
        (&found["added"], &found["changed"], &found["deleted"]),
        (&json!(1), &json!(1), &json!(0)),
        "{found}"
    );
    let changed = found["objects"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["change"] == "changed");
    assert_eq!(
        changed.map(|one| &one["fields"]),
        Some(&json!(["data.k"])),
        "{found}"
    );
    let (status, answer) = page
        .get("/api/change?kind=v1/configmaps&ns=default&name=a&to=99999999")
        .await;
    assert!(
        status >= 400 && answer["message"].is_string(),
        "{status} {answer}"
    );
}
