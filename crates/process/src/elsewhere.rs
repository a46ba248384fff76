//! What there is on systems other than Linux: the names, and a sentence that says why nothing runs.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use k8s_openapi::api::core::v1::{Container, Pod};
use kubewright_cluster::node::runtime::{
    ContainerConfig, ContainerId, ExecError, ExecTarget, Exit, Health, ImagePull, Life, PodId,
    PodView, ProbeKind, PullError, Refused, Runtime, StartError,
};
use kubewright_server::{Streams, Usage};
use tokio::io::DuplexStream;

use crate::builder::{BuildError, Processes};

/// The hidden subcommand of `kubewright` that is the helper.
pub const HELPER_COMMAND: &str = "process-helper";

/// Fails: there is no helper on this system.
pub fn helper_main(_: impl Iterator<Item = OsString>) -> ExitCode {
    eprintln!("{}", BuildError::NeedsLinux);
    ExitCode::FAILURE
}

/// How containers are kept apart from the machine and from each other.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// Plain processes, and why there are no namespaces.
    None(String),
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::None(why) = self;
        write!(f, "plain processes without namespaces ({why})")
    }
}

/// Containers as processes of this machine, of which there are none here.
#[derive(Debug, Clone)]
pub struct ProcessRuntime(Infallible);

impl ProcessRuntime {
    /// Fails: this system is not Linux.
    pub(crate) fn of(_: Processes) -> Result<Self, BuildError> {
        Err(BuildError::NeedsLinux)
    }

    /// Why the kernel does not limit what containers use; nothing where it does.
    pub fn no_limits(&self) -> Option<String> {
        match self.0 {}
    }

    /// How containers are kept apart from the machine.
    pub fn isolation(&self) -> &Isolation {
        match self.0 {}
    }
}

impl Runtime for ProcessRuntime {
    fn life(&self, _: &Pod, _: &Container) -> Life {
        match self.0 {}
    }

    fn pull(&self, _: ImagePull) -> BoxFuture<'static, Result<(), PullError>> {
        match self.0 {}
    }

    fn start(
        &self,
        _: ContainerConfig,
    ) -> BoxFuture<'static, Result<BoxFuture<'static, Exit>, StartError>> {
        match self.0 {}
    }

    fn stop(&self, _: &ContainerId, _: Duration) {
        match self.0 {}
    }

    fn exec(
        &self,
        _: ExecTarget,
        _: Vec<String>,
        _: Streams,
    ) -> BoxFuture<'static, Result<i32, ExecError>> {
        match self.0 {}
    }

    fn attach(&self, _: &ContainerId, _: Streams) -> BoxFuture<'static, Result<(), ExecError>> {
        match self.0 {}
    }

    fn port_forward(
        &self,
        _: PodView,
        _: u16,
        _: DuplexStream,
    ) -> BoxFuture<'static, Result<(), Refused>> {
        match self.0 {}
    }

    fn http(
        &self,
        _: PodView,
        _: u16,
        _: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, Refused>> {
        match self.0 {}
    }

    fn probe(&self, _: ExecTarget, _: ProbeKind) -> BoxFuture<'static, Health> {
        match self.0 {}
    }

    fn usage(&self, _: &Pod, _: &str) -> Option<Usage> {
        match self.0 {}
    }

    fn remove(&self, _: &PodId) {
        match self.0 {}
    }

    fn fork(&self) -> Arc<dyn Runtime> {
        match self.0 {}
    }
}

/// The images that were loaded on this machine, which is none without Linux.
#[derive(Debug, Clone)]
pub struct ImageStore(Infallible);

/// An image of this machine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoredImage {
    /// The names that it was loaded under, in full.
    pub names: Vec<String>,
    /// What identifies it: the digest of its manifest.
    pub digest: String,
    /// Its size on the disk, in bytes of files.
    pub bytes: u64,
    /// Devices, pipes and sockets of it, which were not made.
    pub left_out: usize,
}

impl ImageStore {
    /// Images in a directory, for which this system has no use.
    ///
    /// # Panics
    /// Always: nothing on this system has a use for images. [`ImageStore::of_user`] says so without.
    pub fn at(_: impl Into<PathBuf>) -> Self {
        panic!("{}", BuildError::NeedsLinux)
    }

    /// The images of this user: nothing on this system.
    pub fn of_user() -> Option<Self> {
        None
    }

    /// Loads an image.
    ///
    /// # Errors
    /// Never: there is no store to load it into.
    pub fn load(&self, _: &std::path::Path, _: Option<&str>) -> Result<StoredImage, BuildError> {
        match self.0 {}
    }

    /// All images, by name.
    ///
    /// # Errors
    /// Never: there is no store to list.
    pub fn list(&self) -> Result<Vec<StoredImage>, BuildError> {
        match self.0 {}
    }

    /// The image of a name.
    pub fn find(&self, _: &str) -> Option<StoredImage> {
        match self.0 {}
    }

    /// Removes a name from an image.
    ///
    /// # Errors
    /// Never: there is no store to remove it from.
    pub fn remove(&self, _: &str) -> Result<(), BuildError> {
        match self.0 {}
    }
}
