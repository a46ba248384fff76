//! Quotas: exact under a race, and as cheap with many objects as with few.

use std::sync::Arc;

use kubewright_server::{Environment, Server};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{create, delete, send};
use crate::objects::{SERVICES, config_map, named, post, service};

fn quota(hard: Value) -> Value {
    let mut quota = named("v1", "ResourceQuota", "q");
    quota["spec"] = json!({"hard": hard});
    quota
}

async fn namespace(server: &Server, name: &str, hard: Value) -> String {
    create(server, "/api/v1/namespaces", named("v1", "Namespace", name)).await;
    let path = format!("/api/v1/namespaces/{name}");
    create(server, &format!("{path}/resourcequotas"), quota(hard)).await;
    format!("{path}/configmaps")
}

/// Creates some objects and says how long that took.
async fn time_of_creates(server: &Server, path: &str) -> std::time::Duration {
    let start = Instant::now();
    for i in 0..20 {
        create(server, path, config_map(&format!("small-{i}"))).await;
    }
    start.elapsed()
}

#[tokio::test]
async fn a_create_under_a_quota_costs_the_same_however_many_objects_there_are() {
    let server = Server::builder().start().await.expect("starts");
    let hard = json!({"count/configmaps": "1000"});
    let few = namespace(&server, "few", hard.clone()).await;
    create(
        &server,
        "/api/v1/namespaces",
        named("v1", "Namespace", "many"),
    )
    .await;
    let many = "/api/v1/namespaces/many/configmaps";
    let mut large = config_map("");
    large["data"] = json!({"x": "\"".repeat(100_000)});
    for i in 0..200 {
        large["metadata"]["name"] = json!(format!("large-{i}"));
        create(&server, many, large.clone()).await;
    }
    create(
        &server,
        "/api/v1/namespaces/many/resourcequotas",
        quota(hard),
    )
    .await;
    time_of_creates(&server, &few).await;
    for i in 0..20 {
        delete(&server, &format!("{few}/small-{i}")).await;
    }
    let (few, many) = (
        time_of_creates(&server, &few).await,
        time_of_creates(&server, many).await,
    );
    assert!(
        many < few * 10,
        "{few:?} with few objects, {many:?} with many"
    );
    assert_eq!(server.differences(), [""; 0]);
}

#[tokio::test]
async fn usage_follows_updates_deletes_and_new_quotas() {
    let server = Server::builder().start().await.expect("starts");
    let maps = namespace(&server, "n", json!({"configmaps": "2"})).await;
    create(&server, &maps, config_map("a")).await;
    create(&server, &maps, config_map("b")).await;
    let (code, answer) = post(&server, &maps, &config_map("c")).await;
    let text = r#"configmaps "c" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2"#;
    assert_eq!((code, answer["message"].as_str()), (403, Some(text)));
    assert_eq!(delete(&server, &format!("{maps}/a")).await.0, 200);
    create(&server, &maps, config_map("c")).await;
    let quotas = "/api/v1/namespaces/n/resourcequotas";
    crate::client::patch(
        &server,
        &format!("{quotas}/q"),
        json!({"spec": {"hard": {"configmaps": "3"}}}),
    )
    .await;
    create(&server, &maps, config_map("d")).await;
    assert_eq!(post(&server, &maps, &config_map("e")).await.0, 403);
    assert_eq!(server.differences(), [""; 0]);
}

/// Whoever counts, whoever changes and whoever copies everything take what they need in one order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn services_under_a_quota_and_forks_do_not_wait_for_each_other() {
    let server = Arc::new(Server::builder().start().await.expect("starts"));
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    create(&server, quotas, quota(json!({"services": "10000"}))).await;
    let spec = json!({"clusterIP": "None", "ports": [{"port": 80}]});
    create(&server, SERVICES, service("changed", spec.clone())).await;
    let jobs = (0..8).map(|job| {
        let (server, spec) = (server.clone(), spec.clone());
        tokio::spawn(async move {
            for i in 0..100 {
                // A request in memory does not wait for anything by itself.
                tokio::task::yield_now().await;
                let done = async {
                    match job % 4 {
                        0 => drop(server.fork(Environment::system()).await),
                        1 => {
                            let label = json!({"metadata": {"labels": {"n": i.to_string()}}});
                            let path = format!("{SERVICES}/changed");
                            let kind = "application/merge-patch+json";
                            send(&server, "PATCH", &path, kind, &label).await;
                        }
                        _ => {
                            let new = service(&format!("s{job}-{i}"), spec.clone());
                            post(&server, SERVICES, &new).await;
                        }
                    }
                };
                let done = tokio::time::timeout(std::time::Duration::from_secs(30), done).await;
                done.expect("timed out after 30 s waiting for a write or a fork");
            }
        })
    });
    for done in futures::future::join_all(jobs).await {
        done.expect("no job fails");
    }
}

/// Without the check within the commit, two of the creates of a round find the same place free.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_quota_is_never_exceeded_by_a_race() {
    let server = Arc::new(Server::builder().start().await.expect("starts"));
    for round in 0..100 {
        let maps = namespace(&server, &format!("n{round}"), json!({"configmaps": "3"})).await;
        // The first create counts; the race is about the places that are left.
        create(&server, &maps, config_map("first")).await;
        let start = Arc::new(tokio::sync::Barrier::new(8));
        let creates = (0..8).map(|i| {
            let (server, maps, start) = (server.clone(), maps.clone(), start.clone());
            tokio::spawn(async move {
                start.wait().await;
                post(&server, &maps, &config_map(&format!("m{i}"))).await.0
            })
        });
        let codes = futures::future::join_all(creates).await;
        let made = codes
            .into_iter()
            .filter(|code| matches!(code, Ok(201)))
            .count();
        assert_eq!(made, 2, "in round {round}");
    }
    assert_eq!(server.differences(), [""; 0]);
}
