//! Fault simulation of Kubernetes operators: `cargo test` finds the bugs that production finds.
//!
//! A [`Campaign`] runs an operator through a workload on a cluster in the process. The first run has no faults and is the
//! reference. Then the same workload runs once for every single fault that the reference has a place for: the process dies
//! before and after each write, answers get lost, the server refuses, watches break and expire, events are missed or late,
//! the process comes up with a view of the past, people delete and edit what the operator made. After every step the state
//! has to be that of the reference; see [`Violation`] for all that is checked.
//!
//! ```
//! use std::sync::Arc;
//!
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kubewright_runtime::{Context, Controller, Error, Outcome, from_fn};
//! use kubewright_sim::{Campaign, FaultKind};
//!
//! // For each Secret a ConfigMap of the same name.
//! async fn copy(secret: Arc<Secret>, cx: Context) -> Result<Outcome, Error> {
//!     if cx.client().get::<ConfigMap>(cx.key()).await?.is_none() {
//!         let mut copy = ConfigMap::default();
//!         copy.metadata.name = secret.metadata.name.clone();
//!         copy.metadata.namespace = secret.metadata.namespace.clone();
//!         cx.client().create(&copy).await?;
//!     }
//!     Ok(Outcome::done())
//! }
//!
//! Campaign::new("copy", |process| {
//!     let controller = Controller::of::<Secret>("copy").reconciler(from_fn(copy));
//!     process.manager().name("copy").controller(controller)
//! })
//!     .cluster(|cluster| cluster.without_controllers())
//!     .step("create", async |user| {
//!         let mut secret = Secret::default();
//!         secret.metadata.name = Some("a".to_owned());
//!         secret.metadata.namespace = Some("default".to_owned());
//!         user.create(&secret).await?;
//!         Ok(())
//!     })
//!     .only([FaultKind::CrashAfter, FaultKind::Refuse])
//!     .check();
//! ```
//!
//! A [`Walk`] changes every property of a kind after its schema, and its changes can be the workload of a campaign. A
//! [`Program`] is an operator in any language, behind a kubeconfig and with a real clock.
//!
//! # How a run is made
//!
//! Every run has a runtime of its own with one thread, whose clock stands still while anything can go on: a minute of waiting
//! costs nothing. Names, uids and jitter come from a seed. So the same plan gives the same run, in every process, and a
//! failure is repeated by its token: `KUBEWRIGHT_REPLAY='...' cargo test name`. Code that iterates a `HashMap` or reads the
//! machine's clock breaks that; the campaign runs its reference twice and names the first event in which they differ.
//!
//! What passes gates is every call of the API (through the manager's client or any clone of its `kube::Client`), every event
//! of a watch, cached reads and reconciles, and calls of an [`ExternalSystem`]. Webhooks that the API server would have to
//! call over a socket are not simulated.

mod base;
mod campaign;
mod director;
mod external;
mod generated;
mod hint;
mod identity;
mod life;
mod normal;
mod oracle;
mod outage;
mod pace;
mod page;
mod plan;
mod planner;
mod process;
mod program;
mod progress;
mod replay;
mod report;
mod run;
mod sample;
mod sheet;
mod state;
mod target;
mod threads;
mod trace;
mod user;
mod walk;
mod watch;
mod wire;
mod workload;

pub use campaign::Campaign;
pub use external::{External, ExternalError, ExternalSystem};
pub use identity::{EventId, TokenError, WriteId};
pub use normal::Difference;
pub use oracle::Violation;
pub use plan::{Fault, FaultKind, Plan};
pub use process::Process;
pub use program::Program;
pub use report::{Failure, Report};
pub use state::{ObjectId, State};
pub use trace::{Entry, Note, Trace, Wrote};
pub use user::{User, UserObject};
pub use walk::{Walk, WalkFailure, WalkReport};
pub use workload::WorkloadError;

pub use kubewright_cluster::BuiltIn;
