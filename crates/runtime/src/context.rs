//! What a reconcile is given besides its object.

use std::fmt;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use kubewright_cache::{AsObject, Key};
use tokio_util::sync::CancellationToken;

use crate::cause::{Cause, Reasons};
use crate::client::{Client, Traces};
use crate::described::Described;
use crate::environment::Environment;
use crate::events::{EventKind, Recorder, reference_of};
use crate::metrics::Metrics;
use crate::{Error, States};

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

/// What is new in a reconcile.
pub(crate) struct New {
    pub(crate) key: Key,
    pub(crate) id: u64,
    pub(crate) attempt: u32,
    pub(crate) reasons: Reasons,
}

/// What all reconciles of one worker share: its own counter of references, so that workers do not wait for each other's.
pub(crate) struct Lent {
    pub(crate) controller: Arc<str>,
    pub(crate) client: Client,
    pub(crate) recorder: Recorder,
    pub(crate) environment: Environment,
    pub(crate) metrics: Metrics,
    pub(crate) states: States,
    pub(crate) cancel: CancellationToken,
}

/// What a reconcile leaves behind.
pub(crate) struct Left {
    pub(crate) reasons: Reasons,
    pub(crate) traces: Traces,
}

impl Context {
    /// The context of a new reconcile, made of one that is over where there is one.
    pub(crate) fn new(lent: &Arc<Lent>, spare: Option<Self>, new: New) -> Self {
        let New {
            key,
            id,
            attempt,
            reasons,
        } = new;
        if let Some(mut spare) = spare
            && let Some(run) = Arc::get_mut(&mut spare.0)
        {
            (run.key, run.id, run.attempt, run.reasons) = (key, id, attempt, reasons);
            return spare;
        }
        Self(Arc::new(Run {
            lent: lent.clone(),
            key,
            id,
            attempt,
            reasons,
            causes: OnceLock::new(),
            client: OnceLock::new(),
        }))
    }

    /// The end of the reconcile. Whoever has a clone keeps what it has; if nobody has, the next reconcile can use it.
    pub(crate) fn conclude(mut self) -> (Left, Option<Self>) {
        let Some(run) = Arc::get_mut(&mut self.0) else {
            let traces = self.0.client.get().map(Client::take_traces);
            let left = Left {
                reasons: self.0.reasons.clone(),
                traces: traces.unwrap_or_default(),
            };
            return (left, None);
        };
        let traces = run.client.take().as_ref().map(Client::take_traces);
        run.causes.take();
        let left = Left {
            reasons: std::mem::take(&mut run.reasons),
            traces: traces.unwrap_or_default(),
        };
        (left, Some(self))
    }

    /// Returns the name of the controller.
    pub fn controller(&self) -> &str {
        &self.0.lent.controller
    }

    /// The key that is reconciled: that of the object, or [that of the request](crate::Request::key).
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kubewright_runtime::{Context, Error, EventKind, Key, Outcome};
    /// # async fn reconcile(secret: Arc<Secret>, cx: Context) -> Result<Outcome, Error> {
    /// // The copy of a Secret has its name, in a namespace of its own.
    /// let copy = Key::new("copies", cx.key().name());
    /// # drop(copy);
    /// # Ok(Outcome::done())
    /// # }
    /// ```
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
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kubewright_runtime::{Context, Error, EventKind, Key, Outcome};
    /// # async fn reconcile(secret: Arc<Secret>, cx: Context) -> Result<Outcome, Error> {
    /// let settings = cx.client().get::<ConfigMap>(&cx.key().sibling("settings")).await?;
    /// # drop(settings);
    /// # Ok(Outcome::done())
    /// # }
    /// ```
    pub fn client(&self) -> &Client {
        let run = &*self.0;
        run.client.get_or_init(|| run.lent.client.with_trail())
    }

    /// The present moment, by the manager's clock.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kubewright_runtime::{Context, Error, EventKind, Key, Outcome};
    /// # async fn reconcile(secret: Arc<Secret>, cx: Context) -> Result<Outcome, Error> {
    /// let Some(created) = &secret.metadata.creation_timestamp else {
    ///     return Ok(Outcome::done());
    /// };
    /// let age = cx.now().duration_since(created.0);
    /// # drop(age);
    /// # Ok(Outcome::done())
    /// # }
    /// ```
    pub fn now(&self) -> Timestamp {
        self.0.lent.environment.now()
    }

    /// Returns the manager's clock and randomness.
    pub fn environment(&self) -> &Environment {
        &self.0.lent.environment
    }

    /// Tells users of the object what happened, as an event. It is sent in the background, and counted rather than
    /// repeated.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kubewright_runtime::{Context, Error, EventKind, Key, Outcome};
    /// # async fn reconcile(secret: Arc<Secret>, cx: Context) -> Result<Outcome, Error> {
    /// cx.event(&secret, EventKind::Warning, "TooShort", "a password needs twelve characters");
    /// # Ok(Outcome::done())
    /// # }
    /// ```
    pub fn event<K: Described>(
        &self,
        object: impl AsObject<K>,
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

    /// What the manager was given for its reconcilers: a client of another system, say.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::Service;
    /// use kubewright_runtime::{Context, Error, Outcome, Reconciler};
    ///
    /// /// Given to the manager with `manager.state(Registrar::connect()?)`.
    /// struct Registrar;
    ///
    /// impl Registrar {
    ///     async fn register(&self, _name: &str) -> Result<(), std::io::Error> {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// struct Names;
    ///
    /// impl Reconciler<Service> for Names {
    ///     async fn reconcile(&self, service: Arc<Service>, cx: &Context) -> Result<Outcome, Error> {
    ///         let names = service.metadata.name.iter();
    ///         for name in names {
    ///             cx.state::<Registrar>()?.register(name).await?;
    ///         }
    ///         Ok(Outcome::done())
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// When the manager was given no value of this type. The error is terminal.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, Error> {
        self.0.lent.states.get().map_err(Error::terminal)
    }

    /// The metrics of the manager, for counters of one's own. A family that exists is shared, so that a reconcile can ask for
    /// it each time.
    pub fn metrics(&self) -> &Metrics {
        &self.0.lent.metrics
    }

    /// Records events about any object.
    pub fn recorder(&self) -> &Recorder {
        &self.0.lent.recorder
    }

    /// A token that is cancelled when the manager cannot wait any longer, for what takes one: tasks that the reconcile starts, or
    /// clients of other systems. To cancel it ends what has it, and no other reconcile.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # use kubewright_runtime::{CancellationToken, Context, Error, Outcome};
    /// # async fn upload(_: CancellationToken) -> Result<(), Error> { Ok(()) }
    /// # async fn reconcile(secret: Arc<Secret>, cx: Context) -> Result<Outcome, Error> {
    /// let uploading = tokio::spawn(upload(cx.cancellation()));
    /// uploading.await.map_err(Error::new)??;
    /// # Ok(Outcome::done())
    /// # }
    /// ```
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.0.lent.cancel.child_token()
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
