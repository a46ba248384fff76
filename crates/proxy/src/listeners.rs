//! The sockets of all Services: opened, led elsewhere and closed as the rules say.
//!
//! Guarantees
//! - A socket that is closed is free when [`Listeners::apply`] returns.
//! - Connections outlive the socket that they came from and the endpoint's readiness; they end with the proxy.
//! - Everything ends when this is dropped.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kubewright_cache::Key;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use crate::balancer::Balancer;
use crate::frontends::{Frontend, Protocol};
use crate::limits::ProxyLimits;
use crate::{connection, datagrams};

/// How long a listener waits after an error, which is most likely one of too many open files.
const AFTER_ERROR: Duration = Duration::from_millis(50);

/// A socket that should be open, and where its connections go.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) frontend: Frontend,
    pub(crate) backends: Vec<SocketAddr>,
    pub(crate) affinity: Option<Duration>,
}

/// A socket that could not be opened.
#[derive(Debug)]
pub(crate) struct Unavailable {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) error: io::Error,
}

/// All sockets that are open.
#[derive(Debug)]
pub(crate) struct Listeners {
    connections: Arc<Connections>,
    sockets: tokio::sync::Mutex<BTreeMap<(SocketAddr, Protocol), Socket>>,
}

/// All connections that are open, whatever became of their listeners.
#[derive(Debug)]
struct Connections {
    limits: Arc<ProxyLimits>,
    seats: Arc<Semaphore>,
    tasks: Mutex<JoinSet<()>>,
}

/// A socket that is open. It is closed when this is dropped.
#[derive(Debug)]
struct Socket {
    owner: Key,
    balancer: Arc<Mutex<Balancer>>,
    task: JoinHandle<()>,
}

impl Listeners {
    pub(crate) fn new(limits: ProxyLimits) -> Self {
        let connections = Connections {
            seats: Arc::new(Semaphore::new(limits.connections)),
            limits: Arc::new(limits),
            tasks: Mutex::default(),
        };
        Self {
            connections: Arc::new(connections),
            sockets: tokio::sync::Mutex::default(),
        }
    }

    /// How many connections are open.
    pub(crate) fn open_connections(&self) -> usize {
        self.connections.limits.connections - self.connections.seats.available_permits()
    }

    /// Opens and closes sockets of one Service until it has those that are wanted. Gives back those that it cannot have.
    ///
    /// A socket without endpoints is closed: whoever connects is refused, as by kube-proxy.
    pub(crate) async fn apply(&self, owner: &Key, wanted: Vec<Wanted>) -> Vec<Unavailable> {
        let mut sockets = self.sockets.lock().await;
        let has = |socket: &(SocketAddr, Protocol)| {
            let mut usable = wanted.iter().filter(|wanted| !wanted.backends.is_empty());
            usable.any(|wanted| (wanted.frontend.address, wanted.frontend.protocol) == *socket)
        };
        let own = sockets.iter().filter(|(_, socket)| socket.owner == *owner);
        let surplus: Vec<_> = own.map(|(at, _)| *at).filter(|at| !has(at)).collect();
        for at in surplus {
            if let Some(mut socket) = sockets.remove(&at) {
                socket.close().await;
            }
        }
        let mut unavailable = Vec::new();
        for wanted in wanted
            .into_iter()
            .filter(|wanted| !wanted.backends.is_empty())
        {
            let (address, protocol) = (wanted.frontend.address, wanted.frontend.protocol);
            if let Some(open) = sockets
                .get(&(address, protocol))
                .filter(|open| open.owner == *owner)
            {
                open.balancer.lock().set(wanted.backends, wanted.affinity);
                continue;
            }
            match self.open(owner, wanted).await {
                Ok(socket) => drop(sockets.insert((address, protocol), socket)),
                Err(error) => unavailable.push(Unavailable {
                    address,
                    protocol,
                    error,
                }),
            }
        }
        unavailable
    }

    /// Ends all connections, and takes no new ones: listeners end with the next one that they accept, at the latest.
    pub(crate) fn close(&self) {
        self.connections.seats.close();
        self.connections.tasks.lock().abort_all();
        if let Ok(mut sockets) = self.sockets.try_lock() {
            sockets.clear();
        }
    }

    async fn open(&self, owner: &Key, wanted: Wanted) -> io::Result<Socket> {
        let mut balancer = Balancer::default();
        balancer.set(wanted.backends, wanted.affinity);
        let balancer = Arc::new(Mutex::new(balancer));
        let address = wanted.frontend.address;
        let task = match wanted.frontend.protocol {
            Protocol::Tcp => {
                let listener = TcpListener::bind(address).await?;
                tokio::spawn(accept(listener, balancer.clone(), self.connections.clone()))
            }
            Protocol::Udp => {
                let socket = Arc::new(UdpSocket::bind(address).await?);
                let limits = self.connections.limits.clone();
                tokio::spawn(datagrams::serve(socket, balancer.clone(), limits))
            }
        };
        tracing::debug!(service = owner.as_str(), %address, "a service listens");
        Ok(Socket {
            owner: owner.clone(),
            balancer,
            task,
        })
    }
}

impl Socket {
    /// Closes the socket, and waits until it is.
    async fn close(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.close();
    }
}

impl Connections {
    fn serve(
        self: &Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        balancer: Arc<Mutex<Balancer>>,
        seat: OwnedSemaphorePermit,
    ) {
        let limits = self.limits.clone();
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let _seat = seat;
            if let Err(error) = connection::serve(stream, peer.ip(), &balancer, &limits).await {
                tracing::debug!(%peer, %error, "a connection ended");
            }
        });
    }
}

async fn accept(
    listener: TcpListener,
    balancer: Arc<Mutex<Balancer>>,
    connections: Arc<Connections>,
) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(AFTER_ERROR).await;
                continue;
            }
        };
        // Those who come while all seats are taken wait here, and behind this one in the kernel's queue.
        let Ok(seat) = connections.seats.clone().acquire_owned().await else {
            return;
        };
        connections.serve(stream, peer, balancer.clone(), seat);
    }
}
