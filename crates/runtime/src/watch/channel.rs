//! A source that programs feed by hand: timers, queues of other systems, webhooks of other services.

use kubewright_cache::Key;
use kubewright_cache::source::BoxFuture;
use tokio::sync::mpsc;

use super::{Running, Source, SourceError};
use crate::client::Client;
use crate::requests::{Request, Requests};

/// Requests that may wait before the controller has started.
const CAPACITY: usize = 1024;

/// The end that a controller reads.
#[derive(Debug)]
pub struct Channel<R: Request = Key>(mpsc::Receiver<R>);

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
        (Sender(sender), Self(receiver))
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

impl<R: Request> Source<R> for Channel<R> {
    fn start(
        mut self: Box<Self>,
        _client: Client,
        requests: Requests<R>,
    ) -> BoxFuture<'static, Result<Running, SourceError>> {
        Box::pin(async move {
            let task = tokio::spawn(async move {
                while let Some(request) = self.0.recv().await {
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
