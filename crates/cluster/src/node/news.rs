//! What informers and the runtime report to the nodes.

use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright_cache::{Event, Handler, Key};
use tokio::sync::mpsc;

/// What is new.
#[derive(Debug)]
pub(super) enum News {
    Pod(Key),
    PodGone(Key),
    Node(Key),
    /// A node is gone; its uid.
    NodeGone(Key, String),
    /// The pod with this key and uid uses more than it may, as the message says.
    Excess(Key, String, String),
}

/// Tells of pods by their keys: what they are like is looked up when it is their turn.
#[derive(Clone)]
pub(super) struct PodEar(pub(super) mpsc::Sender<News>);

impl Handler<Pod> for PodEar {
    async fn handle(&mut self, event: Event<Pod>) {
        let key = event.object().key().clone();
        let news = match event {
            Event::Deleted { .. } => News::PodGone(key),
            _ => News::Pod(key),
        };
        // An error means that the nodes have stopped.
        let _ = self.0.send(news).await;
    }
}

/// Tells of nodes.
#[derive(Clone)]
pub(super) struct NodeEar(pub(super) mpsc::Sender<News>);

impl Handler<Node> for NodeEar {
    async fn handle(&mut self, event: Event<Node>) {
        let key = event.object().key().clone();
        let news = match event {
            Event::Deleted { last, .. } => {
                let uid = last.value().and_then(|node| node.metadata.uid.clone());
                News::NodeGone(key, uid.unwrap_or_default())
            }
            _ => News::Node(key),
        };
        // An error means that the nodes have stopped.
        let _ = self.0.send(news).await;
    }
}
