//! What clients not written here ask for and our own do not: each test is a request that one of them found wanting.

mod client;

use client::{create, get, send};
use kubewright_server::Server;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn server() -> Server {
    Server::builder().start().await.expect("starts")
}

fn pod(containers: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "resourceVersion": "7"},
        "spec": {"containers": containers},
    })
}

#[tokio::test]
async fn a_version_on_a_new_object_matters_to_storage_alone() {
    let server = server().await;
    let good = || json!([{"name": "main", "image": "busybox"}]);
    for (query, containers, status) in [
        ("", good(), 500),
        ("?dryRun=All", good(), 201),
        ("", json!([]), 422),
        ("?dryRun=All", json!([]), 422),
    ] {
        let path = format!("{PODS}{query}");
        let (found, answer) =
            send(&server, "POST", &path, "application/json", &pod(containers)).await;
        assert_eq!(found, status, "{path}: {answer}");
    }
}

/// The envelope of a protobuf body, around the message of an object.
fn protobuf(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| {
        let length = u8::try_from(bytes.len()).expect("short texts");
        assert!(length < 128, "a length of one byte");
        [&[number << 3 | 2, length], bytes].concat()
    };
    let kinds = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &kinds), field(2, message)].concat()
}

#[tokio::test]
async fn an_eviction_in_protobuf_carries_its_delete_options() {
    use http_body_util::{BodyExt, Full};
    use tower::ServiceExt;

    let server = server().await;
    let mut pod = pod(json!([{"name": "main", "image": "busybox"}]));
    pod["metadata"]["resourceVersion"] = json!("");
    create(&server, PODS, pod).await;
    // Field 1 is metadata, in it field 1 the name; field 2 is deleteOptions, in it field 1 gracePeriodSeconds.
    let eviction = [0x0a, 0x03, 0x0a, 0x01, b'a', 0x12, 0x02, 0x08, 0x00];
    let body = protobuf("policy/v1", "Eviction", &eviction);
    let request = http::Request::post(format!("https://localhost{PODS}/a/eviction"))
        .header("content-type", "application/vnd.kubernetes.protobuf")
        .body(Full::new(bytes::Bytes::from(body)))
        .expect("a request");
    let answer = server
        .service()
        .oneshot(request)
        .await
        .expect("never fails");
    let status = answer.status();
    let text = answer
        .into_body()
        .collect()
        .await
        .expect("never fails")
        .to_bytes();
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&text));
    assert_eq!(get(&server, &format!("{PODS}/a")).await.0, 404);
    assert_eq!(get(&server, CONFIG_MAPS).await.0, 200);
}
