//! Hooks of a container that nothing is started for: what follows from its specification alone.
//!
//! A hook that is not plain has no effect: it takes no time and succeeds.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::plain_probes::is_missing;
use crate::node::runtime::outcome;

/// What a container is left of its grace period in any case, as `minimumGracePeriodInSeconds` of a kubelet.
pub(crate) const LEAST_GRACE: Duration = Duration::from_secs(2);

/// What comes of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hook {
    /// How long it takes; nothing if it goes on for ever.
    pub(crate) takes: Option<Duration>,
    pub(crate) fails: bool,
}

/// The hook that runs when a container has started.
pub(crate) fn post_start(container: &Container) -> Option<Hook> {
    let handler = container.lifecycle.as_ref()?.post_start.as_ref()?;
    hook(handler, container)
}

/// The hook that runs before a container is asked to end.
pub(crate) fn pre_stop(container: &Container) -> Option<Hook> {
    let handler = container.lifecycle.as_ref()?.pre_stop.as_ref()?;
    hook(handler, container)
}

/// Mirrors `lifecycle/handlers.go: handlerRunner.Run`.
fn hook(handler: &LifecycleHandler, container: &Container) -> Option<Hook> {
    if let Some(sleep) = &handler.sleep {
        let seconds = u64::try_from(sleep.seconds).unwrap_or(0);
        return Some(Hook {
            takes: Some(Duration::from_secs(seconds)),
            fails: false,
        });
    }
    if let Some(exec) = &handler.exec {
        let outcome = outcome(exec.command.as_deref()?)?;
        return Some(Hook {
            takes: outcome.end.map(|(after, _)| after),
            fails: outcome.surely_fails(),
        });
    }
    let IntOrString::String(port) = &handler.http_get.as_ref()?.port else {
        return None;
    };
    let fails = is_missing(port, container);
    fails.then_some(Hook {
        takes: Some(Duration::ZERO),
        fails,
    })
}
