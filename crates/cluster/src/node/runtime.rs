//! What runs behind a node, as a container runtime runs behind a kubelet.
//!
//! A node decides *when*: it admits pods, waits for Secrets and volumes, keeps init containers in order, backs off, probes,
//! counts grace periods and writes status and events. A [`Runtime`] does *what*: it pulls images, starts and stops
//! containers, and answers for them while they run. [`Simulation`] is the one that every cluster has; one that starts
//! processes implements the same trait.
//!
//! # How a node uses a runtime
//!
//! 1. [`life`](Runtime::life) says whether anything is started at all. A container that is
//!    [scripted](Life::Scripted) is played by the node from its command and annotations: no task, no timer, nothing but
//!    a row in a table, which is why fifty thousand of them fit into a test.
//! 2. For a [live](Life::Live) one the node calls [`mount`](Runtime::mount), [`pull`](Runtime::pull) and then
//!    [`start`](Runtime::start), with everything resolved: command and arguments after `$(VAR)` expansion, the environment, the files of its volumes.
//! 3. The future that `start` returned resolves when the container has ended. The node decides whether it starts again,
//!    with the next [`ContainerId::run`].
//! 4. [`stop`](Runtime::stop) asks a container to end and kills it when its grace period is over. The future of
//!    `start` then resolves like after any other end.
//! 5. A container that its status says is running, and that was not started here, has been lost with the machine, or is
//!    started again: [`lost`](Runtime::lost) decides.
//! 6. [`remove`](Runtime::remove) is called when a pod has left its node. Nothing of it may be left afterwards.
//! 7. [`shutdown`](Runtime::shutdown) is called when the nodes stop.
//!
//! Identities are values ([`ContainerId`], [`PodId`]): a runtime keeps its own table of what it runs.

mod builtin;
mod config;
mod files;
mod hooks;
mod image;
mod program;
mod simulation;
mod tar;
pub(crate) mod tokens;
mod volumes;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use k8s_openapi::api::core::v1::{Container, Pod};
use kubewright_server::{Streams, Usage};
use tokio::io::DuplexStream;

pub use config::{
    ContainerConfig, ContainerEvents, ContainerId, LogWriter, MountedFile, PodId, ResourceLimits,
};
pub use image::{ImagePattern, ImagePull, PullCredentials, PullError};
pub use program::{Health, ProbeKind, Program};
pub use simulation::Simulation;
pub use volumes::{Medium, MountError, PodVolume, PodVolumes, VolumeFile, VolumeSource};

pub use super::kubelet::environment::expand;

pub(crate) use builtin::{Plan, Stops, interpret, outcome};

/// Runs containers for nodes.
///
/// Futures are `'static`: they own what they need and may be dropped at any time, which ends what they were about.
/// A runtime is shared by all nodes of a cluster and is called from many tasks at once.
pub trait Runtime: Send + Sync + fmt::Debug + 'static {
    /// Whether a container is played by the node or started here. Called often, so it must be cheap, and must give the same
    /// answer for the same container.
    fn life(&self, pod: &Pod, container: &Container) -> Life;

    /// Makes an image available. Called before every start of a live container, also when the image is there already.
    ///
    /// # Errors
    /// Why the image cannot be had: the container then waits as `ErrImagePull`, and the node backs off.
    fn pull(&self, image: ImagePull) -> BoxFuture<'static, Result<(), PullError>>;

    /// Mounts the volumes of a pod. Called before every start of a live container, also when they are mounted already. A
    /// runtime that starts nothing has nothing to mount.
    ///
    /// # Errors
    /// Which volume cannot be mounted: the node reports `FailedMount`, backs off, and the container waits.
    fn mount(&self, _volumes: PodVolumes) -> BoxFuture<'static, Result<(), MountError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Starts a container. The inner future resolves when the container has ended, in whatever way.
    ///
    /// # Errors
    /// Why it could not be started: the container is then reported with `StartError` and counts as having failed.
    fn start(
        &self,
        container: ContainerConfig,
    ) -> BoxFuture<'static, Result<BoxFuture<'static, Exit>, StartError>>;

    /// Asks a container to end, and kills it when the grace period is over. With no grace it is killed at once.
    /// Containers that are not there need no stopping.
    fn stop(&self, id: &ContainerId, grace: Duration);

    /// Runs a command in a container and returns its exit code.
    ///
    /// # Errors
    /// Why the command could not be started.
    fn exec(
        &self,
        target: ExecTarget,
        command: Vec<String>,
        streams: Streams,
    ) -> BoxFuture<'static, Result<i32, ExecError>>;

    /// Connects streams with the process that a live container runs until it ends or the streams close.
    ///
    /// # Errors
    /// Why there is nothing to connect to.
    fn attach(
        &self,
        id: &ContainerId,
        streams: Streams,
    ) -> BoxFuture<'static, Result<(), ExecError>>;

    /// Connects a stream of bytes with a port of a pod until either side closes it.
    ///
    /// # Errors
    /// That nothing listens there.
    fn port_forward(
        &self,
        pod: PodView,
        port: u16,
        stream: DuplexStream,
    ) -> BoxFuture<'static, Result<(), Refused>>;

    /// Sends an HTTP request to a port of a pod.
    ///
    /// # Errors
    /// That nothing listens there.
    fn http(
        &self,
        pod: PodView,
        port: u16,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, Refused>>;

    /// Probes a live container once, as its probe of this kind says. The node limits the time.
    fn probe(&self, target: ExecTarget, kind: ProbeKind) -> BoxFuture<'static, Health>;

    /// What a container uses now; nothing when that is not known.
    fn usage(&self, pod: &Pod, container: &str) -> Option<Usage>;

    /// A pod has left its node: everything of it goes.
    fn remove(&self, pod: &PodId);

    /// How a container has ended that is reported as running and was not started by this runtime: its cluster was stopped
    /// in the meantime. Nothing means that it is started again and goes on as if nothing had happened.
    fn lost(&self) -> Option<Exit> {
        None
    }

    /// Ends all containers, and resolves when nothing of them is left. Called when the nodes stop, which may run again.
    fn shutdown(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// The runtime of a fork of the cluster: what it knows of images and programs is the same, and nothing that
    /// changes is shared.
    fn fork(&self) -> std::sync::Arc<dyn Runtime>;
}

/// Who lives a container's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// The node plays it: nothing is started.
    Scripted,
    /// The runtime starts it.
    Live,
}

/// A container that something is done in: its identity, and what its pod says about it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExecTarget {
    /// The container that runs.
    pub id: ContainerId,
    /// The pod that it is in.
    pub pod: std::sync::Arc<Pod>,
    /// What the pod says about the container.
    pub container: Container,
    /// The environment variables, with all references resolved.
    pub env: Vec<(String, String)>,
    /// The files of its volumes.
    pub files: Vec<MountedFile>,
}

impl ExecTarget {
    /// A container of a pod, without environment and files: a runtime that started it knows them.
    pub fn new(id: ContainerId, pod: std::sync::Arc<Pod>, container: Container) -> Self {
        Self {
            id,
            pod,
            container,
            env: Vec::new(),
            files: Vec::new(),
        }
    }
}

/// A pod, and which of its containers run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PodView {
    /// The pod as it was seen last.
    pub pod: std::sync::Arc<Pod>,
    /// The containers that run.
    pub running: Vec<ContainerId>,
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exit {
    /// Its exit code; 128 and the number of the signal when it was killed.
    pub code: i32,
    /// Why it ended, when that is more than `Completed` or `Error`: `OOMKilled`.
    pub reason: Option<String>,
    /// What it wrote to its termination log.
    pub message: Option<String>,
}

impl Exit {
    /// An end with this code and nothing else to say.
    pub fn code(code: i32) -> Self {
        Self {
            code,
            ..Self::default()
        }
    }

    /// Killed because it used more memory than it may: 137, with the reason `OOMKilled`.
    pub fn out_of_memory() -> Self {
        Self {
            reason: Some("OOMKilled".to_owned()),
            ..Self::killed()
        }
    }

    /// Killed by the signal 9.
    pub fn killed() -> Self {
        Self::code(137)
    }
}

/// Why a container could not be started; the node reports the text with the reason `StartError`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub String);

/// Why a command could not be run in a container, or why there is nothing to attach to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExecError(pub String);

/// Nothing listens on a port of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nothing listens on port {0} of the pod")]
pub struct Refused(pub u16);
