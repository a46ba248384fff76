//! What clients of every language find on a real cluster, and ask for in their first minute.

mod client;

use client::{create, get, patch, send};
use kubewright_server::{Admission, Authorization, Plugin, Server};
use serde_json::{Value, json};

async fn server() -> Server {
    Server::builder().start().await.expect("starts")
}

/// Patches the status of an object.
async fn patch_status(server: &Server, path: &str, status: Value) -> Value {
    patch(
        server,
        &format!("{path}/status"),
        json!({ "status": status }),
    )
    .await
}

#[tokio::test]
async fn fields_that_go_always_writes_are_there() {
    let server = server().await;
    let nodes = "/api/v1/nodes";
    let node = create(&server, nodes, json!({ "metadata": { "name": "n" } })).await;
    // The official Python and Java clients refuse a node without it.
    assert_eq!(
        node["status"]["daemonEndpoints"]["kubeletEndpoint"],
        json!({ "Port": 0 })
    );
    let info = node["status"]["nodeInfo"].as_object().expect("an object");
    assert_eq!(info.len(), 10, "{info:?}");
    assert!(info.values().all(|value| value == ""), "{info:?}");

    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    create(&server, pods, pod).await;
    let status = json!({ "containerStatuses": [{ "name": "c" }] });
    let pod = patch_status(&server, &format!("{pods}/p"), status).await;
    let expected = json!({
        "name": "c", "state": {}, "lastState": {}, "ready": false, "restartCount": 0, "image": "", "imageID": "",
    });
    assert_eq!(pod["status"]["containerStatuses"][0], expected);
    let (_, again) = get(&server, &format!("{pods}/p")).await;
    assert_eq!(
        again["status"], pod["status"],
        "what is stored is what was answered"
    );

    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let role = create(&server, roles, json!({ "metadata": { "name": "r" } })).await;
    assert_eq!(role.get("rules"), Some(&Value::Null));
}

#[tokio::test]
async fn events_are_selected_in_the_words_of_either_group() {
    let server = server().await;
    let (old, new) = (
        "/api/v1/namespaces/default/events",
        "/apis/events.k8s.io/v1/namespaces/default/events",
    );
    let about = |name: &str| json!({ "kind": "ConfigMap", "namespace": "default", "name": name });
    let modern = json!({
        "metadata": { "name": "modern" }, "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal",
        "reportingController": "ex.io/c", "reportingInstance": "c-1", "action": "Sync", "reason": "Synced",
        "regarding": about("m"),
    });
    create(&server, new, modern).await;
    let core = json!({
        "metadata": { "name": "core" }, "reason": "Synced", "type": "Normal",
        "source": { "component": "recorder" }, "involvedObject": about("c"),
    });
    create(&server, old, core).await;
    for (path, selector, expected) in [
        (
            old,
            "involvedObject.name=m,involvedObject.kind=ConfigMap",
            "modern",
        ),
        (old, "source=ex.io/c", "modern"),
        (old, "reportingComponent=ex.io/c", "modern"),
        (old, "involvedObject.name=c", "core"),
        (old, "source=recorder", "core"),
        (new, "regarding.name=c,regarding.namespace=default", "core"),
        (new, "regarding.name=m", "modern"),
        (new, "reportingController=ex.io/c", "modern"),
    ] {
        let query = selector.replace('=', "%3D").replace('/', "%2F");
        let (_, list) = get(&server, &format!("{path}?fieldSelector={query}")).await;
        let names: Vec<&Value> = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|e| &e["metadata"]["name"])
            .collect();
        assert_eq!(names, [expected], "{path} {selector}: {list:#}");
    }
}

/// The names of a list.
async fn names(server: &Server, path: &str) -> Vec<String> {
    let (code, list) = get(server, path).await;
    assert_eq!(code, 200, "{path}: {list:#}");
    let items = list["items"].as_array().expect("a list").iter();
    let name = |item: &Value| item["metadata"]["name"].as_str().map(str::to_owned);
    items.filter_map(name).collect()
}

#[tokio::test]
async fn objects_that_every_cluster_has_are_there() {
    let builder = Server::builder().authorization(Authorization::Rbac);
    let server = builder.start().await.expect("starts");
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = server.listen(address).await.expect("listens");
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    for (path, expected) in [
        (
            format!("{rbac}/clusterroles"),
            &[
                "system:kube-scheduler",
                "system:node",
                "system:controller:job-controller",
            ][..],
        ),
        (
            format!("{rbac}/clusterrolebindings"),
            &[
                "system:kube-controller-manager",
                "system:controller:job-controller",
            ],
        ),
        (
            format!("{rbac}/namespaces/kube-system/roles"),
            &["extension-apiserver-authentication-reader"],
        ),
        (
            format!("{rbac}/namespaces/kube-system/rolebindings"),
            &["system::extension-apiserver-authentication-reader"],
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses".into(),
            &["system-cluster-critical", "system-node-critical"],
        ),
        (
            "/apis/apiregistration.k8s.io/v1/apiservices".into(),
            &["v1.", "v1.apps", "v2.autoscaling"],
        ),
        (
            "/apis/networking.k8s.io/v1/servicecidrs".into(),
            &["kubernetes"],
        ),
        (
            "/api/v1/componentstatuses".into(),
            &["controller-manager", "etcd-0", "scheduler"],
        ),
        (
            "/api/v1/namespaces/default/endpoints".into(),
            &["kubernetes"],
        ),
        (
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices".into(),
            &["kubernetes"],
        ),
    ] {
        let found = names(&server, &path).await;
        for name in expected {
            assert!(
                found.iter().any(|n| n == name),
                "{path} has no {name}: {found:?}"
            );
        }
    }
    let (_, range) = get(
        &server,
        "/apis/networking.k8s.io/v1/servicecidrs/kubernetes",
    )
    .await;
    let ready = &range["status"]["conditions"][0];
    assert_eq!(
        (&ready["type"], &ready["status"]),
        (&json!("Ready"), &json!("True"))
    );
    let (_, endpoints) = get(&server, "/api/v1/namespaces/default/endpoints/kubernetes").await;
    assert_eq!(
        endpoints["subsets"][0]["ports"][0]["port"],
        endpoint.address().port()
    );
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let (_, trust) = get(&server, path).await;
    let authority = trust["data"]["client-ca-file"]
        .as_str()
        .expect("an authority");
    assert!(
        authority.starts_with("-----BEGIN CERTIFICATE-----"),
        "{trust:#}"
    );
    let (_, service) = get(
        &server,
        "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps",
    )
    .await;
    assert_eq!(
        service["status"]["conditions"][0]["status"], "True",
        "{service:#}"
    );
}

/// The names of the APIServices of a group.
async fn api_services_of(server: &Server, group: &str) -> Vec<String> {
    let mut found = names(server, "/apis/apiregistration.k8s.io/v1/apiservices").await;
    found.retain(|name| name.ends_with(&format!(".{group}")));
    found
}

#[tokio::test]
async fn api_services_come_and_go_with_definitions() {
    let server = Server::builder()
        .authorization(Authorization::Rbac)
        .start()
        .await
        .expect("starts");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let version = |name: &str, served: bool| json!({ "name": name, "served": served, "storage": name == "v1", "schema": schema });
    let definition = json!({
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [version("v1", true), version("v2", true)],
        },
    });
    create(&server, definitions, definition).await;
    let found = api_services_of(&server, "example.com").await;
    assert_eq!(found, ["v1.example.com", "v2.example.com"]);
    let path = "/apis/apiregistration.k8s.io/v1/apiservices/v2.example.com";
    let (_, service) = get(&server, path).await;
    assert_eq!(service["spec"]["versionPriority"], 100);
    assert_eq!(service["status"]["conditions"][0]["reason"], "Local");

    let path = format!("{definitions}/widgets.example.com");
    let fewer = json!({ "spec": { "versions": [version("v1", true), version("v2", false)] } });
    patch(&server, &path, fewer).await;
    let found = api_services_of(&server, "example.com").await;
    assert_eq!(found, ["v1.example.com"]);
    send(&server, "DELETE", &path, "application/json", &Value::Null).await;
    let found = api_services_of(&server, "example.com").await;
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test]
async fn discovery_lists_what_is_served_and_nothing_else() {
    let server = server().await;
    let (_, list) = get(&server, "/api/v1").await;
    let resources = list["resources"].as_array().expect("a list").iter();
    let found: Vec<&str> = resources.filter_map(|r| r["name"].as_str()).collect();
    for name in [
        "pods/log",
        "pods/exec",
        "pods/attach",
        "pods/portforward",
        "pods/proxy",
        "services/proxy",
        "nodes/proxy",
        "componentstatuses",
    ] {
        assert!(found.contains(&name), "{name} is missing in {found:?}");
    }
    // Without nodes there is nobody to ask for measurements.
    let (code, _) = get(&server, "/apis/metrics.k8s.io/v1beta1").await;
    assert_eq!(code, 404);
    let (code, _) = send(
        &server,
        "DELETE",
        "/api/v1/componentstatuses/etcd-0",
        "",
        &Value::Null,
    )
    .await;
    assert_eq!(code, 405);
}

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "containers": [{ "name": "c", "image": "i" }] } })
}

/// Sends an object that must be refused; gives the text.
async fn refused(server: &Server, code: u16, method: &str, path: &str, body: Value) -> String {
    let content_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let (status, value) = send(server, method, path, content_type, &body).await;
    assert_eq!(status, code, "{method} {path}: {value:#}");
    value["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_dry_run_of_an_eviction_spends_no_budget() {
    let server = server().await;
    let mut own = pod("a");
    own["metadata"]["labels"] = json!({ "app": "a" });
    create(&server, PODS, own).await;
    let ready =
        json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
    patch_status(&server, &format!("{PODS}/a"), ready).await;
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({
        "metadata": { "name": "b" },
        "spec": { "minAvailable": 0, "selector": { "matchLabels": { "app": "a" } } },
    });
    create(&server, budgets, budget).await;
    let status = json!({ "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1 });
    patch_status(&server, &format!("{budgets}/b"), status).await;
    let eviction = |name: &str, options: Value| json!({ "metadata": { "name": name }, "deleteOptions": options });
    let path = format!("{PODS}/a/eviction");
    create(&server, &path, eviction("a", json!({ "dryRun": ["All"] }))).await;
    let (_, budget) = get(&server, &format!("{budgets}/b")).await;
    assert_eq!(budget["status"]["disruptionsAllowed"], 1, "{budget:#}");
    let text = refused(&server, 400, "POST", &path, eviction("b", json!({}))).await;
    assert_eq!(text, "name in URL does not match name in Eviction object");
    let mut elsewhere = eviction("a", json!({}));
    elsewhere["metadata"]["namespace"] = json!("other");
    refused(&server, 400, "POST", &path, elsewhere).await;
    patch(
        &server,
        &format!("{PODS}/a"),
        json!({ "metadata": { "finalizers": ["ex.io/hold"] } }),
    )
    .await;
    create(
        &server,
        &path,
        eviction("a", json!({ "gracePeriodSeconds": 0 })),
    )
    .await;
    let (_, evicted) = get(&server, &format!("{PODS}/a")).await;
    let conditions = evicted["status"]["conditions"]
        .as_array()
        .expect("conditions");
    let target = conditions.iter().find(|c| c["type"] == "DisruptionTarget");
    assert_eq!(target.expect("marked")["reason"], "EvictionByEvictionAPI");
    let (_, budget) = get(&server, &format!("{budgets}/b")).await;
    assert_eq!(budget["status"]["disruptionsAllowed"], 0, "{budget:#}");
}

#[tokio::test]
async fn a_binding_is_of_the_pod_that_it_names() {
    let server = server().await;
    create(&server, PODS, pod("a")).await;
    let binding = json!({ "metadata": { "name": "b" }, "target": { "kind": "Node", "name": "n" } });
    let text = refused(&server, 400, "POST", &format!("{PODS}/a/binding"), binding).await;
    assert_eq!(text, "name in URL does not match name in Binding object");
}

#[tokio::test]
async fn runtime_classes_exist_and_say_what_pods_cost() {
    let server = server().await;
    let mut nowhere = pod("a");
    nowhere["spec"]["runtimeClassName"] = json!("nope");
    let text = refused(&server, 403, "POST", PODS, nowhere).await;
    assert!(
        text.ends_with("pod rejected: RuntimeClass \"nope\" not found"),
        "{text}"
    );
    let mut costly = pod("a");
    costly["spec"]["overhead"] = json!({ "cpu": "100" });
    let text = refused(&server, 403, "POST", PODS, costly).await;
    assert!(
        text.contains("Pod Overhead set without corresponding RuntimeClass"),
        "{text}"
    );
    let class = json!({
        "metadata": { "name": "vm" }, "handler": "vm", "overhead": { "podFixed": { "cpu": "250m" } },
        "scheduling": { "nodeSelector": { "vm": "yes" } },
    });
    create(&server, "/apis/node.k8s.io/v1/runtimeclasses", class).await;
    let mut own = pod("a");
    own["spec"]["runtimeClassName"] = json!("vm");
    let created = create(&server, PODS, own).await;
    assert_eq!(created["spec"]["overhead"], json!({ "cpu": "250m" }));
    assert_eq!(created["spec"]["nodeSelector"], json!({ "vm": "yes" }));
    let tolerations = created["spec"]["tolerations"]
        .as_array()
        .expect("tolerations");
    let seconds: Vec<&Value> = tolerations
        .iter()
        .map(|t| &t["tolerationSeconds"])
        .collect();
    assert_eq!(seconds, [300, 300]);
}

#[tokio::test]
async fn ingresses_get_the_default_class() {
    let server = server().await;
    let marked = json!({ "ingressclass.kubernetes.io/is-default-class": "true" });
    let class = json!({ "metadata": { "name": "web", "annotations": marked }, "spec": { "controller": "ex.io/c" } });
    create(&server, "/apis/networking.k8s.io/v1/ingressclasses", class).await;
    let backend = json!({ "service": { "name": "s", "port": { "number": 80 } } });
    let ingress = json!({ "metadata": { "name": "i" }, "spec": { "defaultBackend": backend } });
    let path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let created = create(&server, path, ingress).await;
    assert_eq!(created["spec"]["ingressClassName"], "web");
}

#[tokio::test]
async fn claims_grow_where_their_class_allows_it() {
    let server = server().await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    for (name, expansion) in [("fixed", false), ("open", true)] {
        let class = json!({ "metadata": { "name": name }, "provisioner": "ex.io/p", "allowVolumeExpansion": expansion });
        create(&server, "/apis/storage.k8s.io/v1/storageclasses", class).await;
        let claim = json!({
            "metadata": { "name": name },
            "spec": {
                "storageClassName": name, "accessModes": ["ReadWriteOnce"], "volumeName": "v",
                "resources": { "requests": { "storage": "1Gi" } },
            },
        });
        create(&server, claims, claim).await;
    }
    let grown = || json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } });
    let (fixed, open) = (format!("{claims}/fixed"), format!("{claims}/open"));
    let text = refused(&server, 422, "PATCH", &open, grown()).await;
    assert!(text.contains("for bound claims"), "{text}");
    for path in [&fixed, &open] {
        patch_status(&server, path, json!({ "phase": "Bound" })).await;
    }
    let text = refused(&server, 403, "PATCH", &fixed, grown()).await;
    assert!(
        text.contains("the storageclass that provisions the pvc must support resize"),
        "{text}"
    );
    patch(&server, &open, grown()).await;
}

#[tokio::test]
async fn pods_are_resized_within_what_their_node_has() {
    let server = server().await;
    create(&server, "/api/v1/nodes", json!({"metadata": {"name": "n"}})).await;
    let has = json!({"allocatable": {"cpu": "4", "memory": "1Gi"}});
    patch_status(&server, "/api/v1/nodes/n", has).await;
    let asks =
        |cpu: &str| json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
    let pods = "/api/v1/namespaces/default/pods";
    for (name, node) in [("p", "n"), ("lost", "nowhere")] {
        let spec = json!({"nodeName": node, "containers": [asks("1")]});
        create(
            &server,
            pods,
            json!({"metadata": {"name": name}, "spec": spec}),
        )
        .await;
    }
    let resized = |cpu: &str| json!({"spec": {"containers": [asks(cpu)]}});
    let path = format!("{pods}/p/resize");
    let larger = patch(&server, &path, resized("4")).await;
    assert_eq!(larger["metadata"]["generation"], 2);
    let text = refused(&server, 403, "PATCH", &path, resized("5")).await;
    let why =
        "node didn't have enough allocatable resources: cpu, requested: 5000, allocatable: 4000";
    assert_eq!(text, format!("pods \"p\" is forbidden: {why}"));
    let path = format!("{pods}/lost/resize");
    let text = refused(&server, 403, "PATCH", &path, resized("2")).await;
    assert_eq!(
        text,
        "pods \"lost\" is forbidden: node \"nowhere\" not found"
    );
}

#[tokio::test]
async fn secrets_of_an_account_bind_containers_that_are_added_later() {
    let admission = Admission::default().enable(Plugin::ServiceAccount);
    let server = Server::builder()
        .admission(admission)
        .start()
        .await
        .expect("starts");
    let account = json!({
        "metadata": { "name": "sa", "annotations": { "kubernetes.io/enforce-mountable-secrets": "true" } },
        "secrets": [{ "name": "mine" }],
    });
    create(
        &server,
        "/api/v1/namespaces/default/serviceaccounts",
        account,
    )
    .await;
    let mut own = pod("a");
    own["spec"]["serviceAccountName"] = json!("sa");
    create(&server, PODS, own).await;
    let debug = |secret: &str| {
        let env = json!([{ "name": "X", "valueFrom": { "secretKeyRef": { "name": secret, "key": "k" } } }]);
        json!({ "spec": { "ephemeralContainers": [{ "name": "d", "image": "i", "env": env }] } })
    };
    let path = format!("{PODS}/a/ephemeralcontainers");
    let text = refused(&server, 403, "PATCH", &path, debug("other")).await;
    let expected = "ephemeral container d with envVar X referencing secret.secretName=\"other\" is not allowed because service account sa does not reference that secret";
    assert!(text.ends_with(expected), "{text}");
    patch(&server, &path, debug("mine")).await;
}
