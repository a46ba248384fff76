//! Events: what an operator tells people about an object, shown by `kubectl describe`.
//!
//! Recording never waits and never fails: an event goes into a bounded queue, and one task writes it. The same event
//! again is counted on the first one (`x7 over 16m`); many similar ones become one; a flood is cut. All as client-go's
//! `record` package does it, with both APIs.

mod correlator;
mod encode;
mod recent;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kubewright_cache::AsObject;
use tokio::sync::mpsc;

pub use writer::EventWriter;

use crate::described::Described;
use crate::environment::Environment;
use correlator::Limits;

/// Longest message, as events.k8s.io takes it.
const MESSAGE: usize = 1024;
/// Longest reason.
const REASON: usize = 128;

/// How an event is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// Things go as they should.
    Normal,
    /// Somebody may want to look.
    Warning,
}

impl EventKind {
    /// As it stands in an event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Which API events are written to. People see the same events in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EventApi {
    /// `v1`, with a count; `kubectl describe` shows how often and over what time.
    #[default]
    Core,
    /// `events.k8s.io/v1`, with a series. Other than in client-go each repetition is written, within the limits of the
    /// flood, rather than one every half an hour.
    Events,
}

/// Who records, and how much.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[must_use]
pub struct RecorderOptions {
    component: String,
    instance: String,
    api: EventApi,
    queue: usize,
    limits: Limits,
}

impl RecorderOptions {
    /// Events of this component, say `foo-controller`, in `v1`, with a thousand waiting at most.
    pub fn new(component: &str) -> Self {
        Self {
            component: component.into(),
            instance: component.into(),
            api: EventApi::default(),
            queue: 1_000,
            limits: Limits::default(),
        }
    }

    /// Which of the replicas this is: a host or pod name.
    pub fn instance(mut self, instance: &str) -> Self {
        self.instance = cut(instance, REASON).into();
        self
    }

    /// The API to write to.
    pub fn api(mut self, api: EventApi) -> Self {
        self.api = api;
        self
    }

    /// How many events may wait to be written; more are dropped and counted.
    pub fn queue(mut self, events: usize) -> Self {
        self.queue = events.max(1);
        self
    }

    /// From how many events on, of which no two are further apart than this, those that differ in nothing but their messages are
    /// combined into one. By default ten within ten minutes, as in client-go.
    pub fn aggregation(mut self, events: usize, interval: Duration) -> Self {
        self.limits.similar = events.max(1);
        self.limits.interval = interval;
        self
    }

    /// How many events about one object a component may write at once, and after what time one more. What is held back is still
    /// counted. By default 25 and five minutes, as in client-go; no time at all holds nothing back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kubewright_runtime::events::RecorderOptions;
    ///
    /// let options = RecorderOptions::new("importer")
    ///     .aggregation(100, Duration::from_secs(60))
    ///     .flood_limit(200, Duration::from_secs(1));
    /// # drop(options);
    /// ```
    pub fn flood_limit(mut self, burst: u32, refill: Duration) -> Self {
        self.limits.burst = burst.max(1);
        self.limits.refill = refill;
        self
    }
}

/// Something that happened once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Occurrence {
    reference: ObjectReference,
    kind: EventKind,
    reason: String,
    message: String,
    /// Who records it, if that is not the component of the options.
    component: Option<Arc<str>>,
    /// The machine that it happened on, if that matters.
    host: Option<Arc<str>>,
    /// What was done; nothing where the reason says it.
    action: Option<Arc<str>>,
    /// Another object that has to do with it.
    related: Option<Arc<ObjectReference>>,
    at: Timestamp,
}

/// Records events. Clones write to the same queue.
#[derive(Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Recorded>,
    dropped: Arc<AtomicU64>,
    environment: Environment,
    /// Who sends its events, if not the writer's client.
    sender: Option<Client>,
    component: Option<Arc<str>>,
    host: Option<Arc<str>>,
    action: Option<Arc<str>>,
    related: Option<Arc<ObjectReference>>,
}

/// An event in the queue, and who sends it, if not the writer's client.
pub(crate) struct Recorded {
    occurrence: Occurrence,
    sender: Option<Client>,
}

impl Recorder {
    /// A recorder, and the writer that has to run for its events to arrive.
    pub fn new(
        client: Client,
        options: RecorderOptions,
        environment: Environment,
    ) -> (Self, EventWriter) {
        let (queue, waiting) = mpsc::channel(options.queue);
        let writer = EventWriter::new(client, options, environment.clone(), waiting);
        let recorder = Self {
            queue,
            dropped: Arc::default(),
            environment,
            sender: None,
            component: None,
            host: None,
            action: None,
            related: None,
        };
        (recorder, writer)
    }

    /// The same recorder, whose events are sent through this client.
    #[must_use]
    pub fn with_kube(&self, kube: Client) -> Self {
        Self {
            sender: Some(kube),
            ..self.clone()
        }
    }

    /// The same recorder, whose events are reported by this component in place of that of the options. Each component has
    /// [limits](RecorderOptions::flood_limit) of its own.
    #[must_use]
    pub fn with_component(&self, component: &str) -> Self {
        Self {
            component: Some(component.into()),
            ..self.clone()
        }
    }

    /// The same recorder, whose events name the machine that they come from, as those of agents on nodes do.
    #[must_use]
    pub fn with_host(&self, host: &str) -> Self {
        Self {
            host: Some(host.into()),
            ..self.clone()
        }
    }

    /// The same recorder, whose events say what was done or tried, a word in CamelCase such as `Scaling`. Without it, an event of
    /// `events.k8s.io/v1` has its reason as the action, because that API wants one.
    #[must_use]
    pub fn with_action(&self, action: &str) -> Self {
        Self {
            action: Some(cut(action, REASON).into()),
            ..self.clone()
        }
    }

    /// The same recorder, whose events name another object that has to do with them: what was made, or what was in the way.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kubewright_runtime::{Context, EventKind, events};
    /// # fn tell(cx: &Context, deployment: &Deployment, pod: &Pod) {
    /// let recorder = cx.recorder().with_action("Evicting").with_related(&events::reference_of(pod));
    /// recorder.about(deployment, EventKind::Warning, "Blocked", "a budget does not let the pod go");
    /// # }
    /// ```
    #[must_use]
    pub fn with_related(&self, object: &ObjectReference) -> Self {
        Self {
            related: Some(Arc::new(object.clone())),
            ..self.clone()
        }
    }

    /// Records that something happened to an object. The reason is a word in CamelCase, the message is for people; what
    /// is longer than the API takes is cut.
    pub fn event(&self, reference: &ObjectReference, kind: EventKind, reason: &str, message: &str) {
        let occurrence = Occurrence {
            reference: reference.clone(),
            kind,
            reason: cut(reason, REASON).into(),
            message: cut(message, MESSAGE).into(),
            component: self.component.clone(),
            host: self.host.clone(),
            action: self.action.clone(),
            related: self.related.clone(),
            at: self.environment.now(),
        };
        let recorded = Recorded {
            occurrence,
            sender: self.sender.clone(),
        };
        if self.queue.try_send(recorded).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(reason, "an event was dropped: too many are waiting");
        }
    }

    /// Records that something happened to this object.
    pub fn about<K: Described>(
        &self,
        object: impl AsObject<K>,
        kind: EventKind,
        reason: &str,
        message: &str,
    ) {
        self.event(&reference_of(object), kind, reason, message);
    }

    /// How many events were dropped because too many were waiting, or nobody writes.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder({:?})", self.queue)
    }
}

/// The reference to an object that events are about.
pub fn reference_of<K: Described>(object: impl AsObject<K>) -> ObjectReference {
    let object = object.as_object();
    let (types, meta) = (object.type_meta(), object.meta());
    let (api_version, kind) = types.map(|types| (types.api_version, types.kind)).unzip();
    ObjectReference {
        api_version,
        kind,
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// The start of a text, at most so many bytes and whole characters.
fn cut(text: &str, most: usize) -> &str {
    let whole = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=most.min(text.len())).rev().find(whole);
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests;
