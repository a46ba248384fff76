//! Namespaces die with all they contain, pods first.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use kube::api::DeleteParams;
use serde_json::json;

use crate::garbage::{define_fruits, fruit, fruits};
use crate::scene::{all, create, delete, exists, patch, rest, start, there, until};

#[tokio::test(start_paused = true)]
async fn namespace_takes_its_content_with_it() {
    let cluster = start().await;
    define_fruits(&cluster).await;
    let namespaces = all::<Namespace>(&cluster);
    create(&namespaces, json!({"metadata": {"name": "doomed"}})).await;
    create(
        &there::<ConfigMap>(&cluster, "doomed"),
        json!({"metadata": {"name": "a"}}),
    )
    .await;
    let fruits = fruits(&cluster, "doomed");
    create(&fruits, fruit("pear")).await;
    delete(&namespaces, "doomed", DeleteParams::default()).await;
    until("the namespace goes", async || {
        !exists(&namespaces, "doomed").await
    })
    .await;
    create(&namespaces, json!({"metadata": {"name": "doomed"}})).await;
    assert!(!exists(&there::<ConfigMap>(&cluster, "doomed"), "a").await);
    assert!(!exists(&fruits, "pear").await);
}

#[tokio::test(start_paused = true)]
async fn content_waits_for_pods_and_conditions_tell() {
    let cluster = start().await;
    let namespaces = all::<Namespace>(&cluster);
    create(&namespaces, json!({"metadata": {"name": "doomed"}})).await;
    let (pods, secrets) = (
        there::<Pod>(&cluster, "doomed"),
        there::<Secret>(&cluster, "doomed"),
    );
    create(&secrets, json!({"metadata": {"name": "needed"}})).await;
    let pod = json!({
        "metadata": {"name": "held", "finalizers": ["example.com/held"]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    create(&pods, pod).await;
    delete(&namespaces, "doomed", DeleteParams::default()).await;
    rest().await;
    assert!(exists(&secrets, "needed").await, "pods go first");
    let namespace = namespaces.get("doomed").await.expect("held");
    let conditions = namespace
        .status
        .and_then(|s| s.conditions)
        .unwrap_or_default();
    let message = |type_: &str| {
        let found = conditions.iter().find(|c| c.type_ == type_);
        found.and_then(|c| c.message.clone()).unwrap_or_default()
    };
    assert_eq!(
        message("NamespaceContentRemaining"),
        "Some resources are remaining: pods. has 1 resource instances"
    );
    assert_eq!(
        message("NamespaceFinalizersRemaining"),
        "Some finalizers are remaining: example.com/held in 1 resource instances"
    );
    patch(&pods, "held", json!({"metadata": {"finalizers": null}})).await;
    until("the namespace goes", async || {
        !exists(&namespaces, "doomed").await
    })
    .await;
}
