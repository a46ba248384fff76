//! The runtime: containers as processes of this machine.

use std::collections::HashMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use http::{Request, Response};
use http_body_util::Full;
use k8s_openapi::api::core::v1::{Container, Pod};
use kubewright_cluster::node::runtime::{
    ContainerConfig, ContainerId, ExecError, ExecTarget, Exit, Health, ImagePull, Life, PodId,
    PodView, ProbeKind, PullError, Refused, Runtime, StartError,
};
use kubewright_server::{Streams, Usage};
use nix::sys::signal::Signal;
use parking_lot::Mutex;
use tokio::io::DuplexStream;
use tokio::net::TcpStream;

use crate::container::{self, Running};
use crate::exec;
use crate::helper::message::Ask;
use crate::isolation::Isolation;
use crate::options::Options;
use crate::plan::plan;
use crate::probe;
use crate::session::Call;

/// How long containers may take to end when the nodes stop.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// Containers as processes of this machine. Clones are the same runtime.
#[derive(Clone)]
pub struct ProcessRuntime(Arc<Inner>);

struct Inner {
    options: Options,
    running: Mutex<HashMap<ContainerId, Arc<Running>>>,
}

/// Takes a container out of the table when whoever drives it is done with it, in whatever way.
struct Entered {
    runtime: ProcessRuntime,
    id: ContainerId,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.runtime.0.running.lock().remove(&self.id);
    }
}

impl ProcessRuntime {
    pub(crate) fn new(options: Options) -> Self {
        Self(Arc::new(Inner {
            options,
            running: Mutex::default(),
        }))
    }

    /// How containers are kept apart from the machine.
    pub fn isolation(&self) -> &Isolation {
        &self.0.options.isolation
    }

    fn call(&self, role: Vec<String>) -> Call {
        Call {
            helper: self.0.options.helper.path.clone(),
            subcommand: self.0.options.helper.subcommand,
            role,
        }
    }

    /// How a helper is called for a command in a container.
    fn command_call(&self, running: &Running) -> Call {
        let mut role = vec!["command".to_owned()];
        if let Some(init) = running.init {
            role.extend([running.pid.to_string(), init.to_string()]);
        }
        self.call(role)
    }

    fn find(&self, id: &ContainerId) -> Option<Arc<Running>> {
        self.0.running.lock().get(id).cloned()
    }

    fn of_pod(&self, pod: &PodId) -> Vec<Arc<Running>> {
        let running = self.0.running.lock();
        let own = running.iter().filter(|(id, _)| id.pod == *pod);
        own.map(|(_, running)| running.clone()).collect()
    }

    async fn start_one(
        self,
        config: ContainerConfig,
    ) -> Result<BoxFuture<'static, Exit>, StartError> {
        let call = self.call(self.0.options.isolation.role());
        let launch = plan(&self.0.options, &config)?;
        let (running, life) = container::start(&call, launch, &config).await?;
        let entered = Entered {
            id: config.id.clone(),
            runtime: self.clone(),
        };
        self.0.running.lock().insert(config.id, running);
        let live = async move {
            let exit = life.live().await;
            drop(entered);
            exit
        };
        Ok(live.boxed())
    }

    /// The address of a pod: where its containers were told to listen.
    fn address(&self, pod: &PodView) -> Option<Ipv4Addr> {
        let mut running = pod.running.iter().filter_map(|id| self.find(id));
        running.find_map(|running| running.address)
    }

    async fn connect(&self, pod: &PodView, port: u16) -> Result<TcpStream, Refused> {
        let address = self.address(pod).ok_or(Refused(port))?;
        let connected = TcpStream::connect(SocketAddr::new(address.into(), port)).await;
        connected.map_err(|_| Refused(port))
    }

    async fn probe_one(self, target: ExecTarget, kind: ProbeKind) -> Health {
        let Some(running) = self.find(&target.id) else {
            return Health::Unhealthy("the container does not run".to_owned());
        };
        let spec = match kind {
            ProbeKind::Startup => target.container.startup_probe.as_ref(),
            ProbeKind::Liveness => target.container.liveness_probe.as_ref(),
            ProbeKind::Readiness => target.container.readiness_probe.as_ref(),
        };
        let Some(spec) = spec else {
            return Health::Healthy;
        };
        let address = running.address.unwrap_or(Ipv4Addr::LOCALHOST);
        if let Some(health) = probe::network(spec, &target.container, address).await {
            return health;
        }
        let command = spec.exec.as_ref().and_then(|exec| exec.command.clone());
        let Some(command) = command else {
            return Health::Healthy;
        };
        match exec::capture(&self.command_call(&running), &running, command).await {
            Ok((0, _)) => Health::Healthy,
            Ok((_, output)) => Health::Unhealthy(output.trim_end().to_owned()),
            Err(error) => Health::Unhealthy(error.0),
        }
    }

    /// Ends containers: first asks, then kills; resolves when they have gone.
    async fn end(running: Vec<Arc<Running>>, within: Duration) {
        for one in &running {
            one.ask(Ask::Signal(Signal::SIGTERM as i32));
        }
        let ended = join_all(running.iter().map(|one| one.ended()));
        if tokio::time::timeout(within, ended).await.is_ok() {
            return;
        }
        for one in &running {
            one.ask(Ask::Kill);
        }
        let ended = join_all(running.iter().map(|one| one.ended()));
        if tokio::time::timeout(within, ended).await.is_err() {
            tracing::warn!("containers that were killed have not ended");
        }
    }
}

impl Runtime for ProcessRuntime {
    fn life(&self, _: &Pod, _: &Container) -> Life {
        Life::Live
    }

    fn pull(&self, image: ImagePull) -> BoxFuture<'static, Result<(), PullError>> {
        let known = self.0.options.table.find(&image.image).is_some();
        let pulled = if known {
            Ok(())
        } else {
            Err(PullError::missing(&image.image))
        };
        async move { pulled }.boxed()
    }

    fn start(
        &self,
        container: ContainerConfig,
    ) -> BoxFuture<'static, Result<BoxFuture<'static, Exit>, StartError>> {
        self.clone().start_one(container).boxed()
    }

    fn stop(&self, id: &ContainerId, grace: Duration) {
        let Some(running) = self.find(id) else {
            return;
        };
        if grace.is_zero() {
            return running.ask(Ask::Kill);
        }
        running.ask(Ask::Signal(Signal::SIGTERM as i32));
        tokio::spawn(async move {
            if tokio::time::timeout(grace, running.ended()).await.is_err() {
                running.ask(Ask::Kill);
            }
        });
    }

    fn exec(
        &self,
        target: ExecTarget,
        command: Vec<String>,
        streams: Streams,
    ) -> BoxFuture<'static, Result<i32, ExecError>> {
        let own = self.clone();
        async move {
            let running = own.find(&target.id);
            let running =
                running.ok_or_else(|| ExecError("the container does not run".to_owned()))?;
            exec::exec(&own.command_call(&running), &running, command, streams).await
        }
        .boxed()
    }

    fn attach(
        &self,
        id: &ContainerId,
        streams: Streams,
    ) -> BoxFuture<'static, Result<(), ExecError>> {
        let running = self.find(id);
        async move {
            let running =
                running.ok_or_else(|| ExecError("the container does not run".to_owned()))?;
            running.attach(streams).await;
            Ok(())
        }
        .boxed()
    }

    fn port_forward(
        &self,
        pod: PodView,
        port: u16,
        mut stream: DuplexStream,
    ) -> BoxFuture<'static, Result<(), Refused>> {
        let own = self.clone();
        async move {
            let mut connection = own.connect(&pod, port).await?;
            // An error means that one side hung up, which ends it as well.
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut connection).await;
            Ok(())
        }
        .boxed()
    }

    fn http(
        &self,
        pod: PodView,
        port: u16,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, Refused>> {
        let own = self.clone();
        async move {
            let connection = own.connect(&pod, port).await?;
            let sent = probe::send(connection, request.map(Full::new)).await;
            sent.map_err(|error| {
                tracing::debug!(error, port, "a request to a pod failed");
                Refused(port)
            })
        }
        .boxed()
    }

    fn probe(&self, target: ExecTarget, kind: ProbeKind) -> BoxFuture<'static, Health> {
        self.clone().probe_one(target, kind).boxed()
    }

    fn usage(&self, _: &Pod, _: &str) -> Option<Usage> {
        None
    }

    fn remove(&self, pod: &PodId) {
        for running in self.of_pod(pod) {
            running.ask(Ask::Kill);
        }
    }

    fn lost(&self) -> Option<Exit> {
        // What containerd says of a task that it finds gone.
        Some(Exit {
            code: 255,
            reason: Some("Unknown".to_owned()),
            message: None,
        })
    }

    fn shutdown(&self) -> BoxFuture<'static, ()> {
        let running: Vec<_> = self.0.running.lock().values().cloned().collect();
        Self::end(running, STOP_WITHIN).boxed()
    }

    fn fork(&self) -> Arc<dyn Runtime> {
        Arc::new(Self::new(self.0.options.clone()))
    }
}

impl fmt::Debug for ProcessRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessRuntime({} run)", self.0.running.lock().len())
    }
}
