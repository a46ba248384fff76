//! Why a manager ended.

use std::time::Duration;

use crate::Error;
use crate::lease::LeaseOptionsError;
use crate::serving::BindError;

/// Why a manager ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// No cluster could be found.
    #[error("no cluster: neither a kubeconfig nor a service account was found")]
    NoCluster(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No client could be made.
    #[error("the configuration of the cluster cannot be used")]
    NoClient(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A part of it failed.
    #[error("{part} failed: {}", .error.report())]
    Part {
        /// Which.
        part: String,
        /// Why.
        error: Error,
    },
    /// A part did not end in time.
    #[error("{parts} did not end within {waited:?}")]
    Shutdown {
        /// Which.
        parts: String,
        /// How long they were given.
        waited: Duration,
    },
    /// A second signal came.
    #[error("told to stop twice; what was running was not waited for")]
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
    /// Somebody else leads now.
    #[error("leadership was lost")]
    LeadershipLost,
}
