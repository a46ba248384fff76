//! Event handlers: what a change of an object asks of a controller.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use kubewright_cache::{Cached, Event, Key};
use kubewright_workqueue::{Add, Priority};

use crate::cause::{Origin, Raised, priority_of};
use crate::client::{Client, Object};
use crate::requests::{Request, Requests};

/// Decides what is to be reconciled because of a change, when, and how urgently.
///
/// A handler is called for one event after the other, by the task that tells of them: it must not block. A panic ends the
/// manager, since the event would be lost. Every closure of this shape is a handler.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewright_runtime::{Event, Watch, watch::EventQueue};
///
/// // A pod that is gone is looked at at once, any other change after a minute.
/// let watch = Watch::of::<Pod>().handler(|event: &Event<Pod>, queue: &EventQueue<'_>| {
///     let key = event.object().key().clone();
///     match event {
///         Event::Deleted { .. } => queue.add(key),
///         _ => queue.add_after(key, Duration::from_secs(60)),
///     }
/// });
/// ```
pub trait EventHandler<K, R: Request = Key>: Send + Sync + 'static {
    /// Adds to the queue what the event asks for.
    fn handle(&self, event: &Event<K>, queue: &EventQueue<'_, R>);
}

impl<K, R, F> EventHandler<K, R> for F
where
    R: Request,
    F: Fn(&Event<K>, &EventQueue<'_, R>) + Send + Sync + 'static,
{
    fn handle(&self, event: &Event<K>, queue: &EventQueue<'_, R>) {
        self(event, queue);
    }
}

/// The queue of a controller as the handler of one event sees it: what is added has that event as its cause.
pub struct EventQueue<'a, R: Request = Key> {
    requests: &'a Requests<R>,
    client: &'a Client,
    describe: &'a dyn Fn() -> Raised,
    /// Described for the first request, and shared by all.
    raised: OnceCell<Raised>,
    priority: Priority,
}

impl<'a, R: Request> EventQueue<'a, R> {
    /// Asks for a reconcile. What was there when the controller began, and resyncs, are less urgent than changes.
    pub fn add(&self, request: R) {
        self.add_with(request, Add::now().priority(self.priority));
    }

    /// Asks for a reconcile once this time has passed.
    pub fn add_after(&self, request: R, delay: Duration) {
        self.add_with(request, Add::after(delay).priority(self.priority));
    }

    /// Asks for a reconcile after the delay that the controller's rate limiter decides.
    pub fn add_rate_limited(&self, request: R) {
        self.add_with(request, Add::rate_limited().priority(self.priority));
    }

    /// Asks for a reconcile, saying when and how urgently.
    pub fn add_with(&self, request: R, how: Add) {
        let raised = self.raised.get_or_init(|| (self.describe)());
        self.requests.raise(request, raised.clone(), how);
    }

    /// The client of the controller, whose reads come from the cache. Also for objects of [another cluster](crate::Watch::cluster)
    /// it is that of the controller's own.
    pub fn client(&self) -> &'a Client {
        self.client
    }
}

impl<R: Request> fmt::Debug for EventQueue<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventQueue({:?})", self.requests)
    }
}

/// Calls a handler for an event.
pub(super) fn handle<K: Object, R: Request>(
    handler: &dyn EventHandler<K, R>,
    event: &Event<K>,
    origin: &Origin,
    client: &Client,
    requests: &Requests<R>,
) {
    let describe = || Raised::by(origin, event);
    let queue = EventQueue {
        requests,
        client,
        describe: &describe,
        raised: OnceCell::new(),
        priority: priority_of(event),
    };
    handler.handle(event, &queue);
}

/// The handler that adds what a function makes of an object, before the change as well as after it.
pub(super) struct Mapped<F>(pub(super) F);

impl<K, R, F> EventHandler<K, R> for Mapped<F>
where
    K: Object,
    R: Request,
    F: Fn(&Cached<K>, &Client) -> Vec<R> + Send + Sync + 'static,
{
    fn handle(&self, event: &Event<K>, queue: &EventQueue<'_, R>) {
        let mut requests = (self.0)(event.object(), queue.client());
        if let Event::Updated { old, .. } = event
            && !event.is_resync()
        {
            // What an object no longer leads to has to hear of it as well.
            requests.extend((self.0)(old, queue.client()));
            drop_repeated(&mut requests);
        }
        requests.into_iter().for_each(|request| queue.add(request));
    }
}

/// Keeps the first of equal requests.
fn drop_repeated<R: Request>(requests: &mut Vec<R>) {
    // By far the most changes lead to the same one request before and after.
    if let [one, other] = &requests[..] {
        if one == other {
            requests.pop();
        }
        return;
    }
    let mut seen = HashSet::new();
    requests.retain(|request| seen.insert(request.clone()));
}
