//! The controller through every single fault: crashes, lost answers, refusals, watches that break, views of the past.
//! `kubewright simulate` runs this with progress, and `--full` runs every plan.

use kubewright::testing::sim::{BuiltIn, Campaign, Walk};

use super::captain;
use crate::api::crew::v1::captain::Captain;

/// Runs the controller in virtual time, on an API server with the garbage collector: a run costs milliseconds. Name more built-in
/// controllers when it needs what Kubernetes itself does, such as Deployments that become ready.
fn operator(name: &str) -> Campaign {
    let campaign = Campaign::new(name, |process| {
        let manager = process.manager().name("captain");
        manager.controller(captain())
    });
    campaign.controllers([BuiltIn::GarbageCollector])
}

/// One Captain is created, changed and deleted, once without faults and once for each fault.
#[test]
fn survives_every_single_fault() {
    let walk = Walk::new::<Captain>(operator("captain"));
    walk.into_campaign(2).sample(24).check();
}

/// Each property is changed and changed back. The report names those that have no effect.
#[test]
fn every_property_can_be_changed() {
    let walk = Walk::new::<Captain>(operator("captain-walk"));
    walk.sample(1).check();
}
