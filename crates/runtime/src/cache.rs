//! What the cache of a manager holds: configured once, for controllers, watches, mappers and reads alike.
//!
//! ```
//! use k8s_openapi::api::core::v1::{Event, Pod, Secret};
//! use kubewright_runtime::cache::{CacheOptions, CachePolicy};
//!
//! let cache = CacheOptions::new()
//!     .namespaces(["team-a", "team-b"])
//!     .policy(CachePolicy::of::<Secret>().labels("app.kubernetes.io/managed-by=me").without("data"))
//!     .policy(CachePolicy::of::<Pod>().metadata())
//!     .policy(CachePolicy::of::<Event>().uncached());
//! # let _ = cache;
//! ```
//!
//! It is given to [`Manager::cache`](crate::Manager::cache), or to [`ClientBuilder::cache`](crate::client::ClientBuilder::cache).
//! A controller or a watch with a [`Scope`] of its own sees a part of what the cache holds; one whose namespace the cache
//! does not hold is an error when it starts.

mod filter;
mod policy;

pub(crate) use filter::{Filter, Narrow};
pub use policy::{CacheOptions, CachePolicy};
pub(crate) use policy::{Extent, Resolved, ResourceId};

/// Why a kind cannot be cached, watched or read in the way that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PolicyError(String);

/// Why the options of a cache cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CacheMisuse {
    /// The cache has been used: its options cannot change any more.
    #[error("the options of the cache have to be set before the client is used")]
    InUse,
    /// Options ask for more than earlier ones allow.
    #[error(
        "the options of the cache ask for {}, but it was limited to the namespaces {limit}, by `--namespace` or \
         `WATCH_NAMESPACE` for example", asked_for(.wanted)
    )]
    Wider {
        /// The namespaces that are asked for; empty for all.
        wanted: String,
        /// The namespaces that there may be.
        limit: String,
    },
}

fn asked_for(namespaces: &str) -> String {
    if namespaces.is_empty() {
        "all namespaces".to_owned()
    } else {
        format!("the namespaces {namespaces}")
    }
}

impl PolicyError {
    pub(crate) fn new(problem: impl std::fmt::Display) -> Self {
        Self(problem.to_string())
    }
}

#[cfg(doc)]
use crate::Scope;
