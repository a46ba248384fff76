//! Ingresses, their classes, and network policies.

mod ingress;
mod policy;

pub(super) use ingress::{INGRESS, INGRESS_CLASS};
pub(super) use policy::NETWORK_POLICY;
