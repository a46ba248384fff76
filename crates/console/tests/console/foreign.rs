//! An API server that is not ours: the recorded answers of kube-apiserver 1.35, as it sends tables, watches and refusals.

use std::convert::Infallible;

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use kubewright_console::Console;
use serde_json::{Value, json};
use tower::service_fn;

use crate::support::{self, operations};

const RECORDED: &str = include_str!("../../../server/tests/golden/kube-apiserver-1.35.txt");

/// The status and the body that were recorded under a heading.
fn recorded(heading: &str) -> (u16, String) {
    let start = RECORDED
        .find(&format!("### {heading}\n"))
        .unwrap_or_else(|| panic!("{heading} is not recorded"));
    let section = &RECORDED[start + 4..];
    let section = section.split("\n### ").next().unwrap_or(section);
    let (head, body) = section.split_once("\n\n").expect("a head and a body");
    let status = head
        .lines()
        .find_map(|line| line.strip_prefix("HTTP/2 "))
        .expect("a status");
    (
        status.trim().parse().expect("a number"),
        body.trim().to_owned(),
    )
}

fn discovery() -> Value {
    let resource = |name: &str, kind: &str, verbs: &[&str]| {
        json!({"resource": name, "responseKind": {"group": "", "kind": kind, "version": ""}, "scope": "Namespaced",
            "singularResource": kind.to_lowercase(), "verbs": verbs})
    };
    let all = [
        "create", "delete", "get", "list", "patch", "update", "watch",
    ];
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": [
        {"metadata": {"creationTimestamp": null}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
            resource("services", "Service", &all), resource("secrets", "Secret", &all),
            resource("bindings", "Binding", &["create"])]}]}]})
}

/// Answers as the recording does.
fn answer(method: &Method, path: &str, query: &str) -> (u16, String) {
    let groups = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": []});
    match (method, path) {
        (&Method::GET, "/api") => (200, discovery().to_string()),
        (&Method::GET, "/apis") => (200, groups.to_string()),
        (&Method::GET, "/version") => recorded("version"),
        (&Method::GET, "/api/v1/services") if query.contains("watch=true") => {
            let (status, events) = recorded("table watch");
            (status, format!("{events}\n"))
        }
        (&Method::GET, "/api/v1/services") => recorded("table"),
        (&Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews") => (
            201,
            json!({"kind": "SelfSubjectAccessReview", "status": {"allowed": true}}).to_string(),
        ),
        (&Method::PUT, "/api/v1/namespaces/default/services/gs") => recorded("invalid deployment"),
        _ => recorded("impersonate forbidden"),
    }
}

fn client() -> kube::Client {
    let service = service_fn(|request: Request<Body>| async move {
        let uri = request.uri();
        let (status, body) = answer(
            request.method(),
            uri.path(),
            uri.query().unwrap_or_default(),
        );
        let status = StatusCode::from_u16(status).expect("a status");
        let mut response = Response::new(Body::from(body.into_bytes()));
        *response.status_mut() = status;
        Ok::<_, Infallible>(response)
    });
    kube::Client::new(service, "default")
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_watches_and_refusals_of_kube_apiserver_are_understood() {
    let (_running, page) = support::open(Console::new(client())).await;
    let about = page.get("/api/about").await.1;
    assert!(
        about["version"]
            .as_str()
            .is_some_and(|version| version.starts_with('v')),
        "{about}"
    );
    let mut table = page
        .stream(json!([{"topic": "kinds"}, {"topic": "table", "kind": "v1/services"}]))
        .await;
    let kinds = table
        .until("the kinds", |message| {
            (message["t"] == "kinds").then(|| message["kinds"].clone())
        })
        .await;
    let ids: Vec<&str> = kinds
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|kind| kind["id"].as_str())
        .collect();
    assert_eq!(
        ids,
        ["v1/secrets", "v1/services"],
        "what cannot be listed is left out"
    );
    let (columns, row) = table
        .until("the Service of the API server", |message| {
            let row = operations(message)
                .into_iter()
                .find(|row| row["name"] == "kubernetes")?;
            Some((message["columns"].clone(), row))
        })
        .await;
    let names: Vec<&str> = columns
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|column| column["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "Name",
            "Type",
            "Cluster-IP",
            "External-IP",
            "Port(s)",
            "Age",
            "Selector"
        ]
    );
    assert_eq!(
        (&row["cells"][1], &row["cells"][4]),
        (&json!("ClusterIP"), &json!("443/TCP"))
    );
    let mut secrets = page
        .stream(json!([{"topic": "table", "kind": "v1/secrets"}]))
        .await;
    let why = secrets
        .until("why secrets are not shown", |message| {
            message["state"]["message"].as_str().map(str::to_owned)
        })
        .await;
    assert!(why.contains("forbidden"), "{why}");
    let rights = page
        .get("/api/rights?kind=v1/services&ns=default&name=gs")
        .await
        .1;
    assert_eq!(rights["actions"], json!(["edit", "delete"]));
    let edit = json!({"kind": "v1/services", "ns": "default", "name": "gs", "yaml": "{kind: Service, metadata: {name: gs}}", "dryRun": true});
    let (status, answer) = page.post("/api/edit", &edit).await;
    assert_eq!(
        (status, &answer["causes"][1]["field"]),
        (422, &json!("spec.template.metadata.labels")),
        "{answer}"
    );
}
