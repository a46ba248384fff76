//! Takes events from the queue and writes them, again if the server cannot be reached.

use std::fmt;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event as CoreEvent;
use k8s_openapi::api::events::v1::Event as SeriesEvent;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::request::{Error as RequestError, Request};
use kube::{Client, Resource};
use serde::de::IgnoredAny;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::correlator::{Correlator, Record, Write};
use super::{EventApi, Recorded, RecorderOptions, encode};
use crate::environment::Environment;

/// Tries for one event.
const TRIES: usize = 12;
/// Pause between tries. The first is anything up to it, so that many operators do not come back at once.
const PAUSE: Duration = Duration::from_secs(10);
/// How long the server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long events that are waiting at the end may take.
const DRAIN: Duration = Duration::from_secs(3);

/// Writes the events of one recorder and its clones.
pub struct EventWriter {
    client: Client,
    options: RecorderOptions,
    environment: Environment,
    waiting: mpsc::Receiver<Recorded>,
    correlator: Correlator,
}

/// What came of one try.
enum Tried {
    /// Written, or refused for good.
    Settled,
    /// The event to be counted on is gone: it has to be written anew.
    Missing,
    /// The server was not reached, or could not.
    Again(String),
}

impl EventWriter {
    pub(super) fn new(
        client: Client,
        options: RecorderOptions,
        environment: Environment,
        waiting: mpsc::Receiver<Recorded>,
    ) -> Self {
        let correlator = Self::correlator(&options);
        Self {
            client,
            options,
            environment,
            waiting,
            correlator,
        }
    }

    /// The same writer with other options, apart from the length of its queue, as long as it has not written anything.
    pub(crate) fn with_options(mut self, options: RecorderOptions) -> Self {
        self.correlator = Self::correlator(&options);
        self.options = options;
        self
    }

    fn correlator(options: &RecorderOptions) -> Correlator {
        Correlator::of(&options.component, &options.instance).with_limits(options.limits)
    }

    /// Writes until cancelled, or until no recorder is left; then what is waiting and under way, for a moment.
    pub async fn run(mut self, cancel: CancellationToken) {
        let moment_over = async {
            cancel.cancelled().await;
            sleep(DRAIN).await;
        };
        // What is written at the last moment is written.
        tokio::select! {
            biased;
            () = self.write_all(&cancel) => {}
            () = moment_over => tracing::debug!("events still waiting after {DRAIN:?} are dropped"),
        }
    }

    async fn write_all(&mut self, cancel: &CancellationToken) {
        loop {
            // The end comes first: the rest is written below.
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                next = self.waiting.recv() => match next {
                    Some(recorded) => self.write(recorded, cancel).await,
                    None => return,
                },
            }
        }
        self.waiting.close();
        while let Some(recorded) = self.waiting.recv().await {
            self.write(recorded, cancel).await;
        }
    }

    async fn write(&mut self, recorded: Recorded, cancel: &CancellationToken) {
        let Recorded { occurrence, sender } = recorded;
        let client = sender.unwrap_or_else(|| self.client.clone());
        let mut write = self.correlator.observe(occurrence.at, occurrence);
        for attempt in 0..TRIES {
            let reason = match self.attempt(&client, &write).await {
                Tried::Settled => return,
                Tried::Missing => {
                    write = anew(write);
                    continue;
                }
                Tried::Again(reason) => reason,
            };
            tracing::debug!(reason, attempt, "an event was not written");
            let pause = match attempt {
                0 => Duration::from_millis(self.environment.below(PAUSE.as_millis() as u64)),
                _ => PAUSE,
            };
            // A writer that is asked to stop does not wait for a server that does not answer.
            tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
        tracing::warn!("an event was given up after {TRIES} tries");
    }

    async fn attempt(&self, client: &Client, write: &Write) -> Tried {
        let sent = async {
            match write {
                Write::Skip => Ok(()),
                Write::Create(record) => self.create(client, record).await,
                Write::Patch(record) => self.patch(client, record).await,
            }
        };
        match timeout(PATIENCE, sent).await {
            Ok(Ok(())) => Tried::Settled,
            Ok(Err(error)) => judge(&error, write),
            Err(_) => Tried::Again("there was no answer".into()),
        }
    }

    async fn create(&self, client: &Client, record: &Record) -> Result<(), kube::Error> {
        let params = PostParams {
            field_manager: Some(encode::component(record, &self.options).to_owned()),
            ..PostParams::default()
        };
        let body = match self.options.api {
            EventApi::Core => serde_json::to_vec(&encode::core(record, &self.options)),
            EventApi::Events => serde_json::to_vec(&encode::series(record, &self.options)),
        };
        let body = body.map_err(kube::Error::SerdeError)?;
        send(client, self.requests(record).create(&params, body)).await
    }

    async fn patch(&self, client: &Client, record: &Record) -> Result<(), kube::Error> {
        let params = PatchParams {
            field_manager: Some(encode::component(record, &self.options).to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(match self.options.api {
            EventApi::Core => encode::core_patch(record),
            EventApi::Events => encode::series_patch(record),
        });
        let built = self.requests(record).patch(&record.name, &params, &patch);
        send(client, built).await
    }

    /// Requests about events in the namespace of this one.
    fn requests(&self, record: &Record) -> Request {
        let namespace = Some(&*record.namespace);
        Request::new(match self.options.api {
            EventApi::Core => CoreEvent::url_path(&(), namespace),
            EventApi::Events => SeriesEvent::url_path(&(), namespace),
        })
    }
}

/// Sends a request. The event that is answered is not read: nobody asks what became of it.
async fn send(
    client: &Client,
    built: Result<http::Request<Vec<u8>>, RequestError>,
) -> Result<(), kube::Error> {
    let request = built.map_err(kube::Error::BuildRequest)?;
    client.request::<IgnoredAny>(request).await.map(drop)
}

impl fmt::Debug for EventWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventWriter({})", self.options.component)
    }
}

fn anew(write: Write) -> Write {
    match write {
        Write::Patch(record) => Write::Create(record),
        other => other,
    }
}

/// A server that answers means it, unless it says that it is not well.
fn judge(error: &kube::Error, write: &Write) -> Tried {
    let kube::Error::Api(status) = error else {
        return Tried::Again(error.to_string());
    };
    match (status.code, write) {
        (404, Write::Patch(_)) => Tried::Missing,
        (429 | 500..=599, _) => Tried::Again(status.message.clone()),
        // Also when it was written before and the answer was lost, or when its namespace is going.
        _ => {
            tracing::debug!(%error, "the server refused an event; it is not written again");
            Tried::Settled
        }
    }
}
