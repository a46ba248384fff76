//! A source that programs feed by hand: timers, queues of other systems, webhooks of other services.

use std::sync::Arc;

use kubewright_cache::Key;
use kubewright_cache::source::BoxFuture;
use tokio::sync::{Mutex, mpsc};

use super::{Running, Source, SourceError, Subject};
use crate::client::Client;
use crate::requests::{Request, Requests};

/// Requests that may wait before the controller has started.
const CAPACITY: usize = 1024;

/// The end that a controller reads. Clones are the same end: of several controllers that have one, the first to start reads it
/// until it stops.
///
/// ```
/// use kubewright_runtime::{Context, Controller, Key, Outcome, Request};
/// use kubewright_runtime::watch::Channel;
///
/// #[derive(Debug, Clone, PartialEq, Eq, Hash)]
/// struct Bucket(String);
///
/// impl Request for Bucket {
///     fn key(&self) -> Key {
///         Key::cluster(&self.0)
///     }
/// }
///
/// // Both ends are given to the manager with `manager.state(sender).state(channel)`: webhooks and reconcilers send, and a
/// // registered controller takes the channel as a parameter.
/// fn buckets(channel: Option<&Channel<Bucket>>) -> Controller<Bucket> {
///     Controller::for_requests("buckets")
///         .watches(channel.cloned())
///         .reconciler(|_bucket: Bucket, _cx: Context| async { Ok(Outcome::done()) })
/// }
/// assert_eq!(buckets(None).name(), "buckets");
/// ```
#[derive(Debug)]
pub struct Channel<R: Request = Key>(Arc<Mutex<mpsc::Receiver<R>>>);

/// The end that requests are put in. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sender<R: Request = Key>(mpsc::Sender<R>);

/// Nobody reads the channel any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the controller has stopped")]
pub struct Closed;

impl<R: Request> Channel<R> {
    /// A channel: give one end to a controller and keep the other.
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// # runtime.block_on(async {
    /// use kubewright_runtime::Key;
    /// use kubewright_runtime::watch::Channel;
    ///
    /// let (sender, channel) = Channel::new();
    /// sender.send(Key::new("default", "web")).await.unwrap();
    /// drop(channel);
    /// assert!(sender.send(Key::new("default", "web")).await.is_err(), "nobody listens any more");
    /// # });
    /// ```
    pub fn new() -> (Sender<R>, Self) {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        (Sender(sender), Self(Arc::new(Mutex::new(receiver))))
    }
}

impl<R: Request> Sender<R> {
    /// Asks for a reconcile, and waits while too many are asked for before the controller has started.
    ///
    /// # Errors
    /// When the controller has stopped.
    pub async fn send(&self, request: R) -> Result<(), Closed> {
        self.0.send(request).await.map_err(|_| Closed)
    }
}

impl<R: Request> Clone for Channel<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R: Request> Source<R> for Channel<R> {
    fn start(
        self: Box<Self>,
        _client: Client,
        requests: Requests<R>,
    ) -> BoxFuture<'static, Result<Running, SourceError>> {
        Box::pin(async move {
            let task = tokio::spawn(async move {
                let mut receiver = self.0.lock().await;
                while let Some(request) = receiver.recv().await {
                    requests.add(request);
                }
            });
            Ok(Running::until(move || task.abort()))
        })
    }

    fn describe(&self) -> String {
        "a channel".to_owned()
    }
}

/// A source that may be missing: nothing comes from it then.
impl<R: Request, S: Source<R>> Source<R> for Option<S> {
    fn start(
        self: Box<Self>,
        client: Client,
        requests: Requests<R>,
    ) -> BoxFuture<'static, Result<Running, SourceError>> {
        match *self {
            Some(source) => Box::new(source).start(client, requests),
            None => Box::pin(async { Ok(Running::until(|| {})) }),
        }
    }

    fn describe(&self) -> String {
        match self {
            Some(source) => source.describe(),
            None => "nothing".to_owned(),
        }
    }

    fn subject(&self) -> Option<Subject> {
        self.as_ref().and_then(|source| source.subject())
    }
}
