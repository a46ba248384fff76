//! The sample comes up, is changed and goes, once for every single fault.

use k8s_openapi::api::storage::v1::StorageClass;
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_demo::{CloudManager, controller, sample};
use kubewright_sim::{BuiltIn, Campaign, FaultKind, Walk};
use serde_json::json;

fn key() -> Key {
    Key::new("default", "cloudmanager-sample")
}

/// A storage class beside the one that every cluster has.
fn fast() -> StorageClass {
    let class = json!({"metadata": {"name": "fast"}, "provisioner": "sim.kubewright.dev/disk"});
    serde_json::from_value(class).expect("a StorageClass")
}

fn operator(name: &str) -> Campaign {
    Campaign::new(name, |process| {
        process
            .manager()
            .name("CloudManager")
            .controller(controller())
    })
}

fn campaign() -> Campaign {
    operator("cloud-manager")
        // Its workloads come up and go with their owner; it needs nobody else.
        .controllers([
            BuiltIn::Nodes,
            BuiltIn::Scheduler,
            BuiltIn::Deployment,
            BuiltIn::ReplicaSet,
            BuiltIn::GarbageCollector,
            BuiltIn::StatefulSet,
            BuiltIn::Volumes,
        ])
        // A Deployment that is made again meets the ReplicaSet of the one before, and the name in its condition has another hash.
        .mask("status.conditions")
        .install(&CloudManager::crd())
        .step("create", async |user| {
            let mut sample = sample().map_err(Error::msg)?;
            sample.metadata.namespace = Some("default".to_owned());
            user.create(&sample).await?;
            Ok(())
        })
        .step("rename the front", async |user| {
            let rename = |manager: &mut CloudManager| {
                manager.spec.front.deployment.name = "front-renamed".to_owned();
            };
            user.modify(&key(), rename).await?;
            Ok(())
        })
        .step("delete", async |user| {
            user.delete::<CloudManager>(&key()).await
        })
}

#[test]
fn cloud_manager_survives_every_single_fault() {
    campaign().sample(10).check();
}

/// A StatefulSet that is made again at once meets the revision of the one before, which goes at that moment: that is not a
/// collision of hashes.
#[test]
fn what_people_delete_comes_back_as_it_was() {
    campaign().only([FaultKind::HumanDelete]).check();
}

#[test]
fn cloud_manager_survives_several_faults_at_once() {
    campaign().check_seeds(4);
}

#[test]
fn every_property_of_a_cloud_manager_is_changed() {
    let sample = sample().expect("the sample is a CloudManager");
    // A volume of another class has to be there as well, or the database never comes up.
    let operator = operator("cloud-manager-walk").install(&fast());
    let walk = Walk::new::<CloudManager>(operator);
    let report = walk
        .starting_with(&sample)
        // Two parts of one name would be one Deployment.
        .values("spec.front.deployment.name", ["front-a", "front-b"])
        .values(
            "spec.identity.deployment.name",
            ["identity-a", "identity-b"],
        )
        .values("spec.db.statefulSet.storage.class", ["fast", "standard"])
        .sample(2)
        .check();
    assert_eq!(report.changed, report.properties);
}
