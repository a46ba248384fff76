//! What the node lifecycle controller hears from informers.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kubewright_cache::{Event, Handler, Key};
use tokio::sync::mpsc;

use super::{LEASES, health};

/// What informers tell.
#[derive(Debug)]
pub(super) enum News {
    Node(Key),
    Pod(Key),
    /// The name of a node, and when it says that it renewed its lease.
    Lease(String, Timestamp),
}

/// Passes on that nodes have renewed their leases.
#[derive(Clone)]
pub(super) struct LeaseEar(pub(super) mpsc::Sender<News>);

impl Handler<Lease> for LeaseEar {
    async fn handle(&mut self, event: Event<Lease>) {
        let lease = event.object();
        if lease.key().namespace() != Some(LEASES) {
            return;
        }
        if let Some(renewed) = health::renew_time(lease.json()) {
            let news = News::Lease(lease.key().name().to_owned(), renewed);
            // An error means that the controller has stopped.
            let _ = self.0.send(news).await;
        }
    }
}

/// Passes keys on.
#[derive(Clone)]
pub(super) struct Ear {
    pub(super) news: mpsc::Sender<News>,
    pub(super) make: fn(Key) -> News,
}

impl<K: Send + Sync + 'static> Handler<K> for Ear {
    async fn handle(&mut self, event: Event<K>) {
        let news = (self.make)(event.object().key().clone());
        // An error means that the controller has stopped.
        let _ = self.news.send(news).await;
    }
}
