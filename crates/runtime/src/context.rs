//! What a reconcile is given besides its object.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use kubewright_cache::Key;
use tokio_util::sync::CancellationToken;

use crate::cause::Cause;
use crate::client::{Client, TypedObject};
use crate::environment::Environment;
use crate::events::{EventKind, Recorder, reference_of};

/// One reconcile: who runs, why, and with what. Cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<Run>);

pub(crate) struct Run {
    pub(crate) controller: Arc<str>,
    pub(crate) key: Key,
    pub(crate) id: u64,
    pub(crate) attempt: u32,
    pub(crate) causes: Vec<Cause>,
    pub(crate) client: Client,
    pub(crate) recorder: Recorder,
    pub(crate) environment: Environment,
    pub(crate) cancel: CancellationToken,
}

impl Context {
    pub(crate) fn new(run: Run) -> Self {
        Self(Arc::new(run))
    }

    /// The controller's name.
    pub fn controller(&self) -> &str {
        &self.0.controller
    }

    /// The key that is reconciled.
    pub fn key(&self) -> &Key {
        &self.0.key
    }

    /// The number of this reconcile, counted from the start of the controller; it is in every line of its log.
    pub fn reconcile_id(&self) -> u64 {
        self.0.id
    }

    /// How often this key has failed in a row before.
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// Why this reconcile runs.
    pub fn causes(&self) -> &[Cause] {
        &self.0.causes
    }

    /// The client: reads from the cache, writes to the server.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The present moment, by the manager's clock.
    pub fn now(&self) -> Timestamp {
        self.0.environment.now()
    }

    /// Time and randomness.
    pub fn environment(&self) -> &Environment {
        &self.0.environment
    }

    /// Tells users of the object what happened, as an event. It is sent in the background, and counted rather than
    /// repeated.
    pub fn event<K: TypedObject>(
        &self,
        object: &K,
        kind: EventKind,
        reason: &str,
        message: impl fmt::Display,
    ) {
        let reference = reference_of(object);
        let message = message.to_string();
        self.0.recorder.event(&reference, kind, reason, &message);
    }

    /// Records events about any object.
    pub fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }

    /// Completes when the manager cannot wait any longer. Only reconciles that take very long need to look.
    pub async fn cancelled(&self) {
        self.0.cancel.cancelled().await;
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} #{}",
            self.0.controller,
            self.0.key.as_str(),
            self.0.id
        )
    }
}
