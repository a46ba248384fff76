//! Requests of the manager's own client are counted.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kubewright_runtime::{Key, Manager};
use kubewright_server::Server;

#[tokio::test]
async fn requests_are_counted_by_code_method_and_host() {
    let server = Server::builder().start().await.expect("a server starts");
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = server.listen(address).await.expect("it listens");
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("kubeconfig");
    endpoint.write_kubeconfig(&path).expect("it is written");
    let kubeconfig = Kubeconfig::read_from(&path).expect("it is read");
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let config = config.expect("it is complete");
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
