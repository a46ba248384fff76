//! What the runtime is asked for, and what it says.

use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Container, Pod};
use kubewright_cache::Key;
use tokio_util::sync::CancellationToken;

use super::Shell;
use crate::node::kubelet::downward::Place;
use crate::node::kubelet::environment::{self, expand};
use crate::node::kubelet::sources::pull_secrets;
use crate::node::kubelet::{prober, volumes};
use crate::node::runtime::{
    ContainerConfig, ContainerId, ExecTarget, Exit, Health, ImagePull, LogWriter, PodId, Runtime,
};
use crate::node::script::containers;
use crate::node::signal::{Order, Signal, Told, What};

/// What came of something that the runtime was asked for.
pub(super) struct Heard {
    key: Key,
    id: ContainerId,
    what: Said,
}

/// What a runtime says.
enum Said {
    Told(Told),
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
        let container = container.into_owned();
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
                    let what = Said::Told(Told::Probed(kind, health));
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
        let target = self.target(key, pod, container, id.clone());
        let config = self.config(target, node);
        let key = key.clone();
        self.live.spawn(async move {
            let what = match runtime.pull(pull).await {
                Err(error) => Said::Told(Told::PullFailed(error.0)),
                Ok(()) => {
                    config.log.begin();
                    match runtime.start(config).await {
                        Ok(exit) => Said::Running(exit),
                        Err(error) => Said::Told(Told::StartFailed(error.0)),
                    }
                }
            };
            Heard { key, id, what }
        });
    }

    /// A container with what it sees.
    fn target(
        &self,
        key: &Key,
        pod: &Arc<Pod>,
        container: Container,
        id: ContainerId,
    ) -> ExecTarget {
        let (address, host) = self.fleet.place(key).unwrap_or_default();
        let place = Place {
            pod_ip: address.map(|a| a.to_string()).unwrap_or_default(),
            host_ip: host.address,
            node: crate::pods::node_name(pod).to_owned(),
            allocatable: host.allocatable,
        };
        let sources = &self.views.sources;
        let env = environment::environment(pod, &container, &place, sources);
        ExecTarget {
            files: volumes::files(pod, &container, &place, sources),
            env: env.unwrap_or_default(),
            id,
            pod: pod.clone(),
            container,
        }
    }

    fn config(&self, target: ExecTarget, node: &str) -> ContainerConfig {
        let known = target.env.iter().cloned().collect();
        let none = Default::default();
        let expanded = |words: &Option<Vec<String>>| -> Vec<String> {
            let words = words.iter().flatten();
            words.map(|word| expand(word, &known, &none)).collect()
        };
        let environment = self.environment.clone();
        let log = LogWriter::new(
            self.options.logs.clone(),
            &target.id.pod,
            &target.id.container,
            Arc::new(move || environment.now()),
        );
        let key = Key::new(&target.id.pod.namespace, &target.id.pod.name);
        ContainerConfig {
            command: expanded(&target.container.command),
            args: expanded(&target.container.args),
            address: self.fleet.place(&key).and_then(|(address, _)| address),
            id: target.id,
            pod: target.pod,
            container: target.container,
            env: target.env,
            files: target.files,
            node: node.to_owned(),
            log,
            stopping: CancellationToken::new(),
        }
    }

    /// The runtime has reported something.
    pub(super) fn hear_live(&mut self, heard: Heard) {
        let Heard { key, id, what } = heard;
        let what = match what {
            Said::Told(told) => told,
            Said::Running(exit) => {
                let (key, id) = (key.clone(), id.clone());
                self.live.spawn(async move {
                    let what = Said::Told(Told::Exited(exit.await));
                    Heard { key, id, what }
                });
                Told::Started
            }
        };
        let signal = Signal::Told {
            container: id.container,
            run: id.run,
            what,
        };
        let same = self.fleet.uid(&key) == Some(&*id.pod.uid);
        if same && self.fleet.signal(&key, signal) {
            self.stirred.insert(key);
        }
    }
}
