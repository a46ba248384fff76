//! Follows Services, their EndpointSlices and the nodes: what is decided by the rules is done here.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kubewright_cache::{Index, Key};
use kubewright_runtime::controller::Leadership;
use kubewright_runtime::{
    Client, Context, Controller, Error, EventKind, IgnoreNotFound, Outcome, Query, Reconciler,
    Watch,
};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::backends::{backends, usable};
use crate::frontends::{NodeAddresses, affinity, frontends, node_addresses};
use crate::listeners::{Listeners, Unavailable, Wanted};
use crate::load_balancers::{self, Assignment};
use crate::names::{Names, service_names};
use crate::range::Ipv4Range;

/// Says which Service an EndpointSlice belongs to.
const SERVICE: &str = "kubernetes.io/service-name";
/// The index of EndpointSlices by their Service.
const BY_SERVICE: &str = "proxy-service";
/// How long a socket that is taken rests before it is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// What the proxy does for each Service.
pub(crate) struct ServiceProxy {
    pub(crate) listeners: Arc<Listeners>,
    /// Addresses of node ports that stand for no node in particular.
    pub(crate) everywhere: Vec<IpAddr>,
    pub(crate) load_balancers: Option<Ipv4Range>,
    /// Services that are served elsewhere: they have names and no sockets here.
    pub(crate) except: BTreeSet<Key>,
    pub(crate) names: watch::Sender<Names>,
    /// Sockets that were unavailable when last tried, so that each is reported once.
    pub(crate) unavailable: Mutex<BTreeMap<Key, BTreeSet<SocketAddr>>>,
}

/// The controller of the proxy. One Service at a time: what it does is short.
pub(crate) fn controller(proxy: ServiceProxy) -> Controller {
    Controller::of::<Service>("service-proxy")
        .index::<EndpointSlice>(
            BY_SERVICE,
            Index::of_metadata(|slice| {
                let service = slice.label(SERVICE);
                let service = service.map(|name| slice.key().sibling(&name).to_string());
                service.into_iter().collect()
            }),
        )
        .watches(Watch::of::<EndpointSlice>().map(|slice, _| service_of(slice)))
        .watches(Watch::of::<Node>().map(|_, client| with_node_ports(client)))
        .leadership(Leadership::NotNeeded)
        .reconciler(proxy)
}

impl Reconciler<Service> for ServiceProxy {
    async fn reconcile(&self, service: Arc<Service>, cx: &Context) -> Result<Outcome, Error> {
        let key = cx.key();
        let query = Query::all().index(BY_SERVICE, key.to_string());
        let slices: Vec<Arc<EndpointSlice>> = cx.client().list(query).await?;
        let all = || slices.iter().map(|slice| &**slice);
        let names = service_names(&service, all());
        self.names.send_if_modified(|known| known.set(key, names));
        if self.except.contains(key) {
            return Ok(Outcome::done());
        }
        let nodes = self.node_addresses(cx.client()).await?;
        let affinity = affinity(&service);
        let wanted = frontends(&service, &nodes).into_iter().map(|frontend| {
            let backends = backends(all(), &frontend.port_name, frontend.protocol.as_str());
            let backends = usable(&backends, &frontend.locality);
            Wanted {
                frontend,
                backends,
                affinity,
            }
        });
        let unavailable = self.listeners.apply(key, wanted.collect()).await;
        self.report(&service, &unavailable, cx);
        if let Some(range) = self.load_balancers {
            assign_address(&service, range, cx).await?;
        }
        if unavailable.is_empty() {
            return Ok(Outcome::done());
        }
        Ok(Outcome::requeue_after(TRY_AGAIN))
    }

    async fn gone(&self, key: &Key, _: &Context) -> Result<Outcome, Error> {
        self.names.send_if_modified(|known| known.set(key, None));
        self.listeners.apply(key, Vec::new()).await;
        self.unavailable.lock().remove(key);
        Ok(Outcome::done())
    }
}

impl ServiceProxy {
    async fn node_addresses(&self, client: &Client) -> Result<NodeAddresses, Error> {
        let nodes: Vec<Arc<Node>> = client.list(Query::all()).await?;
        Ok(NodeAddresses {
            everywhere: self.everywhere.clone(),
            nodes: nodes.iter().flat_map(|node| node_addresses(node)).collect(),
        })
    }

    /// Writes an event for each socket that has become unavailable.
    fn report(&self, service: &Service, unavailable: &[Unavailable], cx: &Context) {
        let now: BTreeSet<SocketAddr> = unavailable.iter().map(|one| one.address).collect();
        let before = self
            .unavailable
            .lock()
            .insert(cx.key().clone(), now)
            .unwrap_or_default();
        for one in unavailable
            .iter()
            .filter(|one| !before.contains(&one.address))
        {
            let (protocol, address) = (one.protocol.as_str(), one.address);
            let message = format!(
                "cannot listen on {address} ({protocol}): {}",
                reason(&one.error)
            );
            cx.event(service, EventKind::Warning, "PortUnavailable", message);
        }
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "ports below net.ipv4.ip_unprivileged_port_start need root".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Gives a load balancer its address, or takes it back.
async fn assign_address(service: &Service, range: Ipv4Range, cx: &Context) -> Result<(), Error> {
    let client = cx.client();
    let services: Vec<Arc<Service>> = client.list(Query::all()).await?;
    let others = services
        .iter()
        .filter(|other| other.metadata.uid != service.metadata.uid);
    let taken = others
        .flat_map(|other| load_balancers::addresses(other))
        .collect();
    let address = match load_balancers::assign(service, range, &taken) {
        Assignment::Keep => return Ok(()),
        Assignment::Give(address) => Some(address),
        Assignment::TakeBack => None,
        Assignment::Unavailable => {
            let message = format!("no address of {range} is free for the load balancer");
            cx.event(service, EventKind::Warning, "AddressUnavailable", message);
            return Ok(());
        }
    };
    let change = |service: &mut Service| {
        let status = service.status.get_or_insert_default();
        status.load_balancer = Some(load_balancers::status(address));
    };
    client
        .modify_status(service, change)
        .await
        .ignore_not_found()?;
    Ok(())
}

fn service_of(slice: &EndpointSlice) -> Vec<Key> {
    let labels = slice.metadata.labels.as_ref();
    let name = labels.and_then(|labels| labels.get(SERVICE));
    let namespace = slice.metadata.namespace.as_deref();
    let key = name
        .zip(namespace)
        .map(|(name, namespace)| Key::new(namespace, name));
    key.into_iter().collect()
}

/// The Services that a change of a node's addresses concerns.
fn with_node_ports(client: &Client) -> Vec<Key> {
    let services = client.reader::<Service>().list();
    let concerned = services.iter().filter(|service| {
        let kind = service.spec.as_ref().and_then(|spec| spec.type_.as_deref());
        matches!(kind, Some("NodePort" | "LoadBalancer"))
    });
    concerned.map(|service| Key::of(&**service)).collect()
}
