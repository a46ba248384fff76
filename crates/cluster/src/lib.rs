//! A cluster in the process: API server, built-in controllers, simulated nodes.
//!
//! ```
//! use k8s_openapi::api::core::v1::ServiceAccount;
//! use kube::Api;
//! use kubewright_cluster::Cluster;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let cluster = Cluster::builder().start().await?;
//! let accounts: Api<ServiceAccount> = Api::default_namespaced(cluster.client());
//! assert!(accounts.get_opt("default").await?.is_some());
//!
//! let other = cluster.fork().await?; // the same, and from now on independent
//! # drop(other);
//! cluster.stop().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The controllers are written with `kubewright-runtime` and use nothing that an operator could not use.

mod agents;
mod builder;
mod clock;
mod cluster;
mod controllers;
mod events;
mod identity;
mod kinds;
mod metrics;
mod network;
pub mod node;
mod pods;
mod portion;
pub mod scheduler;
mod writes;

pub use builder::{Builder, StartError};
pub use clock::Clock;
pub use cluster::{Cluster, Snapshot};
pub use controllers::BuiltIn;
pub use controllers::node_lifecycle::{NodeLifecycle, NodeLifecycleError};
pub use kubewright_proxy::{Ipv4Range, LoopbackNetwork};
pub use metrics::{Measured, MetricError, Metrics};
pub use node::{NodeSpec, Nodes, NodesOptions};
pub use scheduler::Scheduler;
