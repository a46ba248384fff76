//! Forks and restores: what was compiled of other objects is not in force.

use kubewright_server::{Environment, Server};
use serde_json::json;

use crate::client::create;
use crate::objects::{CONFIG_MAPS, VALIDATING, config_map, post};

fn configuration(message: &str) -> serde_json::Value {
    // Port 1 refuses connections at once; the policy decides what that means.
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [{
            "name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:1/"}, "failurePolicy": message,
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        }],
    })
}

#[tokio::test]
async fn a_restored_webhook_replaces_one_of_the_same_name_and_revision() {
    let server = Server::builder().start().await.expect("starts");
    let fork = server.fork(Environment::system()).await;
    create(&server, VALIDATING, configuration("Ignore")).await;
    create(&server, CONFIG_MAPS, config_map("a")).await;
    create(&fork, VALIDATING, configuration("Fail")).await;
    let snapshot = fork.snapshot().await;
    server.restore(&snapshot).await.expect("in memory");
    let (code, answer) = post(&server, CONFIG_MAPS, &config_map("b")).await;
    assert_eq!(code, 500, "the restored webhook cannot be called: {answer}");
    assert_eq!(server.differences(), [""; 0]);
}
