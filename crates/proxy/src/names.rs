//! Names of Services and of the pods behind them, as the DNS specification of Kubernetes has them; what a hosts file says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kubewright_cache::Key;

/// The domain of a cluster.
pub(crate) const DOMAIN: &str = "cluster.local";

/// The names of all Services. Pure: whoever has it keeps it up to date.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    services: BTreeMap<Key, ServiceNames>,
}

/// What the names of one Service lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceNames {
    pub(crate) target: Target,
    /// Ports of the Service: name, protocol in small letters, number.
    pub(crate) ports: Vec<NamedPort>,
    /// The endpoints that are ready.
    pub(crate) endpoints: Vec<NamedEndpoint>,
}

/// What the name of a Service itself leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// To its cluster IP.
    ClusterIp(Ipv4Addr),
    /// To all of its endpoints.
    Headless,
    /// To a name outside of the cluster.
    External(String),
}

/// A port with the name that SRV records ask for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedPort {
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) number: u16,
}

/// An endpoint, by its hostname or by its address with dashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedEndpoint {
    pub(crate) address: Ipv4Addr,
    pub(crate) hostname: Option<String>,
    pub(crate) ports: Vec<NamedPort>,
}

impl NamedEndpoint {
    /// The label under which the endpoint is found.
    pub(crate) fn label(&self) -> String {
        let dashed = || self.address.to_string().replace('.', "-");
        self.hostname.clone().unwrap_or_else(dashed)
    }
}

impl Names {
    /// Puts what a Service says in place of what it said before. Says whether anything has changed.
    pub(crate) fn set(&mut self, key: &Key, names: Option<ServiceNames>) -> bool {
        let Some(names) = names else {
            return self.services.remove(key).is_some();
        };
        self.services.insert(key.clone(), names.clone()) != Some(names)
    }

    /// The Service of this name.
    pub(crate) fn service(&self, namespace: &str, name: &str) -> Option<&ServiceNames> {
        self.services.get(&Key::new(namespace, name))
    }

    /// All Services.
    pub(crate) fn services(&self) -> impl Iterator<Item = (&Key, &ServiceNames)> {
        self.services.iter()
    }

    /// Whether there is a Service in this namespace.
    pub(crate) fn has_namespace(&self, namespace: &str) -> bool {
        let mut keys = self.services.keys();
        keys.any(|key| key.namespace() == Some(namespace))
    }

    /// The lines of a hosts file for this namespace: each name in its full and in its short forms.
    ///
    /// Names outside of the cluster have no line, because a hosts file has no place for them.
    pub(crate) fn hosts_lines(&self, namespace: &str) -> String {
        let mut lines = String::new();
        for (key, service) in &self.services {
            let own = key.namespace() == Some(namespace);
            let full = format!("{}.{}", key.name(), key.namespace().unwrap_or_default());
            let name = |prefix: &str| forms(prefix, key.name(), &full, own);
            match &service.target {
                Target::ClusterIp(address) => line(&mut lines, *address, &name("")),
                Target::Headless => {
                    let addresses: BTreeSet<_> =
                        service.endpoints.iter().map(|e| e.address).collect();
                    addresses
                        .into_iter()
                        .for_each(|address| line(&mut lines, address, &name("")));
                }
                Target::External(_) => {}
            }
            for endpoint in &service.endpoints {
                if let Some(hostname) = &endpoint.hostname {
                    line(&mut lines, endpoint.address, &name(&format!("{hostname}.")));
                }
            }
        }
        lines
    }
}

/// `web.default.svc.cluster.local web.default.svc web.default web`, the last within the namespace alone.
fn forms(prefix: &str, short: &str, full: &str, own: bool) -> String {
    let mut forms = format!("{prefix}{full}.svc.{DOMAIN} {prefix}{full}.svc {prefix}{full}");
    if own {
        let _ = write!(forms, " {prefix}{short}");
    }
    forms
}

fn line(lines: &mut String, address: Ipv4Addr, names: &str) {
    let _ = writeln!(lines, "{address}\t{names}");
}

/// What the names of a Service lead to. Nothing when it has no address that is an IPv4 one, and none outside either.
pub(crate) fn service_names<'a>(
    service: &Service,
    slices: impl IntoIterator<Item = &'a EndpointSlice>,
) -> Option<ServiceNames> {
    let spec = service.spec.as_ref()?;
    let target = match (spec.type_.as_deref(), spec.cluster_ip.as_deref()) {
        (Some("ExternalName"), _) => Target::External(spec.external_name.clone()?),
        (_, Some("None")) => Target::Headless,
        (_, address) => Target::ClusterIp(address?.parse().ok()?),
    };
    let ports = spec.ports.iter().flatten();
    let ports = ports.filter_map(|port| {
        named(
            port.name.as_deref(),
            port.protocol.as_deref(),
            Some(port.port),
        )
    });
    let mut endpoints: BTreeMap<Ipv4Addr, NamedEndpoint> = BTreeMap::new();
    for endpoint in slices.into_iter().flat_map(named_endpoints) {
        let known = endpoints
            .entry(endpoint.address)
            .or_insert(endpoint.clone());
        known.ports.extend(endpoint.ports);
        known.ports.sort();
        known.ports.dedup();
    }
    Some(ServiceNames {
        target,
        ports: ports.collect(),
        endpoints: endpoints.into_values().collect(),
    })
}

fn named_endpoints(slice: &EndpointSlice) -> Vec<NamedEndpoint> {
    let ports = slice.ports.iter().flatten();
    let ports =
        ports.filter_map(|port| named(port.name.as_deref(), port.protocol.as_deref(), port.port));
    let ports: Vec<NamedPort> = ports.collect();
    let endpoints = slice.endpoints.iter().flatten();
    let ready = endpoints.filter(|endpoint| {
        let conditions = endpoint.conditions.as_ref();
        conditions.and_then(|conditions| conditions.ready) != Some(false)
    });
    let named = ready.filter_map(|endpoint| {
        Some(NamedEndpoint {
            address: endpoint.addresses.first()?.parse().ok()?,
            hostname: endpoint.hostname.clone().filter(|name| !name.is_empty()),
            ports: ports.clone(),
        })
    });
    named.collect()
}

fn named(name: Option<&str>, protocol: Option<&str>, number: Option<i32>) -> Option<NamedPort> {
    Some(NamedPort {
        name: name.unwrap_or_default().to_owned(),
        protocol: protocol.unwrap_or("TCP").to_lowercase(),
        number: u16::try_from(number?).ok()?,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A cluster with a Service of each sort.
    pub(crate) fn names() -> Names {
        let mut names = Names::default();
        add(
            &mut names,
            "default",
            "web",
            json!({"clusterIP": "127.64.1.1", "ports": [{"name": "http", "port": 80}]}),
            json!([]),
        );
        let peers = json!([
            {"addresses": ["127.65.0.2"], "hostname": "etcd-0"},
            {"addresses": ["127.65.0.3"], "hostname": "etcd-1"},
            {"addresses": ["127.65.0.4"], "hostname": "etcd-2", "conditions": {"ready": false}},
            {"addresses": ["127.65.0.5"]},
        ]);
        add(
            &mut names,
            "data",
            "etcd",
            json!({"clusterIP": "None", "ports": [{"name": "peer", "port": 2380}]}),
            peers,
        );
        add(
            &mut names,
            "data",
            "far",
            json!({"type": "ExternalName", "externalName": "db.example.com"}),
            json!([]),
        );
        names
    }

    fn add(names: &mut Names, namespace: &str, name: &str, spec: Value, endpoints: Value) {
        let service = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec});
        let service: Service = serde_json::from_value(service).expect("a service");
        let slice = json!({
            "metadata": {"name": name}, "addressType": "IPv4", "endpoints": endpoints,
            "ports": [{"name": "peer", "port": 12380}],
        });
        let slice: EndpointSlice = serde_json::from_value(slice).expect("a slice");
        names.set(
            &Key::new(namespace, name),
            service_names(&service, [&slice]),
        );
    }

    #[test]
    fn hosts_files_have_short_names_of_their_own_namespace() {
        let names = names();
        let domain = "svc.cluster.local";
        let expected = |web: &str, etcd: [&str; 3]| {
            let etcd_line = |address: &str, host: &str, short: &str| {
                format!(
                    "{address}\t{host}etcd.data.{domain} {host}etcd.data.svc {host}etcd.data{short}\n"
                )
            };
            [
                etcd_line("127.65.0.2", "", etcd[0]),
                etcd_line("127.65.0.3", "", etcd[0]),
                etcd_line("127.65.0.5", "", etcd[0]),
                etcd_line("127.65.0.2", "etcd-0.", etcd[1]),
                etcd_line("127.65.0.3", "etcd-1.", etcd[2]),
                format!("127.64.1.1\tweb.default.{domain} web.default.svc web.default{web}\n"),
            ]
            .concat()
        };
        assert_eq!(names.hosts_lines("default"), expected(" web", ["", "", ""]));
        assert_eq!(
            names.hosts_lines("data"),
            expected("", [" etcd", " etcd-0.etcd", " etcd-1.etcd"])
        );
    }

    #[test]
    fn a_change_is_noticed_and_the_same_again_is_not() {
        let mut names = names();
        let key = Key::new("default", "web");
        let same = names.service("default", "web").cloned();
        assert!(!names.set(&key, same.clone()));
        assert!(names.set(&key, None));
        assert!(!names.set(&key, None));
        assert!(names.set(&key, same));
    }
}
