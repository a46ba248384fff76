//! The server as programs see it: started with a builder, called in-process, listening where its options say.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::access::audit::AuditLog;
use crate::access::token::Issuer;
use crate::access::{Access, Authorization};
use crate::admission::Admission;
use crate::agents::NodeAgents;
use crate::auth::{Caller, Tokens, User};
use crate::bootstrap;
use crate::callout::Services;
use crate::core::{Core, CoreParts, FieldManagement};
use crate::environment::Environment;
use crate::flow::RequestLimits;
use crate::kubeconfig::Kubeconfig;
use crate::listen::{self, ListenLimits};
use crate::logs::PodLogs;
use crate::network::ServiceNetwork;
use crate::pki::{Authority, CertificateSigner, Certificates, Pki, PkiError};
use crate::reconcile;
use crate::service::ApiService;
use crate::storage::{
    Event, Fsync, FutureRevision, HistoryLimits, Observed, OpenError, OpenOptions, Recovery, Store,
};

/// How often history is looked through for what has become too old.
const TRIM_EVERY: Duration = Duration::from_secs(30);

/// A running API server. It stops when this is dropped.
#[derive(Debug)]
pub struct Server {
    pub(crate) core: Stopping,
    /// Ends with the server.
    _tasks: JoinSet<()>,
    data_dir: Option<PathBuf>,
    recovery: Option<Recovery>,
    pub(crate) limits: ListenLimits,
    /// Made when it is first needed; forks have the same.
    pub(crate) authority: Arc<OnceLock<Authority>>,
}

/// The core, asked to stop when it goes.
pub(crate) struct Stopping(pub(crate) Arc<Core>);

/// How a server is to be.
#[derive(Default)]
#[must_use]
pub struct Builder {
    environment: Environment,
    tokens: Tokens,
    requests: RequestLimits,
    connections: ListenLimits,
    history: HistoryLimits,
    data_dir: Option<PathBuf>,
    fsync: Fsync,
    authorization: Authorization,
    audit_log: Option<PathBuf>,
    field_management: FieldManagement,
    pod_logs: Option<Arc<dyn PodLogs>>,
    agents: Option<Arc<dyn NodeAgents>>,
    admission: Admission,
    services: Services,
    network: ServiceNetwork,
    token_issuer: Option<String>,
    token_key: Option<String>,
}

/// Why a server could not start or listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The first objects could not be made.
    #[error("the first objects could not be made: {0}")]
    Bootstrap(String),
    /// The data directory could not be opened.
    #[error("the data directory cannot be used")]
    Storage(#[source] OpenError),
    /// Keys or certificates could not be made.
    #[error("keys and certificates could not be made")]
    Pki(#[source] PkiError),
    /// The audit log cannot be written.
    #[error("the audit log {path} cannot be opened")]
    AuditLog {
        /// Where it is.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Builder {
    /// Where time and randomness come from.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Bearer tokens that are accepted over sockets.
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets the limits on requests, for all users and for each.
    pub fn request_limits(mut self, limits: RequestLimits) -> Self {
        self.requests = limits;
        self
    }

    /// Sets the limits on connections to the socket.
    pub fn listen_limits(mut self, limits: ListenLimits) -> Self {
        self.connections = limits;
        self
    }

    /// How much of the past is kept for watches and consistent pages.
    pub fn history(mut self, limits: HistoryLimits) -> Self {
        self.history = limits;
        self
    }

    /// Keeps objects and keys in this directory. Without one nothing touches the disk.
    pub fn data_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(directory.into());
        self
    }

    /// When writes are forced to the disk; matters with a data directory only.
    pub fn fsync(mut self, fsync: Fsync) -> Self {
        self.fsync = fsync;
        self
    }

    /// Who may do what. By default whoever is known may do everything, which is convenient in tests.
    pub fn authorization(mut self, authorization: Authorization) -> Self {
        self.authorization = authorization;
        self
    }

    /// Writes a line of JSON for each request to this file: an `audit.k8s.io/v1` Event at the level of metadata.
    pub fn audit_log(mut self, path: impl Into<PathBuf>) -> Self {
        self.audit_log = Some(path.into());
        self
    }

    /// Whether the server keeps account of who manages which fields of an object.
    pub fn field_management(mut self, management: FieldManagement) -> Self {
        self.field_management = management;
        self
    }

    /// Who is asked for the logs of containers. Without anybody, whoever asks for one gets an error that says so.
    pub fn pod_logs(mut self, logs: Arc<dyn PodLogs>) -> Self {
        self.pod_logs = Some(logs);
        self
    }

    /// Who answers for the nodes: `exec`, `attach`, `port-forward`, `proxy` and what pods use. Without anybody, whoever asks
    /// gets the error that the node cannot be reached, and `metrics.k8s.io` is not served.
    pub fn node_agents(mut self, agents: Arc<dyn NodeAgents>) -> Self {
        self.agents = Some(agents);
        self
    }

    /// Which admission plugins are asked.
    pub fn admission(mut self, admission: Admission) -> Self {
        self.admission = admission;
        self
    }

    /// Where Services are that webhooks refer to, for those that are processes of this machine.
    pub fn services(mut self, services: Services) -> Self {
        self.services = services;
        self
    }

    /// Where the addresses of Services come from, and whether pods are processes of this machine. A data directory keeps
    /// the addresses that Services have: it is to be opened with the network that it was made with.
    pub fn service_network(mut self, network: ServiceNetwork) -> Self {
        self.network = network;
        self
    }

    /// The issuer that tokens of service accounts name, which is also the audience that the server itself is.
    pub fn token_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.token_issuer = Some(issuer.into());
        self
    }

    /// The key (PEM, P-256) that signs tokens of service accounts, instead of one that is made or kept.
    pub fn token_key(mut self, key: impl Into<String>) -> Self {
        self.token_key = Some(key.into());
        self
    }

    /// Starts the server. It answers in-process calls at once; see [`Server::listen`] for sockets.
    ///
    /// # Errors
    /// When the data directory cannot be opened or the first objects cannot be made.
    pub async fn start(self) -> Result<Server, StartError> {
        let access = self.access()?;
        let (store, recovery) = match &self.data_dir {
            None => (Store::new(self.environment.clone(), self.history), None),
            Some(directory) => {
                let options = OpenOptions::default()
                    .fsync(self.fsync)
                    .history(self.history);
                let (store, recovery) =
                    open(directory.join("objects"), options, self.environment.clone()).await?;
                (store, Some(recovery))
            }
        };
        let core = Core::new(CoreParts {
            store,
            environment: self.environment,
            tokens: self.tokens,
            access,
            limits: self.requests,
            field_management: self.field_management,
            pod_logs: self.pod_logs,
            agents: self.agents,
            admission: self.admission,
            services: self.services,
            network: self.network,
        });
        core.bootstrap()
            .await
            .map_err(|e| StartError::Bootstrap(e.to_string()))?;
        Ok(Server {
            data_dir: self.data_dir,
            recovery,
            ..Server::run(core, self.connections, Arc::default())
        })
    }

    fn access(&self) -> Result<Access, StartError> {
        let keys = self
            .data_dir
            .as_ref()
            .map(|directory| directory.join("pki"));
        let issuer = match &self.token_key {
            Some(pem) => Issuer::of_key(pem),
            None => Issuer::load_or_generate(keys.as_deref()),
        };
        let mut issuer = issuer.map_err(StartError::Pki)?;
        if let Some(name) = &self.token_issuer {
            issuer.name.clone_from(name);
        }
        let audit = self.audit_log.as_deref().map(|path| {
            AuditLog::open(path).map_err(|source| StartError::AuditLog {
                path: path.display().to_string(),
                source,
            })
        });
        Ok(Access::new(self.authorization, issuer, audit.transpose()?))
    }
}

impl std::fmt::Debug for Builder {
    /// Says nothing of keys and tokens.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("data_dir", &self.data_dir)
            .field("authorization", &self.authorization)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server with everything by default: in memory, the machine's clock.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A server in memory over a core that is complete.
    pub(crate) fn run(
        core: Arc<Core>,
        limits: ListenLimits,
        authority: Arc<OnceLock<Authority>>,
    ) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(trim_history(Arc::downgrade(&core), core.stopping.clone()));
        tasks.spawn(reconcile::run(Arc::downgrade(&core), core.stopping.clone()));
        tasks.spawn(reconcile::follow_api_services(
            Arc::downgrade(&core),
            core.stopping.clone(),
        ));
        tasks.spawn(bootstrap::follow_flow_control(
            Arc::downgrade(&core),
            core.stopping.clone(),
        ));
        Self {
            _tasks: tasks,
            core: Stopping(core),
            data_dir: None,
            recovery: None,
            limits,
            authority,
        }
    }

    /// The certificate of the authority that has signed, or will sign, what this server listens with. PEM.
    ///
    /// # Errors
    /// When keys cannot be made or read.
    pub fn certificate_authority(&self) -> Result<&str, PkiError> {
        Ok(self.authority()?.certificate())
    }

    /// Signs certificates as that authority: for whoever answers CertificateSigningRequests.
    ///
    /// # Errors
    /// When keys cannot be made or read.
    pub fn certificate_signer(&self) -> Result<CertificateSigner, PkiError> {
        Ok(CertificateSigner::new(self.authority()?))
    }

    /// A service for calls from inside the process, made as the administrator.
    pub fn service(&self) -> ApiService {
        self.service_as(User::admin())
    }

    /// A service for calls from inside the process, made as this user.
    pub fn service_as(&self, user: User) -> ApiService {
        ApiService::in_process(self.core.0.clone(), Caller::Trusted(user.authenticated()))
    }

    /// A service for the components of a cluster in this process: controllers, schedulers, nodes. A request that has a
    /// [`User`] in its extensions is made as that user, any other as this one, so that many components can share a
    /// connection. They do not wait for each other's requests.
    pub fn service_for_components(&self, user: User) -> ApiService {
        let caller = Caller::Component(user.authenticated());
        ApiService::in_process(self.core.0.clone(), caller)
    }

    /// A service for calls from inside the process that say themselves whose they are, with a bearer token as over a
    /// socket.
    pub fn service_by_token(&self) -> ApiService {
        ApiService::in_process(self.core.0.clone(), Caller::Peer(None))
    }

    /// The table of Services that are processes of this machine; more can be added while the server runs.
    pub fn services(&self) -> &Services {
        self.core.0.services()
    }

    /// What was found in the data directory, if there is one.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.recovery.as_ref()
    }

    /// The revision of the newest write.
    pub fn revision(&self) -> u64 {
        self.core.0.store.revision()
    }

    /// Calls this with every change of an object from now on, in the order of revisions and before anybody else can see
    /// it, with the name of its collection (`pods`, `apps/deployments`). It holds up all writers: it must be quick and
    /// must not call the server. For tests that check what must hold after every write.
    ///
    /// # Errors
    /// When there is an observer.
    pub fn observe(
        &self,
        observer: impl Fn(&str, &Event) + Send + Sync + 'static,
    ) -> Result<(), Observed> {
        self.core.0.derived.observe(Box::new(observer))
    }

    /// Where what is in force differs from what the stored objects come to: addresses, roles, definitions, webhooks and
    /// policies, quota usage. Empty, always; for tests that check it. Nobody may write meanwhile.
    pub fn differences(&self) -> Vec<String> {
        let core = &self.core.0;
        core.derived.differences(&core.store, &core.environment)
    }

    /// Forgets the history up to a revision: older watches and pages expire.
    ///
    /// # Errors
    /// When the revision has not been reached.
    pub fn compact(&self, revision: u64) -> Result<(), FutureRevision> {
        self.core.0.store.compact(revision)
    }

    /// Listens for TLS connections. Port 0 takes a free port.
    ///
    /// # Errors
    /// When the address cannot be had, or keys cannot be made or read.
    pub async fn listen(&self, address: SocketAddr) -> Result<Endpoint, StartError> {
        self.listen_with(address, &Certificates::default()).await
    }

    /// As [`Server::listen`], with certificates from outside.
    ///
    /// # Errors
    /// As [`Server::listen`], and when the certificates cannot be used.
    pub async fn listen_with(
        &self,
        address: SocketAddr,
        certificates: &Certificates,
    ) -> Result<Endpoint, StartError> {
        let names = [address.ip(), self.core.0.network().api_address()];
        let pki = self.pki(&names).map_err(StartError::Pki)?;
        let config = pki.server_config(certificates).map_err(StartError::Pki)?;
        let tls = TlsAcceptor::from(config);
        let failed = |source| StartError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        self.core
            .0
            .publish(
                local,
                self.authority().map_err(StartError::Pki)?.certificate(),
            )
            .await
            .map_err(|error| StartError::Bootstrap(error.to_string()))?;
        let cancel = self.core.0.stopping.child_token();
        let service = self.service();
        let task = tokio::spawn(listen::serve(
            listener,
            tls,
            service,
            self.limits.clone(),
            cancel.clone(),
        ));
        let url = url(local);
        Ok(Endpoint {
            kubeconfig: Kubeconfig::new(&pki, &url, pki.shown_authority(certificates)),
            url,
            address: local,
            cancel,
            task: Some(task),
        })
    }

    fn pki(&self, addresses: &[std::net::IpAddr]) -> Result<Pki, PkiError> {
        Pki::issue(self.authority()?, addresses)
    }

    fn authority(&self) -> Result<&Authority, PkiError> {
        if let Some(authority) = self.authority.get() {
            return Ok(authority);
        }
        let made = match &self.data_dir {
            Some(directory) => Authority::load_or_generate(&directory.join("pki"))?,
            None => Authority::generate()?,
        };
        // Of two who make one at the same time, the first decides.
        Ok(self.authority.get_or_init(|| made))
    }

    /// Ends all watches and connections; requests under way are answered.
    pub fn stop(&self) {
        self.core.0.stopping.cancel();
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.stopping.cancel();
        self.0.store.close();
    }
}

impl std::fmt::Debug for Stopping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "revision {}", self.0.store.revision())
    }
}

/// Opens a store where blocking is allowed: it reads everything that is on disk.
async fn open(
    path: PathBuf,
    options: OpenOptions,
    environment: Environment,
) -> Result<(Store, Recovery), StartError> {
    let opening = tokio::task::spawn_blocking(move || Store::open(&path, options, environment));
    match opening.await {
        Ok(opened) => opened.map_err(StartError::Storage),
        // It is never aborted, so it has panicked.
        Err(ended) => std::panic::resume_unwind(ended.into_panic()),
    }
}

/// Lets the history age while nobody writes. Ends with the server, which it does not keep alive.
async fn trim_history(core: Weak<Core>, stopping: CancellationToken) {
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(TRIM_EVERY) => {}
        }
        match core.upgrade() {
            Some(core) => core.store.trim(),
            None => return,
        }
    }
}

/// A socket that a server listens on. It is closed when this is dropped.
#[derive(Debug)]
pub struct Endpoint {
    url: String,
    address: SocketAddr,
    kubeconfig: Kubeconfig,
    cancel: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Returns the address with its scheme, such as `https://127.0.0.1:6443`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address and port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How clients get in.
    pub fn kubeconfig(&self) -> &Kubeconfig {
        &self.kubeconfig
    }

    /// Writes the kubeconfig to a file that only its owner can read.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_kubeconfig(&self, path: &Path) -> io::Result<()> {
        self.kubeconfig.write(path)
    }

    /// Stops listening and waits until the connections are closed.
    pub async fn close(mut self) {
        self.cancel.cancel();
        if let Some(task) = self.task.take() {
            let _ = task.await;
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Clients on this machine reach a server that listens everywhere on loopback.
fn url(address: SocketAddr) -> String {
    let mut reachable = address;
    if address.ip().is_unspecified() {
        reachable.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("https://{reachable}")
}
