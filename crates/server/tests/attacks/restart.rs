//! What a server with a directory remembers when it starts again.

use std::collections::BTreeMap;
use std::path::Path;

use kubewright_server::{Server, StartError};
use serde_json::{Value, json};

use crate::call::{Ask, Frames};
use crate::host::{CONFIG_MAPS, DEFINITIONS, Host, WIDGETS, config_map, widget};

const SERVICES: &str = "/api/v1/namespaces/default/services";

async fn open(directory: &Path) -> Result<Server, StartError> {
    Server::builder().data_dir(directory).start().await
}

fn service(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}], "selector": {"a": "b"}}})
}

/// Every object under its path, as the server shows it.
async fn everything(server: &Server) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for path in [
        CONFIG_MAPS,
        WIDGETS,
        SERVICES,
        DEFINITIONS,
        "/api/v1/namespaces",
    ] {
        let list = Ask::get(path).send(&server.service()).await.json();
        for item in list["items"].as_array().expect("a list") {
            let name = item["metadata"]["name"].as_str().expect("a name");
            all.insert(format!("{path}/{name}"), item.clone());
        }
    }
    all
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let host = Host::with(open(directory.path()).await.expect("starts")).await;
    for i in 0..20 {
        host.must(Ask::post(CONFIG_MAPS, config_map(&format!("c{i}"))))
            .await;
        host.must(Ask::post(WIDGETS, widget(&format!("w{i}"))))
            .await;
        host.must(Ask::post(SERVICES, service(&format!("s{i}"))))
            .await;
    }
    for i in 0..10 {
        host.must(Ask::delete(format!("{CONFIG_MAPS}/c{i}"))).await;
    }
    let (before, revision) = (everything(&host.server).await, host.server.revision());
    assert!(before.len() > 50, "{:?}", before.keys());
    drop(host);

    let server = open(directory.path()).await.expect("starts again");
    assert_eq!(everything(&server).await, before);
    assert!(server.revision() >= revision);
    let service_of = server.service();
    let made = Ask::post(CONFIG_MAPS, config_map("after"))
        .send(&service_of)
        .await;
    let version: u64 = made.resource_version().parse().expect("a number");
    assert!(version > revision, "revisions never go back");
    let mut addresses: Vec<Value> = Vec::new();
    for i in 0..20 {
        let answer = Ask::post(SERVICES, service(&format!("t{i}")))
            .send(&service_of)
            .await;
        assert_eq!(answer.code, 201, "{}", answer.text());
        addresses.push(answer.json()["spec"]["clusterIP"].clone());
        addresses.push(answer.json()["spec"]["ports"][0]["nodePort"].clone());
    }
    for (path, object) in before.iter().filter(|(path, _)| path.starts_with(SERVICES)) {
        assert!(!addresses.contains(&object["spec"]["clusterIP"]), "{path}");
        assert!(
            !addresses.contains(&object["spec"]["ports"][0]["nodePort"]),
            "{path}"
        );
    }
}

#[tokio::test]
async fn what_was_read_before_a_restart_can_be_written_after_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let host = Host::with(open(directory.path()).await.expect("starts")).await;
    let read = host.must(Ask::get(format!("{WIDGETS}/victim"))).await;
    drop(host);
    let server = open(directory.path()).await.expect("starts again");
    let mut changed = read.clone();
    changed["spec"]["size"] = json!(2);
    let path = format!("{WIDGETS}/victim");
    let answer = Ask::put(&path, &changed).send(&server.service()).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    let answer = Ask::put(&path, &changed).send(&server.service()).await;
    assert_eq!(answer.code, 409, "the version is checked as ever");
}

#[tokio::test]
async fn a_watch_from_before_a_restart_goes_on_or_is_asked_to_list_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let host = Host::with(open(directory.path()).await.expect("starts")).await;
    let (old, now) = (3, host.server.revision());
    drop(host);
    let server = open(directory.path()).await.expect("starts again");
    let service = server.service();
    let mut expired = Frames::open(
        &service,
        format!("{CONFIG_MAPS}?watch=1&resourceVersion={old}"),
    )
    .await;
    assert_eq!(
        expired.next().await.expect("an event")["object"]["code"],
        410
    );
    let mut current = Frames::open(
        &service,
        format!("{CONFIG_MAPS}?watch=1&resourceVersion={now}"),
    )
    .await;
    Ask::post(CONFIG_MAPS, config_map("after"))
        .send(&service)
        .await;
    let event = current.next().await.expect("an event");
    let reported = event["object"]["code"] == 410 || event["object"]["metadata"]["name"] == "after";
    assert!(reported, "nothing is lost in silence: {event}");
}

#[tokio::test]
async fn one_directory_serves_one_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = open(directory.path()).await.expect("starts");
    let error = open(directory.path())
        .await
        .expect_err("the directory is in use");
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    assert!(text.contains("in use"), "{text}");
    let answer = Ask::get("/api/v1/namespaces/default")
        .send(&first.service())
        .await;
    assert_eq!(answer.code, 200, "the first one goes on");
    drop(first);
    open(directory.path()).await.expect("the directory is free");
}

#[tokio::test]
async fn a_kubeconfig_outlives_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let site = crate::socket::Site::of(open(directory.path()).await.expect("starts")).await;
    site.serves().await;
    let crate::socket::Site { server, endpoint } = site;
    let before = endpoint.kubeconfig().clone();
    endpoint.close().await;
    drop(server);
    let site = crate::socket::Site::of(open(directory.path()).await.expect("starts")).await;
    site.serves().await;
    let old = crate::socket::identity_of(before.as_str());
    let mut wire = site.connect(&old, "http/1.1").await;
    let answer = wire.get("/api/v1/namespaces/default").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
