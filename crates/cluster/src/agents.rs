//! The agents of the nodes: what the server asks of kubelets, answered from the nodes and their runtimes.

mod own;
mod stats;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use k8s_openapi::api::core::v1::{Container, Pod};
use kubewright_server::{
    AgentError, ContainerTarget, Environment, LogOf, LogRun, MoreLog, NodeAgents, PodLogs,
    PodTarget, PodUsage, Streams, Usage,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::DuplexStream;

use crate::metrics::Metrics;
use crate::node::handle::{Found, Nodes};
use crate::node::kubelet::downward::Place;
use crate::node::kubelet::{environment, volumes};
use crate::node::runtime::{ContainerId, ExecTarget, Life, PodId, PodView, Runtime};
use crate::node::script::{Role, containers};

/// Answers for all nodes of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Agents {
    pub(crate) nodes: Nodes,
    pub(crate) metrics: Metrics,
    pub(crate) environment: Environment,
    /// Processor time by node.
    pub(crate) counters: Arc<Mutex<BTreeMap<String, stats::Counters>>>,
}

/// A container that runs.
struct Running {
    id: ContainerId,
    container: Container,
    found: Found,
}

impl Agents {
    async fn find(&self, pod: &PodTarget) -> Result<Found, AgentError> {
        let id = PodId::new(&pod.namespace, &pod.pod, &pod.uid);
        let found = self.nodes.find(id).await;
        found.ok_or_else(|| AgentError::Unreachable(pod.node.clone()))
    }

    async fn running(&self, target: &ContainerTarget) -> Result<Running, AgentError> {
        let found = self.find(&target.pod).await?;
        let name = &target.container;
        let id = found
            .running
            .iter()
            .find(|id| id.container == *name)
            .cloned();
        let spec = containers(&found.pod).find(|(_, container)| container.name == *name);
        let container = spec.map(|(_, container)| container.into_owned());
        match (id, container) {
            (Some(id), Some(container)) => Ok(Running {
                id,
                container,
                found,
            }),
            _ => Err(AgentError::NotRunning(name.clone())),
        }
    }
}

impl Running {
    fn target(&self) -> ExecTarget {
        let Found {
            pod,
            address,
            host,
            sources,
            ..
        } = &self.found;
        let place = Place {
            pod_ip: address.map(|a| a.to_string()).unwrap_or_default(),
            host_ip: host.address.clone(),
            node: crate::pods::node_name(pod).to_owned(),
            allocatable: host.allocatable,
        };
        let env = environment::environment(pod, &self.container, &place, sources);
        let env = env.unwrap_or_default();
        ExecTarget {
            id: self.id.clone(),
            pod: pod.clone(),
            container: self.container.clone(),
            files: volumes::files(pod, &self.container, &env, &place, sources),
            env,
        }
    }
}

impl NodeAgents for Agents {
    fn exec(
        &self,
        target: ContainerTarget,
        command: Vec<String>,
        streams: Streams,
    ) -> BoxFuture<'static, Result<i32, AgentError>> {
        let own = self.clone();
        async move {
            let running = own.running(&target).await?;
            let runtime = own.nodes.options().engine.of(&running.container);
            let exec = runtime.exec(running.target(), command, streams);
            exec.await.map_err(|error| AgentError::Failed(error.0))
        }
        .boxed()
    }

    fn attach(
        &self,
        target: ContainerTarget,
        streams: Streams,
    ) -> BoxFuture<'static, Result<Option<i32>, AgentError>> {
        let own = self.clone();
        async move {
            let running = own.running(&target).await?;
            let engine = &own.nodes.options().engine;
            match engine.life(&running.found.pod, &running.container) {
                Life::Live => {
                    let runtime = engine.of(&running.container);
                    let attached = runtime.attach(&running.id, streams).await;
                    attached.map_err(|error| AgentError::Failed(error.0))?;
                }
                Life::Scripted => own.follow(&target, streams).await,
            }
            Ok(None)
        }
        .boxed()
    }

    fn port_forward(
        &self,
        pod: PodTarget,
        port: u16,
        stream: DuplexStream,
    ) -> BoxFuture<'static, Result<(), AgentError>> {
        let own = self.clone();
        async move {
            let (runtime, view) = own.view(&pod).await?;
            let forwarded = runtime.port_forward(view, port, stream).await;
            forwarded.map_err(|refused| AgentError::Refused(refused.0))
        }
        .boxed()
    }

    fn pod_http(
        &self,
        pod: PodTarget,
        port: u16,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, AgentError>> {
        let own = self.clone();
        async move {
            let (runtime, view) = own.view(&pod).await?;
            let answered = runtime.http(view, port, request).await;
            answered.map_err(|refused| AgentError::Refused(refused.0))
        }
        .boxed()
    }

    fn node_http(
        &self,
        node: String,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, AgentError>> {
        let own = self.clone();
        async move {
            let housed = own.nodes.housed(&node).await;
            match housed {
                Some(housed) => Ok(own.answer(&node, request.uri().path(), &housed)),
                None => Err(AgentError::Unreachable(node)),
            }
        }
        .boxed()
    }

    fn pod_usage(&self, pod: &Value) -> Option<PodUsage> {
        let pod: Pod = kubewright_cache::decode(pod.to_string().as_bytes()).ok()?;
        Some(PodUsage {
            at: self.environment.now(),
            containers: self.usage(&pod)?,
        })
    }

    fn node_usage(&self, _: &Value, pods: &[Value]) -> Option<Usage> {
        let mut total = Usage::default();
        for usage in pods.iter().filter_map(|pod| self.pod_usage(pod)) {
            for used in usage.containers.values() {
                total.cpu = total.cpu.saturating_add(used.cpu);
                total.memory = total.memory.saturating_add(used.memory);
            }
        }
        Some(total)
    }
}

impl Agents {
    /// What the containers of a pod use, by their names; nothing while the use of one of them is not known.
    fn usage(&self, pod: &Pod) -> Option<BTreeMap<String, Usage>> {
        let mut used = BTreeMap::new();
        for (role, container) in containers(pod) {
            if !matches!(role, Role::Main | Role::Sidecar) {
                continue;
            }
            let of = |resource: &str| self.metrics.use_of(pod, Some(&container.name), resource);
            let usage = Usage {
                cpu: of("cpu")?,
                memory: of("memory").map(|milli| milli / 1000).unwrap_or(0),
            };
            used.insert(container.name.clone(), usage);
        }
        Some(used)
    }

    /// A pod and the runtime that answers for its ports.
    async fn view(&self, pod: &PodTarget) -> Result<(Arc<dyn Runtime>, PodView), AgentError> {
        let found = self.find(pod).await?;
        let runtime = self.nodes.options().engine.of_pod(&found.pod);
        let view = PodView {
            pod: found.pod,
            running: found.running,
        };
        Ok((runtime, view))
    }

    /// Shows what a scripted container writes from now on, until it ends. What is sent to it goes nowhere.
    async fn follow(&self, target: &ContainerTarget, streams: Streams) {
        let of = LogOf::new(&target.pod.namespace, &target.pod.pod, &target.container);
        let of = of.uid(&target.pod.uid).run(LogRun::Current);
        let logs = self.nodes.logs();
        let mut next = logs.read(&of, 0).map_or(0, |piece| piece.next);
        while let Ok(piece) = logs.read(&of, next) {
            for line in piece.lines {
                streams.write(line.text + "\n").await;
            }
            next = piece.next;
            match piece.more {
                MoreLog::Never => return,
                MoreLog::After(more) => more.await,
            }
        }
    }
}
