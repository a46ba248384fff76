//! The built-in controllers that own objects, each as the operator of a campaign: it runs in a process of its own, which is
//! killed, refused, cut off and shown the past, over a cluster that has all the others.
//!
//! A test runs some plans; `KUBEWRIGHT_SIM=full` runs all of them.

mod owners;
mod pods;
mod workloads;

use kubewright_cluster::BuiltIn;
use kubewright_sim::Campaign;
use serde_json::Value;

/// What pods need to run, and what objects need to go.
const REST: [BuiltIn; 5] = [
    BuiltIn::Nodes,
    BuiltIn::Scheduler,
    BuiltIn::ServiceAccount,
    BuiltIn::GarbageCollector,
    BuiltIn::ReplicaSet,
];

/// A campaign with one built-in controller as the operator.
fn campaign(name: &'static str, part: BuiltIn) -> Campaign {
    Campaign::new(name, move |process| {
        let manager = process.manager().name("kube-controller-manager");
        let manager = process.cluster().add_controllers(manager, [part]);
        manager.expect("the cluster has a certificate authority")
    })
    .controllers(REST.into_iter().filter(move |other| *other != part))
}

/// An object from JSON.
fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("the object is of its type")
}
