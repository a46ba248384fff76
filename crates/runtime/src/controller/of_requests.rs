//! How a controller without objects of its own is described.

use std::sync::Arc;

use super::target::RequestTarget;
use super::{Builder, Controller};
use crate::reconciler::RequestReconciler;
use crate::requests::Request;

/// Says in the description of a controller that it has no kind of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPrimary;

impl Controller {
    /// Describes a controller that has no kind of its own: what it reconciles is whatever its sources ask for.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Node;
    /// use kubewright_runtime::{Context, Controller, Key, Outcome, Request, Watch};
    ///
    /// #[derive(Clone, PartialEq, Eq, Hash)]
    /// struct Zone(String);
    ///
    /// impl Request for Zone {
    ///     fn key(&self) -> Key {
    ///         Key::cluster(&self.0)
    ///     }
    /// }
    ///
    /// let nodes = Watch::of::<Node>().map(|node, _| {
    ///     let zone = node.metadata.labels.as_ref().and_then(|all| all.get("topology.kubernetes.io/zone"));
    ///     zone.cloned().map(Zone).into_iter().collect()
    /// });
    /// let controller = Controller::for_requests("zones")
    ///     .watches(nodes)
    ///     .reconciler(|zone: Zone, _cx: Context| async move {
    ///         println!("{} has changed", zone.0);
    ///         Ok(Outcome::done())
    ///     });
    /// assert_eq!(controller.name(), "zones");
    /// ```
    pub fn for_requests<R: Request>(name: &str) -> Builder<NoPrimary, R> {
        Builder::new(name, NoPrimary)
    }
}

impl<R: Request> Builder<NoPrimary, R> {
    /// The controller, with what it does for each request.
    pub fn reconciler(self, reconciler: impl RequestReconciler<R>) -> Controller<R> {
        self.common.build(Arc::new(RequestTarget(reconciler)))
    }
}
