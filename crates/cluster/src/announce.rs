//! Events about objects, written in the background: telling of something never delays it.
//!
//! What is reported again is counted on the event that exists. When more is reported than can be written, some of it is
//! dropped, as real components do that limit their rate.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kubewright_runtime::Environment;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::identity::{self, Acting};

/// How many events may wait.
const WAITING: usize = 4_096;
/// How many reported events are remembered.
const REMEMBERED: usize = 4_096;

/// Takes events. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Announcer {
    queue: mpsc::Sender<Told>,
}

/// Something that happened to an object.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) about: ObjectReference,
    /// `Normal` or `Warning`.
    pub(crate) kind: &'static str,
    pub(crate) reason: Cow<'static, str>,
    pub(crate) message: String,
    /// The node that tells it, if one does.
    pub(crate) host: Option<String>,
    pub(crate) at: Timestamp,
}

/// Writes what an announcer takes.
pub(crate) struct Writer {
    client: kube::Client,
    environment: Environment,
    component: &'static str,
    queue: mpsc::Receiver<Told>,
    told: BTreeMap<Identity, Known>,
}

/// What makes two events the same: whom it is about, which part of it, the reason and the message.
type Identity = (String, String, Cow<'static, str>, String);

#[derive(Debug)]
struct Known {
    name: String,
    count: i32,
}

impl Announcer {
    /// An announcer of a component, and what has to run for it.
    pub(crate) fn new(
        client: kube::Client,
        environment: Environment,
        component: &'static str,
    ) -> (Self, Writer) {
        let (sender, queue) = mpsc::channel(WAITING);
        let writer = Writer {
            client,
            environment,
            component,
            queue,
            told: BTreeMap::new(),
        };
        (Self { queue: sender }, writer)
    }

    /// Tells of something.
    pub(crate) fn tell(&self, told: Told) {
        if let Err(error) = self.queue.try_send(told) {
            tracing::debug!(%error, "an event was dropped");
        }
    }
}

impl Writer {
    /// Writes events until it is cancelled.
    pub(crate) async fn run(mut self, cancel: CancellationToken) {
        loop {
            let next = tokio::select! {
                // The end first: what waits is not worth a delay.
                biased;
                () = cancel.cancelled() => return,
                next = self.queue.recv() => next,
            };
            let Some(told) = next else { return };
            if let Err(error) = self.write(told).await {
                tracing::debug!(%error, "an event was lost");
            }
        }
    }

    async fn write(&mut self, told: Told) -> Result<(), kube::Error> {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let same = (
            text(&told.about.uid),
            text(&told.about.field_path),
            told.reason.clone(),
            told.message.clone(),
        );
        let namespace = match text(&told.about.namespace) {
            none if none.is_empty() => "default".to_owned(),
            some => some,
        };
        // What a node reports is written by its kubelet.
        let author = Acting::new(&self.client, told.host.as_deref().map(identity::node));
        if let Some(known) = self.told.get_mut(&same) {
            known.count = known.count.saturating_add(1);
            let again = json!({"count": known.count, "lastTimestamp": Time(told.at)});
            let params = PatchParams::default();
            let event = (Some(&*namespace), &*known.name);
            let patched = author
                .patch::<Event>(event, &params, &Patch::Merge(again))
                .await;
            if !matches!(&patched, Err(kube::Error::Api(status)) if status.code == 404) {
                return patched;
            }
        }
        let event = self.event(told, &namespace);
        let name = event.metadata.name.clone().unwrap_or_default();
        let params = PostParams::default();
        author.create(Some(&namespace), &params, &event).await?;
        if self.told.len() >= REMEMBERED {
            self.told.clear();
        }
        self.told.insert(same, Known { name, count: 1 });
        Ok(())
    }

    fn event(&self, told: Told, namespace: &str) -> Event {
        let about = told.about.name.clone().unwrap_or_default();
        let unique = self.environment.below(u64::MAX);
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{about}.{unique:016x}")),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: told.about,
            type_: Some(told.kind.to_owned()),
            reason: Some(told.reason.into_owned()),
            message: Some(told.message),
            count: Some(1),
            first_timestamp: Some(Time(told.at)),
            last_timestamp: Some(Time(told.at)),
            source: Some(EventSource {
                component: Some(self.component.to_owned()),
                host: told.host.clone(),
            }),
            reporting_component: Some(self.component.to_owned()),
            reporting_instance: Some(told.host.unwrap_or_default()),
            ..Event::default()
        }
    }
}
