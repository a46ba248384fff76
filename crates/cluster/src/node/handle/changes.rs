//! What programs let happen to nodes while a cluster runs.

use super::{Command, Nodes, NodesError};
use crate::node::kubelet::eviction::Pressure;
use crate::node::state::{NodeChange, Unready};

impl Nodes {
    /// Lets a node fall silent: it renews nothing, reports nothing and does nothing for its pods.
    ///
    /// # Errors
    /// When there is no such node.
    pub async fn stop(&self, name: &str) -> Result<(), NodesError> {
        self.change(name, NodeChange::Stop).await
    }

    /// Lets a silent node go on. One that was shut down is switched on, as by [`reboot`](Self::reboot).
    ///
    /// # Errors
    /// When there is no such node.
    pub async fn start(&self, name: &str) -> Result<(), NodesError> {
        self.change(name, NodeChange::Start).await
    }

    /// Makes a node low on these from now on, or on nothing. It reports the conditions at once, takes no pods that a
    /// kubelet would not take, and every ten seconds evicts the pod that a kubelet would evict first.
    ///
    /// # Errors
    /// When there is no such node.
    pub async fn pressure(
        &self,
        name: &str,
        pressures: impl IntoIterator<Item = Pressure>,
    ) -> Result<(), NodesError> {
        let pressures = pressures.into_iter().collect();
        self.change(name, NodeChange::Press(pressures)).await
    }

    /// Makes a node unwell without falling silent: it goes on renewing its lease and looking after its pods, and reports
    /// `Ready=False` with this reason and message at once. It stays so, also when it is started again, until
    /// [`ready`](Self::ready).
    ///
    /// # Errors
    /// When there is no such node.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kubewright_cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().nodes(1).start().await?;
    /// let message = "container runtime network not ready: NetworkReady=false";
    /// cluster.nodes().not_ready("node-1", "KubeletNotReady", message).await?;
    /// // The node is tainted `node.kubernetes.io/not-ready` now, and its pods leave when their tolerations run out.
    /// cluster.nodes().ready("node-1").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn not_ready(
        &self,
        name: &str,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Result<(), NodesError> {
        let unready = Unready {
            reason: reason.into(),
            message: message.into(),
        };
        self.change(name, NodeChange::NotReady(unready)).await
    }

    /// Takes back [`not_ready`](Self::not_ready): the node reports at once that it is ready.
    ///
    /// # Errors
    /// When there is no such node.
    pub async fn ready(&self, name: &str) -> Result<(), NodesError> {
        self.change(name, NodeChange::Ready).await
    }

    /// Starts the machine of a node again. It reports another `bootID` and the event `Rebooted`; everything that ran on it
    /// has ended with exit code 255, and comes back in a new sandbox, with another address, as far as the restart policy of
    /// its pod says so. A node that was silent speaks again.
    ///
    /// # Errors
    /// When there is no such node.
    pub async fn reboot(&self, name: &str) -> Result<(), NodesError> {
        self.change(name, NodeChange::Reboot).await
    }

    /// Shuts a node down gracefully. It reports at once that it is not ready and takes no more pods; its pods have up to
    /// twenty seconds to end, critical ones ten more after that, and fail with the reason `Terminated`. Then the machine is
    /// off: the node is silent until it is [started](Self::start) again.
    ///
    /// # Errors
    /// When there is no such node.
    pub async fn shut_down(&self, name: &str) -> Result<(), NodesError> {
        self.change(name, NodeChange::ShutDown).await
    }

    async fn change(&self, name: &str, change: NodeChange) -> Result<(), NodesError> {
        self.ask(|reply| Command::Change(name.to_owned(), change, reply))
            .await
    }
}
