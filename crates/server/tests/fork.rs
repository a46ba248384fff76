//! Copies of a server: a fork sees everything and shares nothing; a restored server is what it was.

mod client;

use client::{create, delete, get, patch};
use kubewright_server::{Authorization, Environment, Server};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FRUITS: &str = "/apis/example.com/v1/namespaces/default/fruits";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn definition() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "fruits.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "fruits", "singular": "fruit", "kind": "Fruit", "listKind": "FruitList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

fn named(kind: &str, api_version: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
}

fn service(name: &str, address: &str) -> Value {
    let mut service = named("Service", "v1", name);
    service["spec"] = json!({"clusterIP": address, "ports": [{"port": 80}]});
    service
}

async fn start() -> Server {
    let builder = Server::builder().authorization(Authorization::Rbac);
    let server = builder.start().await.expect("starts");
    create(&server, DEFINITIONS, definition()).await;
    create(&server, FRUITS, named("Fruit", "example.com/v1", "pear")).await;
    create(&server, SERVICES, service("web", "10.96.0.50")).await;
    server
}

#[tokio::test]
async fn a_fork_has_kinds_addresses_and_revisions() {
    let server = start().await;
    let fork = server.fork(Environment::system()).await;
    assert_eq!(fork.revision(), server.revision());
    let pear = format!("{FRUITS}/pear");
    assert_eq!(get(&fork, &pear).await, get(&server, &pear).await);
    let taken = service("other", "10.96.0.50");
    let (code, _) = client::send(&fork, "POST", SERVICES, "application/json", &taken).await;
    assert_eq!(code, 422, "the address is taken there as well");
    assert_eq!(
        fork.certificate_authority().expect("made"),
        server.certificate_authority().expect("made")
    );
}

#[tokio::test]
async fn what_happens_in_a_fork_stays_there() {
    let server = start().await;
    let fork = server.fork(Environment::system()).await;
    assert_eq!(delete(&fork, &format!("{SERVICES}/web")).await.0, 200);
    create(&fork, SERVICES, service("again", "10.96.0.50")).await;
    let definition = format!("{DEFINITIONS}/fruits.example.com");
    assert_eq!(delete(&fork, &definition).await.0, 200);
    assert_eq!(get(&fork, FRUITS).await.0, 404);
    assert_eq!(get(&server, FRUITS).await.0, 200);
    assert_eq!(get(&server, &format!("{SERVICES}/web")).await.0, 200);
}

#[tokio::test]
async fn roles_of_the_original_decide_in_the_fork() {
    let server = start().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let mut role = named("ClusterRole", "rbac.authorization.k8s.io/v1", "reader");
    role["rules"] = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]);
    create(&server, roles, role).await;
    let mut binding = named(
        "ClusterRoleBinding",
        "rbac.authorization.k8s.io/v1",
        "reader",
    );
    binding["roleRef"] =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"});
    binding["subjects"] =
        json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]);
    create(&server, bindings, binding).await;
    let fork = server.fork(Environment::system()).await;
    delete(&fork, &format!("{bindings}/reader")).await;
    let review = |server| async move {
        let attributes = json!({"verb": "list", "resource": "configmaps", "namespace": "default"});
        let mut review =
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"});
        review["spec"] = json!({"user": "jane", "resourceAttributes": attributes});
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        create(server, path, review).await["status"]["allowed"].clone()
    };
    assert_eq!(review(&server).await, true);
    assert_eq!(review(&fork).await, false);
}

#[tokio::test]
async fn a_restored_server_is_what_it_was_and_its_revision_goes_on() {
    let server = start().await;
    create(&server, MAPS, named("ConfigMap", "v1", "kept")).await;
    let before = get(&server, &format!("{MAPS}/kept")).await;
    let snapshot = server.snapshot().await;
    patch(
        &server,
        &format!("{MAPS}/kept"),
        json!({"data": {"a": "1"}}),
    )
    .await;
    create(&server, MAPS, named("ConfigMap", "v1", "later")).await;
    delete(&server, &format!("{DEFINITIONS}/fruits.example.com")).await;
    delete(&server, &format!("{SERVICES}/web")).await;
    let revision = server.revision();
    server.restore(&snapshot).await.expect("in memory");
    assert_eq!(server.revision(), revision + 1);
    assert_eq!(get(&server, &format!("{MAPS}/kept")).await, before);
    assert_eq!(get(&server, &format!("{MAPS}/later")).await.0, 404);
    assert_eq!(get(&server, FRUITS).await.0, 200);
    let taken = service("other", "10.96.0.50");
    let (code, _) = client::send(&server, "POST", SERVICES, "application/json", &taken).await;
    assert_eq!(code, 422);
    let watch = format!("{MAPS}?watch=1&resourceVersion={revision}");
    let (_, event) = get(&server, &watch).await;
    assert_eq!(event["type"], "ERROR");
    assert_eq!(
        event["object"]["code"], 410,
        "whoever watched has to list again"
    );
}
