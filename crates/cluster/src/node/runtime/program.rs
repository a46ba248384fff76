//! Programs that tests write: what an image does when it runs.

use std::future::Future;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use kubewright_server::{Streams, Usage};

use super::config::{ContainerConfig, ContainerId};
use super::{ExecTarget, Exit};

/// What an image does, for [`Nodes::run_image`](crate::node::Nodes::run_image): every function has a default, so a
/// program says only what matters to a test.
///
/// ```
/// use kubewright_cluster::node::runtime::{ExecTarget, Program};
/// use kubewright_server::Streams;
///
/// /// A database whose operator asks it whether it is the primary.
/// #[derive(Debug)]
/// struct FakePostgres;
///
/// impl Program for FakePostgres {
///     async fn exec(&self, _: ExecTarget, command: Vec<String>, streams: Streams) -> i32 {
///         match command.first().map(String::as_str) {
///             Some("pg_isready") => streams.write("accepting connections\n").await,
///             _ => return 127,
///         }
///         0
///     }
/// }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # use kubewright_cluster::Cluster;
/// let cluster = Cluster::builder().start().await?;
/// cluster.nodes().run_image("postgres:*", FakePostgres);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Program: Send + Sync + 'static {
    /// Runs a container until it ends by itself. By default it runs on until it is asked to stop, and exits with 0.
    ///
    /// [`ContainerConfig::stopped`] is its SIGTERM. When the grace period is over the future is dropped, and the container
    /// was killed.
    fn run(&self, container: ContainerConfig) -> impl Future<Output = Exit> + Send {
        async move {
            container.stopped().await;
            Exit::code(0)
        }
    }

    /// Runs a command and returns its exit code. By default there is no such command: 127.
    fn exec(
        &self,
        target: ExecTarget,
        command: Vec<String>,
        streams: Streams,
    ) -> impl Future<Output = i32> + Send {
        async move {
            let name = command.first().map_or("", String::as_str);
            let container = &target.container.name;
            streams
                .write_error(format!("{container}: {name}: not found\n"))
                .await;
            127
        }
    }

    /// Answers an HTTP request to a port. By default nothing listens.
    fn http(
        &self,
        _container: ContainerId,
        _port: u16,
        _request: Request<Bytes>,
    ) -> impl Future<Output = Option<Response<Bytes>>> + Send {
        async { None }
    }

    /// Answers a probe. By default the container is healthy.
    fn probe(
        &self,
        _container: ContainerId,
        _kind: ProbeKind,
    ) -> impl Future<Output = Health> + Send {
        async { Health::Healthy }
    }

    /// What a container uses. By default nobody knows.
    fn usage(&self, _container: &ContainerId) -> Option<Usage> {
        None
    }
}

/// Which probe of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProbeKind {
    /// Whether it has started; until then nothing else is probed.
    Startup,
    /// Whether it lives; if not it is restarted.
    Liveness,
    /// Whether it takes traffic.
    Readiness,
}

impl ProbeKind {
    /// As events name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        }
    }
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// The program works as it should.
    Healthy,
    /// It is not, and this is what was seen.
    Unhealthy(String),
}

/// A program behind a pointer.
pub(super) trait Erased: Send + Sync {
    fn run(&self, container: ContainerConfig) -> BoxFuture<'_, Exit>;
    fn exec(
        &self,
        target: ExecTarget,
        command: Vec<String>,
        streams: Streams,
    ) -> BoxFuture<'_, i32>;
    fn http(
        &self,
        container: ContainerId,
        port: u16,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Option<Response<Bytes>>>;
    fn probe(&self, container: ContainerId, kind: ProbeKind) -> BoxFuture<'_, Health>;
    fn usage(&self, container: &ContainerId) -> Option<Usage>;
}

impl<P: Program> Erased for P {
    fn run(&self, container: ContainerConfig) -> BoxFuture<'_, Exit> {
        Box::pin(Program::run(self, container))
    }

    fn exec(
        &self,
        target: ExecTarget,
        command: Vec<String>,
        streams: Streams,
    ) -> BoxFuture<'_, i32> {
        Box::pin(Program::exec(self, target, command, streams))
    }

    fn http(
        &self,
        container: ContainerId,
        port: u16,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Option<Response<Bytes>>> {
        Box::pin(Program::http(self, container, port, request))
    }

    fn probe(&self, container: ContainerId, kind: ProbeKind) -> BoxFuture<'_, Health> {
        Box::pin(Program::probe(self, container, kind))
    }

    fn usage(&self, container: &ContainerId) -> Option<Usage> {
        Program::usage(self, container)
    }
}
