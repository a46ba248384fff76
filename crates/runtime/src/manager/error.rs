//! Why a manager ended.

use std::time::Duration;

use super::part::Ended;
use crate::lease::LeaseOptionsError;
use crate::serving::BindError;

/// Why a manager ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// No cluster could be found.
    #[error(
        "no cluster: neither a kubeconfig nor a service account can be used; name one with KUBECONFIG, or start one with \
         `kubewright up`, which writes .kubewright/kubeconfig"
    )]
    NoCluster(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No client could be made.
    #[error("the configuration of the cluster cannot be used")]
    NoClient(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Two controllers have the same name, which is what tells them apart in metrics, logs and causes.
    #[error("two controllers are called {name:?}")]
    SameName {
        /// The name.
        name: String,
    },
    /// Two further clusters have the same name.
    #[error("two clusters are called {name:?}")]
    SameCluster {
        /// The name.
        name: String,
    },
    /// A further cluster has an empty name.
    #[error("a further cluster needs a name, and one was given an empty one")]
    UnnamedCluster,
    /// A part failed, panicked, or ended although nobody had asked it to.
    #[error("{part} {ended}")]
    Part {
        /// The name of the part.
        part: String,
        /// How it ended.
        ended: Ended,
    },
    /// Parts did not end in time. What they were doing was dropped, unless it blocks its thread.
    #[error("{parts} did not end within {waited:?}")]
    Shutdown {
        /// The names of the parts.
        parts: String,
        /// How long the whole shutdown was given.
        waited: Duration,
    },
    /// A second signal came.
    #[error("asked to stop twice; what was running was not waited for")]
    Aborted,
    /// An address could not be listened on.
    #[error("cannot serve {what}")]
    Serve {
        /// What was to be served.
        what: &'static str,
        /// Why not.
        #[source]
        source: BindError,
    },
    /// The times of the election do not fit together.
    #[error("the election cannot be held")]
    Election(#[source] LeaseOptionsError),
    /// The times of the sharing do not fit together.
    #[error("the objects cannot be shared")]
    Sharding(#[source] LeaseOptionsError),
    /// This replica's lease was not renewed in time: others take its objects over.
    #[error("the lease of this replica was lost")]
    ShardsLost,
    /// Somebody else leads now.
    #[error("leadership was lost")]
    LeadershipLost,
}
