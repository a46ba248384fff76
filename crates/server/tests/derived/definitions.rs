//! Definitions: watches end with them, nothing is stored into a kind that is gone, and they are served when seen as
//! established.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kubewright_server::Server;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::client::{create, delete, get, patch, send};
use crate::hooks::Webhook;
use crate::objects::{
    DEFINITIONS, Watch, custom, custom_object, definition, eventually, named, post,
};

async fn start() -> Arc<Server> {
    Arc::new(Server::builder().start().await.expect("starts"))
}

#[tokio::test]
async fn a_watch_ends_when_another_version_is_stored() {
    let server = start().await;
    create(&server, DEFINITIONS, definition("widgets", "v1")).await;
    let mut watch = Watch::open(&server, &custom("v1", "widgets")).await;
    create(
        &server,
        &custom("v1", "widgets"),
        custom_object("v1", "widgets", "before"),
    )
    .await;
    let mut changed = definition("widgets", "v2");
    changed["metadata"] = json!({});
    patch(
        &server,
        &format!("{DEFINITIONS}/widgets.example.com"),
        changed,
    )
    .await;
    create(
        &server,
        &custom("v2", "widgets"),
        custom_object("v2", "widgets", "after"),
    )
    .await;
    let mut seen = Vec::new();
    while let Some(event) = watch.next().await {
        assert_eq!(event["object"]["apiVersion"], "example.com/v1", "{event}");
        seen.push(event["object"]["metadata"]["name"].clone());
    }
    assert_eq!(seen, ["before"], "the client lists again for the rest");
}

#[tokio::test]
async fn a_watch_ends_with_its_definition() {
    let server = start().await;
    create(&server, DEFINITIONS, definition("widgets", "v1")).await;
    let path = custom("v1", "widgets");
    create(&server, &path, custom_object("v1", "widgets", "a")).await;
    let mut watch = Watch::open(&server, &path).await;
    assert_eq!(
        delete(&server, &format!("{DEFINITIONS}/widgets.example.com"))
            .await
            .0,
        200
    );
    let mut again = definition("widgets", "v1");
    again["spec"]["scope"] = json!("Cluster");
    create(&server, DEFINITIONS, again).await;
    let widget = custom_object("v1", "widgets", "cluster-wide");
    create(&server, "/apis/example.com/v1/widgets", widget).await;
    let mut seen = Vec::new();
    while let Some(event) = watch.next().await {
        seen.push(format!(
            "{} {}",
            event["type"], event["object"]["metadata"]["name"]
        ));
    }
    assert_eq!(seen, [r#""ADDED" "a""#, r#""DELETED" "a""#]);
}

#[tokio::test]
async fn a_watch_survives_a_write_of_the_status() {
    let server = start().await;
    create(&server, DEFINITIONS, definition("widgets", "v1")).await;
    let path = custom("v1", "widgets");
    let mut watch = Watch::open(&server, &path).await;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    patch(
        &server,
        &format!("{DEFINITIONS}/widgets.example.com"),
        label,
    )
    .await;
    create(&server, &path, custom_object("v1", "widgets", "a")).await;
    let event = watch.next().await.expect("the watch goes on");
    assert_eq!(event["object"]["metadata"]["name"], "a");
}

/// A create that a webhook holds while its kind is deleted and defined again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_object_is_not_stored_into_a_kind_that_is_gone() {
    let server = start().await;
    create(&server, DEFINITIONS, definition("widgets", "v1")).await;
    let asked = Arc::new(Notify::new());
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let webhook = {
        let (asked, held) = (asked.clone(), Mutex::new(held));
        Webhook::admission(move |_| {
            asked.notify_one();
            let released = held.lock().expect("not poisoned").recv();
            released.expect_err("nothing is sent, the sender goes");
            json!({"allowed": true})
        })
        .await
    };
    let rules = json!([{"operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["*"]}]);
    let hook = json!({"clientConfig": webhook.client_config(), "rules": rules});
    let configuration = crate::hooks::configuration("ValidatingWebhookConfiguration", "hook", hook);
    create(&server, crate::objects::VALIDATING, configuration).await;
    let create_held = {
        let server = server.clone();
        tokio::spawn(async move {
            let widget = custom_object("v1", "widgets", "ghost");
            post(&server, &custom("v1", "widgets"), &widget).await.0
        })
    };
    asked.notified().await;
    let path = format!("{DEFINITIONS}/widgets.example.com");
    assert_eq!(delete(&server, &path).await.0, 200);
    eventually("the definition to go", || async {
        let (code, value) = get(&server, &path).await;
        (code == 404).then_some(()).ok_or(value.to_string())
    })
    .await;
    drop(let_go);
    let code = create_held.await.expect("answered");
    assert!(code >= 400, "{code}");
    create(&server, DEFINITIONS, definition("widgets", "v1")).await;
    let (_, list) = get(&server, &custom("v1", "widgets")).await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_definition_goes_though_its_objects_are_written_meanwhile() {
    let server = start().await;
    create(&server, DEFINITIONS, definition("widgets", "v1")).await;
    let path = custom("v1", "widgets");
    for i in 0..200 {
        create(
            &server,
            &path,
            custom_object("v1", "widgets", &format!("w{i}")),
        )
        .await;
    }
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (server, path) = (server.clone(), path.clone());
            tokio::spawn(async move {
                for i in 0.. {
                    // A request in memory does not wait for anything by itself.
                    tokio::task::yield_now().await;
                    let change = json!({"spec": {"n": i}});
                    let name = format!("{path}/w{}", (i * 7 + writer * 50) % 200);
                    let kind = "application/merge-patch+json";
                    if send(&server, "PATCH", &name, kind, &change).await.0 == 404 && i > 400 {
                        return;
                    }
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let definition = format!("{DEFINITIONS}/widgets.example.com");
    assert_eq!(delete(&server, &definition).await.0, 200);
    eventually("the definition to go", || async {
        let (code, value) = get(&server, &definition).await;
        (code == 404)
            .then_some(())
            .ok_or(value["status"].to_string())
    })
    .await;
    for writer in writers {
        writer.abort();
    }
    assert_eq!(server.differences(), [""; 0]);
}

/// Large schemas take long to compile, which is when a client could see `Established` and find nothing served.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_definition_that_is_seen_as_established_is_served() {
    let server = start().await;
    let properties: serde_json::Map<String, Value> = (0..500)
        .map(|i| {
            (
                format!("p{i}"),
                json!({"type": "string", "pattern": "^a+$"}),
            )
        })
        .collect();
    for round in 0..5 {
        let plural = format!("kinds{round}s");
        let mut large = definition(&plural, "v1");
        let properties = Value::Object(properties.clone());
        for version in large["spec"]["versions"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            version["schema"]["openAPIV3Schema"]["properties"]["spec"] =
                json!({"type": "object", "properties": properties});
        }
        let mut watch = Watch::open(&server, DEFINITIONS).await;
        let writer = {
            let server = server.clone();
            tokio::spawn(async move { post(&server, DEFINITIONS, &large).await })
        };
        loop {
            let event = watch.next().await.expect("the watch goes on");
            let conditions = event["object"]["status"]["conditions"].to_string();
            let named = event["object"]["spec"]["names"]["plural"] == *plural;
            if named && conditions.contains("InitialNamesAccepted") {
                break;
            }
        }
        let (code, answer) = get(&server, &custom("v1", &plural)).await;
        assert_eq!(code, 200, "in round {round}: {answer}");
        let (code, answer) = writer.await.expect("answered");
        assert_eq!(code, 201, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_served_is_the_newest_schema() {
    let server = start().await;
    create(&server, DEFINITIONS, definition("widgets", "v1")).await;
    let path = format!("{DEFINITIONS}/widgets.example.com");
    for round in 0..20 {
        let writers = (0..4).map(|writer| {
            let (server, path) = (server.clone(), path.clone());
            tokio::spawn(async move {
                let mut changed = definition("widgets", "v1");
                changed["metadata"] = json!({});
                let property = json!({"type": "object", "properties": {format!("p{round}-{writer}"): {"type": "string"}}});
                for version in changed["spec"]["versions"].as_array_mut().into_iter().flatten() {
                    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = property.clone();
                }
                patch(&server, &path, changed).await;
            })
        });
        for writer in futures::future::join_all(writers).await {
            writer.expect("patched");
        }
        let (_, stored) = get(&server, &path).await;
        let properties = &stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
            ["spec"]["properties"];
        let field = properties
            .as_object()
            .and_then(|p| p.keys().next())
            .cloned();
        let field = field.expect("a property");
        let mut widget = named("example.com/v1", "Widgets", &format!("w{round}"));
        widget["spec"] = json!({(field.as_str()): "kept"});
        let made = create(&server, &custom("v1", "widgets"), widget).await;
        assert_eq!(made["spec"][&field], "kept", "in round {round}");
    }
    assert_eq!(server.differences(), [""; 0]);
}
