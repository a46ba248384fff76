//! The console: what it is made from, and what its pages share.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::cluster::Connection;
use crate::feed::Shared;
use crate::feeds::Feeds;
use crate::listen;
use crate::mind::{LocalOperator, Minds, Operator};
use crate::past::Pasts;
use crate::session::Sessions;
use crate::snapshots::{Snapshots, Taken};
use crate::state::{Mode, State};

/// A console to be: the cluster that it shows, and how.
#[must_use]
pub struct Console {
    client: kube::Client,
    terminals: Option<kube::Client>,
    snapshots: Option<Arc<dyn Snapshots>>,
    cluster: String,
    namespace: String,
    mode: Mode,
    operators: Vec<Operator>,
}

/// The address cannot be listened at.
#[derive(Debug, thiserror::Error)]
#[error("the console cannot listen at {address}")]
pub struct ListenError {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

/// A console that answers. It stops when this is dropped.
pub struct Running {
    link: String,
    address: SocketAddr,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Console {
    /// A console over a client, which has the credentials of the user: every request is made with them.
    pub fn new(client: kube::Client) -> Self {
        Self {
            namespace: client.default_namespace().to_owned(),
            client,
            terminals: None,
            snapshots: None,
            cluster: "cluster".to_owned(),
            mode: Mode::default(),
            operators: Vec::new(),
        }
    }

    /// What the page calls the cluster, such as its address or the name of a context.
    pub fn cluster(mut self, name: impl Into<String>) -> Self {
        self.cluster = name.into();
        self
    }

    /// The namespace to show where the user may not see all of them; by default that of the client.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Whether the page offers to change things.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Opens terminals with another client of the same user: one whose connections can go on as WebSockets, where those of
    /// the first cannot because it calls a server of this process.
    pub fn terminals(mut self, client: kube::Client) -> Self {
        self.terminals = Some(client);
        self
    }

    /// Offers snapshots of a cluster that this process runs.
    pub fn snapshots(mut self, snapshots: Arc<dyn Snapshots>) -> Self {
        self.snapshots = Some(snapshots);
        self
    }

    /// Shows the reconciles and queues of an operator in this process.
    pub fn operator(mut self, operator: LocalOperator) -> Self {
        self.operators.push(Operator::Here(operator));
        self
    }

    /// Shows the reconciles of an operator whose metrics endpoint answers over plain HTTP at `host:port`.
    pub fn operator_at(mut self, address: impl Into<String>) -> Self {
        let address = address.into();
        self.operators.push(Operator::There { address });
        self
    }

    /// Listens at an address. Only requests that name this address, or `localhost` on a loopback address, are answered.
    ///
    /// # Errors
    /// When the address is taken or does not belong to this machine.
    pub async fn listen(self, address: SocketAddr) -> Result<Running, ListenError> {
        let failed = |source| ListenError { address, source };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let stop = CancellationToken::new();
        let terminals = self.terminals.unwrap_or_else(|| self.client.clone());
        let shared = Shared {
            connection: Connection::new(self.client),
            timeline: Arc::default(),
            ticks: Arc::new(watch::Sender::new(0)),
            namespace: self.namespace.clone(),
        };
        let state = Arc::new(State {
            sessions: Sessions::new(hosts(address)),
            feeds: Feeds::new(shared, stop.clone()),
            pasts: Pasts::default(),
            minds: Minds::new(self.operators),
            cluster: self.cluster,
            namespace: self.namespace,
            mode: self.mode,
            terminal_connection: Connection::new(terminals),
            terminals: Mutex::default(),
            snapshots: Taken::new(self.snapshots),
            rendered: Mutex::default(),
            oldest: tokio::sync::Mutex::default(),
        });
        let link = format!("http://{address}/#ticket={}", state.sessions.ticket());
        let task = tokio::spawn(listen::serve(socket, state, stop.clone()));
        Ok(Running {
            link,
            address,
            stop,
            task,
        })
    }
}

impl Running {
    /// The link to open, with the secret that lets its reader in.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops answering and waits for the end.
    pub async fn stop(mut self) {
        self.stop.cancel();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The values of `Host` that mean this console.
fn hosts(address: SocketAddr) -> Vec<String> {
    let mut hosts = vec![address.to_string()];
    if address.ip().is_loopback() {
        hosts.push(format!("localhost:{}", address.port()));
    }
    hosts
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Console({})", self.cluster)
    }
}

impl fmt::Debug for Running {
    /// Says nothing of the ticket.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Running({})", self.address)
    }
}
