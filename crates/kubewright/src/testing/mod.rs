//! For tests of an operator: the whole program at work on a cluster in the process.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright::prelude::*;
//! use kubewright::testing::World;
//!
//! # async fn test() {
//! let world = World::start().await;
//! let key = Key::new("default", "settings");
//! world.until(&key, |map: Option<&ConfigMap>| map.is_some()).await;
//! # }
//! ```
//!
//! The operator runs as it will in production: with a service account and the roles that are generated from its code. A test that
//! needs more says so with [`World::builder`]: a clock, a seed, nodes, faults, other people's kinds, a role that is written by hand.
//! What a wait did not see in time it explains: the object, its conditions and events, the last reconciles and why they ran, the
//! last requests that were refused.

mod builder;
mod install;
mod objects;
mod operator;
mod report;
mod role;
mod show;
mod wait;
mod work;
mod world;

use std::path::Path;

use kube::Resource;
use kubewright_manifests::{layout, sample};
use serde::de::DeserializeOwned;

use crate::registered;

pub use builder::Builder;
pub use install::install_here;
pub use kubewright_cluster::{Clock, Cluster, NodeSpec, NodesOptions};
pub use kubewright_sim as sim;
pub use kubewright_testing::rbac::{self, Grant};
pub use kubewright_testing::{
    Access, Break, Call, Exchange, Fault, Permission, RoleUse, Verb, Wire,
};
pub use work::Mark;
pub use world::World;

/// A valid object of a registered kind, made from its schema. One of a namespace is in `default`.
///
/// # Panics
/// When the kind is not registered, or its type and its schema contradict each other.
pub fn sample_of<K>(name: &str) -> K
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let inventory = registered::inventory();
    let mut definitions = inventory.definitions.iter();
    let definition = definitions
        .find(|it| it.spec.names.kind == K::kind(&()) && it.spec.group == K::group(&()))
        .expect("the kind is registered");
    let mut object = sample::of(definition, &K::version(&())).expect("a sample can be made");
    object["metadata"]["name"] = name.into();
    if definition.spec.scope == "Namespaced" {
        object["metadata"]["namespace"] = "default".into();
    }
    serde_json::from_value(object).expect("the type and its schema agree")
}

/// Fails when a generated file of the project in this folder is not what this program says.
///
/// # Panics
/// When one is not, with their names and what to do.
pub fn assert_generated(project: impl AsRef<Path>) {
    let stale = layout::stale(project.as_ref(), &registered::inventory());
    let stale = stale.expect("the project can be read");
    assert!(stale.is_empty(), "run `kubewright generate`: {stale:?}");
}
