//! What the runtime is asked for, and what it says.

use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Container, ObjectReference, Pod};
use kubewright_cache::Key;
use tokio_util::sync::CancellationToken;

use super::Shell;
use crate::node::kubelet::downward::Place;
use crate::node::kubelet::environment::{self, expand};
use crate::node::kubelet::sources::pull_secrets;
use crate::node::kubelet::{prober, volumes};
use crate::node::runtime::tokens::Tokens;
use crate::node::runtime::{
    ContainerConfig, ContainerEvents, ContainerId, ExecTarget, Exit, Health, ImagePull, LogWriter,
    PodId, PodVolumes, ResourceLimits, Runtime,
};
use crate::node::script::containers;
use crate::node::signal::{Order, Report, Signal, What};

/// What came of something that the runtime was asked for.
pub(super) struct Heard {
    key: Key,
    id: ContainerId,
    what: Said,
}

/// What a runtime says.
enum Said {
    Reported(Report),
    /// It runs; this resolves when it has ended.
    Running(BoxFuture<'static, Exit>),
}

impl Shell<'_> {
    /// Has the runtime do something for a container.
    pub(super) fn carry_out(&mut self, key: &Key, pod: &Arc<Pod>, node: &str, order: Order) {
        let found = containers(pod).find(|(_, container)| container.name == order.container);
        let Some((_, container)) = found else {
            return;
        };
        let mut container = container.into_owned();
        if let Some(allocated) = self.fleet.allocated(key, pod, &order.container) {
            container.resources = Some(allocated);
        }
        let runtime = self.options.engine.of(&container);
        let id = ContainerId::new(PodId::of(pod), &order.container, order.run);
        match order.what {
            What::Stop { grace } => runtime.stop(&id, grace),
            What::Start => self.start_live(key, pod, node, (container, id), runtime),
            What::Probe(kind) => {
                let limit = prober::limit(&container, kind);
                let target = self.target(key, pod, container, id.clone());
                let key = key.clone();
                self.live.spawn(async move {
                    let probe = tokio::time::timeout(limit, runtime.probe(target, kind));
                    let late = || Health::Unhealthy("context deadline exceeded".to_owned());
                    let health = probe.await.unwrap_or_else(|_| late());
                    let what = Said::Reported(Report::Probed(kind, health));
                    Heard { key, id, what }
                });
            }
        }
    }

    fn start_live(
        &mut self,
        key: &Key,
        pod: &Arc<Pod>,
        node: &str,
        (container, id): (Container, ContainerId),
        runtime: Arc<dyn Runtime>,
    ) {
        let sources = &self.views.sources;
        let pull = ImagePull {
            image: container.image.clone().unwrap_or_default(),
            policy: container.image_pull_policy.clone().unwrap_or_default(),
            credentials: pull_secrets(pod, sources).0,
        };
        let volumes = self.volumes(key, pod);
        let target = self.target(key, pod, container, id.clone());
        let config = self.config(target, node);
        let key = key.clone();
        self.live.spawn(async move {
            let what = match run(&*runtime, volumes, pull, config).await {
                Ok(exit) => Said::Running(exit),
                Err(report) => Said::Reported(report),
            };
            Heard { key, id, what }
        });
    }

    /// Where a pod is, for the downward API.
    fn place(&self, key: &Key, pod: &Pod) -> Place {
        let (address, host) = self.fleet.place(key).unwrap_or_default();
        Place {
            pod_ip: address.map(|a| a.to_string()).unwrap_or_default(),
            host_ip: host.address,
            node: crate::pods::node_name(pod).to_owned(),
            allocatable: host.allocatable,
        }
    }

    /// The volumes of a pod for a runtime that mounts them.
    fn volumes(&self, key: &Key, pod: &Arc<Pod>) -> PodVolumes {
        PodVolumes {
            place: self.place(key, pod),
            pod: pod.clone(),
            pods: self.views.pods.clone(),
            sources: self.views.sources.clone(),
            tokens: Tokens::new(
                self.kubelet(crate::pods::node_name(pod)),
                self.environment.clone(),
            ),
            news: self.news.clone(),
        }
    }

    /// A container with what it sees.
    fn target(
        &self,
        key: &Key,
        pod: &Arc<Pod>,
        container: Container,
        id: ContainerId,
    ) -> ExecTarget {
        let place = self.place(key, pod);
        let sources = &self.views.sources;
        let env = environment::environment(pod, &container, &place, sources).unwrap_or_default();
        ExecTarget {
            files: volumes::files(pod, &container, &env, &place, sources),
            env,
            id,
            pod: pod.clone(),
            container,
        }
    }

    fn config(&mut self, target: ExecTarget, node: &str) -> ContainerConfig {
        let known = target.env.iter().cloned().collect();
        let none = Default::default();
        let expanded = |words: &Option<Vec<String>>| -> Vec<String> {
            let words = words.iter().flatten();
            words.map(|word| expand(word, &known, &none)).collect()
        };
        let environment = self.environment.clone();
        let clock: Arc<dyn Fn() -> _ + Send + Sync> = Arc::new(move || environment.now());
        let log = LogWriter::new(
            self.options.logs.clone(),
            &target.id.pod,
            &target.id.container,
            clock,
        );
        let events = ContainerEvents {
            recorder: self.recorders.of(node).clone(),
            about: ObjectReference {
                field_path: Some(format!("spec.containers{{{}}}", target.id.container)),
                ..kube::Resource::object_ref(&*target.pod, &())
            },
        };
        let key = Key::new(&target.id.pod.namespace, &target.id.pod.name);
        ContainerConfig {
            command: expanded(&target.container.command),
            args: expanded(&target.container.args),
            limits: ResourceLimits::of(&target.container),
            address: self.fleet.place(&key).and_then(|(address, _)| address),
            id: target.id,
            pod: target.pod,
            container: target.container,
            env: target.env,
            files: target.files,
            node: node.to_owned(),
            log,
            events,
            stopping: CancellationToken::new(),
        }
    }

    /// The runtime has reported something.
    pub(super) fn hear_live(&mut self, heard: Heard) {
        let Heard { key, id, what } = heard;
        let report = match what {
            Said::Reported(report) => report,
            Said::Running(exit) => {
                let (key, id) = (key.clone(), id.clone());
                self.live.spawn(async move {
                    let what = Said::Reported(Report::Exited(exit.await));
                    Heard { key, id, what }
                });
                Report::Started
            }
        };
        let signal = Signal::Reported {
            container: id.container,
            run: id.run,
            report,
        };
        let same = self.fleet.uid(&key) == Some(&*id.pod.uid);
        if same && self.fleet.signal(&key, signal) {
            self.stirred.insert(key);
        }
    }
}

/// Mounts the volumes of a container, pulls its image and starts it; resolves to what resolves when it has ended.
///
/// # Errors
/// What failed on the way.
async fn run(
    runtime: &dyn Runtime,
    volumes: PodVolumes,
    pull: ImagePull,
    config: ContainerConfig,
) -> Result<BoxFuture<'static, Exit>, Report> {
    let mounted = runtime.mount(volumes).await;
    mounted.map_err(|error| Report::MountFailed(error.to_string()))?;
    let pulled = runtime.pull(pull).await;
    pulled.map_err(|error| Report::PullFailed(error.0))?;
    config.log.begin();
    let started = runtime.start(config).await;
    started.map_err(|error| Report::StartFailed(error.0))
}
