//! What a kubelet decides, as plain functions of the objects: whether a node takes a pod, what its containers see, what
//! keeps them from starting, whether they start again, and what their probes mean.

pub(crate) mod admission;
pub(crate) mod downward;
pub(crate) mod environment;
pub(crate) mod eviction;
pub(crate) mod hooks;
pub(crate) mod mounts;
pub(crate) mod plain_probes;
pub(crate) mod prober;
pub(crate) mod resize;
pub(crate) mod restart;
pub(crate) mod shutdown;
pub(crate) mod sources;
pub(crate) mod sub_path;
pub(crate) mod termination;
mod trust_bundles;
pub(crate) mod volume_error;
pub(crate) mod volumes;
