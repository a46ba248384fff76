//! A write of a Service that a webhook holds: forks neither wait for it nor see what it has reserved.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kubewright_server::{Environment, Server};
use serde_json::json;
use tokio::sync::Notify;

use crate::client::{create, send};
use crate::hooks::Webhook;
use crate::objects::{SERVICES, VALIDATING, post, service};

/// A server whose webhook holds Services that are written by this operation until the sender goes.
async fn holding(
    operation: &str,
) -> (
    Arc<Server>,
    Webhook,
    Arc<Notify>,
    std::sync::mpsc::Sender<()>,
) {
    let server = Arc::new(Server::builder().start().await.expect("starts"));
    create(
        &server,
        SERVICES,
        service("old", json!({"ports": [{"port": 80}]})),
    )
    .await;
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
    let rules = json!([{"operations": [operation], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"]}]);
    let hook = json!({"clientConfig": webhook.client_config(), "rules": rules});
    let configuration = crate::hooks::configuration("ValidatingWebhookConfiguration", "hook", hook);
    create(&server, VALIDATING, configuration).await;
    (server, webhook, asked, let_go)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_fork_has_no_address_of_a_service_that_is_not_stored() {
    let (server, _webhook, asked, let_go) = holding("CREATE").await;
    let spec = json!({"type": "NodePort", "clusterIP": "10.96.0.50", "ports": [{"port": 80, "nodePort": 30080}]});
    let write = {
        let (server, spec) = (server.clone(), spec.clone());
        tokio::spawn(async move { post(&server, SERVICES, &service("held", spec)).await.0 })
    };
    asked.notified().await;
    let fork = server.fork(Environment::system()).await;
    drop(let_go);
    assert_eq!(write.await.expect("answered"), 201);
    let hooks = format!("{VALIDATING}/hook");
    assert_eq!(crate::client::delete(&fork, &hooks).await.0, 200);
    create(&fork, SERVICES, service("other", spec)).await;
    assert_eq!(fork.differences(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_fork_does_not_wait_for_a_webhook() {
    let (server, _webhook, asked, let_go) = holding("UPDATE").await;
    let write = {
        let server = server.clone();
        tokio::spawn(async move {
            let change = json!({"metadata": {"labels": {"a": "b"}}});
            let path = format!("{SERVICES}/old");
            send(
                &server,
                "PATCH",
                &path,
                "application/merge-patch+json",
                &change,
            )
            .await
            .0
        })
    };
    asked.notified().await;
    let fork =
        tokio::time::timeout(Duration::from_secs(5), server.fork(Environment::system())).await;
    drop(let_go);
    assert_eq!(write.await.expect("answered"), 200);
    assert!(fork.is_ok(), "the fork waits for the webhook");
}
