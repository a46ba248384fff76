//! Requests of the manager's own client are counted, and say whose they are.

use std::path::Path;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kubewright_runtime::manager::user_agent;
use kubewright_runtime::{Key, Manager};
use kubewright_server::{Endpoint, Server};
use kubewright_testing::{limit, until};
use serde_json::Value;

/// What leads to a server that listens.
async fn config_of(endpoint: &Endpoint, folder: &Path) -> Config {
    let path = folder.join("kubeconfig");
    endpoint.write_kubeconfig(&path).expect("it is written");
    let kubeconfig = Kubeconfig::read_from(&path).expect("it is read");
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.expect("it is complete")
}

async fn listen(server: &Server) -> Endpoint {
    let address = "127.0.0.1:0".parse().expect("an address");
    server.listen(address).await.expect("it listens")
}

#[limited::test]
async fn servers_know_a_program_by_its_user_agent() {
    let folder = tempfile::tempdir().expect("a directory");
    let log = folder.path().join("audit.log");
    let server = Server::builder().audit_log(&log).start().await;
    let server = server.expect("a server starts");
    let endpoint = listen(&server).await;
    let mut config = config_of(&endpoint, folder.path()).await;
    config.headers.extend(user_agent("guestbook", "1.2"));
    let client = Manager::from_config(config).expect("it is usable").client();
    let mut object = ConfigMap::default();
    object.metadata.name = Some("a".to_owned());
    object.metadata.namespace = Some("default".to_owned());
    limit(client.create(&object)).await.expect("created");
    let agent = until("the creation is in the audit log", async || {
        let text = std::fs::read_to_string(&log).expect("an audit log");
        let events = text.lines().map(serde_json::from_str::<Value>);
        let mut events = events.filter_map(Result::ok);
        let created = events.find(|event| event["verb"] == "create")?;
        created["userAgent"].as_str().map(str::to_owned)
    })
    .await;
    assert!(agent.starts_with("guestbook/1.2 ("), "{agent}");
}

#[limited::test]
async fn requests_are_counted_by_code_method_and_host() {
    let server = Server::builder().start().await.expect("a server starts");
    let endpoint = listen(&server).await;
    let folder = tempfile::tempdir().expect("a directory");
    let config = config_of(&endpoint, folder.path()).await;
    let host = config.cluster_url.authority().expect("a host").to_string();

    let manager = Manager::from_config(config).expect("it is usable");
    let client = manager.client();
    let mut object = ConfigMap::default();
    object.metadata.name = Some("a".to_owned());
    object.metadata.namespace = Some("default".to_owned());
    client.create(&object).await.expect("it is created");
    client
        .create(&object)
        .await
        .expect_err("it is there already");
    let missing = Key::new("default", "b");
    let missing = client.live().get::<ConfigMap>(&missing).await;
    assert!(missing.expect("the server answers").is_none());
    drop(server);
    drop(endpoint);

    let text = manager.metrics().render();
    for (code, method) in [("201", "POST"), ("409", "POST"), ("404", "GET")] {
        let line = format!(
            "rest_client_requests_total{{code=\"{code}\",method=\"{method}\",host=\"{host}\"}} 1\n"
        );
        assert!(text.contains(&line), "no {line} in {text}");
    }
    let timed =
        format!("rest_client_request_duration_seconds_count{{verb=\"POST\",host=\"{host}\"}} 2\n");
    assert!(text.contains(&timed), "{text}");
}
