//! Server-side apply as clients see it: requests in, answers out.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kubewright_server::{FieldManagement, Server};
use serde_json::{Value, json};
use tower::ServiceExt;

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

struct Client(Server);

impl Client {
    async fn new() -> Self {
        Self(Server::builder().start().await.expect("starts"))
    }

    async fn send(&self, method: &str, path: &str, kind: &str, body: &str) -> (u16, Value) {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("https://localhost{path}"))
            .header("user-agent", "tester/1")
            .header("content-type", kind)
            .body(Full::new(Bytes::from(body.to_owned())))
            .expect("a request");
        let answer = self.0.service().oneshot(request).await;
        let (parts, body) = answer.expect("never fails").into_parts();
        let bytes = body.collect().await.expect("never fails").to_bytes();
        let value = serde_json::from_slice(&bytes).expect("is JSON");
        (parts.status.as_u16(), value)
    }

    async fn apply(&self, path: &str, config: &Value) -> (u16, Value) {
        self.send("PATCH", path, APPLY, &config.to_string()).await
    }

    async fn patch(&self, path: &str, patch: &Value) -> (u16, Value) {
        self.send("PATCH", path, MERGE, &patch.to_string()).await
    }

    async fn get(&self, path: &str) -> Value {
        self.send("GET", path, JSON, "").await.1
    }
}

fn map(data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" }, "data": data })
}

fn deployment(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "c", "image": "i", "ports": [{ "containerPort": 80 }] }] },
            },
        },
    })
}

/// Who manages what: manager, operation and subresource, and the fields.
fn managers(object: &Value) -> Vec<(String, Value)> {
    let entries = object["metadata"]["managedFields"].as_array();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or("").to_owned();
    let line = |e: &Value| {
        let subresource = text(e, "subresource");
        let name = format!(
            "{} {} {subresource}",
            text(e, "manager"),
            text(e, "operation")
        );
        (name.trim_end().to_owned(), e["fieldsV1"].clone())
    };
    entries.into_iter().flatten().map(line).collect()
}

#[tokio::test]
async fn objects_are_made_changed_and_pruned_by_applying() {
    let client = Client::new().await;
    let path = format!("{MAPS}/c?fieldManager=one");
    let (code, made) = client
        .apply(&path, &map(&json!({ "a": "1", "b": "1" })))
        .await;
    assert_eq!(code, 201, "{made}");
    let fields = json!({ "f:data": { "f:a": {}, "f:b": {} } });
    assert_eq!(managers(&made), [("one Apply".to_owned(), fields)]);
    let (code, same) = client
        .apply(&path, &map(&json!({ "a": "1", "b": "1" })))
        .await;
    assert_eq!((code, &same), (200, &made), "nothing changes");
    client
        .patch(&format!("{MAPS}/c"), &json!({ "data": { "x": "1" } }))
        .await;
    let (code, pruned) = client.apply(&path, &map(&json!({ "a": "2" }))).await;
    assert_eq!(code, 200, "{pruned}");
    assert_eq!(pruned["data"], json!({ "a": "2", "x": "1" }));
    let expected = [
        ("one Apply".to_owned(), json!({ "f:data": { "f:a": {} } })),
        (
            "tester Update".to_owned(),
            json!({ "f:data": { "f:x": {} } }),
        ),
    ];
    assert_eq!(managers(&pruned), expected);
}

#[tokio::test]
async fn configurations_may_be_yaml_and_dry() {
    let client = Client::new().await;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: '1'\n";
    let path = format!("{MAPS}/c?fieldManager=one");
    let (code, _) = client
        .send("PATCH", &format!("{path}&dryRun=All"), APPLY, yaml)
        .await;
    assert_eq!(code, 201);
    assert_eq!(client.get(&format!("{MAPS}/c")).await["code"], 404);
    let (code, made) = client.send("PATCH", &path, APPLY, yaml).await;
    assert_eq!((code, &made["data"]["a"]), (201, &json!("1")));
}

#[tokio::test]
async fn conflicts_are_refused_unless_forced() {
    let client = Client::new().await;
    client
        .send("POST", DEPLOYMENTS, JSON, &deployment(1).to_string())
        .await;
    let path = format!("{DEPLOYMENTS}/d?fieldManager=two");
    let (code, refused) = client.apply(&path, &deployment(2)).await;
    assert_eq!(code, 409);
    let message =
        "Apply failed with 1 conflict: conflict with \"tester\" using apps/v1: .spec.replicas";
    assert_eq!(refused["message"], message);
    assert_eq!(refused["details"]["causes"][0]["field"], ".spec.replicas");
    let (code, forced) = client
        .apply(&format!("{path}&force=true"), &deployment(2))
        .await;
    assert_eq!(
        (code, &forced["spec"]["replicas"]),
        (200, &json!(2)),
        "{forced}"
    );
    // A port without its protocol is the one with the default.
    let ports = &forced["spec"]["template"]["spec"]["containers"][0]["ports"];
    assert_eq!(*ports, json!([{ "containerPort": 80, "protocol": "TCP" }]));
    let (_, owner) = &managers(&forced)[1];
    assert_eq!(owner["f:spec"].get("f:replicas"), None);
}

#[tokio::test]
async fn parts_have_managers_of_their_own() {
    let client = Client::new().await;
    client
        .send("POST", DEPLOYMENTS, JSON, &deployment(1).to_string())
        .await;
    let status = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" },
        "spec": { "replicas": 9 }, "status": { "replicas": 3 },
    });
    let (code, answer) = client
        .apply(&format!("{DEPLOYMENTS}/d/status?fieldManager=s"), &status)
        .await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(
        (&answer["spec"]["replicas"], &answer["status"]["replicas"]),
        (&json!(1), &json!(3))
    );
    let fields = json!({ "f:status": { "f:replicas": {} } });
    assert_eq!(managers(&answer)[0], ("s Apply status".to_owned(), fields));
    let scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": "d" }, "spec": { "replicas": 4 },
    });
    let path = format!("{DEPLOYMENTS}/d/scale?fieldManager=auto");
    let (code, refused) = client.apply(&path, &scale).await;
    assert_eq!(code, 409);
    let message = "Apply failed with 1 conflict: conflict with \"tester\" using autoscaling/v1: .spec.replicas";
    assert_eq!(refused["message"], message);
    let (code, _) = client.apply(&format!("{path}&force=true"), &scale).await;
    assert_eq!(code, 200);
    let object = client.get(&format!("{DEPLOYMENTS}/d")).await;
    assert_eq!(object["spec"]["replicas"], 4);
    let fields = json!({ "f:spec": { "f:replicas": {} } });
    assert_eq!(
        managers(&object)[0],
        ("auto Apply scale".to_owned(), fields)
    );
}

#[tokio::test]
async fn configurations_that_cannot_be_applied_are_refused() {
    let client = Client::new().await;
    let path = format!("{MAPS}/c?fieldManager=one");
    let cases = [
        (
            "[1]",
            400,
            "error decoding patch: the configuration is not an object",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Secret"}"#,
            400,
            "invalid object type: /v1, Kind=Secret",
        ),
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap"}"#,
            400,
            "the name of the object (c based on URL) was undeterminable: name must be provided",
        ),
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}"#,
            400,
            "the name of the object (x) does not match the name on the URL (c)",
        ),
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","managedFields":[]}}"#,
            400,
            "metadata.managedFields must be nil",
        ),
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"nope":1}"#,
            500,
            "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .nope: field not declared in schema",
        ),
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","uid":"u"}}"#,
            409,
            "Operation cannot be fulfilled on configmaps \"c\": uid mismatch: the provided object specified uid u, and \
             no existing object was found",
        ),
    ];
    for (body, code, message) in cases {
        let (found, answer) = client.send("PATCH", &path, APPLY, body).await;
        assert_eq!(
            (found, answer["message"].as_str()),
            (code, Some(message)),
            "{body}"
        );
    }
    let twice = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1","a":"2"}}"#;
    let strict = format!("{path}&fieldValidation=Strict");
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: '1'\n  a: '2'\n";
    for (body, line) in [(twice, 1), (yaml, 7)] {
        let (code, answer) = client.send("PATCH", &strict, APPLY, body).await;
        assert_eq!(code, 400);
        let prefix =
            "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:";
        let expected = format!("{prefix}\n  line {line}: key \"a\" already set in map");
        assert_eq!(answer["message"], expected.as_str());
    }
    let status = "/api/v1/namespaces/default/pods/p/status?fieldManager=one";
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" } });
    assert_eq!(client.apply(status, &pod).await.0, 404);
}

#[tokio::test]
async fn clients_can_drop_all_managers() {
    let client = Client::new().await;
    let path = format!("{MAPS}/c");
    client
        .send("POST", MAPS, JSON, &map(&json!({ "a": "1" })).to_string())
        .await;
    let (_, reset) = client
        .patch(&path, &json!({ "metadata": { "managedFields": [{}] } }))
        .await;
    assert_eq!(managers(&reset), []);
    let config = map(&json!({ "a": "1" }));
    let (code, applied) = client
        .apply(&format!("{path}?fieldManager=one"), &config)
        .await;
    assert_eq!(code, 200);
    let names: Vec<String> = managers(&applied)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["one Apply", "before-first-apply Update"]);
}

#[tokio::test]
async fn custom_resources_are_applied_by_their_schema() {
    let client = Client::new().await;
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "items": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {
                "type": "object", "required": ["k"],
                "properties": { "k": { "type": "string" }, "v": { "type": "integer" } },
            },
        },
        "labels": { "type": "object", "additionalProperties": { "type": "string" } },
    } } } });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "bars.ex.io" },
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": { "plural": "bars", "kind": "Bar" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    });
    let path =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/bars.ex.io?fieldManager=one";
    assert_eq!(client.apply(path, &definition).await.0, 201);
    let bar = |spec: Value| json!({ "apiVersion": "ex.io/v1", "kind": "Bar", "metadata": { "name": "b" }, "spec": spec });
    let path = |who: &str| format!("/apis/ex.io/v1/namespaces/default/bars/b?fieldManager={who}");
    let one = bar(json!({ "items": [{ "k": "a", "v": 1 }], "labels": { "x": "1" } }));
    assert_eq!(client.apply(&path("one"), &one).await.0, 201);
    let two = bar(json!({ "items": [{ "k": "b", "v": 2 }] }));
    let (code, both) = client.apply(&path("two"), &two).await;
    assert_eq!(code, 200, "{both}");
    assert_eq!(
        both["spec"]["items"],
        json!([{ "k": "a", "v": 1 }, { "k": "b", "v": 2 }])
    );
    let (code, less) = client
        .apply(&path("one"), &bar(json!({ "labels": {} })))
        .await;
    assert_eq!(code, 200, "{less}");
    assert_eq!(
        less["spec"],
        json!({ "items": [{ "k": "b", "v": 2 }], "labels": {} })
    );
    let (code, refused) = client.apply(&path("one"), &bar(json!({ "zz": 1 }))).await;
    let message = "failed to create typed patch object (/b; ex.io/v1, Kind=Bar): .spec.zz: field not declared in schema";
    assert_eq!((code, refused["message"].as_str()), (500, Some(message)));
}

#[tokio::test]
async fn nobody_keeps_account_when_it_is_switched_off() {
    let server = Server::builder()
        .field_management(FieldManagement::Off)
        .start()
        .await;
    let client = Client(server.expect("starts"));
    let path = format!("{MAPS}/c?fieldManager=one");
    let (code, made) = client.apply(&path, &map(&json!({ "a": "1" }))).await;
    assert_eq!((code, managers(&made)), (201, Vec::new()));
    let (_, patched) = client
        .patch(&format!("{MAPS}/c"), &json!({ "data": { "a": "2" } }))
        .await;
    assert_eq!(managers(&patched), []);
    let (code, applied) = client.apply(&path, &map(&json!({ "a": "3" }))).await;
    assert_eq!((code, &applied["data"]["a"]), (200, &json!("3")));
}
