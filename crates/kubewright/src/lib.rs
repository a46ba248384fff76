//! Build, run and prove Kubernetes operators.
//!
//! A user writes a [`Reconciler`] and gives it to a [`Manager`]:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use k8s_openapi::ByteString;
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kubewright::prelude::*;
//!
//! /// Keeps a Secret for each ConfigMap.
//! struct Copier;
//!
//! impl Reconciler<ConfigMap> for Copier {
//!     async fn reconcile(&self, config: Arc<ConfigMap>, cx: &Context) -> Result<Outcome> {
//!         let data = config.data.iter().flatten();
//!         let data = data.map(|(name, text)| (name.clone(), ByteString(text.clone().into_bytes())));
//!         // A Secret of that name that is not the ConfigMap's is left alone: that is an error, and nothing is sent.
//!         let applied = cx.client().apply_owned(&config, cx.key(), |secret: &mut Secret| {
//!             secret.data = Some(data.collect());
//!         });
//!         if applied.await?.change == Change::Created {
//!             cx.event(&config, EventKind::Normal, "Copied", "made a Secret of it");
//!         }
//!         Ok(Outcome::done())
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     let copier = Controller::of::<ConfigMap>("copier").owns::<Secret>().reconciler(Copier);
//!     Manager::from_env().await?.controller(copier).run().await?;
//!     Ok(())
//! }
//! ```
//!
//! A whole operator registers its kinds and controllers where they are written, and its `main` is one line: flags, logs,
//! probes, metrics and leader election come with [`operator!`].
//!
//! ```standalone_crate
//! use std::sync::Arc;
//!
//! use k8s_openapi::api::apps::v1::Deployment;
//! use kube::CustomResource;
//! use kubewright::prelude::*;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! /// A book of guests.
//! #[kubewright::api]
//! #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
//! #[kube(group = "webapp.my.domain", version = "v1", kind = "Guestbook", namespaced)]
//! pub struct GuestbookSpec {
//!     /// How many pages it has; even, as they are printed on both sides.
//!     #[k8s(min = 2, multiple_of = 2, default = 2)]
//!     pub pages: i32,
//!     /// Who signs it.
//!     #[k8s(immutable)]
//!     pub owner: Option<String>,
//! }
//!
//! struct GuestbookReconciler;
//!
//! #[kubewright::rbac(groups = "", resources = "configmaps", verbs = "get")]
//! impl Reconciler<Guestbook> for GuestbookReconciler {
//!     async fn reconcile(&self, book: Arc<Guestbook>, cx: &Context) -> Result<Outcome> {
//!         Ok(Outcome::done())
//!     }
//! }
//!
//! #[kubewright::controller]
//! fn guestbook() -> Controller {
//!     Controller::of::<Guestbook>("guestbook").owns::<Deployment>().reconciler(GuestbookReconciler)
//! }
//!
//! // fn main() -> kubewright::Result { kubewright::operator!().run() }
//! let inventory = kubewright::registered::inventory();
//! assert_eq!(inventory.controllers, ["guestbook"]);
//! assert_eq!(inventory.definitions[0].metadata.name.as_deref(), Some("guestbooks.webapp.my.domain"));
//! assert!(inventory.rules.iter().any(|rule| rule.resources == ["deployments"]));
//! ```
//!
//! A wrong attribute does not compile, and says what is known, or what the field is:
//!
//! ```compile_fail
//! #[kubewright::schema]
//! #[derive(schemars::JsonSchema)]
//! struct Page {
//!     #[k8s(multiple_of = 2)] // `multiple_of` is about numbers, and this is a text
//!     title: String,
//! }
//! ```
//!
//! What is underneath can be used alone: the [informers](cache), the [work queue](workqueue), and all of the
//! [runtime].

#[cfg(feature = "operator")]
mod operator;
pub mod registered;
#[cfg(feature = "testing")]
pub mod testing;

pub use kubewright_cache as cache;
pub use kubewright_derive::{api, controller, conversion, rbac, schema, webhook};
pub use kubewright_manifests as manifests;
pub use kubewright_runtime as runtime;
pub use kubewright_runtime::webhook;
pub use kubewright_workqueue as workqueue;

#[cfg(feature = "operator")]
pub use operator::Operator;

pub use k8s_openapi;
pub use kube;
pub use kubewright_runtime::{
    Change, Client, Context, Controller, Delete, Environment, Error, EventKind, Key, Manager,
    Outcome, Predicate, Query, Reconciler, Selector, Watch, finalize, set_controller_reference,
};

/// How programs of this toolkit end, and reconciles; with a second type, any other result, so that the prelude takes no
/// name away.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// What nearly every operator needs.
pub mod prelude {
    pub use crate::Result;
    pub use kubewright_runtime::conditions::ConditionExt as _;
    pub use kubewright_runtime::finalizer::{Cleanup, Finalized, finalize};
    pub use kubewright_runtime::{
        Change, Client, ClientError, Context, Controller, Delete, Error, EventKind, IgnoreNotFound,
        Index, Key, Manager, Outcome, Predicate, Query, Reconciler, Recorder, ResultExt, Scope,
        Selector, Watch, Written, conditions, from_fn, is_controlled_by, set_controller_reference,
    };
}

/// The page on testing, whose blocks are compiled and run.
#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../../../docs/testing.md")]
mod testing_page {}

/// The page on simulation, whose blocks are compiled and run.
#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../../../docs/simulation.md")]
mod simulation_page {}

/// For code that attributes write.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
    pub use kubewright_manifests::definition::marks::{Marks, Rule, empty_object, json};
    pub use schemars::Schema;
}
