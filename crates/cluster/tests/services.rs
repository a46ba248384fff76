//! Services in a whole cluster: Endpoints and slices follow pods, and what users write themselves is mirrored.

mod world;

use std::time::Duration;

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::time::sleep;

use world::{all, change, create, here, start, until};

#[tokio::test(start_paused = true)]
async fn a_service_gets_its_endpoints() {
    let cluster = start().await;
    let (pods, services) = (here::<Pod>(&cluster), here::<Service>(&cluster));
    let slices = here::<EndpointSlice>(&cluster);
    let port = json!({"port": 80, "targetPort": "http"});
    create(
        &services,
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [port]}}),
    )
    .await;
    until(&slices, "web-0", |slice| {
        slice.is_object() && slice["endpoints"].get(0).is_none()
    })
    .await;
    for name in ["a", "b"] {
        let ports = json!([{"name": "http", "containerPort": 8080}]);
        let spec = json!({"containers": [{"name": "main", "image": "web:1", "ports": ports}]});
        create(
            &pods,
            json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}),
        )
        .await;
    }
    let ready = |slice: &Value| {
        let all = slice["endpoints"].as_array();
        all.is_some_and(|all| {
            all.len() == 2 && all.iter().all(|one| one["conditions"]["ready"] == true)
        })
    };
    let slice = until(&slices, "web-0", ready).await;
    assert_eq!(slice["ports"][0]["port"], 8080);
    assert_eq!(
        slice["metadata"]["labels"]["kubernetes.io/service-name"],
        "web"
    );
    pods.delete("a", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&slices, "web-0", |slice| {
        slice["endpoints"]
            .as_array()
            .is_some_and(|all| all.len() == 1)
    })
    .await;
}

fn server(name: &str, annotations: Value) -> Value {
    let ports = json!([{"name": "http", "containerPort": 8080}]);
    let spec = json!({"containers": [{"name": "main", "image": "web:1", "ports": ports}]});
    json!({"metadata": {"name": name, "labels": {"app": "web"}, "annotations": annotations}, "spec": spec})
}

/// How many addresses there are, ready and not.
fn addresses(endpoints: &Value) -> (usize, usize) {
    let count = |list: &str| {
        let subsets = endpoints["subsets"].as_array().into_iter().flatten();
        let lists = subsets.filter_map(|subset| subset[list].as_array());
        lists.map(Vec::len).sum()
    };
    (count("addresses"), count("notReadyAddresses"))
}

#[tokio::test(start_paused = true)]
async fn endpoints_follow_the_pods_of_a_service_and_go_with_it() {
    let cluster = start().await;
    let (pods, services) = (here::<Pod>(&cluster), here::<Service>(&cluster));
    let endpoints = here::<Endpoints>(&cluster);
    let port = json!({"port": 80, "targetPort": "http"});
    let spec = json!({"selector": {"app": "web"}, "clusterIP": "None", "ports": [port]});
    create(
        &services,
        json!({"metadata": {"name": "web", "labels": {"tier": "front"}}, "spec": spec}),
    )
    .await;
    let empty = until(&endpoints, "web", Value::is_object).await;
    assert_eq!(
        empty["metadata"]["labels"]["service.kubernetes.io/headless"],
        ""
    );
    assert_eq!(empty["metadata"]["labels"]["tier"], "front");
    create(&pods, server("a", json!({}))).await;
    create(
        &pods,
        server("b", json!({"sim.kubewright.dev/never-ready": "true"})),
    )
    .await;
    let both = until(&endpoints, "web", |e| addresses(e) == (1, 1)).await;
    assert_eq!(both["subsets"][0]["ports"][0]["port"], 8080);
    assert_eq!(both["subsets"][0]["addresses"][0]["targetRef"]["name"], "a");
    change(
        &services,
        "web",
        json!({"spec": {"publishNotReadyAddresses": true}}),
    )
    .await;
    until(&endpoints, "web", |e| addresses(e) == (2, 0)).await;
    // Whoever deletes them finds them again; with the service they go.
    endpoints
        .delete("web", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&endpoints, "web", |e| addresses(e) == (2, 0)).await;
    services
        .delete("web", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&endpoints, "web", Value::is_null).await;
}

#[tokio::test(start_paused = true)]
async fn endpoints_of_a_service_without_selector_are_mirrored() {
    let cluster = start().await;
    let services = here::<Service>(&cluster);
    let (endpoints, slices) = (here::<Endpoints>(&cluster), here::<EndpointSlice>(&cluster));
    let subsets = json!([{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 5432}]}]);
    create(
        &endpoints,
        json!({"metadata": {"name": "db"}, "subsets": subsets}),
    )
    .await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(all(&slices).await.len(), 0, "there is no service");
    assert!(until(&endpoints, "db", Value::is_object).await.is_object());
    create(
        &services,
        json!({"metadata": {"name": "db"}, "spec": {"ports": [{"port": 5432}]}}),
    )
    .await;
    let slice = until(&slices, "db-mirror-0", Value::is_object).await;
    assert_eq!(slice["endpoints"][0]["addresses"], json!(["192.0.2.7"]));
    assert_eq!(
        slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"],
        "endpointslicemirroring-controller.k8s.io"
    );
    change(
        &endpoints,
        "db",
        json!({"subsets": [{"addresses": [{"ip": "192.0.2.8"}], "ports": [{"port": 5432}]}]}),
    )
    .await;
    until(&slices, "db-mirror-0", |s| {
        s["endpoints"][0]["addresses"] == json!(["192.0.2.8"])
    })
    .await;
    change(
        &endpoints,
        "db",
        json!({"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}}),
    )
    .await;
    until(&slices, "db-mirror-0", Value::is_null).await;
    change(
        &endpoints,
        "db",
        json!({"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": null}}}),
    )
    .await;
    until(&slices, "db-mirror-0", Value::is_object).await;
    services
        .delete("db", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&slices, "db-mirror-0", Value::is_null).await;
}
