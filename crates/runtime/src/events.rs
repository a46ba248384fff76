//! Events: what happened to an object, told to its users.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::Resource;
use tokio::sync::mpsc;

use crate::environment::Environment;

/// Whether an event is good news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// As it should be.
    Normal,
    /// Somebody should look.
    Warning,
}

/// Sends events in the background. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recorder {
    component: Arc<str>,
    environment: Environment,
    queue: mpsc::Sender<Event>,
}

impl Recorder {
    pub(crate) fn start(client: kube::Client, component: &str, environment: Environment) -> Self {
        let (queue, mut events) = mpsc::channel::<Event>(1024);
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                let namespace = event.metadata.namespace.clone().unwrap_or_default();
                let api = kube::Api::<Event>::namespaced(client.clone(), &namespace);
                if let Err(error) = api.create(&Default::default(), &event).await {
                    tracing::warn!(%error, "an event was lost");
                }
            }
        });
        Self {
            component: component.into(),
            environment,
            queue,
        }
    }

    pub(crate) fn event<K: Resource>(&self, object: &K, kind: EventKind, reason: &str, note: &str)
    where
        K::DynamicType: Default,
    {
        let involved_object = object.object_ref(&K::DynamicType::default());
        let now = self.environment.now();
        let mut event = Event::default();
        let namespace = involved_object.namespace.clone();
        event.metadata.namespace = Some(namespace.unwrap_or_else(|| "default".to_owned()));
        let name = involved_object.name.clone().unwrap_or_default();
        event.metadata.name = Some(format!("{name}.{:x}", now.as_nanosecond()));
        event.involved_object = involved_object;
        event.reason = Some(reason.to_owned());
        event.message = Some(note.to_owned());
        event.type_ = Some(format!("{kind:?}"));
        event.count = Some(1);
        event.first_timestamp = Some(Time(now));
        event.last_timestamp = Some(Time(now));
        event.source = Some(k8s_openapi::api::core::v1::EventSource {
            component: Some(self.component.to_string()),
            host: None,
        });
        if self.queue.try_send(event).is_err() {
            tracing::warn!("too many events wait; one was dropped");
        }
    }
}
