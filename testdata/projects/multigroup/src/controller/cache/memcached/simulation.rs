//! The controller through every single fault: crashes, lost answers, refusals, watches that break, views of the past.
//! `kubewright simulate` runs this with progress, and `--full` runs every plan.

use kubewright::testing::sim::{BuiltIn, Campaign, Walk};

use super::memcached;
use crate::api::cache::v1alpha1::memcached::Memcached;

/// Runs the controller in virtual time, with what Kubernetes itself does for a Deployment.
fn operator(name: &str) -> Campaign {
    let campaign = Campaign::new(name, |process| {
        let manager = process.manager().name("memcached");
        manager.controller(memcached())
    });
    let campaign = campaign.controllers([
        BuiltIn::Nodes,
        BuiltIn::Scheduler,
        BuiltIn::Deployment,
        BuiltIn::ReplicaSet,
        BuiltIn::GarbageCollector,
    ]);
    // A Deployment that is made again names another ReplicaSet in its conditions.
    campaign.mask_of("deployments.apps", "status.conditions")
}

/// One Memcached is created, changed and deleted, once without faults and once for each fault.
#[test]
fn survives_every_single_fault() {
    let walk = Walk::new::<Memcached>(operator("memcached"));
    walk.into_campaign(2).sample(24).check();
}

/// Each property is changed and changed back. The report names those that have no effect.
#[test]
fn every_property_can_be_changed() {
    let walk = Walk::new::<Memcached>(operator("memcached-walk"));
    walk.sample(1).check();
}
