//! The heart of a server: its objects, its resources, and what all requests share.

use std::sync::Arc;

use tokio::sync::{RwLock, RwLockReadGuard, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::admission::{Admission, Gate, has_consequences};
use crate::allocate::Addresses;
use crate::api::watch::Watches;
use crate::auth::Tokens;
use crate::callout::Services;
use crate::documents::Documents;
use crate::environment::Environment;
use crate::fields::FieldManagement;
use crate::fork::ForkOptions;
use crate::logs::PodLogs;
use crate::registry::Registry;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::{RestoreError, Store};

/// Limits on what requests may cost together, as in Kubernetes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestLimits {
    /// Most reads at once; watches do not count.
    pub reads: usize,
    /// Most writes at once.
    pub writes: usize,
    /// Most watches at once for one user.
    pub watches_per_user: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            reads: 400,
            writes: 200,
            watches_per_user: 10_000,
        }
    }
}

/// What all requests share.
pub(crate) struct Core {
    pub(crate) store: Store,
    pub(crate) environment: Environment,
    pub(crate) registry: Registry,
    pub(crate) documents: Documents,
    pub(crate) addresses: Addresses,
    pub(crate) watches: Watches,
    pub(crate) tokens: Tokens,
    pub(crate) access: Access,
    pub(crate) gate: Gate,
    /// Where the Services are that webhooks refer to.
    pub(crate) services: Services,
    pub(crate) field_management: FieldManagement,
    limits: RequestLimits,
    /// Read by writes that change more than an object, until all of it is done: a fork finds none half done.
    settling: RwLock<()>,
    /// Who is asked for logs of containers, if anybody.
    pub(crate) pod_logs: Option<Arc<dyn PodLogs>>,
    /// Cancelled when the server stops: watches end.
    pub(crate) stopping: CancellationToken,
    reads: Semaphore,
    writes: Semaphore,
}

/// What a request does to the server's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    Read,
    Write,
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
        Arc::new(Self {
            registry: Registry::builtin(&store),
            addresses: Addresses::default(),
            documents: Documents::default(),
            watches: Watches::new(limits.watches_per_user),
            tokens,
            access,
            gate: Gate::new(admission),
            services,
            field_management,
            limits: limits.clone(),
            settling: RwLock::default(),
            pod_logs,
            stopping: CancellationToken::new(),
            reads: Semaphore::new(limits.reads),
            writes: Semaphore::new(limits.writes),
            environment,
            store,
        })
    }

    /// A server of its own with all that this one has at this moment, in memory.
    pub(crate) async fn fork(&self, own: ForkOptions) -> Arc<Self> {
        let ForkOptions {
            environment,
            pod_logs,
        } = own;
        let _settled = self.settling.write().await;
        let store = self.store.fork(environment.clone());
        Arc::new(Self {
            registry: self.registry.fork(&store),
            addresses: self.addresses.fork(),
            documents: Documents::default(),
            watches: Watches::new(self.limits.watches_per_user),
            tokens: self.tokens.clone(),
            access: self.access.fork(),
            gate: self.gate.fork(),
            services: self.services.clone(),
            field_management: self.field_management,
            pod_logs: pod_logs.or_else(|| self.pod_logs.clone()),
            limits: self.limits.clone(),
            settling: RwLock::default(),
            stopping: CancellationToken::new(),
            reads: Semaphore::new(self.limits.reads),
            writes: Semaphore::new(self.limits.writes),
            environment,
            store,
        })
    }

    /// Takes over the objects of another server, and what follows from them.
    pub(crate) async fn restore(&self, from: &Self) -> Result<(), RestoreError> {
        let _settled = self.settling.write().await;
        self.store.restore(&from.store)?;
        self.registry.restore(&from.registry, &self.store);
        self.addresses.restore(&from.addresses);
        self.access.restore(&from.access);
        Ok(())
    }

    /// Held by a write of this resource until everything that follows from it is done, if anything does.
    pub(crate) async fn settling(&self, served: &Served) -> Option<RwLockReadGuard<'_, ()>> {
        match has_consequences(served) {
            true => Some(self.settling.read().await),
            false => None,
        }
    }

    /// A place for a request, or the advice to come back.
    pub(crate) fn admit(&self, load: Load) -> Result<SemaphorePermit<'_>, ApiError> {
        let places = match load {
            Load::Read => &self.reads,
            Load::Write => &self.writes,
        };
        places.try_acquire().map_err(|_| {
            ApiError::too_many_requests("too many requests, please try again later", 1)
        })
    }
}
