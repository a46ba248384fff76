//! What a runtime is given of a container: its identity, and everything resolved that it needs to start.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Amount;
use kubewright_cache::Key;
use kubewright_runtime::{EventKind, Recorder};
use kubewright_schema::quantity::Quantity;
use kubewright_server::{LogOf, LogRun, PodLogs};
use tokio_util::sync::CancellationToken;

use crate::node::logs::{Keep, Logs};
use crate::node::step::{Output, Written};

/// Names a pod on a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct PodId {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub name: String,
    /// Its uid, which tells it from another pod of the same name.
    pub uid: String,
}

impl PodId {
    /// Names a pod by its metadata.
    pub fn new(namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        }
    }

    /// The identity of a pod object.
    pub fn of(pod: &Pod) -> Self {
        let meta = &pod.metadata;
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        Self {
            namespace: text(&meta.namespace),
            name: text(&meta.name),
            uid: text(&meta.uid),
        }
    }
}

impl fmt::Display for PodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Names one run of a container.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ContainerId {
    /// The pod that it is in.
    pub pod: PodId,
    /// Its name in the pod.
    pub container: String,
    /// Which run it is, from zero: the number of restarts before it.
    pub run: u32,
}

impl ContainerId {
    /// Names a run of a container.
    pub fn new(pod: PodId, container: &str, run: u32) -> Self {
        Self {
            pod,
            container: container.to_owned(),
            run,
        }
    }
}

/// A file that a volume puts into a container.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountedFile {
    /// Its path in the container.
    pub path: String,
    /// What is in it.
    pub content: Bytes,
    /// The permissions of the file, as in `chmod`.
    pub mode: u32,
}

/// How much of a machine a container may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ResourceLimits {
    /// Most memory, in bytes.
    pub memory: Option<u64>,
    /// Most processor time, in thousandths of a core.
    pub cpu: Option<u64>,
    /// The share of processor time that it is meant to have, in thousandths of a core.
    pub cpu_request: Option<u64>,
}

impl ResourceLimits {
    /// What the resources of a container say. A quantity that cannot be read sets no limit; the server refuses such.
    pub fn of(container: &Container) -> Self {
        let resources = container.resources.clone().unwrap_or_default();
        let of = |map: &Option<BTreeMap<String, Amount>>, name: &str| {
            let amount = map.as_ref()?.get(name)?;
            Quantity::parse(&amount.0).ok()
        };
        let number = |value: Option<i64>| value.and_then(|v| u64::try_from(v).ok());
        let limit = |name: &str| of(&resources.limits, name);
        Self {
            memory: number(limit("memory").and_then(|q| q.value())).filter(|bytes| *bytes > 0),
            cpu: number(limit("cpu").and_then(|q| q.milli_value())).filter(|milli| *milli > 0),
            cpu_request: number(of(&resources.requests, "cpu").and_then(|q| q.milli_value())),
        }
    }
}

/// A container that is to be started, with everything resolved.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ContainerConfig {
    /// Which run of which container this is.
    pub id: ContainerId,
    /// The pod that it is in.
    pub pod: Arc<Pod>,
    /// What the pod says about the container.
    pub container: Container,
    /// The command after `$(VAR)` expansion; empty for the image's own.
    pub command: Vec<String>,
    /// The arguments after `$(VAR)` expansion.
    pub args: Vec<String>,
    /// The environment in its order, services included.
    pub env: Vec<(String, String)>,
    /// The files of ConfigMaps, Secrets, projections and the downward API.
    pub files: Vec<MountedFile>,
    /// How much of the machine it may use.
    pub limits: ResourceLimits,
    /// The address of the pod.
    pub address: Option<Ipv4Addr>,
    /// The node that it runs on.
    pub node: String,
    /// Where its output goes.
    pub log: LogWriter,
    /// Takes events about the container.
    pub events: ContainerEvents,
    /// Cancelled when the container is asked to end: its SIGTERM.
    pub stopping: CancellationToken,
}

impl ContainerConfig {
    /// Waits until the container is asked to end.
    pub async fn stopped(&self) {
        self.stopping.cancelled().await;
    }

    /// The value of an environment variable.
    pub fn env(&self, name: &str) -> Option<&str> {
        let mut found = self.env.iter().rev().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The content of a file that a volume puts into the container.
    pub fn file(&self, path: &str) -> Option<&Bytes> {
        let found = self.files.iter().find(|file| file.path == path);
        found.map(|file| &file.content)
    }
}

/// Takes the output of one run of a container, for `kubectl logs`. Cheap to clone.
#[derive(Clone)]
pub struct LogWriter {
    logs: Logs,
    key: Key,
    uid: String,
    container: String,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl LogWriter {
    pub(crate) fn new(
        logs: Logs,
        pod: &PodId,
        container: &str,
        clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    ) -> Self {
        Self {
            logs,
            key: Key::new(&pod.namespace, &pod.name),
            uid: pod.uid.clone(),
            container: container.to_owned(),
            clock,
        }
    }

    /// A run begins: what was there is the log of the run before.
    pub(crate) fn begin(&self) {
        let begin = Output {
            container: self.container.clone(),
            what: Written::Begin,
        };
        let now = (self.clock)();
        self.logs
            .write(&self.key, &self.uid, now, vec![begin], Keep::Bytes);
    }

    /// The lines of this run that are kept.
    pub(crate) fn lines(&self) -> Vec<String> {
        let of = LogOf::new(
            self.key.namespace().unwrap_or(""),
            self.key.name(),
            &self.container,
        );
        let of = of.uid(&self.uid).run(LogRun::Current);
        let piece = self.logs.read(&of, 0);
        let lines = piece.map(|piece| piece.lines).unwrap_or_default();
        lines.into_iter().map(|line| line.text).collect()
    }

    /// Writes lines: one for each line of the text.
    pub fn print(&self, text: &str) {
        let lines = text.lines().map(|line| Output {
            container: self.container.clone(),
            what: Written::Line(line.to_owned()),
        });
        let now = (self.clock)();
        self.logs
            .write(&self.key, &self.uid, now, lines.collect(), Keep::Bytes);
    }
}

impl fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogWriter({}, {})", self.key, self.container)
    }
}

/// Takes events about one container, as a kubelet writes them. Cheap to clone.
#[derive(Clone)]
pub struct ContainerEvents {
    pub(crate) recorder: Recorder,
    pub(crate) about: ObjectReference,
}

impl ContainerEvents {
    /// Reports something bad about the container, such as `FailedPostStartHook`.
    pub fn warn(&self, reason: &str, message: impl AsRef<str>) {
        let message = message.as_ref();
        self.recorder
            .event(&self.about, EventKind::Warning, reason, message);
    }
}

impl ContainerEvents {
    /// Reports what is done with the container, such as `Killing`.
    pub(crate) fn note(&self, reason: &str, message: &str) {
        self.recorder
            .event(&self.about, EventKind::Normal, reason, message);
    }
}

impl fmt::Debug for ContainerEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.about.name.as_deref().unwrap_or("");
        write!(f, "ContainerEvents({name})")
    }
}
