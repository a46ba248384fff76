//! The proxy as programs see it: started over a client, and everything of it ends with its handle.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use kubewright_cache::{Factory, Key};
use kubewright_runtime::{Client, Manager};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::controller::{ServiceProxy, controller};
use crate::dns::DnsServer;
use crate::hosts::Hosts;
use crate::limits::ProxyLimits;
use crate::listeners::Listeners;
use crate::loopback::LoopbackNetwork;
use crate::names::Names;
use crate::range::Ipv4Range;

/// How long hosts files rest between two changes.
const HOSTS_EVERY: Duration = Duration::from_millis(20);
/// How long the controller may take to finish what it is at.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// What a proxy is to do.
#[derive(Debug, Clone)]
#[must_use]
pub struct ProxyOptions {
    limits: ProxyLimits,
    node_port_addresses: Vec<IpAddr>,
    load_balancers: Option<Ipv4Range>,
    except: BTreeSet<Key>,
    hosts: Option<Hosts>,
    dns: Option<SocketAddr>,
    shortest_watch: Option<Duration>,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            limits: ProxyLimits::default(),
            node_port_addresses: vec![Ipv4Addr::LOCALHOST.into()],
            load_balancers: None,
            except: BTreeSet::new(),
            hosts: None,
            dns: None,
            shortest_watch: None,
        }
    }
}

impl ProxyOptions {
    /// The options of a cluster in this network: with its hosts files, its DNS server and its load balancers.
    pub fn of_network(network: &LoopbackNetwork) -> Self {
        Self::default()
            .hosts(network.hosts().clone())
            .dns(network.dns_address())
            .load_balancers(network.load_balancers())
    }

    /// What the proxy may use at most.
    pub fn limits(mut self, limits: ProxyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Where node ports listen besides the loopback addresses of nodes: by default on 127.0.0.1. Anything but loopback lets
    /// other machines in.
    pub fn node_port_addresses(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.node_port_addresses = addresses.into_iter().collect();
        self
    }

    /// Gives Services of the type `LoadBalancer` addresses of this range. By default they get none.
    pub fn load_balancers(mut self, range: Ipv4Range) -> Self {
        self.load_balancers = Some(range);
        self
    }

    /// Gives no addresses to load balancers: somebody else does.
    pub fn without_load_balancers(mut self) -> Self {
        self.load_balancers = None;
        self
    }

    /// Opens no sockets for this Service, which somebody else serves at its cluster IP.
    pub fn except(mut self, namespace: &str, name: &str) -> Self {
        self.except.insert(Key::new(namespace, name));
        self
    }

    /// Keeps these hosts files up to date.
    pub fn hosts(mut self, hosts: Hosts) -> Self {
        self.hosts = Some(hosts);
        self
    }

    /// Answers DNS queries at this address, over UDP and TCP. Port 0 takes a free port.
    pub fn dns(mut self, address: SocketAddr) -> Self {
        self.dns = Some(address);
        self
    }

    /// How long watches stay open, at least: for clients within the process of the server, which never disappear.
    pub fn shortest_watch(mut self, duration: Duration) -> Self {
        self.shortest_watch = Some(duration);
        self
    }
}

/// Why a proxy could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The DNS server could not listen.
    #[error("cannot answer DNS queries at {address}")]
    Dns {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
}

/// A proxy that runs: sockets for Services, and their names. Everything ends when this is dropped, connections as well.
#[derive(Debug)]
pub struct Proxy {
    listeners: Arc<Listeners>,
    dns: Option<SocketAddr>,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Starts a proxy over a client that may list and watch Services, EndpointSlices and Nodes, create Events, and
    /// change the status of Services. It follows the cluster in the background.
    ///
    /// # Errors
    /// When the DNS server cannot listen.
    pub async fn start(client: kube::Client, options: ProxyOptions) -> Result<Self, ProxyError> {
        let listeners = Arc::new(Listeners::new(options.limits));
        let (names, known) = watch::channel(Names::default());
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let mut dns = None;
        if let Some(address) = options.dns {
            let failed = |source| ProxyError::Dns { address, source };
            let server = DnsServer::bind(address).await.map_err(failed)?;
            dns = Some(server.address().map_err(failed)?);
            tasks.spawn(server.serve(known.clone()));
        }
        if let Some(hosts) = options.hosts {
            tasks.spawn(follow_names(hosts, known.clone()));
        }
        let proxy = ServiceProxy {
            listeners: listeners.clone(),
            everywhere: options.node_port_addresses,
            load_balancers: options.load_balancers,
            except: options.except,
            names,
            unavailable: Default::default(),
        };
        let mut factory = Factory::new(client.clone());
        if let Some(duration) = options.shortest_watch {
            factory = factory.shortest_watch(duration);
        }
        let manager = Manager::over(Client::builder(client).factory(factory).build())
            .name("kube-proxy")
            .shutdown_timeout(STOP_WITHIN)
            .controller(controller(proxy));
        let stopped = stop.clone();
        tasks.spawn(async move {
            if let Err(error) = manager.run_until(stopped).await {
                tracing::error!(%error, "the service proxy has ended");
            }
        });
        Ok(Self {
            listeners,
            dns,
            stop,
            _tasks: tasks,
        })
    }

    /// Where DNS queries are answered, if they are.
    pub fn dns_address(&self) -> Option<SocketAddr> {
        self.dns
    }

    /// How many connections are open.
    pub fn open_connections(&self) -> usize {
        self.listeners.open_connections()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.cancel();
        self.listeners.close();
    }
}

/// Writes names into hosts files whenever they have changed, with a pause in between.
async fn follow_names(hosts: Hosts, mut known: watch::Receiver<Names>) {
    while known.changed().await.is_ok() {
        let (hosts, names) = (hosts.clone(), known.borrow_and_update().clone());
        match tokio::task::spawn_blocking(move || hosts.set(names)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "a hosts file could not be written"),
            // It is never aborted, so it has panicked.
            Err(ended) => std::panic::resume_unwind(ended.into_panic()),
        }
        sleep(HOSTS_EVERY).await;
    }
}
