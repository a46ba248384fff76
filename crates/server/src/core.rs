//! The heart of a server: its objects, its resources, and what all requests share.

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::access::token::TokenChecker;
use crate::admission::{Admission, AdmissionChain};
use crate::agents::{NodeAgents, discovery};
use crate::aggregation::{Forwarded, Remote};
use crate::auth::Tokens;
use crate::callout::{Callout, ServiceDirectory, Services};
use crate::converter::Converter;
use crate::derived::Derived;
use crate::documents::Documents;
use crate::environment::Environment;
use crate::flow::{FlowControl, RequestLimits, Watches};
use crate::http::respond::Answer;
use crate::logs::PodLogs;
use crate::network::ServiceNetwork;
use crate::registry::Registry;
use crate::status::ApiError;
use crate::storage::{RestoreError, Store};

/// Whether the server keeps account of who manages which fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldManagement {
    /// It does, as Kubernetes does.
    #[default]
    Tracked,
    /// It does not: objects have no `managedFields`, writes are cheaper, and every apply takes what it wants.
    Off,
}

/// What a copy of a server has for itself. An [`Environment`] alone will do.
#[derive(Clone)]
#[must_use]
pub struct ForkOptions {
    pub(crate) environment: Environment,
    pub(crate) pod_logs: Option<Arc<dyn PodLogs>>,
    pub(crate) agents: Option<Arc<dyn NodeAgents>>,
}

impl ForkOptions {
    /// Time and randomness of its own, and everything else as the original has it.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            pod_logs: None,
            agents: None,
        }
    }

    /// Who is asked for logs of containers, in place of whom the original asks.
    pub fn pod_logs(mut self, logs: Arc<dyn PodLogs>) -> Self {
        self.pod_logs = Some(logs);
        self
    }

    /// Who answers for the nodes, in place of whom the original asks.
    pub fn node_agents(mut self, agents: Arc<dyn NodeAgents>) -> Self {
        self.agents = Some(agents);
        self
    }
}

impl From<Environment> for ForkOptions {
    fn from(environment: Environment) -> Self {
        Self::new(environment)
    }
}

impl fmt::Debug for ForkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForkOptions")
    }
}

/// What a server is made of, each set once.
pub(crate) struct CoreParts {
    pub(crate) store: Store,
    pub(crate) environment: Environment,
    pub(crate) tokens: Tokens,
    pub(crate) access: Access,
    pub(crate) limits: RequestLimits,
    pub(crate) field_management: FieldManagement,
    pub(crate) pod_logs: Option<Arc<dyn PodLogs>>,
    pub(crate) agents: Option<Arc<dyn NodeAgents>>,
    pub(crate) admission: Admission,
    pub(crate) services: Services,
    pub(crate) network: ServiceNetwork,
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
    pub(crate) access: Arc<Access>,
    pub(crate) admission: AdmissionChain,
    pub(crate) converter: Arc<Converter>,
    pub(crate) field_management: FieldManagement,
    limits: RequestLimits,
    /// Who is asked for logs of containers, if anybody.
    pub(crate) pod_logs: Option<Arc<dyn PodLogs>>,
    /// Who answers for the nodes, if anybody.
    pub(crate) agents: Option<Arc<dyn NodeAgents>>,
    /// Cancelled when the server stops: watches end.
    pub(crate) stopping: CancellationToken,
    /// Who may have how much of the server at once.
    pub(crate) flow: FlowControl,
}

impl Core {
    /// A server over the objects of a store.
    pub(crate) fn new(parts: CoreParts) -> Arc<Self> {
        let derived = Derived::follow(&parts.store, parts.network, None);
        let flow = FlowControl::new(&parts.limits);
        Self::assemble(parts, derived, flow)
    }

    fn assemble(parts: CoreParts, derived: Arc<Derived>, flow: FlowControl) -> Arc<Self> {
        let CoreParts {
            store,
            environment,
            tokens,
            access,
            limits,
            field_management,
            pod_logs,
            agents,
            admission,
            services,
            network,
        } = parts;
        let registry = derived.registry.clone();
        let measured = match agents {
            Some(_) => discovery::resources(),
            None => &[],
        };
        let access = Arc::new(access.by(derived.policy.clone()));
        let callout = Callout {
            directory: ServiceDirectory::new(services, network, &store),
        };
        let converter = Converter::new(callout, environment.clone(), flow.slices.clone());
        let converter = Arc::new(converter);
        let admission = AdmissionChain {
            plugins: admission,
            hooks: derived.hooks.clone(),
            quotas: derived.quotas.clone(),
            access: access.clone(),
            registry: registry.clone(),
            environment: environment.clone(),
            converter: converter.clone(),
        };
        Arc::new(Self {
            documents: Documents::new(registry.clone(), environment.clone(), measured),
            watches: Watches::new(limits.watches_per_user),
            stopping: CancellationToken::new(),
            registry,
            tokens,
            access,
            admission,
            converter,
            derived,
            field_management,
            limits,
            pod_logs,
            agents,
            flow,
            environment,
            store,
        })
    }

    /// Passes a request on to the server that answers for its group and version.
    pub(crate) async fn pass_on(
        &self,
        remote: &Remote,
        request: Forwarded<'_>,
    ) -> Result<Answer, ApiError> {
        let (aggregation, callout) = (&self.derived.aggregation, self.converter.callout());
        aggregation.pass_on(callout, remote, request).await
    }

    /// A server of its own with all that this one has at this moment, in memory. What follows from the objects is read
    /// from the copies, so it fits them whatever is written meanwhile.
    pub(crate) fn fork(&self, own: ForkOptions) -> Arc<Self> {
        let ForkOptions {
            environment,
            pod_logs,
            agents,
        } = own;
        let store = self.store.fork(environment.clone());
        let derived = Derived::follow(&store, self.network(), Some(&self.registry));
        let parts = CoreParts {
            store,
            environment,
            tokens: self.tokens.clone(),
            access: self.access.fork(),
            limits: self.limits.clone(),
            field_management: self.field_management,
            pod_logs: pod_logs.or_else(|| self.pod_logs.clone()),
            agents: agents.or_else(|| self.agents.clone()),
            admission: self.admission.plugins.clone(),
            services: self.services().clone(),
            network: self.network(),
        };
        Self::assemble(parts, derived, self.flow.fork(&self.limits))
    }

    /// Takes over the objects of another server, and what follows from them.
    pub(crate) fn restore(&self, from: &Self) -> Result<(), RestoreError> {
        self.derived
            .restore(&self.store, &from.store, &from.registry)
    }

    /// Where the Services are that webhooks refer to.
    pub(crate) fn services(&self) -> &Services {
        &self.converter.callout().directory.table
    }

    /// Where the addresses of Services come from.
    pub(crate) fn network(&self) -> ServiceNetwork {
        self.derived.addresses.network()
    }

    /// Checks tokens of service accounts.
    pub(crate) fn token_checker(&self) -> TokenChecker<'_> {
        TokenChecker {
            issuer: &self.access.issuer,
            registry: &self.registry,
            environment: &self.environment,
        }
    }
}
