//! A source that programs feed by hand: timers, queues of other systems, webhooks of other services.

use kubewright_cache::Key;
use kubewright_cache::source::BoxFuture;
use tokio::sync::mpsc;

use super::{Running, Source, SourceError};
use crate::client::Client;
use crate::requests::Requests;

/// Keys that may wait before the controller has started.
const CAPACITY: usize = 1024;

/// The end that a controller reads.
#[derive(Debug)]
pub struct Channel(mpsc::Receiver<Key>);

/// The end that keys are put in. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sender(mpsc::Sender<Key>);

/// Nobody reads the channel any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the controller has stopped")]
pub struct Closed;

impl Channel {
    /// A channel: give one end to a controller and keep the other.
    pub fn new() -> (Sender, Self) {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        (Sender(sender), Self(receiver))
    }
}

impl Sender {
    /// Asks for a reconcile, and waits while too many are asked for before the controller has started.
    ///
    /// # Errors
    /// When the controller has stopped.
    pub async fn send(&self, key: Key) -> Result<(), Closed> {
        self.0.send(key).await.map_err(|_| Closed)
    }
}

impl Source for Channel {
    fn start(
        mut self: Box<Self>,
        _client: Client,
        requests: Requests,
    ) -> BoxFuture<'static, Result<Running, SourceError>> {
        Box::pin(async move {
            let task = tokio::spawn(async move {
                while let Some(key) = self.0.recv().await {
                    requests.add(key);
                }
            });
            Ok(Running::until(move || task.abort()))
        })
    }

    fn describe(&self) -> String {
        "a channel".to_owned()
    }
}
