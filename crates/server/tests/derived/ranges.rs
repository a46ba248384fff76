//! IPAddresses of Services, and the ServiceCIDRs that their addresses come from.

use kubewright_server::{Environment, Server};
use serde_json::{Value, json};

use crate::client::{create, delete, get, patch};
use crate::objects::{SERVICES, eventually, named, post, service};

const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";

/// A server with 14 addresses for Services, of which `kubernetes` has the first.
async fn small_server() -> Server {
    let network = "10.96.0.0/28".parse().expect("a range");
    let server = Server::builder().service_network(network).start().await;
    server.expect("starts")
}

fn range(name: &str, cidr: &str) -> Value {
    let mut range = named("networking.k8s.io/v1", "ServiceCIDR", name);
    range["spec"] = json!({"cidrs": [cidr]});
    range
}

fn at(address: &str) -> Value {
    json!({"clusterIP": address, "ports": [{"port": 80}]})
}

async fn names(server: &Server, path: &str) -> Vec<String> {
    let (_, list) = get(server, path).await;
    let items = list["items"].as_array().expect("a list").iter();
    let name = |item: &Value| item["metadata"]["name"].as_str().map(str::to_owned);
    items.filter_map(name).collect()
}

/// The Service that an IPAddress refers to, none when there is no such address.
async fn parent(server: &Server, address: &str) -> Option<String> {
    let (status, object) = get(server, &format!("{ADDRESSES}/{address}")).await;
    let name = object["spec"]["parentRef"]["name"].as_str();
    name.filter(|_| status == 200).map(str::to_owned)
}

fn ready(range: &Value) -> (&Value, &Value) {
    let condition = &range["status"]["conditions"][0];
    assert_eq!(condition["type"], "Ready", "{range:#}");
    (&condition["status"], &condition["reason"])
}

#[tokio::test]
async fn service_has_an_ip_address_as_long_as_it_has_a_cluster_ip() {
    let server = Server::builder().start().await.expect("starts");
    assert_eq!(names(&server, ADDRESSES).await, ["10.96.0.1"]);
    create(&server, SERVICES, service("a", at("10.96.0.50"))).await;
    create(&server, SERVICES, service("none", at("None"))).await;
    let (_, object) = get(&server, &format!("{ADDRESSES}/10.96.0.50")).await;
    let parent = json!({"resource": "services", "namespace": "default", "name": "a"});
    assert_eq!(object["spec"]["parentRef"], parent, "{object:#}");
    let labels = json!({
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    });
    assert_eq!(object["metadata"]["labels"], labels);
    // A Service that is named otherwise takes the address over.
    delete(&server, &format!("{SERVICES}/a")).await;
    assert_eq!(names(&server, ADDRESSES).await, ["10.96.0.1"]);
    create(&server, SERVICES, service("b", at("10.96.0.50"))).await;
    let (_, object) = get(&server, &format!("{ADDRESSES}/10.96.0.50")).await;
    assert_eq!(object["spec"]["parentRef"]["name"], "b");
    let external = json!({"spec": {
        "type": "ExternalName", "externalName": "example.com", "clusterIP": null, "clusterIPs": null,
    }});
    patch(&server, &format!("{SERVICES}/b"), external).await;
    assert_eq!(names(&server, ADDRESSES).await, ["10.96.0.1"]);
    assert_eq!(server.differences(), [""; 0]);
}

#[tokio::test]
async fn ip_address_that_somebody_deletes_comes_back() {
    let server = Server::builder().start().await.expect("starts");
    create(&server, SERVICES, service("a", at("10.96.0.50"))).await;
    let (status, _) = delete(&server, &format!("{ADDRESSES}/10.96.0.50")).await;
    assert_eq!(status, 200);
    eventually("the address of a Service", || async {
        let found = parent(&server, "10.96.0.50").await;
        found
            .filter(|name| name == "a")
            .ok_or_else(|| "no address".to_owned())
    })
    .await;
}

#[tokio::test]
async fn ip_address_of_somebody_else_keeps_its_address_from_services() {
    let server = Server::builder().start().await.expect("starts");
    let mut own = named("networking.k8s.io/v1", "IPAddress", "10.96.0.50");
    own["spec"] = json!({"parentRef": {
        "group": "example.com", "resource": "gateways", "namespace": "default", "name": "g",
    }});
    create(&server, ADDRESSES, own).await;
    let (status, answer) = post(&server, SERVICES, &service("a", at("10.96.0.50"))).await;
    let why = r#"Service "a" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.50"]: failed to allocate IP 10.96.0.50: provided IP is already allocated"#;
    assert_eq!((status, answer["message"].as_str()), (422, Some(why)));
    delete(&server, &format!("{ADDRESSES}/10.96.0.50")).await;
    create(&server, SERVICES, service("a", at("10.96.0.50"))).await;
    assert_eq!(server.differences(), [""; 0]);
}

#[tokio::test]
async fn services_get_addresses_of_a_further_range_when_the_first_is_full() {
    let server = small_server().await;
    let any = json!({"ports": [{"port": 80}]});
    for i in 0..13 {
        create(&server, SERVICES, service(&format!("s{i}"), any.clone())).await;
    }
    let (status, answer) = post(&server, SERVICES, &service("more", any.clone())).await;
    let full = "Internal error occurred: failed to allocate a serviceIP: range is full";
    assert_eq!((status, answer["message"].as_str()), (500, Some(full)));
    create(&server, RANGES, range("more", "10.97.0.0/29")).await;
    let (_, more) = get(&server, &format!("{RANGES}/more")).await;
    assert_eq!(ready(&more), (&json!("True"), &json!("")));
    assert_eq!(more["metadata"]["finalizers"], json!([FINALIZER]));
    let made = create(&server, SERVICES, service("more", any)).await;
    let address = made["spec"]["clusterIP"].as_str().expect("an address");
    assert!(address.starts_with("10.97.0."), "{address}");
    assert_eq!(parent(&server, address).await.as_deref(), Some("more"));
    assert_eq!(names(&server, ADDRESSES).await.len(), 15);
    assert_eq!(server.differences(), [""; 0]);
}

#[tokio::test]
async fn services_name_an_address_of_a_further_range() {
    let server = Server::builder().start().await.expect("starts");
    let named = service("a", at("10.97.0.9"));
    let (status, answer) = post(&server, SERVICES, &named).await;
    let why = r#"Service "a" is invalid: spec.clusterIPs: Invalid value: ["10.97.0.9"]: failed to allocate IP 10.97.0.9: the provided network does not match the current range"#;
    assert_eq!((status, answer["message"].as_str()), (422, Some(why)));
    create(&server, RANGES, range("more", "10.97.0.0/24")).await;
    create(&server, SERVICES, named).await;
    assert_eq!(parent(&server, "10.97.0.9").await.as_deref(), Some("a"));
    let (status, _) = post(&server, SERVICES, &service("b", at("10.97.0.9"))).await;
    assert_eq!(status, 422, "taken");
}

#[tokio::test]
async fn deleted_range_stays_until_its_addresses_are_free() {
    let server = Server::builder().start().await.expect("starts");
    let path = format!("{RANGES}/more");
    create(&server, RANGES, range("more", "10.97.0.0/24")).await;
    create(&server, SERVICES, service("a", at("10.97.0.9"))).await;
    delete(&server, &path).await;
    let (status, held) = get(&server, &path).await;
    assert_eq!(status, 200);
    assert_eq!(ready(&held), (&json!("False"), &json!("Terminating")));
    // No address is taken from it any more, and the one that was stays.
    let (status, _) = post(&server, SERVICES, &service("b", at("10.97.0.10"))).await;
    assert_eq!(status, 422);
    let fork = server.fork(Environment::system()).await;
    for server in [&server, &fork] {
        assert_eq!(server.differences(), [""; 0]);
        delete(server, &format!("{SERVICES}/a")).await;
        assert_eq!(get(server, &path).await.0, 404);
        assert_eq!(names(server, ADDRESSES).await, ["10.96.0.1"]);
    }
}

#[tokio::test]
async fn deleted_range_goes_when_another_has_its_addresses() {
    let server = Server::builder().start().await.expect("starts");
    let path = format!("{RANGES}/small");
    create(&server, RANGES, range("small", "10.97.1.0/24")).await;
    create(&server, SERVICES, service("a", at("10.97.1.9"))).await;
    delete(&server, &path).await;
    assert_eq!(get(&server, &path).await.0, 200);
    create(&server, RANGES, range("large", "10.97.0.0/16")).await;
    assert_eq!(get(&server, &path).await.0, 404);
    create(&server, RANGES, range("unused", "10.98.0.0/24")).await;
    delete(&server, &format!("{RANGES}/unused")).await;
    assert_eq!(names(&server, RANGES).await, ["kubernetes", "large"]);
}

#[tokio::test]
async fn own_range_of_the_server_is_held_by_its_own_service() {
    let server = Server::builder().start().await.expect("starts");
    let path = format!("{RANGES}/kubernetes");
    let (_, own) = get(&server, &path).await;
    assert_eq!(own["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(ready(&own), (&json!("True"), &json!("")));
    // It goes only when another has its addresses, and is made again then.
    delete(&server, &path).await;
    let (_, held) = get(&server, &path).await;
    assert_eq!(ready(&held), (&json!("False"), &json!("Terminating")));
    create(&server, RANGES, range("large", "10.96.0.0/15")).await;
    eventually("the server's own range", || async {
        let (_, own) = get(&server, &path).await;
        let is_new = own["metadata"]["uid"] != held["metadata"]["uid"];
        if own["status"]["conditions"][0]["status"] == "True" && is_new {
            Ok(())
        } else {
            Err(own.to_string())
        }
    })
    .await;
    assert_eq!(server.differences(), [""; 0]);
}

#[tokio::test]
async fn restarted_server_knows_ranges_and_their_addresses() {
    let directory = tempfile::tempdir().expect("a directory");
    let open = || Server::builder().data_dir(directory.path()).start();
    let server = open().await.expect("starts");
    create(&server, RANGES, range("more", "10.97.0.0/24")).await;
    create(&server, SERVICES, service("a", at("10.97.0.9"))).await;
    drop(server);
    let server = open().await.expect("starts again");
    assert_eq!(parent(&server, "10.97.0.9").await.as_deref(), Some("a"));
    let (status, _) = post(&server, SERVICES, &service("b", at("10.97.0.9"))).await;
    assert_eq!(status, 422, "taken");
    assert_eq!(server.differences(), [""; 0]);
}
