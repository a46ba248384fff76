//! For tests of operators: the transport between clients and an API server, with the faults that real networks have.
//!
//! ```
//! use std::time::Duration;
//!
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright_server::Server;
//! use kubewright_testing::{Fault, Verb, Wire};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder().start().await?;
//! let wire = Wire::new(server.service());
//! // The answer of the first creation is lost, although the server has done it.
//! wire.plan(|call| match (call.verb, call.number) {
//!     (Verb::Create, 1) => Fault::LoseAnswer,
//!     _ => Fault::None,
//! });
//! wire.delay_watches(|| Duration::from_secs(2));
//! let maps = kube::Api::<ConfigMap>::default_namespaced(wire.client());
//! let map = ConfigMap { metadata: kube::core::ObjectMeta { name: Some("a".into()), ..Default::default() }, ..Default::default() };
//! assert!(maps.create(&Default::default(), &map).await.is_err());
//! assert!(maps.get("a").await.is_ok());
//! # Ok(())
//! # }
//! ```

mod access;
mod body;
mod call;
mod eventually;
mod permissions;
pub mod rbac;
mod wire;

pub use access::Access;
pub use body::Break;
pub use call::{Call, Exchange, Fault, Verb};
pub use eventually::{limit, seen, until, within};
pub use permissions::{Permission, RoleUse};
pub use wire::Wire;
