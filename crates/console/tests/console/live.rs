//! What pages see as it happens, and what was before.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kubewright_cluster::Cluster;
use kubewright_console::Console;
use kubewright_server::Server;
use kubewright_testing::{Verb, Wire, until};
use serde_json::{Value, json};

use crate::support::{self, create, operations};

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": "web"}}}))
        .expect("it is a ConfigMap")
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_change_and_go_without_another_request() {
    let server = Server::builder().start().await.expect("it starts");
    let client = Wire::new(server.service()).client();
    let (_running, page) = support::open(Console::new(client.clone())).await;
    let mut table = page
        .stream(json!([{"topic": "table", "kind": "v1/configmaps"}]))
        .await;
    let columns = table
        .until("the columns", |message| {
            (message["t"] == "table").then(|| message["columns"].clone())
        })
        .await;
    let names: Vec<&str> = columns
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|column| column["name"].as_str())
        .collect();
    assert_eq!(names, ["Name", "Data", "Age"], "as kubectl prints them");
    let maps = Api::<ConfigMap>::namespaced(client, "default");
    maps.create(&PostParams::default(), &map("a"))
        .await
        .expect("it is created");
    let is_ours = |row: &Value| row["key"] == "default/a";
    let row = table
        .until("an added row", |message| {
            operations(message).into_iter().find(is_ours)
        })
        .await;
    assert_eq!(
        (&row["cells"][1], &row["labels"]["app"]),
        (&json!(0), &json!("web"))
    );
    maps.patch(
        "a",
        &PatchParams::default(),
        &Patch::Merge(json!({"data": {"k": "v"}})),
    )
    .await
    .expect("it is changed");
    table
        .until("a changed row", |message| {
            operations(message)
                .into_iter()
                .find(|row| is_ours(row) && row["cells"][1] == 1)
        })
        .await;
    maps.delete("a", &DeleteParams::default())
        .await
        .expect("it is deleted");
    table
        .until("a row that goes", |message| {
            operations(message)
                .into_iter()
                .find(|key| *key == "default/a")
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kind_that_is_defined_later_shows_up_by_itself() {
    let server = Server::builder().start().await.expect("it starts");
    let client = Wire::new(server.service()).client();
    let (_running, page) = support::open(Console::new(client.clone())).await;
    let mut kinds = page
        .stream(json!([{"topic": "kinds"}, {"topic": "overview"}]))
        .await;
    let has = |message: &Value, id: &str| {
        message["kinds"]
            .as_array()
            .is_some_and(|kinds| kinds.iter().any(|kind| kind["id"] == id))
    };
    kinds
        .until("the first kinds", |message| {
            (message["t"] == "kinds" && has(message, "apps/v1/deployments")).then_some(())
        })
        .await;
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "toys", "singular": "toy", "kind": "Toy", "listKind": "ToyList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]}]}});
    create(
        &client,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        definition,
    )
    .await;
    kinds
        .until("the new kind", |message| {
            (message["t"] == "kinds" && has(message, "example.com/v1/toys")).then_some(())
        })
        .await;
    let toy = json!({"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "bear"}, "spec": {"size": 3}});
    create(&client, "/apis/example.com/v1/namespaces/default/toys", toy).await;
    let mut table = page
        .stream(json!([{"topic": "table", "kind": "example.com/v1/toys"}]))
        .await;
    let row = table
        .until("the toy", |message| {
            operations(message)
                .into_iter()
                .find(|row| row["name"] == "bear")
        })
        .await;
    assert_eq!(row["cells"], json!(["bear", 3]));
    let counted = |message: &Value| {
        let kinds = message["kinds"]
            .as_array()
            .filter(|_| message["t"] == "overview")?;
        kinds
            .iter()
            .find(|kind| kind["id"] == "example.com/v1/toys" && kind["counts"]["total"] == 1)
            .map(|_| ())
    };
    kinds.until("the toy in the overview", counted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_viewers_cost_one_watch_of_each_kind() {
    let server = Server::builder().start().await.expect("it starts");
    let wire = Wire::new(server.service());
    let (_running, page) = support::open(Console::new(wire.client())).await;
    let mut viewers = Vec::new();
    for _ in 0..50 {
        let topics = json!([{"topic": "kinds"}, {"topic": "overview"}, {"topic": "table", "kind": "v1/configmaps"}]);
        viewers.push(page.stream(topics).await);
    }
    let maps = Api::<ConfigMap>::namespaced(Wire::new(server.service()).client(), "default");
    for viewer in &mut viewers {
        let (mut table, mut overview) = (false, false);
        let settled = |message: &Value| {
            table |= message["t"] == "table";
            overview |= message["t"] == "overview" && message["starting"] == 0;
            (table && overview).then_some(())
        };
        viewer
            .until("a first table and the whole overview", settled)
            .await;
    }
    maps.create(&PostParams::default(), &map("seen-by-all"))
        .await
        .expect("it is created");
    for viewer in &mut viewers {
        let ours = |row: &Value| row["name"] == "seen-by-all";
        viewer
            .until("the row", |message| {
                operations(message).into_iter().find(ours)
            })
            .await;
    }
    let mut watches: BTreeMap<String, usize> = BTreeMap::new();
    for (call, _) in wire.calls() {
        if call.verb == Verb::Watch {
            *watches.entry(call.path).or_default() += 1;
        }
    }
    assert!(watches.len() > 20, "{watches:?}");
    let more: Vec<_> = watches.iter().filter(|(_, count)| **count > 1).collect();
    assert!(more.is_empty(), "{more:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_watched_until_somebody_looks() {
    let server = Server::builder().start().await.expect("it starts");
    let wire = Wire::new(server.service());
    let (_running, page) = support::open(Console::new(wire.client())).await;
    let mut table = page
        .stream(json!([{"topic": "table", "kind": "v1/configmaps"}]))
        .await;
    table
        .until("the table", |message| {
            (message["t"] == "table").then_some(())
        })
        .await;
    let watched = |path: &str| {
        wire.calls()
            .iter()
            .any(|(call, _)| call.verb == Verb::Watch && call.path == path)
    };
    until("a watch of config maps", async || {
        watched("/api/v1/configmaps").then_some(())
    })
    .await;
    assert!(!watched("/api/v1/pods") && !watched("/api/v1/secrets"));
}

/// A Deployment of one pod.
fn deployment() -> Deployment {
    let labels = json!({"app": "web"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}});
    serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}}))
        .expect("it is a Deployment")
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_is_shown_below_the_deployment_with_events_and_its_log() {
    let cluster = Cluster::builder().start().await.expect("it starts");
    cluster.ready().await.expect("it is ready");
    let client = cluster.client();
    let (running, page) = support::open(Console::new(client.clone())).await;
    Api::<Deployment>::namespaced(client.clone(), "default")
        .create(&PostParams::default(), &deployment())
        .await
        .expect("it is created");
    let mut object = page.stream(json!([{"topic": "object", "kind": "apps/v1/deployments", "ns": "default", "name": "web"}])).await;
    let pod = object
        .until("a healthy tree of three kinds", |message| {
            let root = &message["tree"]["root"];
            let replica_set = &root["children"][0];
            let pod = &replica_set["children"][0];
            let healthy = message["health"] == "good" && pod["health"] == "good";
            (healthy
                && root["kind"] == "Deployment"
                && replica_set["kind"] == "ReplicaSet"
                && pod["kind"] == "Pod")
                .then(|| pod["name"].clone())
        })
        .await;
    let pod = pod.as_str().expect("it has a name").to_owned();
    let mut from_below = page
        .stream(json!([{"topic": "object", "kind": "v1/pods", "ns": "default", "name": pod}]))
        .await;
    from_below
        .until("the owners above a pod, and its events", |message| {
            let has_events = message["events"]
                .as_array()
                .is_some_and(|events| !events.is_empty());
            (message["tree"]["root"]["kind"] == "Deployment" && has_events).then_some(())
        })
        .await;
    let (status, full) = page
        .get(&format!("/api/object?kind=v1/pods&ns=default&name={pod}"))
        .await;
    assert!(
        status == 200 && full["metadata"]["managedFields"].is_array(),
        "{full}"
    );
    let (status, answer) = page
        .get(&format!("/api/logs?ns=default&name={pod}&container=nobody"))
        .await;
    assert!(
        status >= 400 && answer["message"].is_string(),
        "{status} {answer}"
    );
    running.stop().await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn past_shows_objects_that_are_gone() {
    let server = Server::builder().start().await.expect("it starts");
    let client = Wire::new(server.service()).client();
    let (_running, page) = support::open(Console::new(client.clone())).await;
    let mut table = page
        .stream(json!([{"topic": "table", "kind": "v1/configmaps"}]))
        .await;
    table
        .until("the table", |message| {
            (message["t"] == "table").then_some(())
        })
        .await;
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    let created = maps
        .create(&PostParams::default(), &map("short-lived"))
        .await
        .expect("it is created");
    let then: u64 = created
        .metadata
        .resource_version
        .expect("it has a version")
        .parse()
        .expect("a number");
    maps.delete("short-lived", &DeleteParams::default())
        .await
        .expect("it is deleted");
    table
        .until("the deletion", |message| {
            operations(message)
                .into_iter()
                .find(|key| *key == "default/short-lived")
        })
        .await;
    let topics = json!([{"topic": "table", "kind": "v1/configmaps"}]);
    let names = |message: &Value| (message["t"] == "table").then(|| message["rows"].to_string());
    let past = page
        .stream_at(topics.clone(), Some(then))
        .await
        .until("the past", names)
        .await;
    assert!(past.contains("short-lived"), "{past}");
    let before = page
        .stream_at(topics, Some(then - 1))
        .await
        .until("the past before that", names)
        .await;
    assert!(!before.contains("short-lived"), "{before}");
    let object = json!([{"topic": "object", "kind": "v1/configmaps", "ns": "default", "name": "short-lived"}]);
    page.stream_at(object, Some(then))
        .await
        .until("the object of the past", |message| {
            message["object"].is_object().then_some(())
        })
        .await;
    let (_, time) = page.get("/api/time").await;
    assert!(
        time["oldest"].as_u64() <= Some(then) && time["newest"].as_u64() > Some(then),
        "{time}"
    );
    let changes: Vec<&Value> = time["moments"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|moment| moment["key"] == "default/short-lived")
        .collect();
    let kinds: Vec<&str> = changes
        .iter()
        .filter_map(|moment| moment["change"].as_str())
        .collect();
    assert_eq!(kinds, ["added", "deleted"]);
    let refused = page
        .stream_at(
            json!([{"topic": "table", "kind": "v1/configmaps"}]),
            Some(9_999_999),
        )
        .await;
    let mut refused = refused;
    refused
        .until("why the future is not shown", |message| {
            message["refused"]["message"].as_str().map(str::to_owned)
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_pod_is_named_in_the_overview_with_its_reason() {
    let server = Server::builder().start().await.expect("it starts");
    let client = Wire::new(server.service()).client();
    let (_running, page) = support::open(Console::new(client.clone())).await;
    let pods = Api::<Pod>::namespaced(client, "default");
    let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "broken"}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}})).expect("it is a pod");
    let account = json!({"metadata": {"name": "default"}});
    let accounts = Api::<k8s_openapi::api::core::v1::ServiceAccount>::namespaced(
        Wire::new(server.service()).client(),
        "default",
    );
    let account = serde_json::from_value(account).expect("it is a service account");
    accounts
        .create(&PostParams::default(), &account)
        .await
        .expect("it is created");
    pods.create(&PostParams::default(), &pod)
        .await
        .expect("it is created");
    let waiting = json!({"status": {"phase": "Pending", "containerStatuses": [{"name": "web", "image": "nginx", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}});
    pods.patch_status("broken", &PatchParams::default(), &Patch::Merge(waiting))
        .await
        .expect("it is changed");
    let mut overview = page
        .stream(json!([{"topic": "kinds"}, {"topic": "overview"}]))
        .await;
    let sentence = overview
        .until("the pod among what fails", |message| {
            let troubles = message["troubles"].as_array()?;
            let ours = troubles
                .iter()
                .find(|trouble| trouble["name"] == "broken" && trouble["health"] == "bad")?;
            ours["why"].as_str().map(str::to_owned)
        })
        .await;
    assert_eq!(sentence, "container web: ImagePullBackOff: no such image");
}
