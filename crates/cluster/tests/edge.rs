//! What lies between a cluster and the world: addresses of load balancers, certificates for those who come from outside.

mod world;

use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kubewright_cluster::{Clock, Cluster};
use kubewright_server::Authorization;
use serde_json::{Value, json};
use tokio::time::sleep;

use world::{create, here, until};

async fn with_load_balancers() -> Cluster {
    let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse().expect("a moment"));
    let range = "203.0.113.0/30".parse().expect("a range");
    let builder = Cluster::builder()
        .clock(clock)
        .seed(7)
        .load_balancers(range);
    let builder = builder.authorization(Authorization::Rbac);
    builder.start().await.expect("starts")
}

fn balanced(name: &str, more: Value) -> Value {
    let mut spec = json!({"type": "LoadBalancer", "ports": [{"port": 80}]});
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn ip(service: &Value) -> Option<&str> {
    service["status"]["loadBalancer"]["ingress"][0]["ip"].as_str()
}

/// Mirrors `service/controller.go: syncLoadBalancerIfNeeded`.
#[tokio::test(start_paused = true)]
async fn load_balancers_get_addresses_and_give_them_back() {
    let cluster = with_load_balancers().await;
    let services = here::<Service>(&cluster);
    create(&services, balanced("one", json!({}))).await;
    until(&services, "one", |one| ip(one) == Some("203.0.113.1")).await;
    assert!(
        world::has_event(
            &cluster,
            "one",
            "EnsuredLoadBalancer",
            "Ensured load balancer"
        )
        .await
    );
    create(
        &services,
        balanced("two", json!({"loadBalancerIP": "203.0.113.2"})),
    )
    .await;
    until(&services, "two", |two| ip(two) == Some("203.0.113.2")).await;
    create(
        &services,
        balanced("classy", json!({"loadBalancerClass": "example.com/other"})),
    )
    .await;
    create(&services, balanced("late", json!({}))).await;
    sleep(Duration::from_secs(60)).await;
    for name in ["classy", "late"] {
        let service = until(&services, name, Value::is_object).await;
        assert_eq!(ip(&service), None, "{name}");
    }
    // Its address is free again when a Service goes, or is another kind of Service.
    services
        .delete("two", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&services, "late", |late| ip(late) == Some("203.0.113.2")).await;
    let plain = json!({"spec": {"type": "ClusterIP"}});
    world::change(&services, "one", plain).await;
    until(&services, "one", |one| ip(one).is_none()).await;
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn load_balancer_waits_for_ever_where_there_is_no_range() {
    let cluster = world::start().await;
    create(&here::<Service>(&cluster), balanced("one", json!({}))).await;
    sleep(Duration::from_secs(600)).await;
    let one = until(&here::<Service>(&cluster), "one", Value::is_object).await;
    assert_eq!(ip(&one), None);
    cluster.stop().await;
}

/// Mirrors `endpointslice_controller.go: updateNode`.
#[tokio::test(start_paused = true)]
async fn endpoints_follow_the_zone_of_their_node() {
    let cluster = world::start().await;
    let spec = json!({"nodeName": "node-1", "containers": [{"name": "c", "image": "sim"}]});
    create(
        &here::<Pod>(&cluster),
        json!({"metadata": {"name": "p", "labels": {"app": "a"}}, "spec": spec}),
    )
    .await;
    let service = json!({"selector": {"app": "a"}, "ports": [{"port": 80}], "trafficDistribution": "PreferSameZone"});
    create(
        &here::<Service>(&cluster),
        json!({"metadata": {"name": "a"}, "spec": service}),
    )
    .await;
    let slices = here::<k8s_openapi::api::discovery::v1::EndpointSlice>(&cluster);
    until(&slices, "a-0", |slice| {
        slice["endpoints"][0]["conditions"]["ready"] == true
    })
    .await;
    let labels = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "moon"}}});
    let nodes: Api<Node> = Api::all(cluster.client());
    let patched = nodes
        .patch("node-1", &PatchParams::default(), &Patch::Merge(labels))
        .await;
    patched.expect("the server takes it");
    until(&slices, "a-0", |slice| {
        let endpoint = &slice["endpoints"][0];
        endpoint["zone"] == "moon" && endpoint["hints"]["forZones"][0]["name"] == "moon"
    })
    .await;
    cluster.stop().await;
}

fn request(signer: &str, usages: &[&str]) -> Value {
    let pem = include_bytes!("../src/controllers/certificates/request.pem");
    let pem = k8s_openapi::ByteString(pem.to_vec());
    json!({"metadata": {"name": "jane"}, "spec": {"request": pem, "signerName": signer, "usages": usages}})
}

/// Does what `kubectl certificate approve` does.
async fn approve(requests: &Api<CertificateSigningRequest>) {
    let condition = json!({"type": "Approved", "status": "True", "reason": "Test", "lastUpdateTime": "2030-01-01T00:01:00Z"});
    let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    let approved = requests
        .patch_approval("jane", &PatchParams::default(), &patch)
        .await;
    approved.expect("the administrator may");
}

/// Mirrors `signer.go: handle` and `cleaner.go: handle`.
#[tokio::test(start_paused = true)]
async fn approved_request_is_signed_and_deleted_after_an_hour() {
    let cluster = with_load_balancers().await;
    let requests: Api<CertificateSigningRequest> = Api::all(cluster.client());
    create(
        &requests,
        request("kubernetes.io/kube-apiserver-client", &["client auth"]),
    )
    .await;
    sleep(Duration::from_secs(30)).await;
    let waiting = until(&requests, "jane", Value::is_object).await;
    assert!(
        waiting["status"]["certificate"].is_null(),
        "nobody has approved it: {waiting:#}"
    );
    approve(&requests).await;
    until(&requests, "jane", |jane| {
        jane["status"]["certificate"].is_string()
    })
    .await;
    sleep(Duration::from_secs(3_700)).await;
    assert!(requests.get_opt("jane").await.expect("an answer").is_none());
    // What its signer is not for fails, and says why.
    create(
        &requests,
        request("kubernetes.io/kubelet-serving", &["server auth"]),
    )
    .await;
    approve(&requests).await;
    let failed = until(&requests, "jane", |jane| {
        jane["status"]["conditions"][1].is_object()
    })
    .await;
    let condition = &failed["status"]["conditions"][1];
    assert_eq!(condition["type"], "Failed");
    assert_eq!(
        condition["message"],
        "subject organization is not system:nodes"
    );
    cluster.stop().await;
}
