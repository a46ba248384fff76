//! The built-in controllers, one file each: a pure part with the rules, and a thin shell on the public SDK.

mod disruption;
mod expiry;
mod garbage_collector;
mod namespace;
pub(crate) mod node_lifecycle;
mod pod_gc;
mod resource_quota;
mod service_account;

use kubewright_runtime::{Environment, Manager};

/// What controllers know besides what the server tells them.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) environment: Environment,
    /// How many simulated nodes there are.
    #[allow(dead_code, reason = "for the nodes")]
    pub(crate) nodes: usize,
    /// The certificate of the authority that the server is known by, PEM.
    pub(crate) certificate_authority: String,
}

/// Adds all built-in controllers to a manager: one line each.
#[rustfmt::skip]
pub(crate) fn register(manager: Manager, facts: &Facts) -> Manager {
    let (client, environment) = (manager.client(), facts.environment.clone());
    manager
        .runnable(garbage_collector::GarbageCollector::new(client.clone(), environment.clone()))
        .runnable(pod_gc::PodGc::new(client, environment))
        .controller(namespace::controller())
        .controller(service_account::controller())
        .controller(service_account::root_ca_controller(facts.certificate_authority.clone()))
        .controller(service_account::token_controller(facts.certificate_authority.clone()))
        .controller(expiry::job_controller())
        .controller(expiry::event_controller())
        .controller(resource_quota::controller())
        .controller(disruption::controller())
}
