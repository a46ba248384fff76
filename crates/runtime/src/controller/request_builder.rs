//! How a controller without objects of its own is described.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubewright_workqueue::{PriorityPolicy, RateLimiter};

use super::target::RequestTarget;
use super::worker::Worker;
use super::{Controller, Leadership, QueueOptions, Settings, TIMEOUT, WarmUp};
use crate::reconciler::RequestReconciler;
use crate::requests::{ObjectEvent, Request};
use crate::watch::Source;

/// Describes a controller of requests of any type.
#[must_use = "a builder does nothing until it is given a reconciler"]
pub struct RequestBuilder<R: Request> {
    name: Arc<str>,
    sources: Vec<Box<dyn Source<R>>>,
    queue: QueueOptions<R>,
    timeout: Option<Duration>,
    settings: Settings,
}

impl Controller {
    /// A controller that has no kind of its own: what it reconciles is whatever its sources ask for.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Node;
    /// use kubewright_runtime::{Context, Controller, Key, Outcome, Request, Watch};
    ///
    /// #[derive(Clone, PartialEq, Eq, Hash)]
    /// struct Zone(String);
    ///
    /// impl Request for Zone {
    ///     fn key(&self) -> Key {
    ///         Key::cluster(&self.0)
    ///     }
    /// }
    ///
    /// let nodes = Watch::of::<Node>().map(|node, _| {
    ///     let zone = node.metadata.labels.as_ref().and_then(|all| all.get("topology.kubernetes.io/zone"));
    ///     zone.cloned().map(Zone).into_iter().collect()
    /// });
    /// let controller = Controller::for_requests("zones")
    ///     .watches(nodes)
    ///     .reconciler(|zone: Zone, _cx: Context| async move {
    ///         println!("{} has changed", zone.0);
    ///         Ok(Outcome::done())
    ///     });
    /// assert_eq!(controller.name(), "zones");
    /// ```
    pub fn for_requests<R: Request>(name: &str) -> RequestBuilder<R> {
        RequestBuilder {
            name: name.into(),
            sources: Vec::new(),
            queue: QueueOptions::default(),
            timeout: Some(TIMEOUT),
            settings: Settings::default(),
        }
    }
}

impl<R: Request> RequestBuilder<R> {
    /// A source of requests: a [`Watch`](crate::Watch), a [`Channel`](crate::watch::Channel), or one's own.
    pub fn watches(mut self, source: impl Source<R>) -> Self {
        self.sources.push(Box::new(source));
        self
    }

    /// How many reconciles may run at once, each of another request. By default one.
    pub fn workers(mut self, workers: usize) -> Self {
        self.settings.workers = workers.max(1);
        self
    }

    /// How long failed requests wait. By default 5 ms, doubling up to 1000 s.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<R>) -> Self {
        self.queue.limiter = Box::new(limiter);
        self
    }

    /// What priorities do to the order of requests. By default [`PriorityPolicy::FAIR`].
    pub fn priorities(mut self, policy: PriorityPolicy) -> Self {
        self.queue.priorities = policy;
        self
    }

    /// Only events for which this holds, of every watch of the controller.
    pub fn event_filter(
        mut self,
        holds: impl Fn(&ObjectEvent<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.queue.filter = Some(Arc::new(holds));
        self
    }

    /// How long one reconcile may take. By default five minutes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long the first state of all watches may take before the controller gives up. By default two minutes.
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.settings.sync_timeout = timeout;
        self
    }

    /// Whether only a leader runs it.
    pub fn leadership(mut self, leadership: Leadership) -> Self {
        self.settings.leadership = leadership;
        self
    }

    /// When its sources start, if it waits for leadership.
    pub fn warm_up(mut self, warm_up: WarmUp) -> Self {
        self.settings.warm_up = warm_up;
        self
    }

    /// The controller, with what it does.
    pub fn reconciler(self, reconciler: impl RequestReconciler<R>) -> Controller<R> {
        let work = Worker::new(self.name.clone(), RequestTarget(reconciler), self.timeout);
        Controller::new(
            self.name,
            self.settings,
            self.queue,
            self.sources,
            Arc::new(work),
        )
    }
}

impl<R: Request> fmt::Debug for RequestBuilder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestBuilder({})", self.name)
    }
}
