//! The heart of a server: its objects, its resources, and what all requests share.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::admission::{Admission, Gate};
use crate::api::watch::Watches;
use crate::auth::Tokens;
use crate::callout::Services;
use crate::derived::Derived;
use crate::documents::Documents;
use crate::environment::Environment;
use crate::fields::FieldManagement;
use crate::flow::FlowControl;
use crate::fork::ForkOptions;
use crate::logs::PodLogs;
use crate::registry::Registry;
use crate::storage::{RestoreError, Store};

/// Limits on what requests may cost together, as in Kubernetes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestLimits {
    /// Seats for reads. Together with those for writes they are shared out among the priority levels.
    pub reads: usize,
    /// Seats for writes.
    pub writes: usize,
    /// Most watches at once for one user.
    pub watches_per_user: usize,
    /// Most bytes of request bodies and unread answers at once for one user; members of `system:masters` do not count.
    pub bytes_per_user: usize,
    /// Most bytes of request bodies and unread answers at once.
    pub bytes: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            reads: 400,
            writes: 200,
            watches_per_user: 10_000,
            bytes_per_user: 128 << 20,
            bytes: 512 << 20,
        }
    }
}

/// What all requests share.
pub(crate) struct Core {
    pub(crate) store: Store,
    pub(crate) environment: Environment,
    /// Everything that follows from the objects.
    pub(crate) derived: Arc<Derived>,
    /// The part of `derived` that says which resources are served.
    pub(crate) registry: Arc<Registry>,
    pub(crate) documents: Documents,
    pub(crate) watches: Watches,
    pub(crate) tokens: Tokens,
    pub(crate) access: Access,
    pub(crate) gate: Gate,
    /// Where the Services are that webhooks refer to.
    pub(crate) services: Services,
    pub(crate) field_management: FieldManagement,
    limits: RequestLimits,
    /// Who is asked for logs of containers, if anybody.
    pub(crate) pod_logs: Option<Arc<dyn PodLogs>>,
    /// Cancelled when the server stops: watches end.
    pub(crate) stopping: CancellationToken,
    /// Who may have how much of the server at once.
    pub(crate) flow: FlowControl,
}

impl Core {
    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of one server, each set once"
    )]
    pub(crate) fn new(
        store: Store,
        environment: Environment,
        tokens: Tokens,
        access: Access,
        limits: &RequestLimits,
        field_management: FieldManagement,
        pod_logs: Option<Arc<dyn PodLogs>>,
        admission: Admission,
        services: Services,
    ) -> Arc<Self> {
        let derived = Derived::follow(&store, None);
        Arc::new(Self {
            registry: derived.registry.clone(),
            documents: Documents::default(),
            watches: Watches::new(limits.watches_per_user),
            tokens,
            access: access.by(derived.policy.clone()),
            gate: Gate::new(admission, derived.hooks.clone()),
            derived,
            services,
            field_management,
            limits: limits.clone(),
            pod_logs,
            stopping: CancellationToken::new(),
            flow: FlowControl::new(limits),
            environment,
            store,
        })
    }

    /// A server of its own with all that this one has at this moment, in memory. What follows from the objects is read
    /// from the copies, so it fits them whatever is written meanwhile.
    pub(crate) fn fork(&self, own: ForkOptions) -> Arc<Self> {
        let ForkOptions {
            environment,
            pod_logs,
        } = own;
        let store = self.store.fork(environment.clone());
        let derived = Derived::follow(&store, Some(&self.registry));
        Arc::new(Self {
            registry: derived.registry.clone(),
            documents: Documents::default(),
            watches: Watches::new(self.limits.watches_per_user),
            tokens: self.tokens.clone(),
            access: self.access.fork().by(derived.policy.clone()),
            gate: Gate::new(self.gate.plugins().clone(), derived.hooks.clone()),
            derived,
            services: self.services.clone(),
            field_management: self.field_management,
            pod_logs: pod_logs.or_else(|| self.pod_logs.clone()),
            limits: self.limits.clone(),
            stopping: CancellationToken::new(),
            flow: self.flow.fork(&self.limits),
            environment,
            store,
        })
    }

    /// Takes over the objects of another server, and what follows from them.
    pub(crate) fn restore(&self, from: &Self) -> Result<(), RestoreError> {
        self.derived
            .restore(&self.store, &from.store, &from.registry)
    }
}
