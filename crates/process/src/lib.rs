//! Runs the containers of a cluster as processes of this machine, without a container engine.
//!
//! A container is a process with a session of its own under a small helper. `kubectl logs`, `exec`, `attach`,
//! `port-forward` and probes meet the real process. When the runtime ends, in whatever way, its helpers end everything
//! that they started.
//!
//! Pods share the network of the machine: a program has to listen on the address of its pod, which it finds in `POD_IP`.
//!
//! On systems other than Linux everything compiles and making the runtime fails.

mod builder;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod container;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod ending;
#[cfg(target_os = "linux")]
mod exec;
#[cfg(target_os = "linux")]
mod helper;
#[cfg(target_os = "linux")]
mod helper_program;
#[cfg(target_os = "linux")]
mod hooks;
#[cfg(target_os = "linux")]
mod images;
#[cfg(target_os = "linux")]
mod insecure;
#[cfg(target_os = "linux")]
mod isolation;
#[cfg(target_os = "linux")]
mod ledger;
#[cfg(target_os = "linux")]
mod meter;
#[cfg(target_os = "linux")]
mod mounts;
mod names;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod pods;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod procfs;
#[cfg(target_os = "linux")]
mod runtime;
#[cfg(target_os = "linux")]
mod sampler;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod sessions;
#[cfg(target_os = "linux")]
mod state;
#[cfg(target_os = "linux")]
mod streams;
mod table;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(target_os = "linux")]
mod termination;
#[cfg(target_os = "linux")]
mod volumes;

use std::sync::Arc;

#[cfg(not(target_os = "linux"))]
pub use builder::BuildError as ImageError;
pub use builder::{BuildError, Namespaces, Processes};
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{
    HELPER_COMMAND, ImageStore, Isolation, ProcessRuntime, StoredImage, helper_main,
};
#[cfg(target_os = "linux")]
pub use helper::{HELPER_COMMAND, helper_main};
#[cfg(target_os = "linux")]
pub use images::{ImageError, ImageStore, NotAnImage, StoredImage};
#[cfg(target_os = "linux")]
pub use isolation::Isolation;
pub use names::PodHosts;
#[cfg(target_os = "linux")]
pub use runtime::ProcessRuntime;
pub use table::{ImageProgram, ImageTable, TableError};

impl Processes {
    /// Makes the runtime, for `Cluster::builder().runtime(..)`. Processes that an earlier one with the same directory has left
    /// are ended.
    ///
    /// # Errors
    /// When this system is not Linux, there is no helper, or the directory cannot be used or is used by another cluster.
    pub fn build(self) -> Result<Arc<ProcessRuntime>, BuildError> {
        ProcessRuntime::of(self).map(Arc::new)
    }
}
