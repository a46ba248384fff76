//! Where the Services are that webhooks refer to.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;

use crate::core::Core;
use crate::kinds::value::{items, strings, text};
use crate::object;
use crate::storage::At;

/// Services that are processes of this machine. Clones share one table, so that a process can be added once its port
/// is known.
///
/// Webhooks name a Service. In a cluster that leads to a pod; where pods are simulated, or the webhook is the very
/// process that runs the server, this table leads to it. Services that are not in it are looked up by their
/// EndpointSlices.
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

/// The address of a port of a Service, or why there is none.
pub(crate) fn resolve(
    core: &Core,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<SocketAddr, String> {
    if let Some(address) = core.services.get(namespace, name, port) {
        return Ok(address);
    }
    let services = core.registry.now().builtin("", "v1", "services");
    let record = services.collection.get(&format!("{namespace}/{name}"));
    let record = record.ok_or_else(|| format!("service {name:?} not found"))?;
    let service = services.revive(&record).map_err(|e| e.to_string())?;
    let ports = items(&service["spec"]["ports"]);
    let found = ports
        .iter()
        .find(|p| p["port"].as_i64() == Some(i64::from(port)));
    let found =
        found.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
    let slices = slices(core, namespace, name)?;
    endpoint(&slices, text(&found["name"]))
        .ok_or_else(|| format!("no endpoints available for service {name:?}"))
}

fn slices(core: &Core, namespace: &str, service: &str) -> Result<Vec<Value>, String> {
    let served = core
        .registry
        .now()
        .builtin("discovery.k8s.io", "v1", "endpointslices");
    let snapshot = served.collection.snapshot(At::Latest);
    let snapshot = snapshot.map_err(|e| e.to_string())?;
    let prefix = format!("{namespace}/");
    let of_service = snapshot
        .range(&prefix, None)
        .filter(|record| record.labels().get("kubernetes.io/service-name") == Some(service));
    let values = of_service.map(|record| served.revive(record).map_err(|e| e.to_string()));
    values.collect()
}

/// The first address that is ready, by the name of the port.
fn endpoint(slices: &[Value], port_name: &str) -> Option<SocketAddr> {
    let mut slices: Vec<&Value> = slices.iter().collect();
    slices.sort_by_key(|slice| object::name(slice).to_owned());
    for slice in slices {
        let ports = items(&slice["ports"]).iter();
        let mut ports = ports.filter(|port| text(&port["name"]) == port_name);
        let port = ports.find_map(|port| u16::try_from(port["port"].as_u64()?).ok());
        let Some(port) = port else { continue };
        for endpoint in items(&slice["endpoints"]) {
            if endpoint["conditions"]["ready"] == Value::Bool(false) {
                continue;
            }
            let mut addresses = strings(&endpoint["addresses"]).map(str::parse::<IpAddr>);
            if let Some(Ok(address)) = addresses.find(Result::is_ok) {
                return Some(SocketAddr::new(address, port));
            }
        }
    }
    None
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
        let found = |name| endpoint(std::slice::from_ref(&slice), name).map(|a| a.to_string());
        assert_eq!(found("https").as_deref(), Some("10.0.0.2:9443"));
        assert_eq!(found("none"), None);
    }
}
