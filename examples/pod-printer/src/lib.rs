//! Prints what happens to the Pods of the namespace `default`: the smallest controller there is.

mod demo;

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use kubewright::prelude::*;
use kubewright::runtime::CacheOptions;

pub use demo::run;

/// How often a line that could not be printed is tried again.
const RETRIES: u32 = 5;

/// Prints a line for each change of a Pod.
pub struct PodPrinter<W>(Mutex<W>);

impl<W: Write + Send + 'static> PodPrinter<W> {
    /// Prints there.
    pub fn to(out: W) -> Self {
        Self(Mutex::new(out))
    }

    fn print(&self, line: impl fmt::Display, cx: &Context) -> Result<Outcome> {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match writeln!(out, "{line}").and_then(|()| out.flush()) {
            Ok(()) => Ok(Outcome::done()),
            Err(error) if cx.attempt() < RETRIES => Err(error.into()),
            Err(error) => {
                let key = cx.key().as_str();
                tracing::error!("Dropping pod {key:?} out of the queue: {error}");
                // Done with, not failed: the count of retries starts afresh when the Pod changes.
                Ok(Outcome::done())
            }
        }
    }
}

impl<W: Write + Send + 'static> Reconciler<Pod> for PodPrinter<W> {
    async fn reconcile(&self, _: Arc<Pod>, cx: &Context) -> Result<Outcome> {
        let name = cx.key().name();
        self.print(format_args!("Sync/Add/Update for Pod {name}"), cx)
    }

    async fn gone(&self, key: &Key, cx: &Context) -> Result<Outcome> {
        let key = key.as_str();
        self.print(format_args!("Pod {key} does not exist anymore"), cx)
    }
}

/// The controller. Of the Pods that are known from another time those that are gone are printed as well, as soon as it is
/// clear what is there.
pub fn controller(out: impl Write + Send + 'static, known: &[Key]) -> Controller {
    let controller = Controller::of::<Pod>("pod-printer")
        .scope(Scope::all().namespace("default"))
        .reconciler(PodPrinter::to(out));
    for key in known {
        controller.handle().reconcile(key.clone());
    }
    controller
}

/// What its manager caches: one namespace, so that a role in that namespace is enough.
pub fn cache() -> CacheOptions {
    CacheOptions::new().namespaces(["default"])
}

impl<W> fmt::Debug for PodPrinter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PodPrinter")
    }
}
