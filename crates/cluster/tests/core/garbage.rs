//! The garbage collector against the real server.

use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PropagationPolicy,
};
use kubewright_cluster::Cluster;
use serde_json::{Value, json};

use crate::scene::{all, create, delete, exists, here, owner, patch, rest, start, there, until};

fn orphan() -> DeleteParams {
    DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    }
}

fn owned(name: &str, owners: &[Value]) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": owners}})
}

/// A config map, a secret that it owns, and a config map that the secret owns.
async fn family(cluster: &Cluster) -> (Api<ConfigMap>, Api<Secret>) {
    let (maps, secrets) = (here::<ConfigMap>(cluster), here::<Secret>(cluster));
    let parent = create(&maps, owned("parent", &[])).await;
    let child = create(&secrets, owned("child", &[owner(&parent)])).await;
    create(&maps, owned("grandchild", &[owner(&child)])).await;
    rest().await;
    (maps, secrets)
}

#[tokio::test(start_paused = true)]
async fn dependents_follow_their_owner() {
    for how in [DeleteParams::background(), DeleteParams::foreground()] {
        let cluster = start().await;
        let (maps, secrets) = family(&cluster).await;
        assert!(exists(&secrets, "child").await && exists(&maps, "grandchild").await);
        delete(&maps, "parent", how).await;
        until("nothing is left", async || {
            !exists(&maps, "parent").await
                && !exists(&secrets, "child").await
                && !exists(&maps, "grandchild").await
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn owner_in_the_foreground_waits_for_its_dependents() {
    let cluster = start().await;
    let (maps, secrets) = family(&cluster).await;
    patch(
        &secrets,
        "child",
        json!({"metadata": {"finalizers": ["example.com/held"]}}),
    )
    .await;
    delete(&maps, "parent", DeleteParams::foreground()).await;
    rest().await;
    let parent = maps.get("parent").await.expect("waits");
    assert_eq!(
        parent.metadata.finalizers.expect("one"),
        ["foregroundDeletion"]
    );
    patch(&secrets, "child", json!({"metadata": {"finalizers": null}})).await;
    until("the parent goes", async || !exists(&maps, "parent").await).await;
}

#[tokio::test(start_paused = true)]
async fn orphans_forget_their_owner() {
    let cluster = start().await;
    let (maps, secrets) = family(&cluster).await;
    delete(&maps, "parent", orphan()).await;
    until("the parent goes", async || !exists(&maps, "parent").await).await;
    rest().await;
    let child = secrets.get("child").await.expect("stays");
    assert_eq!(child.metadata.owner_references.unwrap_or_default(), []);
    assert!(exists(&maps, "grandchild").await);
}

#[tokio::test(start_paused = true)]
async fn dependent_in_another_namespace_is_reported_and_goes() {
    let cluster = start().await;
    create(
        &all::<Namespace>(&cluster),
        json!({"metadata": {"name": "elsewhere"}}),
    )
    .await;
    let parent = create(&here::<ConfigMap>(&cluster), owned("parent", &[])).await;
    let strays = there::<Secret>(&cluster, "elsewhere");
    create(&strays, owned("stray", &[owner(&parent)])).await;
    until("the stray goes", async || !exists(&strays, "stray").await).await;
    rest().await;
    let events = there::<Event>(&cluster, "elsewhere");
    let events = events.list(&ListParams::default()).await.expect("listed");
    let event = events
        .iter()
        .find(|e| e.reason.as_deref() == Some("OwnerRefInvalidNamespace"));
    let message = event.and_then(|e| e.message.clone()).expect("an event");
    let uid = parent.metadata.uid.expect("one");
    assert_eq!(
        message,
        format!(
            "ownerRef [v1/ConfigMap, namespace: elsewhere, name: parent, uid: {uid}] does not exist in namespace \"elsewhere\""
        )
    );
}

#[tokio::test(start_paused = true)]
async fn object_of_the_cluster_with_an_owner_in_a_namespace_stays() {
    let cluster = start().await;
    let maps = here::<ConfigMap>(&cluster);
    let parent = create(&maps, owned("parent", &[])).await;
    let namespaces = all::<Namespace>(&cluster);
    create(&namespaces, owned("stray", &[owner(&parent)])).await;
    delete(&maps, "parent", DeleteParams::background()).await;
    rest().await;
    assert!(
        namespaces
            .get("stray")
            .await
            .expect("stays")
            .metadata
            .deletion_timestamp
            .is_none()
    );
}

pub(crate) fn fruits(cluster: &Cluster, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", "v1", "Fruit");
    let resource = ApiResource::from_gvk_with_plural(&kind, "fruits");
    Api::namespaced_with(cluster.client(), namespace, &resource)
}

pub(crate) async fn define_fruits(cluster: &Cluster) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "metadata": {"name": "fruits.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "fruits", "singular": "fruit", "kind": "Fruit", "listKind": "FruitList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    create(&all::<CustomResourceDefinition>(cluster), definition).await;
}

pub(crate) fn fruit(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Fruit", "metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn kinds_that_come_later_own_and_kinds_that_go_take_what_they_own() {
    let cluster = start().await;
    define_fruits(&cluster).await;
    let (maps, fruits) = (here::<ConfigMap>(&cluster), fruits(&cluster, "default"));
    for name in ["pear", "plum"] {
        let fruit = create(&fruits, fruit(name)).await;
        let reference = json!({
            "apiVersion": "example.com/v1", "kind": "Fruit", "name": name, "uid": fruit.metadata.uid,
        });
        create(&maps, owned(&format!("of-{name}"), &[reference])).await;
    }
    rest().await;
    delete(&fruits, "pear", DeleteParams::background()).await;
    until("what the pear owned goes", async || {
        !exists(&maps, "of-pear").await
    })
    .await;
    assert!(exists(&maps, "of-plum").await);
    let definitions = all::<CustomResourceDefinition>(&cluster);
    delete(&definitions, "fruits.example.com", DeleteParams::default()).await;
    until("what the plum owned goes", async || {
        !exists(&maps, "of-plum").await
    })
    .await;
}
