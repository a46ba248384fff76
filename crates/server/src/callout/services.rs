//! Where the Services are that webhooks refer to.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;

use crate::kinds::value::{items, strings, text};
use crate::network::ServiceNetwork;
use crate::object;
use crate::storage::{At, Collection, Store};

/// Services that are processes of this machine. Clones share one table, so that a process can be added once its port
/// is known.
///
/// Webhooks name a Service. In a cluster that leads to a pod; where pods are simulated, or the webhook is the very
/// process that runs the server, this table leads to it. Services that are not in it are looked up by their
/// EndpointSlices. Endpoints that are pods, or have an address of theirs ([`ServiceNetwork::SIMULATED_PODS`]), are not
/// dialed: no process is behind a simulated pod's address, and a stranger may be, where the machine has a route to a
/// network of that range.
///
/// # Examples
/// ```
/// use kubewright_server::Services;
///
/// let services = Services::default();
/// services.insert("system", "webhook", 443, "127.0.0.1:9443".parse().unwrap());
/// ```
#[derive(Clone, Default)]
pub struct Services(Arc<RwLock<Table>>);

/// Addresses by namespace, name and port.
type Table = BTreeMap<(String, String, u16), SocketAddr>;

impl Services {
    /// Says where a port of a Service is. An earlier address is replaced.
    pub fn insert(&self, namespace: &str, name: &str, port: u16, address: SocketAddr) {
        let key = (namespace.to_owned(), name.to_owned(), port);
        self.0.write().insert(key, address);
    }

    /// Forgets where a port of a Service is.
    pub fn remove(&self, namespace: &str, name: &str, port: u16) {
        let key = (namespace.to_owned(), name.to_owned(), port);
        self.0.write().remove(&key);
    }

    fn get(&self, namespace: &str, name: &str, port: u16) -> Option<SocketAddr> {
        let key = (namespace.to_owned(), name.to_owned(), port);
        self.0.read().get(&key).copied()
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.read().iter()).finish()
    }
}

/// Why a Service leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResolveError {
    #[error("service {0:?} not found")]
    NotFound(String),
    #[error("{0}")]
    Unreadable(serde_json::Error),
    #[error("no service port {port} found for service {name:?}")]
    NoPort { name: String, port: u16 },
    #[error("no endpoints available for service {0:?}")]
    NoEndpoints(String),
    #[error(
        "service {name:?} leads to simulated pods, which no process is behind: say where its process listens, with \
         `kubewright up --webhook-service {namespace}/{name}:{port}=127.0.0.1:PORT` or `Server::services`, or give the \
         Service no selector and an EndpointSlice of its own"
    )]
    Pods {
        namespace: String,
        name: String,
        port: u16,
    },
}

/// Says where Services are: by the table that programs fill, or else by the stored EndpointSlices.
#[derive(Debug)]
pub(crate) struct ServiceDirectory {
    pub(crate) table: Services,
    network: ServiceNetwork,
    services: Collection,
    slices: Collection,
}

impl ServiceDirectory {
    pub(crate) fn new(table: Services, network: ServiceNetwork, store: &Store) -> Self {
        Self {
            table,
            network,
            services: store.collection("services"),
            slices: store.collection("discovery.k8s.io/endpointslices"),
        }
    }

    /// Finds the address of a port of a Service, or the reason why nothing can be reached there.
    pub(super) fn resolve(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<SocketAddr, ResolveError> {
        if let Some(address) = self.table.get(namespace, name, port) {
            return Ok(address);
        }
        let record = self.services.get(&format!("{namespace}/{name}"));
        let record = record.ok_or_else(|| ResolveError::NotFound(name.to_owned()))?;
        let service: Value =
            serde_json::from_slice(record.body()).map_err(ResolveError::Unreadable)?;
        let ports = items(&service["spec"]["ports"]);
        let found = ports
            .iter()
            .find(|p| p["port"].as_i64() == Some(i64::from(port)));
        let found = found.ok_or_else(|| ResolveError::NoPort {
            name: name.to_owned(),
            port,
        })?;
        let slices = self.slices_of(namespace, name);
        match endpoint(&slices, text(&found["name"]), self.network) {
            Found::Address(address) => Ok(address),
            Found::Nothing => Err(ResolveError::NoEndpoints(name.to_owned())),
            Found::Pods => Err(ResolveError::Pods {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                port,
            }),
        }
    }

    fn slices_of(&self, namespace: &str, service: &str) -> Vec<Value> {
        let Ok(snapshot) = self.slices.snapshot(At::Latest) else {
            return Vec::new();
        };
        snapshot
            .range(&format!("{namespace}/"), None)
            .filter(|record| record.labels().get("kubernetes.io/service-name") == Some(service))
            .filter_map(|record| serde_json::from_slice(record.body()).ok())
            .collect()
    }
}

/// What the endpoints of a Service come to.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Address(SocketAddr),
    /// Pods and nothing else.
    Pods,
    Nothing,
}

/// The first address that is ready, by the name of the port. A pod's counts only where pods are processes of this machine,
/// and then only if it is a loopback address. An address of the range of simulated pods is a pod's, whoever wrote it down.
fn endpoint(slices: &[Value], port_name: &str, network: ServiceNetwork) -> Found {
    let mut slices: Vec<&Value> = slices.iter().collect();
    slices.sort_by_key(|slice| object::name(slice).to_owned());
    let mut found = Found::Nothing;
    for slice in slices {
        let ports = items(&slice["ports"]).iter();
        let mut ports = ports.filter(|port| text(&port["name"]) == port_name);
        let port = ports.find_map(|port| u16::try_from(port["port"].as_u64()?).ok());
        let Some(port) = port else { continue };
        let ready = |endpoint: &&Value| endpoint["conditions"]["ready"] != Value::Bool(false);
        for endpoint in items(&slice["endpoints"]).iter().filter(ready) {
            let mut addresses = strings(&endpoint["addresses"]);
            let address = addresses.find_map(|address| address.parse::<IpAddr>().ok());
            let runs = network.is_loopback() && address.is_some_and(|it| it.is_loopback());
            let simulated = address.is_some_and(|it| network.is_simulated_pod(it));
            if simulated || (endpoint["targetRef"]["kind"] == "Pod" && !runs) {
                found = Found::Pods;
            } else if let Some(address) = address {
                return Found::Address(SocketAddr::new(address, port));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn services_are_where_they_are_said_to_be() {
        let services = Services::default();
        let address: SocketAddr = "127.0.0.1:1".parse().expect("an address");
        services.clone().insert("n", "s", 443, address);
        assert_eq!(services.get("n", "s", 443), Some(address));
        assert_eq!(services.get("n", "s", 444), None);
        services.remove("n", "s", 443);
        assert_eq!(services.get("n", "s", 443), None);
    }

    #[test]
    fn the_first_ready_endpoint_is_taken() {
        let slice = json!({
            "metadata": {"name": "a"}, "ports": [{"name": "x", "port": 1}, {"name": "https", "port": 9443}],
            "endpoints": [
                {"addresses": ["10.0.0.1"], "conditions": {"ready": false}}, {"addresses": ["10.0.0.2"]},
            ],
        });
        let network = ServiceNetwork::default();
        let found = |name| endpoint(std::slice::from_ref(&slice), name, network);
        let address = "10.0.0.2:9443".parse().expect("an address");
        assert_eq!(found("https"), Found::Address(address));
        assert_eq!(found("none"), Found::Nothing);
    }

    #[test]
    fn simulated_pods_are_never_dialed() {
        let network = ServiceNetwork::default();
        let loopback: ServiceNetwork = "127.64.0.0/16".parse().expect("a range");
        let pod = json!({"addresses": ["10.244.0.2"], "targetRef": {"kind": "Pod", "name": "p"}});
        let slice = |name: &str, endpoints: Value| {
            json!({
                "metadata": {"name": name}, "ports": [{"name": "https", "port": 9443}], "endpoints": endpoints,
            })
        };
        let nameless = slice("a", json!([{"addresses": ["10.244.0.2"]}]));
        let found = endpoint(std::slice::from_ref(&nameless), "https", network);
        assert_eq!(
            found,
            Found::Pods,
            "an address of pods that does not say so"
        );
        let pods = slice("a", json!([pod]));
        for network in [network, loopback] {
            let found = endpoint(std::slice::from_ref(&pods), "https", network);
            assert_eq!(found, Found::Pods);
        }
        let process = slice("b", json!([{"addresses": ["127.0.0.1"]}]));
        let address = "127.0.0.1:9443".parse().expect("an address");
        let found = endpoint(&[pods, process], "https", network);
        assert_eq!(found, Found::Address(address));
        let pod = json!({"addresses": ["127.65.0.2"], "targetRef": {"kind": "Pod", "name": "p"}});
        let process = slice("c", json!([pod]));
        let found = |network| endpoint(std::slice::from_ref(&process), "https", network);
        assert_eq!(found(network), Found::Pods);
        let address = "127.65.0.2:9443".parse().expect("an address");
        assert_eq!(found(loopback), Found::Address(address));
    }
}
