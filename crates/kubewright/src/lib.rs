//! Build, run and prove Kubernetes operators.
//!
//! A user writes a [`Reconciler`] and gives it to a [`Manager`]:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kubewright::prelude::*;
//!
//! /// Keeps a Secret for each ConfigMap.
//! struct Copier;
//!
//! impl Reconciler<ConfigMap> for Copier {
//!     async fn reconcile(&self, config: Arc<ConfigMap>, cx: &Context) -> Result<Outcome> {
//!         let (_, change) = cx
//!             .client()
//!             .create_or_update::<Secret>(cx.key(), |secret| {
//!                 secret.string_data = config.data.clone();
//!                 // An owner that cannot own is a mistake of this program, and shows in the first test.
//!                 set_controller_reference(&*config, secret).expect("both live in one namespace");
//!             })
//!             .await?;
//!         if change == Change::Created {
//!             cx.event(&*config, EventKind::Normal, "Copied", "made a secret of it");
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
//! What is underneath can be used alone: the [informers](cache), the [work queue](workqueue), and all of the
//! [runtime].

#[cfg(feature = "operator")]
mod operator;
pub mod registered;

pub use kubewright_cache as cache;
pub use kubewright_derive::{api, controller, rbac, schema, webhook};
pub use kubewright_manifests as manifests;
pub use kubewright_runtime as runtime;
pub use kubewright_workqueue as workqueue;

#[cfg(feature = "operator")]
pub use operator::Operator;

pub use k8s_openapi;
pub use kube;
pub use kubewright_runtime::{
    Change, Client, Context, Controller, Delete, Environment, Error, EventKind, Key, Manager,
    Outcome, Predicate, Query, Reconciler, Watch, finalize, set_controller_reference,
};

/// How programs of this toolkit end, and reconciles; with a second type, any other result, so that the prelude takes no
/// name away.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// What nearly every operator needs.
pub mod prelude {
    pub use crate::Result;
    pub use kubewright_runtime::finalizer::{Cleanup, Finalized, finalize};
    pub use kubewright_runtime::{
        Change, Client, ClientError, Context, Controller, Delete, Error, EventKind, IgnoreNotFound,
        Key, Manager, Outcome, Predicate, Query, Reconciler, Scope, Watch, conditions,
        set_controller_reference,
    };
}

/// For code that attributes write.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
    pub use kubewright_manifests::definition::marks::{Marks, Rule, empty_object, json};
    pub use schemars::Schema;
}
