//! What a reconcile is given besides its object.

use std::fmt;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use kubewright_cache::Key;
use tokio_util::sync::CancellationToken;

use crate::cause::{Cause, Reasons};
use crate::client::{Client, TypedObject, Write};
use crate::environment::Environment;
use crate::events::{EventKind, Recorder, reference_of};

/// One reconcile: who runs, why, and with what. Cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<Run>);

struct Run {
    lent: Arc<Lent>,
    key: Key,
    id: u64,
    attempt: u32,
    reasons: Reasons,
    /// Described when somebody asks.
    causes: OnceLock<Vec<Cause>>,
    /// Made when somebody asks: its own, because it remembers what it writes.
    client: OnceLock<Client>,
}

/// What all reconciles of one worker share: its own counter of references, so that workers do not wait for each other's.
pub(crate) struct Lent {
    pub(crate) controller: Arc<str>,
    pub(crate) client: Client,
    pub(crate) recorder: Recorder,
    pub(crate) environment: Environment,
    pub(crate) cancel: CancellationToken,
}

/// What a reconcile leaves behind.
pub(crate) struct Left {
    pub(crate) why: Why,
    pub(crate) writes: Vec<Write>,
}

/// Why a reconcile ran.
#[derive(Debug)]
pub(crate) enum Why {
    Described(Vec<Cause>),
    /// To be described when somebody asks: it holds on to no object.
    Raised(Reasons),
}

impl Why {
    pub(crate) fn causes(&self) -> Vec<Cause> {
        match self {
            Self::Described(causes) => causes.clone(),
            Self::Raised(reasons) => reasons.to_causes(),
        }
    }
}

impl Context {
    pub(crate) fn new(lent: Arc<Lent>, key: Key, id: u64, attempt: u32, reasons: Reasons) -> Self {
        Self(Arc::new(Run {
            lent,
            key,
            id,
            attempt,
            reasons,
            causes: OnceLock::new(),
            client: OnceLock::new(),
        }))
    }

    /// The end of the reconcile. Whoever has a clone keeps what it has.
    pub(crate) fn conclude(self) -> Left {
        let writes = self.0.client.get().map(Client::take_writes);
        let why = match Arc::try_unwrap(self.0) {
            Ok(run) => match run.causes.into_inner() {
                Some(described) => Why::Described(described),
                None if run.reasons.hold_objects() => Why::Described(run.reasons.to_causes()),
                None => Why::Raised(run.reasons),
            },
            Err(shared) => Why::Described(Self(shared).causes().to_vec()),
        };
        Left {
            why,
            writes: writes.unwrap_or_default(),
        }
    }

    /// The controller's name.
    pub fn controller(&self) -> &str {
        &self.0.lent.controller
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
        let run = &*self.0;
        run.causes.get_or_init(|| run.reasons.to_causes())
    }

    /// The client: reads from the cache, writes to the server.
    pub fn client(&self) -> &Client {
        let run = &*self.0;
        run.client.get_or_init(|| run.lent.client.with_trail())
    }

    /// The present moment, by the manager's clock.
    pub fn now(&self) -> Timestamp {
        self.0.lent.environment.now()
    }

    /// Time and randomness.
    pub fn environment(&self) -> &Environment {
        &self.0.lent.environment
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
        self.0
            .lent
            .recorder
            .event(&reference, kind, reason, &message);
    }

    /// Records events about any object.
    pub fn recorder(&self) -> &Recorder {
        &self.0.lent.recorder
    }

    /// Completes when the manager cannot wait any longer. Only reconciles that take very long need to look.
    pub async fn cancelled(&self) {
        self.0.lent.cancel.cancelled().await;
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} #{}",
            self.0.lent.controller,
            self.0.key.as_str(),
            self.0.id
        )
    }
}
