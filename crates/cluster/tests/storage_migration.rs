//! StorageVersionMigrations: objects are stored at the new version, and the definition forgets the old one.

mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::storagemigration::v1::StorageVersionMigration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use kubewright_cluster::{Clock, Cluster};
use kubewright_server::Authorization;
use kubewright_testing::{Fault, Verb, Wire};
use serde_json::{Value, json};
use tokio::time::sleep;

use world::{change, condition, create, here, is_true, start, until};

const NAME: &str = "widgets.example.com";
/// More than are read at once.
const MANY: usize = 520;

fn versions(stored: &str, names: &[&str]) -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let versions = names.iter().map(|name| {
        json!({"name": name, "served": true, "storage": *name == stored, "schema": {"openAPIV3Schema": open}})
    });
    versions.collect()
}

fn definitions(cluster: &Cluster) -> Api<CustomResourceDefinition> {
    Api::all(cluster.client())
}

fn migrations(cluster: &Cluster) -> Api<StorageVersionMigration> {
    Api::all(cluster.client())
}

fn widgets(cluster: &Cluster) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
    Api::default_namespaced_with(cluster.client(), &ApiResource::from_gvk(&kind))
}

/// So many objects that are stored at `v1`, of a definition that stores `v2` now.
async fn stored_at_the_old_version(cluster: &Cluster, count: usize) {
    let names = json!({"kind": "Widget", "plural": "widgets"});
    let spec = json!({"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions("v1", &["v1", "v2"])});
    create(
        &definitions(cluster),
        json!({"metadata": {"name": NAME}, "spec": spec}),
    )
    .await;
    for number in 0..count {
        let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": format!("w{number}")}, "spec": {"size": number}});
        create(&widgets(cluster), widget).await;
    }
    let spec = json!({"spec": {"versions": versions("v2", &["v1", "v2"])}});
    change(&definitions(cluster), NAME, spec).await;
}

async fn migrate(cluster: &Cluster, name: &str, (group, plural): (&str, &str)) {
    let resource = json!({"group": group, "resource": plural});
    let migration = json!({"metadata": {"name": name}, "spec": {"resource": resource}});
    create(&migrations(cluster), migration).await;
}

/// The migration once it has ended and says so everywhere.
async fn ended(cluster: &Cluster, name: &str) -> Value {
    until(&migrations(cluster), name, |it| {
        condition(it, "Running")["status"] == "False"
    })
    .await
}

async fn all_widgets(cluster: &Cluster) -> Vec<DynamicObject> {
    let listed = widgets(cluster).list(&ListParams::default()).await;
    listed.expect("an answer").items
}

#[tokio::test(start_paused = true)]
async fn objects_are_written_unchanged_and_the_old_version_can_go() {
    let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse().expect("a moment"));
    let builder = Cluster::builder().clock(clock).seed(7);
    let builder = builder.authorization(Authorization::Rbac);
    let cluster = builder.start().await.expect("a cluster starts");
    stored_at_the_old_version(&cluster, MANY).await;
    let before = all_widgets(&cluster).await;
    let only_new = json!({"spec": {"versions": versions("v2", &["v2"])}});
    let refused = definitions(&cluster)
        .patch(
            NAME,
            &PatchParams::default(),
            &Patch::Merge(only_new.clone()),
        )
        .await;
    let refused = refused.expect_err("objects are stored at v1").to_string();
    assert!(
        refused.contains("must remain in spec.versions"),
        "{refused}"
    );

    migrate(&cluster, "once", ("example.com", "widgets")).await;
    let once = ended(&cluster, "once").await;
    let succeeded = condition(&once, "Succeeded");
    assert_eq!(succeeded["reason"], "StorageVersionMigrationSucceeded");
    assert_eq!(condition(&once, "Running")["reason"], "MigrationCompleted");
    assert!(once["status"]["resourceVersion"].is_string());
    let definition = until(&definitions(&cluster), NAME, Value::is_object).await;
    assert_eq!(definition["status"]["storedVersions"], json!(["v2"]));
    let migrating = condition(&definition, "StorageMigrating");
    assert_eq!(migrating["reason"], "MigrationSucceeded", "{migrating}");
    assert!(is_true(&definition, "Established"));
    let after = all_widgets(&cluster).await;
    assert_eq!(after.len(), MANY);
    for (old, new) in before.iter().zip(&after) {
        assert_eq!((old.name_any(), old.uid()), (new.name_any(), new.uid()));
        assert_eq!(old.data, new.data);
        assert_eq!(old.metadata.managed_fields, new.metadata.managed_fields);
        assert_ne!(old.resource_version(), new.resource_version());
    }

    // Nothing is stored at another version any more, so nothing is written.
    migrate(&cluster, "twice", ("example.com", "widgets")).await;
    assert!(is_true(&ended(&cluster, "twice").await, "Succeeded"));
    let again = all_widgets(&cluster).await;
    let version = |objects: &[DynamicObject]| objects[0].resource_version();
    assert_eq!(version(&again), version(&after));
    change(&definitions(&cluster), NAME, only_new).await;
}

#[tokio::test(start_paused = true)]
async fn migration_that_is_refused_an_object_fails_and_keeps_the_old_version() {
    let cluster = start().await;
    stored_at_the_old_version(&cluster, 3).await;
    let rules = json!([{"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["widgets"]}]);
    let policy = json!({"metadata": {"name": "frozen"}, "spec": {"matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "object.metadata.name != 'w1'", "message": "w1 is frozen"}]}});
    create::<ValidatingAdmissionPolicy>(&Api::all(cluster.client()), policy).await;
    let binding = json!({"metadata": {"name": "frozen"}, "spec": {"policyName": "frozen", "validationActions": ["Deny"]}});
    create::<ValidatingAdmissionPolicyBinding>(&Api::all(cluster.client()), binding).await;
    sleep(Duration::from_secs(2)).await;
    migrate(&cluster, "once", ("example.com", "widgets")).await;
    let once = ended(&cluster, "once").await;
    let failed = condition(&once, "Failed");
    assert_eq!(failed["reason"], "StorageVersionMigrationFailed");
    let message = failed["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("migration encountered unhandled error: "),
        "{message}"
    );
    assert!(message.contains("w1 is frozen"), "{message}");
    let definition = until(&definitions(&cluster), NAME, Value::is_object).await;
    assert_eq!(definition["status"]["storedVersions"], json!(["v1", "v2"]));
    assert_eq!(
        condition(&definition, "StorageMigrating")["reason"],
        "MigrationFailed"
    );
}

#[tokio::test(start_paused = true)]
async fn built_in_resources_migrate_and_those_that_nobody_serves_fail_after_a_minute() {
    let cluster = start().await;
    let maps = here::<ConfigMap>(&cluster);
    create(
        &maps,
        json!({"metadata": {"name": "a"}, "data": {"k": "v"}}),
    )
    .await;
    let before = maps.get("a").await.expect("it is there");
    migrate(&cluster, "maps", ("", "configmaps")).await;
    assert!(is_true(&ended(&cluster, "maps").await, "Succeeded"));
    assert_eq!(maps.get("a").await.expect("it is there"), before);
    migrate(&cluster, "early", ("example.com", "widgets")).await;
    migrate(&cluster, "lost", ("example.com", "gears")).await;
    sleep(Duration::from_secs(30)).await;
    stored_at_the_old_version(&cluster, 1).await;
    assert!(is_true(&ended(&cluster, "early").await, "Succeeded"));
    let lost = until(&migrations(&cluster), "lost", |it| is_true(it, "Failed")).await;
    let message = "migration encountered unhandled error: resource does not exist in discovery";
    assert_eq!(condition(&lost, "Failed")["message"], message);
}

#[tokio::test(start_paused = true)]
async fn writes_that_fail_for_the_moment_are_tried_again() {
    let line: Arc<Mutex<Option<Wire>>> = Arc::default();
    let slot = line.clone();
    let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse().expect("a moment"));
    let builder = Cluster::builder()
        .clock(clock)
        .seed(7)
        .line(move |service| {
            let wire = Wire::new(service);
            *slot.lock().expect("not poisoned") = Some(wire.clone());
            wire.client()
        });
    let cluster = builder.start().await.expect("a cluster starts");
    stored_at_the_old_version(&cluster, 9).await;
    let wire = line.lock().expect("not poisoned").take();
    let wire = wire.expect("controllers are connected");
    wire.plan(|call| match (call.verb, call.number % 3) {
        (Verb::Patch, 0) => Fault::Refuse {
            code: 503,
            reason: "ServiceUnavailable",
        },
        (Verb::Patch, 1) => Fault::LoseAnswer,
        (Verb::List, 0) => Fault::LoseRequest,
        _ => Fault::None,
    });
    migrate(&cluster, "once", ("example.com", "widgets")).await;
    assert!(is_true(&ended(&cluster, "once").await, "Succeeded"));
    let definition = until(&definitions(&cluster), NAME, Value::is_object).await;
    assert_eq!(definition["status"]["storedVersions"], json!(["v2"]));
}
