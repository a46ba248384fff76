//! Cluster IPs and node ports: given back by updates, and refusals that say which.

use kubewright_server::Server;
use serde_json::json;

use crate::client::{create, get, patch, send};
use crate::objects::{SERVICES, post, service};

async fn server() -> Server {
    Server::builder().start().await.expect("starts")
}

#[tokio::test]
async fn an_update_gives_back_the_node_port_it_no_longer_has() {
    let server = server().await;
    let node_port = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]});
    create(&server, SERVICES, service("a", node_port.clone())).await;
    let ports = json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80}]}});
    patch(&server, &format!("{SERVICES}/a"), ports).await;
    create(&server, SERVICES, service("b", node_port.clone())).await;
    let moved = json!({"spec": {"ports": [{"port": 80, "nodePort": 30081}]}});
    patch(&server, &format!("{SERVICES}/b"), moved).await;
    create(&server, SERVICES, service("c", node_port)).await;
    assert_eq!(server.differences(), [""; 0]);
}

#[tokio::test]
async fn a_service_without_a_cluster_ip_gives_its_address_back() {
    let server = server().await;
    let spec = json!({"clusterIP": "10.96.0.77", "ports": [{"port": 80}]});
    create(&server, SERVICES, service("a", spec.clone())).await;
    let external = json!({"spec": {"type": "ExternalName", "externalName": "example.com", "clusterIP": null, "clusterIPs": null}});
    patch(&server, &format!("{SERVICES}/a"), external).await;
    create(&server, SERVICES, service("b", spec)).await;
}

#[tokio::test]
async fn a_refusal_names_the_service_the_address_and_the_port() {
    let server = server().await;
    let spec = json!({"type": "NodePort", "clusterIP": "10.96.0.50", "ports": [{"port": 80, "nodePort": 30080}]});
    create(&server, SERVICES, service("a", spec)).await;
    for (spec, expected) in [
        (
            json!({"clusterIP": "10.96.0.50", "ports": [{"port": 80}]}),
            r#"Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.50"]: failed to allocate IP 10.96.0.50: provided IP is already allocated"#,
        ),
        (
            json!({"type": "NodePort", "ports": [
                {"name": "x", "port": 80, "nodePort": 30081}, {"name": "y", "port": 81, "nodePort": 30080},
            ]}),
            r#"Service "b" is invalid: spec.ports[1].nodePort: Invalid value: 30080: provided port is already allocated"#,
        ),
    ] {
        let (code, answer) = post(&server, SERVICES, &service("b", spec)).await;
        assert_eq!((code, answer["message"].as_str()), (422, Some(expected)));
    }
    let (_, list) = get(&server, SERVICES).await;
    let items = list["items"].as_array().map_or(0, Vec::len);
    assert_eq!(items, 2, "kubernetes and a");
    // What a refused write had reserved is free.
    let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30081}]});
    create(&server, SERVICES, service("b", spec)).await;
}

#[tokio::test]
async fn a_headless_service_gets_no_address_later() {
    let server = server().await;
    let spec = json!({"clusterIP": "None", "ports": [{"port": 80}]});
    create(&server, SERVICES, service("a", spec)).await;
    let path = format!("{SERVICES}/a");
    for address in ["10.96.0.60", "192.168.1.1"] {
        let change = json!({"spec": {"clusterIP": address}});
        let (code, answer) = send(
            &server,
            "PATCH",
            &path,
            "application/merge-patch+json",
            &change,
        )
        .await;
        let expected = format!(
            r#"Service "a" is invalid: spec.clusterIPs[0]: Invalid value: ["{address}"]: may not change once set"#
        );
        assert_eq!(
            (code, answer["message"].as_str()),
            (422, Some(expected.as_str()))
        );
    }
}
