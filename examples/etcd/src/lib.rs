//! EtcdCluster: an operator that knows etcd.
//!
//! People change `size`; the operator adds a member to etcd before its pod starts, as a learner, lets it vote when it has
//! caught up, removes members before their pods, replaces dead ones while there is a quorum, upgrades one pod after the other,
//! and takes snapshots. `plan` decides, and is pure; everything else reads, asks it, and does one step.

pub mod api;
mod backup;
pub mod certificates;
pub mod etcd;
mod names;
mod objects;
mod observe;
pub mod plan;
mod reconcile;
mod start;
mod status;
pub mod transport;
pub mod version;
pub mod webhook;

use std::sync::Arc;

pub use api::{EtcdCluster, EtcdClusterSpec, EtcdClusterStatus};
pub use reconcile::{EtcdClusters, Members, controller};

/// Gives a manager what the controller needs: members are reached over the network.
pub fn setup(manager: kubewright::Manager) -> kubewright::Manager {
    let members = etcd::Gateway(transport::Network);
    manager.state(Members(Arc::new(members)))
}
