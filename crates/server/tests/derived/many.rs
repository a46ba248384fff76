//! Many definitions: each costs as much as the first, and so do discovery and OpenAPI.
//!
//! `KUBEWRIGHT_DEFINITIONS=10000` makes so many instead of a few.

use kubewright_server::{Authorization, Server};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{create, get, patch};
use crate::objects::{DEFINITIONS, definition};

fn count() -> usize {
    let count = std::env::var("KUBEWRIGHT_DEFINITIONS").ok();
    count.and_then(|count| count.parse().ok()).unwrap_or(100)
}

/// Half of them share a group, the others have one each.
fn group(i: usize) -> String {
    if i.is_multiple_of(2) {
        "example.com".to_owned()
    } else {
        format!("g{i}.example.com")
    }
}

fn one_of_many(i: usize) -> Value {
    let plural = format!("widgets{i}");
    let mut definition = definition(&plural, "v1");
    definition["metadata"]["name"] = json!(format!("{plural}.{}", group(i)));
    definition["spec"]["group"] = json!(group(i));
    definition
}

async fn openapi_paths(server: &Server) -> Value {
    let (code, index) = get(server, "/openapi/v3").await;
    assert_eq!(code, 200, "{index}");
    index["paths"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_definitions_are_defined_discovered_and_described() {
    let builder = Server::builder().authorization(Authorization::Rbac);
    let server = builder.start().await.expect("starts");
    let count = count();
    let (mut started, tenth) = (Instant::now(), count.div_ceil(10));
    for i in 0..count {
        create(&server, DEFINITIONS, one_of_many(i)).await;
        let objects = format!("/apis/{}/v1/namespaces/default/widgets{i}", group(i));
        let (code, answer) = get(&server, &objects).await;
        assert_eq!(code, 200, "{i} is not served: {answer}");
        if (i + 1) % tenth == 0 {
            println!("{tenth} definitions up to {i}: {:?}", started.elapsed());
            started = Instant::now();
        }
    }
    let (_, shared) = get(&server, "/apis/example.com/v1").await;
    let listed = shared["resources"].as_array().map_or(0, Vec::len);
    assert_eq!(listed, count.div_ceil(2));
    println!("discovery: {:?}", started.elapsed());
    started = Instant::now();
    let before = openapi_paths(&server).await;
    println!("OpenAPI: {:?}", started.elapsed());
    for i in (1..count).step_by(2) {
        assert!(before[format!("apis/{}/v1", group(i))].is_object(), "{i}");
    }
    let changed = json!({"spec": {"names": {"shortNames": ["w1"]}}});
    let name = format!("{DEFINITIONS}/widgets1.{}", group(1));
    patch(&server, &name, changed).await;
    let after = openapi_paths(&server).await;
    let (changed, same) = (
        format!("apis/{}/v1", group(1)),
        format!("apis/{}/v1", group(3)),
    );
    assert_ne!(
        before[&changed], after[&changed],
        "a new content, a new address"
    );
    assert_eq!(before[&same], after[&same]);
    let address = after[&changed]["serverRelativeURL"].as_str();
    let (code, document) = get(&server, address.expect("an address")).await;
    assert_eq!(code, 200, "{document}");
    let paths = document["paths"].as_object().expect("paths");
    assert!(paths.keys().any(|path| path.ends_with("/widgets1")));
}
