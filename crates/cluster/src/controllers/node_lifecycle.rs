//! The node lifecycle controller: notices nodes that fall silent, taints them, and lets their pods go.
//!
//! A node is known to live by its lease and its reports. One that is silent for longer than the grace period turns
//! `Ready=Unknown` and gets the taints `unreachable`; pods leave when their tolerations run out. Taints that anybody else
//! sets with the effect `NoExecute` work in the same way. Nodes of a zone are given up one by one, and none is while no
//! node of the cluster is ready ([`zones`]). Deliberately absent: collecting the pods of nodes that are no
//! more, which is another controller's.

mod evictions;
mod health;
mod looks;
mod news;
mod shell;
mod writes;
mod zones;

#[cfg(test)]
mod tests;

use std::time::Duration;

use kubewright_runtime::{Client, Environment};
use tokio_util::sync::CancellationToken;

/// Where leases of nodes are.
const LEASES: &str = "kube-node-lease";

/// Marks nodes that are silent as unreachable and evicts their pods.
#[derive(Debug, Clone)]
#[must_use]
#[non_exhaustive]
pub struct NodeLifecycle {
    /// How long a node may be silent.
    pub grace: Duration,
    /// How often nodes are looked at, at most.
    pub period: Duration,
}

impl Default for NodeLifecycle {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(50),
            period: Duration::from_secs(5),
        }
    }
}

/// Why the controller does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeLifecycleError {
    /// Something cannot be watched.
    #[error("nodes, leases or pods cannot be watched")]
    Watch(#[source] kubewright_cache::SyncError),
    /// The informers have stopped.
    #[error("the informers have stopped")]
    Stopped,
}

impl NodeLifecycle {
    /// A controller with the times of a real cluster.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long a node may be silent.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Watches over nodes until it is cancelled.
    ///
    /// # Errors
    /// When nodes, leases or pods cannot be watched.
    pub async fn run(
        self,
        client: Client,
        environment: Environment,
        cancel: CancellationToken,
    ) -> Result<(), NodeLifecycleError> {
        shell::run(self, client, environment, cancel).await
    }
}
